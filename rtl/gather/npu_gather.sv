// SPDX-License-Identifier: Apache-2.0
/// GATHER and SCATTER: moves runs of elements between a dense side and a table, at places that
/// indices pick.
///
/// The table is GATHER's source or SCATTER's destination; the other tensor, the plain side, is
/// walked as COPY does. Inner dimensions in which the index repeats and the table is contiguous
/// form a run that moves at one bus beat per cycle; where every element has its own index, one
/// element per cycle. SCATTER writes in order. With ACCUMULATE the old values are read, added and
/// written back; a read waits for the writes before it that touch the same beats, of which up to
/// MaxWrites are under way.
///
/// After a bus error no new request is made, what was requested is drained, and `done` comes with
/// BUS_READ or else BUS_WRITE. A bad index lets what comes before it finish, so that the error is
/// that of the first element that has one, then gives BAD_INDEX. The destination is then
/// unspecified.
///
/// Read client 0 fetches indices and old values, client 1 the data. Latency: 3 to 7 cycles from
/// command to the first index request, 2 from the last acknowledge to `done`.
module npu_gather
  import npu_isa_pkg::*;
  import npu_pkg::*;
#(
  parameter int unsigned BusBits    = 256,
  parameter int unsigned FmaLatency = 4,
  /// Beats of data that can land: covers the DRAM latency when every element is a request.
  parameter int unsigned DataBeats  = 128,
  parameter int unsigned OldBeats   = 64,
  parameter int unsigned IndexBytes = 1024,
  parameter int unsigned MaxWrites  = 8,
  localparam int unsigned StrbW     = BusBits / 8
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  engine_req_t         req_i,
  output engine_rsp_t         rsp_o,

  // Memory controller
  output mem_rd_req_t [1:0] rd_req_o,
  input  mem_rd_rsp_t [1:0] rd_rsp_i,
  input  logic [BusBits-1:0]  rd_data_i,
  output mem_wr_req_t         wr_req_o,
  input  mem_wr_rsp_t         wr_rsp_i,
  output logic [BusBits-1:0]  wr_data_o,
  output logic [StrbW-1:0]    wr_strb_o
);
  localparam int unsigned LaneW = $clog2(StrbW);
  localparam int unsigned OldBeatsW = $clog2(OldBeats + 1);
  localparam int unsigned IndexBeats = IndexBytes / StrbW;
  localparam int unsigned IndexBeatsW = $clog2(IndexBeats + 1);
  // Requests so small that several have room to land: a quarter of it, half for indices.
  localparam int unsigned DataRequestW = $clog2(OldBeats / 4) + LaneW;
  localparam int unsigned IndexRequestW = $clog2(IndexBytes / 2);

  typedef enum logic [1:0] {
    IDLE,  // waiting for a command
    PLAN,  // the table's walker finds out what a run is
    BUSY,  // reading indices, moving, draining
    DONE   // reporting
  } state_e;

  // What the command says, in terms of table and plain side
  npu_engine_cmd_t     cmd;
  logic                start, gather, add;
  npu_tensor_t         table_view, index_view, plain_view, place_view;
  logic [MAX_RANK-1:0] repeats, loops;
  logic [1:0]          elem_log2;

  assign cmd        = req_i.cmd;
  assign gather     = cmd.opcode == OPCODE_GATHER;
  assign add        = cmd.accumulate;
  assign elem_log2  = dtype_log2_bytes(cmd.src_dtype);
  assign table_view = gather ? cmd.src1 : cmd.dst;
  assign plain_view = gather ? cmd.dst : cmd.src1;

  // The walk of the table has the indices' shape. In the indexed dimension its stride is 0: each
  // index adds its own offset there. A run ends where the index changes.
  always_comb begin
    place_view      = table_view;
    place_view.size = cmd.src2.size;
    index_view      = cmd.src2;
    for (int unsigned i = 0; i < MAX_RANK; i++) begin
      if (3'(i) == cmd.dim) place_view.stride[i] = '0;
      repeats[i] = cmd.src2.stride[i] == '0 || cmd.src2.size[i] == 32'd1;
      if (!loops[i]) index_view.size[i] = 32'd1;
    end
  end

  // State
  state_e          state_q, state_d;
  logic            stop, drain, all_moved, finished;
  logic            flowing_q, read_err_q, write_err_q, bad_index_q;
  logic            all_answered;

  // Walks
  logic                       place_busy, place_valid, place_ready, place_last, place_held;
  mem_range_t                 place_range, table_range, plain_range;
  logic                       table_valid, table_fire;
  logic                       plain_busy, plain_valid, plain_ready, plain_held, plain_fire;

  assign rsp_o.ready = state_q == IDLE;
  assign start       = req_i.valid && rsp_o.ready;

  npu_copy_walk #(.RequestW(DataRequestW)) u_place_walk (
    .clk_i, .rst_ni, .start_i(start), .stop_i(stop), .busy_o(place_busy),
    .view_i(place_view), .merge_i(repeats), .short_i(1'b0), .elem_log2_i(elem_log2),
    .req_valid_o(place_valid), .req_ready_i(place_ready), .req_range_o(place_range),
    .req_last_o(place_last), .loop_o(loops)
  );

  npu_copy_walk #(.RequestW(DataRequestW)) u_plain_walk (
    .clk_i, .rst_ni, .start_i(start), .stop_i(drain), .busy_o(plain_busy),
    .view_i(plain_view), .merge_i('1), .short_i(1'b0), .elem_log2_i(elem_log2),
    .req_valid_o(plain_valid), .req_ready_i(plain_ready), .req_range_o(plain_range),
    .req_last_o(), .loop_o()
  );

  // Indices
  logic                       index_empty, index_valid, index_err, index_bad, index_good;
  logic                       index_req_valid, index_beat, index_beat_ready, index_beat_err;
  logic                       index_idle;
  logic [BusBits-1:0]         index_data;
  logic [ADDR_WIDTH-1:0]      index_offset;
  logic [IndexBeatsW-1:0]     index_beats;
  logic [1:0]                 shared_valid, shared_ready, shared_data;
  mem_range_t                 index_range;

  npu_gather_index #(.BusBits(BusBits), .RequestW(IndexRequestW), .MaxReads(IndexBeats)) u_index (
    .clk_i, .rst_ni, .start_i(state_q == PLAN && place_valid), .drop_i(stop && !place_busy),
    .view_i(index_view), .dtype_i(cmd.src2_dtype), .limit_i(table_view.size[cmd.dim]),
    .stride_i(table_view.stride[cmd.dim]), .elem_log2_i(elem_log2), .empty_o(index_empty),
    .req_valid_o(index_req_valid), .req_ready_i(shared_valid[0] && shared_ready[0]),
    .req_range_o(index_range),
    .beat_valid_i(index_beat), .beat_ready_o(index_beat_ready), .beat_i(index_data),
    .beat_err_i(index_beat_err),
    .valid_o(index_valid), .take_i(table_fire && place_last), .err_o(index_err),
    .bad_o(index_bad), .offset_o(index_offset)
  );

  npu_read_buffer #(.BusBits(BusBits), .Beats(IndexBeats)) u_index_buffer (
    .clk_i, .rst_ni,
    .req_valid_i(index_req_valid), .req_range_i(index_range), .req_beats_o(index_beats),
    .mem_valid_o(shared_valid[0]), .mem_ready_i(shared_ready[0]),
    .data_valid_i(shared_data[0]), .data_i(rd_data_i), .data_err_i(rd_rsp_i[0].data_err),
    .beat_valid_o(index_beat), .beat_ready_i(index_beat_ready), .beat_o(index_data),
    .beat_err_o(index_beat_err), .idle_o(index_idle)
  );

  assign index_good  = index_valid && !index_err && !index_bad;
  assign table_valid = place_valid && index_good;
  assign table_range = '{addr: place_range.addr + index_offset, bytes: place_range.bytes};

  // Old values, for ACCUMULATE: requested before the write of the same place
  logic               old_valid, old_fire, old_sent_q, old_beat, old_ready, old_err, old_idle;
  logic               clash, hazard_room, write_fire;
  logic [BusBits-1:0] old_data;
  logic [OldBeatsW-1:0] old_beats;

  assign old_valid = add && table_valid && flowing_q && !clash && hazard_room && !old_sent_q;
  assign old_fire  = shared_valid[1] && shared_ready[1];

  npu_gather_hazard #(.BusBits(BusBits), .Depth(MaxWrites)) u_hazard (
    .clk_i, .rst_ni, .check_i(add && table_valid && !old_sent_q), .range_i(table_range),
    .conflict_o(clash), .room_o(hazard_room),
    .push_i(add && write_fire), .pop_i(add && wr_rsp_i.done)
  );

  npu_read_buffer #(.BusBits(BusBits), .Beats(OldBeats)) u_old_buffer (
    .clk_i, .rst_ni,
    .req_valid_i(old_valid), .req_range_i(table_range), .req_beats_o(old_beats),
    .mem_valid_o(shared_valid[1]), .mem_ready_i(shared_ready[1]),
    .data_valid_i(shared_data[1]), .data_i(rd_data_i), .data_err_i(rd_rsp_i[0].data_err),
    .beat_valid_o(old_beat), .beat_ready_i(old_ready), .beat_o(old_data), .beat_err_o(old_err),
    .idle_o(old_idle)
  );

  npu_gather_port #(.BeatsW(OldBeatsW), .MaxReads(IndexBeats + MaxWrites + 1)) u_port (
    .clk_i, .rst_ni,
    .req_valid_i(shared_valid), .req_ready_o(shared_ready),
    .req_range_i({table_range, index_range}),
    .req_beats_i({old_beats, OldBeatsW'(index_beats)}), .data_valid_o(shared_data),
    .mem_valid_o(rd_req_o[0].valid), .mem_ready_i(rd_rsp_i[0].ready),
    .mem_range_o(rd_req_o[0].range), .data_valid_i(rd_rsp_i[0].data_valid)
  );

  // Data in: from the table or from the plain side
  logic                       src_empty, src_run, src_take, src_fire, data_idle;
  logic                       beat_valid, beat_ready, beat_err;
  logic [LaneW-1:0]           src_lane;
  logic [REQ_BYTES_WIDTH-1:0] src_left;
  logic [LaneW:0]             src_bytes;
  logic [BusBits-1:0]         beat;

  assign rd_req_o[0].data_ready = 1'b1;
  assign rd_req_o[1].data_ready = 1'b1;
  assign rd_req_o[1].range.addr  = gather ? table_range.addr : plain_range.addr;
  assign rd_req_o[1].range.bytes = gather ? table_range.bytes : plain_range.bytes;

  npu_copy_read #(.BusBits(BusBits), .MaxAhead(DataBeats), .Beats(DataBeats)) u_read (
    .clk_i, .rst_ni,
    .open_i(gather ? table_valid : plain_valid), .range_i(rd_req_o[1].range), .sent_o(src_fire),
    .mem_valid_o(rd_req_o[1].valid), .mem_ready_i(rd_rsp_i[1].ready),
    .data_valid_i(rd_rsp_i[1].data_valid), .data_i(rd_data_i), .data_err_i(rd_rsp_i[1].data_err),
    .empty_o(src_empty), .run_valid_o(src_run), .lane_o(src_lane), .left_o(src_left),
    .take_i(src_take), .take_bytes_i(src_bytes),
    .beat_valid_o(beat_valid), .beat_ready_i(beat_ready), .beat_o(beat), .beat_err_o(beat_err),
    .idle_o(data_idle)
  );

  // Data out: to the plain side or to the table
  logic                       dst_empty, dst_run, dst_take, out_valid, out_ready;
  logic [LaneW-1:0]           dst_lane;
  logic [REQ_BYTES_WIDTH-1:0] dst_left;
  logic [LaneW:0]             dst_bytes;
  mem_range_t                 dst_range;
  logic [BusBits-1:0]         out_data;
  logic [StrbW-1:0]           out_strb;

  assign dst_range.addr  = gather ? plain_range.addr : table_range.addr;
  assign dst_range.bytes = gather ? plain_range.bytes : table_range.bytes;

  npu_copy_write #(.BusBits(BusBits)) u_write (
    .clk_i, .rst_ni,
    .open_i(flowing_q && (gather ? plain_valid : table_valid && (!add || old_sent_q))),
    .range_i(dst_range), .sent_o(write_fire), .all_answered_o(all_answered),
    .empty_o(dst_empty), .run_valid_o(dst_run), .lane_o(dst_lane), .left_o(dst_left),
    .take_i(dst_take), .take_bytes_i(dst_bytes),
    .beat_valid_i(out_valid), .beat_ready_o(out_ready), .beat_i(out_data), .strb_i(out_strb),
    .wr_req_o, .wr_rsp_i, .wr_data_o, .wr_strb_o
  );

  // When the command stops, a walker's request that has not been offered yet is dropped.
  assign table_fire  = gather ? src_fire : write_fire;
  assign plain_fire  = gather ? write_fire : src_fire;
  assign place_held  = gather ? rd_req_o[1].valid : wr_req_o.valid || shared_valid[1] || old_sent_q;
  assign plain_held  = gather ? wr_req_o.valid : rd_req_o[1].valid;
  assign place_ready = table_fire || (stop && !place_held);
  assign plain_ready = plain_fire || (drain && !plain_held);

  // From lanes to lanes, then through the adder or past it
  logic               moved_valid, moved_ready, sum_in_ready, sum_valid;
  logic [BusBits-1:0] moved, sum;
  logic [StrbW-1:0]   moved_strb, sum_strb;
  npu_stats_t         align_stats;

  npu_copy_align #(.BusBits(BusBits)) u_align (
    .clk_i, .rst_ni, .fill_i(1'b0), .pattern_i('0), .drain_i(drain),
    .src_valid_i(src_run), .src_lane_i(src_lane), .src_left_i(src_left),
    .src_take_o(src_take), .src_bytes_o(src_bytes),
    .beat_valid_i(beat_valid), .beat_ready_o(beat_ready), .beat_i(beat),
    .dst_valid_i(dst_run), .dst_lane_i(dst_lane), .dst_left_i(dst_left),
    .dst_take_o(dst_take), .dst_bytes_o(dst_bytes),
    .out_valid_o(moved_valid), .out_ready_i(moved_ready), .out_o(moved), .strb_o(moved_strb),
    .stats_o(align_stats)
  );

  npu_gather_add #(.BusBits(BusBits), .FmaLatency(FmaLatency)) u_add (
    .clk_i, .rst_ni, .dtype_i(cmd.dst_dtype), .drain_i(drain),
    .new_valid_i(add && moved_valid), .new_ready_o(sum_in_ready), .new_i(moved),
    .strb_i(moved_strb),
    .old_valid_i(old_beat), .old_ready_o(old_ready), .old_i(old_data),
    .out_valid_o(sum_valid), .out_ready_i(out_ready), .out_o(sum), .strb_o(sum_strb)
  );

  assign moved_ready = add ? sum_in_ready : out_ready;
  assign out_valid   = add ? sum_valid : moved_valid;
  assign out_data    = add ? sum : moved;
  assign out_strb    = add ? sum_strb : moved_strb;

  // Errors count where the element that has them would be used.
  logic read_err, bad_index;
  assign read_err  = (src_take && beat_err) || (old_beat && old_ready && old_err)
                   || (place_valid && index_valid && index_err);
  assign bad_index = place_valid && index_valid && index_bad && !index_err;
  assign stop      = read_err_q || write_err_q || bad_index_q;
  assign drain     = read_err_q || write_err_q
                   || (bad_index_q && !place_busy && (gather ? src_empty : dst_empty));

  assign all_moved = !place_busy && !plain_busy && index_empty && index_idle && data_idle
                   && old_idle && src_empty;
  assign finished  = all_moved && all_answered;
  assign rsp_o.done = state_q == DONE;

  always_comb begin
    rsp_o.err = ERROR_NONE;
    if (read_err_q)       rsp_o.err = ERROR_BUS_READ;
    else if (bad_index_q) rsp_o.err = ERROR_BAD_INDEX;
    else if (write_err_q) rsp_o.err = ERROR_BUS_WRITE;
  end

  always_comb begin
    unique case (state_q)
      IDLE:    state_d = start ? PLAN : IDLE;
      PLAN:    state_d = place_valid ? BUSY : PLAN;
      BUSY:    state_d = finished ? DONE : BUSY;
      DONE:    state_d = IDLE;
      default: state_d = IDLE;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= IDLE;
      flowing_q   <= 1'b0;
      old_sent_q  <= 1'b0;
      read_err_q  <= 1'b0;
      write_err_q <= 1'b0;
      bad_index_q <= 1'b0;
    end else begin
      state_q <= state_d;
      if (start) begin
        flowing_q   <= 1'b0;
        read_err_q  <= 1'b0;
        write_err_q <= 1'b0;
        bad_index_q <= 1'b0;
      end else if (state_q == BUSY) begin
        flowing_q   <= flowing_q || beat_valid;
        read_err_q  <= read_err_q || (read_err && !drain);
        write_err_q <= write_err_q || (wr_rsp_i.done && wr_rsp_i.err);
        bad_index_q <= bad_index_q || (bad_index && !stop);
        if (old_fire)        old_sent_q <= 1'b1;
        else if (write_fire) old_sent_q <= 1'b0;
      end
    end
  end

  assign rsp_o.stats.active        = align_stats.active;
  assign rsp_o.stats.result_stall  = align_stats.result_stall;
  assign rsp_o.stats.operand_stall = align_stats.operand_stall
                                   || (state_q == BUSY && !all_moved && !dst_run
                                       && !align_stats.active && !align_stats.result_stall);
endmodule
