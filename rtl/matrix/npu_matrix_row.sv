// SPDX-License-Identifier: Apache-2.0
/// One row of the array: the k-th link of ArraySize fma chains, one per column.
///
/// Holds its row of every weight tile and its column of every tile of A (each a small buffer, so
/// that the next weights wait here while the current ones work), and one set of active weights.
/// Cycle 0: `token_i` picks the element of A and, with `weights`, loads the active weights. Cycle
/// 1: psum + a·w on every column. Cycle FmaLatency + 1: the sums are at `psum_o`. The multiply is
/// written as one expression followed by FmaLatency registers, to be retimed in synthesis: that
/// costs the simulator one evaluation per result. A row beyond `ks` passes sums through untouched,
/// so that a tail of K adds no terms. Rows without work keep their registers.
module npu_matrix_row
  import npu_isa_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize   = 16,
  parameter int unsigned FmaLatency  = 4,
  parameter int unsigned ASlots      = 16,
  parameter int unsigned WeightSlots = 16,
  parameter int unsigned Words       = 8,  // of weights of four bits at a time
  parameter int unsigned Row         = 0
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic int8_i,   // integer mode, constant while tokens are in flight

  input  logic                       wr_valid_i,
  input  place_t                     wr_place_i,
  input  logic [ArraySize-1:0]       wr_mask_i,
  input  logic [ArraySize-1:0][31:0] wr_data_i,

  // Weights of four bits, as numbers
  input  logic                       int4_valid_i,
  input  place_t                     int4_place_i,  // `line`: of INT4_ROWS rows
  input  logic [ArraySize-1:0]       int4_mask_i,
  input  logic [Words-1:0][31:0]     int4_data_i,   // this row's; column c has word c modulo Words

  input  token_t                  token_i,
  input  logic [ArraySize*32-1:0] psum_i,
  output logic [ArraySize*32-1:0] psum_o
);
  localparam int unsigned LaneW = $clog2(ArraySize);
  localparam int unsigned ASlotW = $clog2(ASlots);
  localparam int unsigned BSlotW = $clog2(WeightSlots);
  localparam int unsigned Repeats = (ArraySize + Words - 1) / Words;

  // One slot per tile: a lane is a row of A, a column of B. Whole slots are written, because each
  // assignment costs the simulator time in every cycle (docs/adr/0003).
  logic [ArraySize*32-1:0] a_mem_q [ASlots];
  logic [ArraySize*32-1:0] b_mem_q [WeightSlots];

  logic [31:0]             a_q;
  logic [ArraySize*32-1:0] w_q;
  logic [ArraySize*32-1:0] link_q;
  logic [FmaLatency-1:0]   valid_q;
  logic                    bypass_q;
  extent_t                 cols_q;

  // Where the lane's word lies in a slot.
  function automatic logic [LaneW+4:0] bit_of(lane_t lane);
    return {lane[LaneW-1:0], 5'b0};
  endfunction
  // A slot with the lanes of `mask` replaced. Not inlined, like int8_row: the simulator would clear
  // their arguments in every cycle, used or not.
  function automatic logic [ArraySize*32-1:0] written(logic [ArraySize*32-1:0] held,
                                                      logic [ArraySize-1:0]    mask,
                                                      logic [ArraySize*32-1:0] data);
    // verilator no_inline_task
    written = held;
    // verilator unroll_full
    for (int unsigned l = 0; l < ArraySize; l++) begin
      if (mask[l]) written[l*32 +: 32] = data[l*32 +: 32];
    end
  endfunction

  // One function with one rolled loop over unpacked columns, which the simulator's compiler turns
  // into vector instructions (docs/adr/0003): a 16 x 16 array runs 1.7 M cycles/s, against 0.24 M
  // with the fma called per column (Verilator 5.48, g++ 12, AVX-512, one core).
  // Columns from `cols` on are 0, and stay so.
  function automatic logic [ArraySize*32-1:0] fma_row(input logic [31:0]             a,
                                                      input logic [ArraySize*32-1:0] w,
                                                      input logic [ArraySize*32-1:0] psum,
                                                      input extent_t                 cols);
    // verilator no_inline_task
    logic [31:0] weight [ArraySize], addend [ArraySize], sum [ArraySize];
    for (int unsigned c = 0; c < ArraySize; c++) begin
      weight[c] = w[c*32 +: 32];
      addend[c] = psum[c*32 +: 32];
    end
    // verilator unroll_disable
    for (int unsigned c = 0; c < ArraySize; c++) begin
      sum[c] = npu_fma_pkg::fp32_fma(a, weight[c], addend[c]);
      sum[c] = c < 32'(cols) ? sum[c] : 32'd0;
    end
    // verilator unroll_full
    for (int unsigned c = 0; c < ArraySize; c++) fma_row[c*32 +: 32] = sum[c];
  endfunction

  function automatic logic [ArraySize*32-1:0] int8_row(input logic [7:0]              a,
                                                       input logic [ArraySize*32-1:0] w,
                                                       input logic [ArraySize*32-1:0] psum);
    // verilator no_inline_task
    // verilator unroll_full
    for (int unsigned c = 0; c < ArraySize; c++) begin
      int8_row[c*32 +: 32] = npu_fp_pkg::int8_mac(a, w[c*32 +: 8], psum[c*32 +: 32]);
    end
  endfunction

  // ---- buffers: a line along k gives each row one element, any other line belongs to one row ----
  logic [ASlotW-1:0] wr_a_slot;
  logic [BSlotW-1:0] wr_b_slot, int4_b_slot;
  logic              wr_element, wr_line, wr_int4;
  assign wr_a_slot  = wr_place_i.place[ASlotW-1:0];
  assign wr_b_slot  = wr_place_i.place[BSlotW-1:0];
  assign wr_element = wr_valid_i && wr_place_i.along_k && wr_mask_i[Row];
  assign int4_b_slot = int4_place_i.place[BSlotW-1:0];
  assign wr_int4    = int4_valid_i && int4_place_i.line == lane_t'(Row / INT4_ROWS);
  assign wr_line    = wr_valid_i && !wr_place_i.along_k && wr_place_i.line == lane_t'(Row);

  always_ff @(posedge clk_i) begin
    if (wr_place_i.operand == OPERAND_A) begin
      if (wr_element)   a_mem_q[wr_a_slot][bit_of(wr_place_i.line) +: 32] <= wr_data_i[Row];
      else if (wr_line) a_mem_q[wr_a_slot] <= written(a_mem_q[wr_a_slot], wr_mask_i, wr_data_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (wr_int4) begin
      b_mem_q[int4_b_slot] <= written(b_mem_q[int4_b_slot], int4_mask_i,
                                      (ArraySize * 32)'({Repeats{int4_data_i}}));
    end else if (wr_place_i.operand == OPERAND_B) begin
      if (wr_element)   b_mem_q[wr_b_slot][bit_of(wr_place_i.line) +: 32] <= wr_data_i[Row];
      else if (wr_line) b_mem_q[wr_b_slot] <= written(b_mem_q[wr_b_slot], wr_mask_i, wr_data_i);
    end
  end

  // ---- cycle 0 ----
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else         valid_q <= FmaLatency'({valid_q, token_i.valid});
  end

  always_ff @(posedge clk_i) begin
    if (token_i.valid) begin
      a_q      <= a_mem_q[token_i.a_slot[ASlotW-1:0]][bit_of(token_i.a_lane) +: 32];
      bypass_q <= token_i.ks <= extent_t'(Row);
      cols_q   <= token_i.cols;
    end
  end

  always_ff @(posedge clk_i) begin
    if (token_i.weights) w_q <= b_mem_q[token_i.b_slot[BSlotW-1:0]];
  end

  // ---- cycle 1: one link of every chain ----
  always_ff @(posedge clk_i) begin
    if (valid_q[0]) begin
      if (bypass_q)    link_q <= psum_i;
      else if (int8_i) link_q <= int8_row(a_q[7:0], w_q, psum_i);
      else             link_q <= fma_row(a_q, w_q, psum_i, cols_q);
    end
  end

  // ---- the registers that retiming spreads over the fma ----
  // Each is a variable of its own: of an array, the simulator would copy every element twice.
  for (genvar s = 0; s < FmaLatency; s++) begin : gen_stage
    logic [ArraySize*32-1:0] sum;
    if (s == 0) begin : gen_link
      assign sum = link_q;
    end else begin : gen_delay
      logic [ArraySize*32-1:0] sum_q;
      always_ff @(posedge clk_i) begin
        if (valid_q[s]) sum_q <= gen_stage[s-1].sum;
      end
      assign sum = sum_q;
    end
  end
  assign psum_o = gen_stage[FmaLatency-1].sum;
endmodule
