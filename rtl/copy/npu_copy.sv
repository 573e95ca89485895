// SPDX-License-Identifier: Apache-2.0
/// COPY and FILL: moves or writes the elements of strided views without looking at their values.
///
/// Two walkers turn source and destination, each by itself, into requests of contiguous bytes in
/// the same element order; the aligner in between moves a stream of bytes. Contiguous runs move at
/// one bus beat per cycle at any pair of alignments, single elements at one per cycle, with up to
/// MaxReads requests and BufferBeats beats in flight: what is requested has room to land, so that a
/// write that waits for its turn does not hold up the reads of other engines. Writes are requested
/// once the first data of the command is here.
///
/// Two of these are the channels of one engine. A command asks for no memory while an earlier one
/// in the other channel has requests of that direction to make (`other_i`): the earlier command
/// runs as if it were alone, and this one's data follow its last ones without a gap.
///
/// After a bus error no new request is made, what was requested is drained, and `done` comes with
/// BUS_READ or else BUS_WRITE. The destination is then unspecified.
///
/// Latency: 2 to 6 cycles from command to first request, 2 from last acknowledge to `done`.
module npu_copy
  import npu_isa_pkg::*;
  import npu_pkg::*;
#(
  parameter int unsigned BusBits  = 256,
  /// Read requests in flight: covers the DRAM latency when every element is a request.
  parameter int unsigned MaxReads = 256,
  /// Beats of data that can land: covers the DRAM latency of contiguous runs.
  parameter int unsigned BufferBeats = 256,
  /// Contiguous runs of 2^RunW bytes and more are walked dimension by dimension.
  parameter int unsigned RunW     = 32,
  localparam int unsigned StrbW   = BusBits / 8
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  engine_req_t        req_i,
  output engine_rsp_t        rsp_o,

  output copy_pending_t      pending_o,  // of this channel
  input  copy_pending_t      other_i,

  // Memory controller
  output mem_rd_req_t        rd_req_o,
  input  mem_rd_rsp_t        rd_rsp_i,
  input  logic [BusBits-1:0] rd_data_i,
  output mem_wr_req_t        wr_req_o,
  input  mem_wr_rsp_t        wr_rsp_i,
  output logic [BusBits-1:0] wr_data_o,
  output logic [StrbW-1:0]   wr_strb_o
);
  localparam int unsigned LaneW = $clog2(StrbW);
  // A quarter of what can land.
  localparam int unsigned ReadRequestW = LaneW + $clog2(BufferBeats / 4);

  typedef enum logic [1:0] {
    IDLE,  // waiting for a command
    BUSY,  // walking, moving, draining
    DONE   // reporting
  } state_e;

  state_e                     state_q, state_d;
  copy_pending_t              earlier_q, held;  // the other channel's command came first
  logic                       start, fill, drain, finished, flowing_q, read_err_q, write_err_q;
  logic [1:0]                 elem_log2;
  logic                       all_answered;
  logic                       src_busy, src_valid, src_ready, src_empty;
  logic                       dst_busy, dst_valid, dst_ready;
  logic                       src_run, src_take, dst_run, dst_take;
  mem_range_t                 dst_range;
  logic                       landed, land_ready;
  logic [BusBits-1:0]         land_beat;
  logic [LaneW-1:0]           src_lane, dst_lane;
  logic [REQ_BYTES_WIDTH-1:0] src_left, dst_left;
  logic [LaneW:0]             src_bytes, dst_bytes;
  logic                       out_valid, out_ready;
  logic [BusBits-1:0]         out_data;
  logic [StrbW-1:0]           out_strb;
  logic [31:0]                pattern;
  npu_stats_t                 align_stats;
  npu_engine_cmd_t            cmd;

  assign cmd         = req_i.cmd;
  assign fill        = cmd.opcode == OPCODE_FILL;
  assign elem_log2   = dtype_log2_bytes(cmd.dst_dtype);  // COPY's source has the same type
  assign rsp_o.ready = state_q == IDLE;
  assign start       = req_i.valid && rsp_o.ready;
  assign drain       = read_err_q || write_err_q;
  assign pending_o   = '{reading: src_busy, writing: dst_busy};
  assign held        = earlier_q & other_i;

  always_comb begin
    unique case (elem_log2)
      2'd0:    pattern = {4{cmd.fill_value[7:0]}};
      2'd1:    pattern = {2{cmd.fill_value[15:0]}};
      default: pattern = cmd.fill_value;
    endcase
  end

  npu_copy_walk #(.RunW(RunW), .RequestW(ReadRequestW)) u_src_walk (
    .clk_i, .rst_ni,
    .start_i(start && !fill), .stop_i(drain), .busy_o(src_busy),
    .view_i(cmd.src1), .merge_i('1), .short_i(1'b0), .elem_log2_i(elem_log2),
    .req_valid_o(src_valid), .req_ready_i(src_ready),
    .req_range_o(rd_req_o.range), .req_last_o(), .loop_o()
  );

  assign rd_req_o.data_ready = 1'b1;

  npu_copy_read #(.BusBits(BusBits), .MaxAhead(MaxReads), .Beats(BufferBeats)) u_read (
    .clk_i, .rst_ni,
    .open_i(src_valid && !held.reading), .range_i(rd_req_o.range), .sent_o(src_ready),
    .mem_valid_o(rd_req_o.valid), .mem_ready_i(rd_rsp_i.ready),
    .data_valid_i(rd_rsp_i.data_valid), .data_i(rd_data_i), .data_err_i(rd_rsp_i.data_err),
    .empty_o(src_empty), .run_valid_o(src_run), .lane_o(src_lane), .left_o(src_left),
    .take_i(src_take), .take_bytes_i(src_bytes),
    .beat_valid_o(landed), .beat_ready_i(land_ready), .beat_o(land_beat), .beat_err_o(),
    .idle_o()
  );

  npu_copy_walk #(.RunW(RunW)) u_dst_walk (
    .clk_i, .rst_ni,
    .start_i(start), .stop_i(drain), .busy_o(dst_busy),
    .view_i(cmd.dst), .merge_i('1), .short_i(1'b0), .elem_log2_i(elem_log2),
    .req_valid_o(dst_valid), .req_ready_i(dst_ready),
    .req_range_o(dst_range), .req_last_o(), .loop_o()
  );

  npu_copy_align #(.BusBits(BusBits)) u_align (
    .clk_i, .rst_ni, .fill_i(fill), .pattern_i(pattern), .drain_i(drain),
    .src_valid_i(src_run), .src_lane_i(src_lane), .src_left_i(src_left),
    .src_take_o(src_take), .src_bytes_o(src_bytes),
    .beat_valid_i(landed), .beat_ready_o(land_ready), .beat_i(land_beat),
    .dst_valid_i(dst_run), .dst_lane_i(dst_lane), .dst_left_i(dst_left),
    .dst_take_o(dst_take), .dst_bytes_o(dst_bytes),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_o(out_data), .strb_o(out_strb),
    .stats_o(align_stats)
  );

  // The destination is not asked for before the first beat of the source is here.
  assign rsp_o.stats.active        = align_stats.active;
  assign rsp_o.stats.result_stall  = align_stats.result_stall;
  assign rsp_o.stats.operand_stall = align_stats.operand_stall
                                   || (state_q == BUSY && !flowing_q);

  npu_copy_write #(.BusBits(BusBits)) u_write (
    .clk_i, .rst_ni,
    .open_i(dst_valid && flowing_q && !held.writing), .range_i(dst_range), .sent_o(dst_ready),
    .all_answered_o(all_answered),
    .empty_o(), .run_valid_o(dst_run), .lane_o(dst_lane), .left_o(dst_left),
    .take_i(dst_take), .take_bytes_i(dst_bytes),
    .beat_valid_i(out_valid), .beat_ready_o(out_ready), .beat_i(out_data), .strb_i(out_strb),
    .wr_req_o, .wr_rsp_i, .wr_data_o, .wr_strb_o
  );

  assign finished   = !src_busy && !dst_busy && src_empty && all_answered;
  assign rsp_o.done = state_q == DONE;
  assign rsp_o.err  = read_err_q ? ERROR_BUS_READ : write_err_q ? ERROR_BUS_WRITE : ERROR_NONE;

  always_comb begin
    unique case (state_q)
      IDLE:    state_d = start ? BUSY : IDLE;
      BUSY:    state_d = finished ? DONE : BUSY;
      DONE:    state_d = IDLE;
      default: state_d = IDLE;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= IDLE;
      flowing_q   <= 1'b0;
      read_err_q  <= 1'b0;
      write_err_q <= 1'b0;
      earlier_q   <= '0;
    end else begin
      state_q   <= state_d;
      earlier_q <= start ? other_i : held;
      if (start) begin
        flowing_q   <= fill;
        read_err_q  <= 1'b0;
        write_err_q <= 1'b0;
      end else if (state_q == BUSY) begin
        flowing_q   <= flowing_q || rd_rsp_i.data_valid;
        read_err_q  <= read_err_q || (rd_rsp_i.data_valid && rd_rsp_i.data_err);
        write_err_q <= write_err_q || (wr_rsp_i.done && wr_rsp_i.err);
      end
    end
  end
endmodule
