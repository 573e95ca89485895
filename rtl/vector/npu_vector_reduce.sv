// SPDX-License-Identifier: Apache-2.0
/// Reduces the vectors of each row to one word: 16 lanes, then a tree, in the order that
/// docs/numerics.md fixes.
///
/// A vector every FmaLatency cycles, the loop of an accumulator; the tree is a pipeline, so
/// that rows follow each other without a gap however short they are. Takes the last vector of a row
/// only when there is room for the row's result.
module npu_vector_reduce
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
#(
  parameter int unsigned FmaLatency = 4
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  reduce_e     reduce_i,   // constant while rows are in flight

  input  logic        vec_valid_i,
  output logic        vec_ready_o,
  input  vector_t     vec_i,
  input  count_t      count_i,
  input  logic        row_end_i,

  output logic        out_valid_o,
  input  logic        out_ready_i,
  output logic [31:0] out_o
);
  localparam int unsigned Levels = $clog2(LOGICAL_LANES);
  // Rows in the tree and one more.
  localparam int unsigned Rows = 8;
  localparam int unsigned RoomW = $clog2(Rows + 1);

  logic                     take, first_q, pending_q, acc_valid, acc_end;
  logic [RoomW-1:0]         room_q;
  logic [LOGICAL_LANES-1:0] mask;
  vector_t                  acc, start;

  assign start       = {LOGICAL_LANES{reduce_identity(reduce_i)}};
  assign vec_ready_o = (!pending_q || acc_valid) && (!row_end_i || room_q != '0);
  assign take        = vec_valid_i && vec_ready_o;

  always_comb begin
    for (int unsigned l = 0; l < LOGICAL_LANES; l++) mask[l] = l < 32'(count_i);
  end

  npu_vector_fold #(.Lanes(LOGICAL_LANES), .Latency(FmaLatency)) u_acc (
    .clk_i, .rst_ni, .reduce_i,
    .valid_i(take), .mark_i(row_end_i), .a_i(first_q ? start : acc), .b_i(vec_i), .mask_i(mask),
    .valid_o(acc_valid), .mark_o(acc_end), .result_o(acc)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q   <= 1'b1;
      pending_q <= 1'b0;
      room_q    <= RoomW'(Rows);
    end else begin
      if (take) first_q <= row_end_i;
      if (take)           pending_q <= 1'b1;
      else if (acc_valid) pending_q <= 1'b0;
      room_q <= room_q + RoomW'(out_valid_o && out_ready_i) - RoomW'(take && row_end_i);
    end
  end

  // ---- lanes i and i + half, for half = 8, 4, 2, 1 ----
  vector_t level [Levels+1];
  logic    level_valid [Levels+1];
  assign level[0]       = acc;
  assign level_valid[0] = acc_valid && acc_end;

  for (genvar t = 0; t < Levels; t++) begin : gen_level
    localparam int unsigned Half = LOGICAL_LANES >> (t + 1);
    logic [Half*32-1:0] joined;
    npu_vector_fold #(.Lanes(Half), .Latency(FmaLatency)) u_fold (
      .clk_i, .rst_ni, .reduce_i,
      .valid_i(level_valid[t]), .mark_i(1'b0), .a_i(level[t][Half*32-1:0]),
      .b_i(level[t][Half*32 +: Half*32]), .mask_i('1),
      .valid_o(level_valid[t+1]), .mark_o(), .result_o(joined)
    );
    assign level[t+1] = VECTOR_BITS'(joined);
  end

  npu_fifo #(.Width(32), .Depth(Rows), .NeverFull(1'b1)) u_out (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(level_valid[Levels]), .in_ready_o(), .in_data_i(level[Levels][31:0]),
    .out_valid_o, .out_ready_i, .out_data_o(out_o), .count_o()
  );
endmodule
