// SPDX-License-Identifier: Apache-2.0
/// A bench's replacement of rtl/matrix/npu_matrix_array.sv for `ARRAY=behavioural`: the same ports,
/// the same cycles, the same sums, for long runs. Not for synthesis, and no check of the array's
/// dataflow. tests/test_sim_array.py compares the two.
///
/// In the RTL partial sums and tokens shift through the rows in every cycle, which costs the
/// simulator more than the arithmetic. Here both wait in rings, and all links of a sum's chain are
/// computed at once, in their order, when its token is where the last row would see it: the slots
/// that it reads are held until then. Columns beyond the tile's are computed as well; they are
/// not read.
module npu_matrix_array
  import npu_isa_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize   = 16,
  parameter int unsigned FmaLatency  = 4,
  parameter int unsigned ASlots      = 16,
  parameter int unsigned WeightSlots = 16,
  parameter int unsigned Words       = 8
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic int8_i,

  input  logic                       wr_valid_i,
  input  buffer_addr_t                     wr_place_i,
  input  logic [ArraySize-1:0]       wr_mask_i,
  input  logic [ArraySize-1:0][31:0] wr_data_i,

  input  logic                                  int4_valid_i,
  input  buffer_addr_t                                int4_place_i,
  input  logic [ArraySize-1:0]                  int4_mask_i,
  input  logic [INT4_ROWS-1:0][Words-1:0][31:0] int4_data_i,

  input  token_t                  token_i,
  input  logic [ArraySize*32-1:0] psum_i,
  output logic                    sum_valid_o,
  output sum_token_t              sum_token_o,
  output logic [ArraySize*32-1:0] sum_o,

  output logic a_free_o,
  output logic b_free_o
);
  localparam int unsigned Delay   = ArraySize * FmaLatency + 1;
  localparam int unsigned LastRow = (ArraySize - 1) * FmaLatency;
  localparam int unsigned RingW   = $clog2(Delay + 1);
  localparam int unsigned LaneW   = $clog2(ArraySize);

  typedef logic [ArraySize*32-1:0] row_t;

  // ---- operands: [row][slot], a lane of a slot is a row of A, a column of B ----
  row_t a_mem_q [ArraySize][ASlots];
  row_t b_mem_q [ArraySize][WeightSlots];
  row_t a_q;                // [row]
  row_t w_q [ArraySize];

  function automatic row_t merged(row_t held);
    merged = held;
    // verilator unroll_full
    for (int unsigned l = 0; l < ArraySize; l++) begin
      if (wr_mask_i[l]) merged[l*32 +: 32] = wr_data_i[l];
    end
  endfunction

  function automatic row_t expanded(row_t held, int unsigned row);
    expanded = held;
    // verilator unroll_full
    for (int unsigned l = 0; l < ArraySize; l++) begin
      if (int4_mask_i[l]) expanded[l*32 +: 32] = int4_data_i[row%INT4_ROWS][l%Words];
    end
  endfunction

  logic                           wr_a, wr_b;
  logic [$clog2(ASlots)-1:0]      a_slot;
  logic [$clog2(WeightSlots)-1:0] b_slot, int4_slot;
  logic [LaneW-1:0]               line;
  assign wr_a   = wr_valid_i && wr_place_i.operand == MATRIX_A;
  assign wr_b   = wr_valid_i && wr_place_i.operand == MATRIX_B;
  assign a_slot = wr_place_i.place[$clog2(ASlots)-1:0];
  assign b_slot = wr_place_i.place[$clog2(WeightSlots)-1:0];
  assign line   = wr_place_i.line[LaneW-1:0];
  assign int4_slot = int4_place_i.place[$clog2(WeightSlots)-1:0];

  // A line along k gives each row one element, any other line belongs to one row; a line of weights
  // of four bits belongs to INT4_ROWS rows.
  for (genvar r = 0; r < ArraySize; r++) begin : gen_along_k
    always_ff @(posedge clk_i) begin
      if (wr_a && wr_place_i.along_k && wr_mask_i[r]) begin
        a_mem_q[r][a_slot][{line, 5'b0} +: 32] <= wr_data_i[r];
      end else if (wr_a && !wr_place_i.along_k && 32'(line) == r) begin
        a_mem_q[r][a_slot] <= merged(a_mem_q[r][a_slot]);
      end
      if (int4_valid_i && int4_place_i.line == lane_t'(r / INT4_ROWS)) begin
        b_mem_q[r][int4_slot] <= expanded(b_mem_q[r][int4_slot], r);
      end else if (wr_b && wr_place_i.along_k && wr_mask_i[r]) begin
        b_mem_q[r][b_slot][{line, 5'b0} +: 32] <= wr_data_i[r];
      end else if (wr_b && !wr_place_i.along_k && 32'(line) == r) begin
        b_mem_q[r][b_slot] <= merged(b_mem_q[r][b_slot]);
      end
      if (last.row.weights) w_q[r] <= b_mem_q[r][last.row.b_slot[$clog2(WeightSlots)-1:0]];
    end
  end

  row_t a_d;
  logic [$clog2(ASlots)-1:0] last_slot;
  assign last_slot = last.row.a_slot[$clog2(ASlots)-1:0];
  always_comb begin
    a_d = '0;
    if (last.valid) begin
      // verilator unroll_full
      for (int unsigned r = 0; r < ArraySize; r++) begin
        a_d[r*32 +: 32] = a_mem_q[r][last_slot][{last.row.a_lane[LaneW-1:0], 5'b0} +: 32];
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (last.valid) a_q <= a_d;
  end

  // ---- tokens, by the cycle in which they came ----
  token_t           token_q [2**RingW];
  logic [RingW-1:0] now_q;
  token_t           last;

  assign last     = token_q[now_q - RingW'(LastRow)];
  assign sum_valid_o = token_q[now_q - RingW'(Delay)].valid;
  assign sum_token_o = token_q[now_q - RingW'(Delay)].sum;
  assign a_free_o = last.valid && last.row.a_free;
  assign b_free_o = last.valid && last.row.weights;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      now_q <= '0;
      for (int unsigned i = 0; i < 2**RingW; i++) token_q[i] <= '0;
    end else begin
      now_q          <= now_q + RingW'(1);
      token_q[now_q] <= token_i;
    end
  end

  // ---- partial sums: one cycle after their tokens, and one cycle after these are last ----
  row_t                  psum_q [2**RingW];
  row_t                  sum_q [FmaLatency];
  logic [FmaLatency-1:0] valid_q;
  logic                  came_q;
  extent_t               ks_q;

  function automatic row_t chain(const ref row_t w [ArraySize], input row_t a,
                               input row_t psum, input extent_t ks);
    // verilator no_inline_task
    logic [31:0] sum [ArraySize], weight [ArraySize], factor [ArraySize];
    logic [31:0] x;
    // verilator unroll_full
    for (int unsigned c = 0; c < ArraySize; c++) begin
      sum[c]    = psum[c*32 +: 32];
      factor[c] = a[c*32 +: 32];
    end
    // verilator unroll_disable
    for (int unsigned r = 0; r < 32'(ks); r++) begin
      x = factor[LaneW'(r)];
      // verilator unroll_full
      for (int unsigned c = 0; c < ArraySize; c++) weight[c] = w[LaneW'(r)][c*32 +: 32];
      // verilator unroll_disable
      for (int unsigned c = 0; c < ArraySize; c++) begin
        sum[c] = npu_fma_pkg::fp32_fma(x, weight[c], sum[c]);
      end
    end
    // verilator unroll_full
    for (int unsigned c = 0; c < ArraySize; c++) chain[c*32 +: 32] = sum[c];
  endfunction

  function automatic row_t chain8(const ref row_t w [ArraySize], input row_t a,
                               input row_t psum, input extent_t ks);
    // verilator no_inline_task
    logic [31:0] sum [ArraySize], weight [ArraySize], factor [ArraySize];
    logic [31:0] x;
    // verilator unroll_full
    for (int unsigned c = 0; c < ArraySize; c++) begin
      sum[c]    = psum[c*32 +: 32];
      factor[c] = a[c*32 +: 32];
    end
    // verilator unroll_disable
    for (int unsigned r = 0; r < 32'(ks); r++) begin
      x = factor[LaneW'(r)];
      // verilator unroll_full
      for (int unsigned c = 0; c < ArraySize; c++) weight[c] = w[LaneW'(r)][c*32 +: 32];
      // verilator unroll_disable
      for (int unsigned c = 0; c < ArraySize; c++) begin
        sum[c] = npu_fp_pkg::int8_mac(x[7:0], weight[c][7:0], sum[c]);
      end
    end
    // verilator unroll_full
    for (int unsigned c = 0; c < ArraySize; c++) chain8[c*32 +: 32] = sum[c];
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      came_q  <= 1'b0;
      valid_q <= '0;
    end else begin
      came_q  <= token_i.valid;
      valid_q <= FmaLatency'({valid_q, last.valid});
    end
  end

  always_ff @(posedge clk_i) begin
    if (last.valid) ks_q          <= last.row.ks;
    if (came_q)     psum_q[now_q] <= psum_i;
    if (valid_q[0]) begin
      if (int8_i) sum_q[0] <= chain8(w_q, a_q, psum_q[now_q - RingW'(LastRow)], ks_q);
      else        sum_q[0] <= chain(w_q, a_q, psum_q[now_q - RingW'(LastRow)], ks_q);
    end
  end

  for (genvar s = 1; s < FmaLatency; s++) begin : gen_stage
    always_ff @(posedge clk_i) begin
      if (valid_q[s]) sum_q[s] <= sum_q[s-1];
    end
  end
  assign sum_o = sum_q[FmaLatency-1];
endmodule
