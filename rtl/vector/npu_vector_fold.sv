// SPDX-License-Identifier: Apache-2.0
/// One level of a reduction: `a` and `b` joined lane by lane, Latency cycles later.
///
/// Lanes outside `mask_i` give their `a`. One pair of vectors per cycle; `mark_i` travels along.
module npu_vector_fold
  import npu_vector_pkg::*;
#(
  parameter int unsigned Lanes   = 16,
  parameter int unsigned Latency = 4
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  reduce_e             reduce_i,   // constant while pairs are in flight

  input  logic                valid_i,
  input  logic                mark_i,
  input  logic [Lanes*32-1:0] a_i,
  input  logic [Lanes*32-1:0] b_i,
  input  logic [Lanes-1:0]    mask_i,

  output logic                valid_o,
  output logic                mark_o,
  output logic [Lanes*32-1:0] result_o
);
  typedef logic [Lanes*32-1:0] row_t;
  localparam logic [31:0] One = 32'h3F80_0000;

  row_t               result_q [Latency];
  logic [Latency-1:0] valid_q, mark_q;

  function automatic row_t add_row(input row_t a, input row_t b);
    // verilator no_inline_task
    logic [31:0] x [Lanes], y [Lanes];
    // verilator unroll_full
    for (int unsigned l = 0; l < Lanes; l++) begin
      x[l] = a[l*32 +: 32];
      y[l] = b[l*32 +: 32];
    end
    // verilator unroll_disable
    for (int unsigned l = 0; l < Lanes; l++) x[l] = npu_fma_pkg::fp32_fma(x[l], One, y[l]);
    // verilator unroll_full
    for (int unsigned l = 0; l < Lanes; l++) add_row[l*32 +: 32] = x[l];
  endfunction

  function automatic logic [31:0] join_words(input reduce_e reduce, input logic [31:0] a,
                                             input logic [31:0] b);
    unique case (reduce)
      REDUCE_FMAX: return npu_fp_alu_pkg::fp32_max(a, b);
      REDUCE_FMIN: return npu_fp_alu_pkg::fp32_min(a, b);
      REDUCE_IADD: return a + b;
      REDUCE_IMAX: return $signed(a) > $signed(b) ? a : b;
      REDUCE_IMIN: return $signed(a) < $signed(b) ? a : b;
      default:     return a;
    endcase
  endfunction

  function automatic row_t join_row(input reduce_e reduce, input row_t a, input row_t b);
    // verilator no_inline_task
    logic [31:0] x [Lanes], y [Lanes];
    // verilator unroll_full
    for (int unsigned l = 0; l < Lanes; l++) begin
      x[l] = a[l*32 +: 32];
      y[l] = b[l*32 +: 32];
    end
    // verilator unroll_disable
    for (int unsigned l = 0; l < Lanes; l++) x[l] = join_words(reduce, x[l], y[l]);
    // verilator unroll_full
    for (int unsigned l = 0; l < Lanes; l++) join_row[l*32 +: 32] = x[l];
  endfunction

  function automatic row_t masked(row_t value, row_t otherwise, logic [Lanes-1:0] mask);
    // verilator no_inline_task
    masked = value;
    // verilator unroll_full
    for (int unsigned l = 0; l < Lanes; l++) begin
      if (!mask[l]) masked[l*32 +: 32] = otherwise[l*32 +: 32];
    end
  endfunction

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      if (reduce_i == REDUCE_FADD) result_q[0] <= masked(add_row(a_i, b_i), a_i, mask_i);
      else                         result_q[0] <= masked(join_row(reduce_i, a_i, b_i), a_i, mask_i);
    end
  end

  for (genvar s = 1; s < Latency; s++) begin : gen_stage
    always_ff @(posedge clk_i) begin
      if (valid_q[s-1]) result_q[s] <= result_q[s-1];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else         valid_q <= Latency'({valid_q, valid_i});
  end
  always_ff @(posedge clk_i) mark_q <= Latency'({mark_q, mark_i});

  assign valid_o  = valid_q[Latency-1];
  assign mark_o   = mark_q[Latency-1];
  assign result_o = result_q[Latency-1];
endmodule
