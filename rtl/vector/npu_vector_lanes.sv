// SPDX-License-Identifier: Apache-2.0
/// The lanes: one instruction on the operands of one beat per cycle.
///
/// The operands belong to `tag_i`; result and tag leave FmaLatency cycles later, those of a
/// division or square root DIV_LATENCY cycles later, through the same port: the sequencer spaces
/// them. As in the matrix engine the arithmetic is one expression followed by registers for
/// synthesis to spread, and cycles and lanes without work keep theirs.
module npu_vector_lanes
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
#(
  parameter int unsigned VectorLanes = 16,
  parameter int unsigned FmaLatency  = 4,
  localparam int unsigned BeatBits   = 32 * VectorLanes
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  tag_t                tag_i,
  input  micro_op_e           op_i,
  input  logic [BeatBits-1:0] a_i,
  input  logic [BeatBits-1:0] b_i,
  input  logic [BeatBits-1:0] c_i,

  output tag_t                tag_o,
  output logic [BeatBits-1:0] result_o
);
  typedef logic [BeatBits-1:0] row_t;

  row_t                   fast_q [FmaLatency];
  row_t                   slow_q [DIV_LATENCY];
  tag_t                   fast_tag_q [FmaLatency];
  tag_t                   slow_tag_q [DIV_LATENCY];
  logic                   fast, slow;

  // Each function of several steps is a loop over unpacked lanes in a function of its own, which
  // the simulator's compiler turns into vector instructions (docs/adr/0003).
  function automatic row_t fma_row(input row_t a, input row_t b, input row_t c);
    // verilator no_inline_task
    logic [31:0] x [VectorLanes], y [VectorLanes], z [VectorLanes];
    // verilator unroll_full
    for (int unsigned l = 0; l < VectorLanes; l++) begin
      x[l] = a[l*32 +: 32];
      y[l] = b[l*32 +: 32];
      z[l] = c[l*32 +: 32];
    end
    // verilator unroll_disable
    for (int unsigned l = 0; l < VectorLanes; l++) begin
      z[l] = npu_fma_pkg::fp32_fma(x[l], y[l], z[l]);
    end
    // verilator unroll_full
    for (int unsigned l = 0; l < VectorLanes; l++) fma_row[l*32 +: 32] = z[l];
  endfunction

  function automatic row_t div_row(input row_t a, input row_t b);
    // verilator no_inline_task
    logic [31:0] x [VectorLanes], y [VectorLanes];
    // verilator unroll_full
    for (int unsigned l = 0; l < VectorLanes; l++) begin
      x[l] = a[l*32 +: 32];
      y[l] = b[l*32 +: 32];
    end
    // verilator unroll_disable
    for (int unsigned l = 0; l < VectorLanes; l++) x[l] = npu_fp_div_pkg::fp32_div(x[l], y[l]);
    // verilator unroll_full
    for (int unsigned l = 0; l < VectorLanes; l++) div_row[l*32 +: 32] = x[l];
  endfunction

  function automatic row_t sqrt_row(input row_t a);
    // verilator no_inline_task
    logic [31:0] x [VectorLanes];
    // verilator unroll_full
    for (int unsigned l = 0; l < VectorLanes; l++) x[l] = a[l*32 +: 32];
    // verilator unroll_disable
    for (int unsigned l = 0; l < VectorLanes; l++) x[l] = npu_fp_div_pkg::fp32_sqrt(x[l]);
    // verilator unroll_full
    for (int unsigned l = 0; l < VectorLanes; l++) sqrt_row[l*32 +: 32] = x[l];
  endfunction

  // |a|, but not above the end of the table; NaNs pass.
  function automatic logic [31:0] within_table(input logic [31:0] magnitude,
                                              input logic [31:0] limit);
    return magnitude > limit && magnitude <= npu_fp_pkg::FP32_INF ? limit : magnitude;
  endfunction

  function automatic logic [31:0] alu(input micro_op_e op, input logic [31:0] a,
                                      input logic [31:0] b, input logic [31:0] c);
    unique case (op)
      MICRO_FMAX:      return npu_fp_alu_pkg::fp32_max(a, b);
      MICRO_FMIN:      return npu_fp_alu_pkg::fp32_min(a, b);
      MICRO_FLT:       return npu_fp_alu_pkg::fp32_lt(a, b);
      MICRO_FLE:       return npu_fp_alu_pkg::fp32_le(a, b);
      MICRO_FEQ:       return npu_fp_alu_pkg::fp32_eq(a, b);
      MICRO_SEL:       return a != 0 ? b : c;
      MICRO_AND:       return a & b;
      MICRO_OR:        return a | b;
      MICRO_XOR:       return a ^ b;
      MICRO_IADD:      return a + b;
      MICRO_ISUB:      return a - b;
      MICRO_IMUL:      return a * b;
      MICRO_IMAX:      return $signed(a) > $signed(b) ? a : b;
      MICRO_IMIN:      return $signed(a) < $signed(b) ? a : b;
      MICRO_ILT:       return $signed(a) < $signed(b) ? 32'd1 : 32'd0;
      MICRO_IEQ:       return a == b ? 32'd1 : 32'd0;
      MICRO_SHL:       return a << b[4:0];
      MICRO_SRL:       return a >> b[4:0];
      MICRO_SRA:       return 32'($signed(a) >>> b[4:0]);
      MICRO_I2F:       return npu_fp_alu_pkg::int32_to_fp32(a);
      MICRO_F2I:       return npu_fp_alu_pkg::fp32_to_int32(a, 32'd1);
      MICRO_F2I_TRUNC: return npu_fp_alu_pkg::fp32_to_int32(a, 32'd0);
      MICRO_ROUND_FP16: return npu_fp_pkg::fp16_to_fp32(npu_fp_pkg::fp32_to_fp16(a));
      MICRO_ROUND_BF16: return npu_fp_pkg::bf16_to_fp32(npu_fp_pkg::fp32_to_bf16(a));
      MICRO_SEGMENT:   return within_table({1'b0, a[30:0]}, b);
      default:         return a;
    endcase
  endfunction

  function automatic row_t alu_row(input micro_op_e op, input row_t a, input row_t b,
                                   input row_t c);
    // verilator no_inline_task
    logic [31:0] x [VectorLanes], y [VectorLanes], z [VectorLanes];
    // verilator unroll_full
    for (int unsigned l = 0; l < VectorLanes; l++) begin
      x[l] = a[l*32 +: 32];
      y[l] = b[l*32 +: 32];
      z[l] = c[l*32 +: 32];
    end
    // verilator unroll_disable
    for (int unsigned l = 0; l < VectorLanes; l++) x[l] = alu(op, x[l], y[l], z[l]);
    // verilator unroll_full
    for (int unsigned l = 0; l < VectorLanes; l++) alu_row[l*32 +: 32] = x[l];
  endfunction

  // Lanes beyond the last element keep what they have.
  function automatic row_t present(row_t value, row_t held, tag_t tag);
    // verilator no_inline_task
    present = value;
    // verilator unroll_full
    for (int unsigned l = 0; l < VectorLanes; l++) begin
      if (!has_element(l, 32'(VectorLanes), tag.beat, tag.count)) begin
        present[l*32 +: 32] = held[l*32 +: 32];
      end
    end
  endfunction

  // Most programs divide seldom or never: the long pipeline is clocked while something is in it.
  logic                               slow_clk;
  logic [$clog2(DIV_LATENCY + 1)-1:0] slow_left_q;

  npu_clock_gate u_slow_gate (
    .clk_i, .en_i(!rst_ni || slow || slow_left_q != '0), .clk_o(slow_clk)
  );
  always_ff @(posedge slow_clk) begin
    if (!rst_ni)                  slow_left_q <= '0;
    else if (slow)                slow_left_q <= ($clog2(DIV_LATENCY + 1))'(DIV_LATENCY);
    else                          slow_left_q <= slow_left_q - 1'b1;
  end

  assign slow = tag_i.valid && is_slow(op_i);
  assign fast = tag_i.valid && !is_slow(op_i);

  always_ff @(posedge clk_i) begin
    if (fast) begin
      if (op_i == MICRO_FMA)      fast_q[0] <= present(fma_row(a_i, b_i, c_i), fast_q[0], tag_i);
      else if (op_i == MICRO_MOV) fast_q[0] <= a_i;
      else fast_q[0] <= present(alu_row(op_i, a_i, b_i, c_i), fast_q[0], tag_i);
    end
  end

  always_ff @(posedge slow_clk) begin
    if (slow) begin
      if (op_i == MICRO_DIV) slow_q[0] <= present(div_row(a_i, b_i), slow_q[0], tag_i);
      else                   slow_q[0] <= present(sqrt_row(a_i), slow_q[0], tag_i);
    end
  end

  for (genvar s = 1; s < FmaLatency; s++) begin : gen_fast
    always_ff @(posedge clk_i) begin
      if (fast_tag_q[s-1].valid) fast_q[s] <= fast_q[s-1];
    end
  end
  for (genvar s = 1; s < DIV_LATENCY; s++) begin : gen_slow
    always_ff @(posedge slow_clk) begin
      if (slow_tag_q[s-1].valid) slow_q[s] <= slow_q[s-1];
    end
  end

  always_ff @(posedge clk_i) begin
    // verilator unroll_full
    for (int unsigned s = 0; s < FmaLatency; s++) begin
      if (!rst_ni) fast_tag_q[s] <= '0;
      else if (s == 0) begin
        fast_tag_q[s]       <= tag_i;
        fast_tag_q[s].valid <= fast;
      end else fast_tag_q[s] <= fast_tag_q[s-1];
    end
  end
  always_ff @(posedge slow_clk) begin
    // verilator unroll_full
    for (int unsigned s = 0; s < DIV_LATENCY; s++) begin
      if (!rst_ni) slow_tag_q[s] <= '0;
      else if (s == 0) begin
        slow_tag_q[s]       <= tag_i;
        slow_tag_q[s].valid <= slow;
      end else slow_tag_q[s] <= slow_tag_q[s-1];
    end
  end

  logic from_slow;
  assign from_slow = slow_tag_q[DIV_LATENCY-1].valid;
  assign tag_o     = from_slow ? slow_tag_q[DIV_LATENCY-1] : fast_tag_q[FmaLatency-1];
  assign result_o  = from_slow ? slow_q[DIV_LATENCY-1] : fast_q[FmaLatency-1];

  // Immediate: a concurrent assertion would sample both memories of tags in every cycle.
  always_ff @(posedge clk_i) begin
    if (rst_ni && from_slow) begin
      OneResultAtATime: assert (!fast_tag_q[FmaLatency-1].valid)
        else $error("npu_vector_lanes: a fast and a slow result in one cycle");
    end
  end
endmodule
