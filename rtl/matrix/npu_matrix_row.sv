// SPDX-License-Identifier: Apache-2.0
/// One row of the array: the k-th link of ArraySize fma chains, one per column.
///
/// Holds its row of every weight tile and its column of every tile of A (each a small buffer, so
/// that the next weights wait here while the current ones work), and one set of active weights.
/// Cycle 0: `token_i` picks the element of A and, with `weights`, loads and decodes the active
/// weights. Cycle 1: psum + a·w on every column. Cycle FmaLatency + 1: the sums are at `psum_o`.
/// The multiply-add is written as one expression followed by FmaLatency registers, to be retimed in
/// synthesis: that costs the simulator one evaluation per result. A row beyond `ks` passes sums
/// through untouched, so that a tail of K adds no terms. Rows without work keep their registers.
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
  input  logic int8_i,  // integer mode, constant while tokens are in flight

  input  logic                       wr_valid_i,
  input  buffer_addr_t               wr_place_i,
  input  logic [ArraySize-1:0]       wr_mask_i,
  input  logic [ArraySize-1:0][31:0] wr_data_i,

  // Weights of four bits, as numbers
  input  logic                       int4_valid_i,
  input  buffer_addr_t               int4_place_i,  // `line`: of INT4_ROWS rows
  input  logic [ArraySize-1:0]       int4_mask_i,
  input  logic [Words-1:0][31:0]     int4_data_i,   // this row's; column c has word c modulo Words

  input  logic [FmaLatency:0] token_valid_i,  // bit d: of d cycles ago
  input  row_token_t          token_i,
  input  logic [31:0]         psum_i [ArraySize],
  output logic [31:0]         psum_o [ArraySize]
);
  typedef logic [31:0] columns_t [ArraySize];

  localparam int unsigned LaneW = $clog2(ArraySize);
  localparam int unsigned ASlotW = $clog2(ASlots);
  localparam int unsigned BSlotW = $clog2(WeightSlots);
  localparam int unsigned Repeats = (ArraySize + Words - 1) / Words;

  // One slot per tile: a lane is a row of A, a column of B. Whole slots are written, because each
  // assignment costs the simulator time in every cycle (docs/adr/0003).
  logic [ArraySize*32-1:0] a_mem_q [ASlots];
  logic [ArraySize*32-1:0] b_mem_q [WeightSlots];

  logic [31:0] a_q;
  columns_t    w_q, significand_q, scale_q;  // the active weights, and what fma_row takes of them
  logic        special_q;                    // one of them is infinite or NaN
  columns_t    link_q;
  logic        bypass_q;
  extent_t     cols_q;

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

  // What follows works on columns as elements of an array, in a rolled loop within a function: the
  // simulator's compiler turns that into vector instructions (docs/adr/0003).
  function automatic columns_t columns_of(logic [ArraySize*32-1:0] words);
    // verilator no_inline_task
    // verilator unroll_full
    for (int unsigned c = 0; c < ArraySize; c++) columns_of[c] = words[c*32 +: 32];
  endfunction

  function automatic columns_t significands_of(columns_t w);
    // verilator no_inline_task
    // verilator unroll_disable
    for (int unsigned c = 0; c < ArraySize; c++) begin
      significands_of[c] = npu_fma_pkg::fp32_significand(w[c]);
    end
  endfunction

  function automatic columns_t scales_of(columns_t w);
    // verilator no_inline_task
    // verilator unroll_disable
    for (int unsigned c = 0; c < ArraySize; c++) scales_of[c] = npu_fma_pkg::fp32_scale(w[c]);
  endfunction

  function automatic logic any_special(columns_t w);
    // verilator no_inline_task
    any_special = 1'b0;
    for (int unsigned c = 0; c < ArraySize; c++) any_special |= w[c][30:23] == '1;
  endfunction

  // One link of the chain in every column: a is decoded here, the weights when they became active.
  // Columns from `cols` on are 0, and stay so.
  function automatic columns_t fma_row(logic [31:0] a, columns_t w, columns_t significand,
                                       columns_t scale, columns_t psum, extent_t cols,
                                       logic special);
    // verilator no_inline_task
    logic [31:0] a_significand, a_scale;
    a_significand = npu_fma_pkg::fp32_significand(a);
    a_scale       = npu_fma_pkg::fp32_scale(a);
    // verilator unroll_disable
    for (int unsigned c = 0; c < ArraySize; c++) begin
      fma_row[c] = npu_fma_pkg::fp32_fma_finite(a ^ w[c], a_significand, significand[c],
                                                a_scale + scale[c], psum[c]);
    end
    if (special) begin
      for (int unsigned c = 0; c < ArraySize; c++) begin
        fma_row[c] = npu_fma_pkg::fp32_fma_special(a, w[c], psum[c], fma_row[c]);
      end
    end
    if (cols != extent_t'(ArraySize)) begin
      for (int unsigned c = 0; c < ArraySize; c++) begin
        fma_row[c] = c < 32'(cols) ? fma_row[c] : 32'd0;
      end
    end
  endfunction

  function automatic columns_t int8_row(logic [7:0] a, columns_t w, columns_t psum);
    // verilator no_inline_task
    // verilator unroll_disable
    for (int unsigned c = 0; c < ArraySize; c++) begin
      int8_row[c] = npu_fp_pkg::int8_mac(a, w[c][7:0], psum[c]);
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
    if (wr_place_i.operand == MATRIX_A) begin
      if (wr_element)   a_mem_q[wr_a_slot][bit_of(wr_place_i.line) +: 32] <= wr_data_i[Row];
      else if (wr_line) a_mem_q[wr_a_slot] <= written(a_mem_q[wr_a_slot], wr_mask_i, wr_data_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (wr_int4) begin
      b_mem_q[int4_b_slot] <= written(b_mem_q[int4_b_slot], int4_mask_i,
                                      (ArraySize * 32)'({Repeats{int4_data_i}}));
    end else if (wr_place_i.operand == MATRIX_B) begin
      if (wr_element)   b_mem_q[wr_b_slot][bit_of(wr_place_i.line) +: 32] <= wr_data_i[Row];
      else if (wr_line) b_mem_q[wr_b_slot] <= written(b_mem_q[wr_b_slot], wr_mask_i, wr_data_i);
    end
  end

  // ---- cycle 0 ----
  always_ff @(posedge clk_i) begin
    if (token_valid_i[0]) begin
      a_q      <= a_mem_q[token_i.a_slot[ASlotW-1:0]][bit_of(token_i.a_lane) +: 32];
      bypass_q <= token_i.ks <= extent_t'(Row);
      cols_q   <= token_i.cols;
    end
  end

  always_ff @(posedge clk_i) begin
    if (token_valid_i[0] && token_i.weights) begin
      automatic columns_t w = columns_of(b_mem_q[token_i.b_slot[BSlotW-1:0]]);
      w_q           <= w;
      significand_q <= significands_of(w);
      scale_q       <= scales_of(w);
      special_q     <= any_special(w);
    end
  end

  // ---- cycle 1: one link of every chain ----
  always_ff @(posedge clk_i) begin
    if (token_valid_i[1]) begin
      if (bypass_q)    link_q <= psum_i;
      else if (int8_i) link_q <= int8_row(a_q[7:0], w_q, psum_i);
      else begin
        link_q <= fma_row(a_q, w_q, significand_q, scale_q, psum_i, cols_q,
                          special_q || a_q[30:23] == '1);
      end
    end
  end

  // ---- the registers that retiming spreads over the fma ----
  // Each is a variable of its own: of an array, the simulator would copy every element twice.
  for (genvar s = 0; s < FmaLatency; s++) begin : gen_stage
    columns_t sum;
    if (s == 0) begin : gen_link
      assign sum = link_q;
    end else begin : gen_delay
      columns_t sum_q;
      always_ff @(posedge clk_i) begin
        if (token_valid_i[s+1]) sum_q <= gen_stage[s-1].sum;
      end
      assign sum = sum_q;
    end
  end
  assign psum_o = gen_stage[FmaLatency-1].sum;
endmodule
