// SPDX-License-Identifier: Apache-2.0
/// Matrix engine: one MATMUL command is a whole batched, strided product.
///
///     blocks → tiles → lines → (memory) → unpack → buffers in the rows
///                 ↘ seq → array ⇄ acc → drain → pack → (memory)
///
/// A block is loaded, worked on and drained in three overlapping stages, handed on through FIFOs.
/// Takes a command when idle; `cmd_i` must stay stable until `done_o`, which pulses when every
/// write is acknowledged. A read error lets the command run to its end (its result is unspecified)
/// and is then reported, before a write error.
module npu_matrix
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize   = 16,
  parameter int unsigned BusBits     = 256,
  parameter int unsigned FmaLatency  = 4,
  parameter int unsigned AccTiles    = 64,
  parameter int unsigned RowTiles    = 8,
  parameter int unsigned WeightSlots = 16,
  localparam int unsigned StrbW      = BusBits / 8
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       cmd_valid_i,
  output logic                       cmd_ready_o,
  input  npu_engine_cmd_t            cmd_i,
  output logic                       done_o,
  output error_e                     err_o,
  output npu_stats_t                 stats_o,

  output logic                       rd_req_valid_o,
  input  logic                       rd_req_ready_i,
  output logic [ADDR_WIDTH-1:0]      rd_req_addr_o,
  output logic [REQ_BYTES_WIDTH-1:0] rd_req_bytes_o,
  input  logic                       rd_rsp_valid_i,
  output logic                       rd_rsp_ready_o,
  input  logic [BusBits-1:0]         rd_rsp_data_i,
  input  logic                       rd_rsp_err_i,

  output logic                       wr_req_valid_o,
  input  logic                       wr_req_ready_i,
  output logic [ADDR_WIDTH-1:0]      wr_req_addr_o,
  output logic [REQ_BYTES_WIDTH-1:0] wr_req_bytes_o,
  output logic                       wr_data_valid_o,
  input  logic                       wr_data_ready_i,
  output logic [BusBits-1:0]         wr_data_o,
  output logic [StrbW-1:0]           wr_strb_o,
  input  logic                       wr_rsp_valid_i,
  input  logic                       wr_rsp_err_i
);
  localparam int unsigned ASlots     = 2 * RowTiles;
  // Requests in flight: latency of the memory in one-beat lines, with room to spare.
  localparam int unsigned MaxPending = 256;

  logic start, int8;
  assign start = cmd_valid_i && cmd_ready_o;
  assign int8  = cmd_i.src_dtype == DTYPE_INT8;

  // ---- load ----
  logic   block_valid, block_ready, seq_push, seq_room, half_free;
  logic   tile_valid, tile_ready, pend_push, pend_room, pend_valid, pend_pop;
  logic   wr_valid, tile_done, a_free, b_free;
  block_t block;
  tile_t  tile;
  pending_t pend_new, pend;
  place_t wr_place;
  logic [ArraySize-1:0]       wr_mask;
  logic [ArraySize-1:0][31:0] wr_data;

  npu_matrix_blocks #(.ArraySize(ArraySize), .AccTiles(AccTiles), .RowTiles(RowTiles)) u_blocks (
    .clk_i, .rst_ni, .start_i(start), .cmd_i,
    .valid_o(block_valid), .ready_i(block_ready), .block_o(block)
  );

  npu_matrix_tiles #(
    .ArraySize(ArraySize), .RowTiles(RowTiles), .WeightSlots(WeightSlots)
  ) u_tiles (
    .clk_i, .rst_ni, .start_i(start), .cmd_i,
    .block_valid_i(block_valid), .block_ready_o(block_ready), .block_i(block),
    .seq_valid_o(seq_push), .seq_ready_i(seq_room && half_free),
    .a_free_i(a_free), .b_free_i(b_free),
    .tile_valid_o(tile_valid), .tile_ready_i(tile_ready), .tile_o(tile)
  );

  npu_matrix_lines #(.BusBits(BusBits)) u_lines (
    .clk_i, .rst_ni, .cmd_i,
    .tile_valid_i(tile_valid), .tile_ready_o(tile_ready), .tile_i(tile),
    .rd_req_valid_o, .rd_req_ready_i, .rd_req_addr_o, .rd_req_bytes_o,
    .pending_valid_o(pend_push), .pending_ready_i(pend_room), .pending_o(pend_new)
  );

  npu_fifo #(.Width($bits(pending_t)), .Depth(MaxPending)) u_pending (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(pend_push), .in_ready_o(pend_room), .in_data_i(pend_new),
    .out_valid_o(pend_valid), .out_ready_i(pend_pop), .out_data_o(pend),
    .count_o()
  );

  npu_matrix_unpack #(.ArraySize(ArraySize), .BusBits(BusBits)) u_unpack (
    .clk_i, .rst_ni, .cmd_i,
    .pending_valid_i(pend_valid), .pending_ready_o(pend_pop), .pending_i(pend),
    .rd_rsp_valid_i, .rd_rsp_ready_o, .rd_rsp_data_i,
    .wr_valid_o(wr_valid), .wr_place_o(wr_place), .wr_mask_o(wr_mask), .wr_data_o(wr_data),
    .tile_done_o(tile_done)
  );

  // ---- compute ----
  logic   seq_valid, seq_ready, drain_room, drain_valid, drain_ready;
  block_t seq_block, drain_block;
  token_t token, sum_token;
  logic [ArraySize*32-1:0] psum, sum;

  npu_fifo #(.Width($bits(block_t)), .Depth(2)) u_seq_blocks (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(seq_push && half_free), .in_ready_o(seq_room), .in_data_i(block),
    .out_valid_o(seq_valid), .out_ready_i(seq_ready), .out_data_o(seq_block),
    .count_o()
  );

  npu_matrix_seq #(
    .ArraySize(ArraySize), .RowTiles(RowTiles), .WeightSlots(WeightSlots),
    .SumLatency(ArraySize * FmaLatency + 2)
  ) u_seq (
    .clk_i, .rst_ni, .start_i(start), .cmd_i,
    .block_valid_i(seq_valid), .block_ready_o(seq_ready), .block_i(seq_block),
    .a_done_i(tile_done && wr_place.operand == OPERAND_A),
    .b_done_i(tile_done && wr_place.operand == OPERAND_B),
    .token_o(token), .stats_o
  );

  npu_matrix_array #(
    .ArraySize(ArraySize), .FmaLatency(FmaLatency), .ASlots(ASlots), .WeightSlots(WeightSlots)
  ) u_array (
    .clk_i, .rst_ni, .int8_i(int8),
    .wr_valid_i(wr_valid), .wr_place_i(wr_place), .wr_mask_i(wr_mask), .wr_data_i(wr_data),
    .token_i(token), .psum_i(psum), .token_o(sum_token), .sum_o(sum),
    .a_free_o(a_free), .b_free_o(b_free)
  );

  // ---- store ----
  logic   acc_rd, acc_rd_half, line_valid, line_ready, last_line, drained;
  entry_t acc_rd_entry;
  extent_t line_elems;
  logic [63:0] line_addr;
  logic [ArraySize*32-1:0] line_data;

  npu_matrix_acc #(.ArraySize(ArraySize), .AccTiles(AccTiles)) u_acc (
    .clk_i, .rst_ni,
    .rd_token_i(token), .rd_sum_o(psum), .wr_token_i(sum_token), .wr_sum_i(sum),
    .load_valid_i(wr_valid && wr_place.operand == OPERAND_C),
    .load_half_i(wr_place.half), .load_entry_i(wr_place.place + entry_t'(wr_place.line)),
    .load_mask_i(wr_mask), .load_data_i(wr_data),
    .drain_valid_i(acc_rd), .drain_half_i(acc_rd_half), .drain_entry_i(acc_rd_entry),
    .drain_data_o(line_data)
  );

  // Holds at most one block per accumulator half, so it always has room.
  npu_fifo #(.Width($bits(block_t)), .Depth(2)) u_drain_blocks (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(seq_ready), .in_ready_o(drain_room), .in_data_i(seq_block),
    .out_valid_o(drain_valid), .out_ready_i(drain_ready), .out_data_o(drain_block),
    .count_o()
  );

  npu_matrix_drain #(.ArraySize(ArraySize)) u_drain (
    .clk_i, .rst_ni, .cmd_i,
    .block_valid_i(drain_valid), .block_ready_o(drain_ready), .block_i(drain_block),
    .block_done_i(sum_token.valid && sum_token.block_end),
    .acc_valid_o(acc_rd), .acc_half_o(acc_rd_half), .acc_entry_o(acc_rd_entry),
    .line_valid_o(line_valid), .line_ready_i(line_ready),
    .line_addr_o(line_addr), .line_elems_o(line_elems),
    .half_free_o(drained), .last_o(last_line)
  );

  npu_matrix_pack #(.ArraySize(ArraySize), .BusBits(BusBits)) u_pack (
    .clk_i, .rst_ni, .cmd_i,
    .line_valid_i(line_valid), .line_ready_o(line_ready),
    .line_addr_i(line_addr), .line_elems_i(line_elems), .line_data_i(line_data),
    .wr_req_valid_o, .wr_req_ready_i, .wr_req_addr_o, .wr_req_bytes_o,
    .wr_data_valid_o, .wr_data_ready_i, .wr_data_o, .wr_strb_o
  );

  // ---- begin and end ----
  logic        busy_q, all_sent_q, read_err_q, write_err_q;
  logic [1:0]  halves_q;      // free accumulator halves
  logic [31:0] unanswered_q;  // write requests without a response
  logic        wr_req;

  assign wr_req      = wr_req_valid_o && wr_req_ready_i;
  assign half_free   = halves_q != 2'd0;
  assign cmd_ready_o = !busy_q;
  assign done_o      = busy_q && all_sent_q && unanswered_q == '0;
  assign err_o       = read_err_q ? ERROR_BUS_READ : (write_err_q ? ERROR_BUS_WRITE : ERROR_NONE);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q       <= 1'b0;
      all_sent_q   <= 1'b0;
      halves_q     <= 2'd2;
      unanswered_q <= '0;
    end else begin
      if (start)       busy_q <= 1'b1;
      else if (done_o) busy_q <= 1'b0;
      if (start)                        all_sent_q <= 1'b0;
      else if (line_ready && last_line) all_sent_q <= 1'b1;
      halves_q     <= halves_q + 2'(drained) - 2'(seq_push && seq_room && half_free);
      unanswered_q <= unanswered_q + 32'(wr_req) - 32'(wr_rsp_valid_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start) begin
      read_err_q  <= 1'b0;
      write_err_q <= 1'b0;
    end else begin
      if (rd_rsp_valid_i && rd_rsp_err_i) read_err_q <= 1'b1;
      if (wr_rsp_valid_i && wr_rsp_err_i) write_err_q <= 1'b1;
    end
  end

  DrainHasRoom: assert property (@(posedge clk_i) disable iff (!rst_ni) seq_ready |-> drain_room)
    else $error("npu_matrix: more blocks under way than accumulator halves");
endmodule
