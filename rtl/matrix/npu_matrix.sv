// SPDX-License-Identifier: Apache-2.0
/// Matrix engine: one MATMUL command is a whole batched, strided product.
///
///     blocks → tiles → lines → (memory) → unpack → buffers in the rows
///                 ↘ seq → array ⇄ acc → drain → pack → (memory)
///
/// A block is loaded, worked on and drained in three overlapping stages, handed on through FIFOs.
/// Takes a command when idle. A read error lets the command run to its end (its result is
/// unspecified) and is then reported, before a write error.
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
  input  logic               clk_i,
  input  logic               rst_ni,

  input  engine_req_t        req_i,
  output engine_rsp_t        rsp_o,

  // Memory controller
  output mem_rd_req_t        rd_req_o,
  input  mem_rd_rsp_t        rd_rsp_i,
  input  logic [BusBits-1:0] rd_data_i,
  output mem_wr_req_t        wr_req_o,
  input  mem_wr_rsp_t        wr_rsp_i,
  output logic [BusBits-1:0] wr_data_o,
  output logic [StrbW-1:0]   wr_strb_o
);
  localparam int unsigned Words      = BusBits / 32;
  localparam int unsigned ASlots     = 2 * RowTiles;
  // Requests in flight: latency of the memory in one-beat lines, with room to spare.
  localparam int unsigned MaxPending = 256;
  // Of a command with weights of four bits, likewise.
  localparam int unsigned BufferBeats  = 128;

  npu_engine_cmd_t cmd;
  logic            start, int8;
  assign cmd   = req_i.cmd;
  assign start = req_i.valid && rsp_o.ready;
  assign int8  = cmd.src_dtype == DTYPE_INT8;

  // ---- load ----
  logic   block_valid, block_ready, seq_push, seq_room, half_free;
  logic   tile_valid, tile_ready, pend_push, pend_room, pend_valid, pend_pop;
  logic   wr_valid, tile_done, a_free, b_free;
  block_t block;
  tile_t  tile;
  position_t line_next, elem_next;
  pending_t line_pending, pend_new, pend, buffer_line;
  mem_range_t line_range;
  logic   line_req, line_taken, buffered_q, buffer_clk, bank_pop, beat_pop, bank_beat;
  logic   buffer_line_valid;
  logic   int4, int4_clk, range_valid, land_request, land_valid, beat_valid, beat_ready;
  logic   unpack_beat, b_full;
  logic [BusBits-1:0] land_beat, beat;
  logic [ArraySize*32-1:0] buffer_line_data;
  buffer_addr_t wr_place;
  logic [ArraySize-1:0]       wr_mask;
  logic [ArraySize-1:0][31:0] wr_data;

  npu_matrix_blocks #(.ArraySize(ArraySize), .AccTiles(AccTiles), .RowTiles(RowTiles)) u_blocks (
    .clk_i, .rst_ni, .start_i(start), .cmd_i(cmd),
    .valid_o(block_valid), .ready_i(block_ready), .block_o(block)
  );

  npu_matrix_tiles #(
    .ArraySize(ArraySize), .RowTiles(RowTiles), .WeightSlots(WeightSlots)
  ) u_tiles (
    .clk_i, .rst_ni, .start_i(start), .cmd_i(cmd),
    .block_valid_i(block_valid), .block_ready_o(block_ready), .block_i(block),
    .seq_valid_o(seq_push), .seq_ready_i(seq_room && half_free),
    .a_free_i(a_free), .b_free_i(b_free),
    .tile_valid_o(tile_valid), .tile_ready_i(tile_ready), .tile_o(tile),
    .b_fill_i(beat_pop && pend.last && pend.operand == MATRIX_B), .b_full_o(b_full),
    .line_next_i(line_next), .elem_next_i(elem_next)
  );

  npu_matrix_lines #(.ArraySize(ArraySize), .BusBits(BusBits)) u_lines (
    .clk_i, .rst_ni, .cmd_i(cmd),
    .tile_valid_i(tile_valid), .tile_ready_o(tile_ready), .tile_i(tile),
    .line_next_o(line_next), .elem_next_o(elem_next),
    .req_valid_o(line_req), .req_ready_i(line_taken), .req_range_o(line_range),
    .pending_o(line_pending)
  );

  // The operand buffer has a clock while a command uses it.
  always_ff @(posedge clk_i) begin
    if (start) begin
      buffered_q <= reads_again(cmd.a) || reads_again(cmd.b) ||
                    (cmd.accumulate && run_of(cmd.init.col) == RUN_REPEAT);
    end
  end
  npu_clock_gate u_buffer_gate (
    .clk_i, .en_i(!rst_ni || start || buffered_q), .clk_o(buffer_clk)
  );

  npu_matrix_tags #(.BusBits(BusBits)) u_tags (
    .clk_i(buffer_clk), .rst_ni, .start_i(start),
    .in_valid_i(line_req), .in_ready_o(line_taken), .in_range_i(line_range), .in_i(line_pending),
    .req_valid_o(range_valid), .req_ready_i(rd_rsp_i.ready && (!int4 || land_request)),
    .req_range_o(rd_req_o.range),
    .pending_valid_o(pend_push), .pending_ready_i(pend_room), .pending_o(pend_new)
  );

  npu_fifo #(.Width($bits(pending_t)), .Depth(MaxPending)) u_pending (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(pend_push), .in_ready_o(pend_room), .in_data_i(pend_new),
    .out_valid_o(pend_valid), .out_ready_i(pend_pop), .out_data_o(pend),
    .count_o()
  );

  npu_matrix_banks #(.ArraySize(ArraySize), .BusBits(BusBits)) u_banks (
    .clk_i(buffer_clk), .rst_ni,
    .pending_valid_i(pend_valid && pend.reuse), .pending_ready_o(bank_pop), .pending_i(pend),
    .beat_valid_i(beat_valid), .beat_ready_o(bank_beat), .beat_i(beat),
    .line_valid_o(buffer_line_valid), .line_o(buffer_line), .line_data_o(buffer_line_data)
  );

  // Beats arrive in the order of the requests: what the head does not want is for a later one.
  assign beat_ready          = pend_valid && (pend.reuse ? bank_beat : unpack_beat);
  assign rd_req_o.data_ready = int4 || beat_ready;
  assign pend_pop            = bank_pop || beat_pop;

  npu_matrix_unpack #(.ArraySize(ArraySize), .BusBits(BusBits)) u_unpack (
    .clk_i, .rst_ni, .cmd_i(cmd),
    .line_valid_i(buffer_line_valid), .line_i(buffer_line), .line_data_i(buffer_line_data),
    .pending_valid_i(pend_valid && !pend.reuse), .pending_ready_o(beat_pop), .pending_i(pend),
    .beat_valid_i(beat_valid), .beat_ready_o(unpack_beat), .beat_i(beat), .b_hold_i(b_full),
    .wr_valid_o(wr_valid), .wr_place_o(wr_place), .wr_mask_o(wr_mask), .wr_data_o(wr_data),
    .tile_done_o(tile_done)
  );

  // Beats of a command with weights of four bits land here and wait for a slot of B.
  npu_read_buffer #(.BusBits(BusBits), .Beats(BufferBeats)) u_read_buffer (
    .clk_i(int4_clk), .rst_ni,
    .req_valid_i(range_valid), .req_range_i(rd_req_o.range), .req_beats_o(),
    .mem_valid_o(land_request), .mem_ready_i(rd_rsp_i.ready),
    .data_valid_i(int4 && rd_rsp_i.data_valid), .data_i(rd_data_i), .data_err_i(1'b0),
    .beat_valid_o(land_valid), .beat_ready_i(beat_ready), .beat_o(land_beat), .beat_err_o(),
    .idle_o()
  );
  assign rd_req_o.valid = int4 ? land_request : range_valid;
  assign beat_valid     = int4 ? land_valid : rd_rsp_i.data_valid;
  assign beat           = int4 ? land_beat : rd_data_i;

  // Weights of four bits and their scales: a clock for the commands that have them.
  logic  int4_valid, int4_done;
  buffer_addr_t int4_place;
  logic [ArraySize-1:0]                  int4_mask;
  logic [INT4_ROWS-1:0][Words-1:0][31:0] int4_data;

  assign int4 = cmd.int4_group != '0;
  npu_clock_gate u_int4_gate (.clk_i, .en_i(!rst_ni || int4), .clk_o(int4_clk));

  npu_matrix_dequant #(.ArraySize(ArraySize), .AccTiles(AccTiles), .Words(Words)) u_dequant (
    .clk_i(int4_clk), .rst_ni, .dtype_i(cmd.src_dtype), .group_i(cmd.int4_group),
    .wr_valid_i(wr_valid), .wr_place_i(wr_place), .wr_mask_i(wr_mask), .wr_data_i(wr_data),
    .tile_done_i(tile_done),
    .valid_o(int4_valid), .place_o(int4_place), .mask_o(int4_mask),
    .data_o(int4_data), .done_o(int4_done)
  );

  // ---- compute ----
  logic   seq_valid, seq_ready, drain_valid, drain_ready;
  block_t seq_block, drain_block;
  token_t token;
  sum_token_t sum_token;
  logic   sum_valid;
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
    .clk_i, .rst_ni, .start_i(start), .cmd_i(cmd),
    .block_valid_i(seq_valid), .block_ready_o(seq_ready), .block_i(seq_block),
    .a_done_i(tile_done && wr_place.operand == MATRIX_A),
    .b_done_i(int4 ? int4_done : tile_done && wr_place.operand == MATRIX_B),
    .held_i((seq_push && seq_room && !half_free) || (wr_req_o.data_valid && !wr_rsp_i.data_ready)),
    .token_o(token), .stats_o(rsp_o.stats)
  );

  npu_matrix_array #(
    .ArraySize(ArraySize), .FmaLatency(FmaLatency), .ASlots(ASlots), .WeightSlots(WeightSlots),
    .Words(Words)
  ) u_array (
    .clk_i, .rst_ni, .int8_i(int8),
    .wr_valid_i(wr_valid && !(int4 && wr_place.operand == MATRIX_B)),
    .wr_place_i(wr_place), .wr_mask_i(wr_mask), .wr_data_i(wr_data),
    .int4_valid_i(int4 && int4_valid), .int4_place_i(int4_place),
    .int4_mask_i(int4_mask), .int4_data_i(int4_data),
    .token_i(token), .psum_i(psum), .sum_valid_o(sum_valid), .sum_token_o(sum_token), .sum_o(sum),
    .a_free_o(a_free), .b_free_o(b_free)
  );

  // ---- store ----
  logic   acc_rd, acc_room, acc_rd_half, line_valid, line_ready, last_line, drained;
  entry_t acc_rd_entry;
  lane_t  line_first;
  extent_t line_elems;
  logic [63:0] line_addr;
  logic [ArraySize*32-1:0] line_data;

  npu_matrix_acc #(.ArraySize(ArraySize), .AccTiles(AccTiles)) u_acc (
    .clk_i, .rst_ni,
    .rd_token_i(token), .rd_sum_o(psum),
    .wr_valid_i(sum_valid), .wr_token_i(sum_token), .wr_sum_i(sum),
    .load_valid_i(wr_valid && wr_place.operand == MATRIX_C),
    .load_half_i(wr_place.half), .load_entry_i(wr_place.place + entry_t'(wr_place.line)),
    .load_mask_i(wr_mask), .load_data_i(wr_data),
    .drain_valid_i(acc_rd), .drain_ready_o(acc_room), .drain_half_i(acc_rd_half),
    .drain_entry_i(acc_rd_entry), .drain_data_o(line_data)
  );

  // Holds at most one block per accumulator half, so it always has room. A block is here from the
  // beginning: its first column tiles leave while the array works on the others.
  npu_fifo #(.Width($bits(block_t)), .Depth(2), .NeverFull(1'b1)) u_drain_blocks (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(seq_push && seq_room && half_free), .in_ready_o(), .in_data_i(block),
    .out_valid_o(drain_valid), .out_ready_i(drain_ready), .out_data_o(drain_block),
    .count_o()
  );

  npu_matrix_drain #(.ArraySize(ArraySize), .AccTiles(AccTiles)) u_drain (
    .clk_i, .rst_ni, .start_i(start), .cmd_i(cmd),
    .block_valid_i(drain_valid), .block_ready_o(drain_ready), .block_i(drain_block),
    .tile_done_i(sum_valid && sum_token.tile_end),
    .acc_valid_o(acc_rd), .acc_ready_i(acc_room),
    .acc_half_o(acc_rd_half), .acc_entry_o(acc_rd_entry),
    .line_valid_o(line_valid), .line_ready_i(line_ready),
    .line_addr_o(line_addr), .line_first_o(line_first), .line_elems_o(line_elems),
    .half_free_o(drained), .last_o(last_line)
  );

  npu_matrix_pack #(.ArraySize(ArraySize), .BusBits(BusBits)) u_pack (
    .clk_i, .rst_ni, .cmd_i(cmd),
    .line_valid_i(line_valid), .line_ready_o(line_ready),
    .line_addr_i(line_addr), .line_first_i(line_first), .line_elems_i(line_elems),
    .line_data_i(line_data),
    .wr_req_o, .wr_rsp_i, .wr_data_o, .wr_strb_o
  );

  // ---- begin and end ----
  logic        busy_q, all_sent_q, read_err_q, write_err_q;
  logic [1:0]  halves_q;      // free accumulator halves
  logic        all_answered;

  npu_outstanding #(.Most(MAX_OPEN_WRITES)) u_writes (
    .clk_i, .rst_ni, .sent_i(wr_req_o.valid && wr_rsp_i.ready), .answered_i(wr_rsp_i.done),
    .none_o(all_answered)
  );

  assign half_free   = halves_q != 2'd0;
  assign rsp_o.ready = !busy_q;
  assign rsp_o.done  = busy_q && all_sent_q && all_answered;
  assign rsp_o.err   = read_err_q ? ERROR_BUS_READ : (write_err_q ? ERROR_BUS_WRITE : ERROR_NONE);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q       <= 1'b0;
      all_sent_q   <= 1'b0;
      halves_q     <= 2'd2;
    end else begin
      if (start)           busy_q <= 1'b1;
      else if (rsp_o.done) busy_q <= 1'b0;
      if (start)                        all_sent_q <= 1'b0;
      else if (line_ready && last_line) all_sent_q <= 1'b1;
      halves_q     <= halves_q + 2'(drained) - 2'(seq_push && seq_room && half_free);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start) begin
      read_err_q  <= 1'b0;
      write_err_q <= 1'b0;
    end else begin
      if (rd_rsp_i.data_valid && rd_req_o.data_ready && rd_rsp_i.data_err) read_err_q <= 1'b1;
      if (wr_rsp_i.done && wr_rsp_i.err)            write_err_q <= 1'b1;
    end
  end
endmodule
