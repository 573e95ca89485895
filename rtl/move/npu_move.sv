// SPDX-License-Identifier: Apache-2.0
/// COPY and FILL: moves or writes the elements of strided views without looking at their values.
///
/// Two walkers turn source and destination, each by itself, into requests of contiguous bytes in
/// the same element order; the aligner in between moves a stream of bytes. Contiguous runs move at
/// one bus beat per cycle at any pair of alignments, single elements at one per cycle, with up to
/// MaxReads requests in flight. Writes are requested once the first data of the command is here.
/// After a bus error no new request is made, what was requested is drained, and `done_o` comes with
/// BUS_READ or else BUS_WRITE. The destination is then unspecified.
///
/// Latency: 2 to 6 cycles from command to first request, 2 from last acknowledge to `done_o`.
module npu_move
  import npu_isa_pkg::*;
  import npu_pkg::*;
#(
  parameter int unsigned BusBits  = 256,
  /// Read requests in flight: covers the DRAM latency when every element is a request.
  parameter int unsigned MaxReads = 256,
  /// Contiguous runs of 2^RunW bytes and more are walked dimension by dimension.
  parameter int unsigned RunW     = 32,
  localparam int unsigned StrbW   = BusBits / 8
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  // Command; stable from cmd_valid_i until done_o
  input  logic                       cmd_valid_i,
  output logic                       cmd_ready_o,
  input  npu_engine_cmd_t            cmd_i,
  output logic                       done_o,
  output error_e                     err_o,
  output npu_stats_t                 stats_o,

  // Read client of the memory controller
  output logic                       rd_req_valid_o,
  input  logic                       rd_req_ready_i,
  output logic [ADDR_WIDTH-1:0]      rd_req_addr_o,
  output logic [REQ_BYTES_WIDTH-1:0] rd_req_bytes_o,
  input  logic                       rd_rsp_valid_i,
  output logic                       rd_rsp_ready_o,
  input  logic [BusBits-1:0]         rd_rsp_data_i,
  input  logic                       rd_rsp_err_i,

  // Write client of the memory controller
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
  localparam int unsigned LaneW = $clog2(StrbW);
  // Write requests ahead of their data; the memory controller takes only a few.
  localparam int unsigned MaxWrites = 8;
  // Requests not yet acknowledged: the memory controller tracks 256 bursts and a few.
  localparam int unsigned AckW = 12;

  typedef enum logic [1:0] {
    IDLE,  // waiting for a command
    BUSY,  // walking, moving, draining
    DONE   // reporting
  } state_e;

  state_e                     state_q, state_d;
  logic                       start, fill, drain, finished, flowing_q, read_err_q, write_err_q;
  logic [1:0]                 elem_log2;
  logic [AckW-1:0]            unacked_q;
  logic                       src_busy, src_valid, src_ready, src_room, src_empty;
  logic                       dst_busy, dst_valid, dst_ready, dst_room;
  logic                       src_run, src_take, dst_run, dst_take, write_fire;
  logic [LaneW-1:0]           src_lane, dst_lane;
  logic [REQ_BYTES_WIDTH-1:0] src_left, dst_left;
  logic [LaneW:0]             src_bytes, dst_bytes;
  logic                       out_valid, out_ready;
  logic [BusBits-1:0]         out_data;
  logic [StrbW-1:0]           out_strb;
  logic [31:0]                pattern;

  assign fill        = cmd_i.opcode == OPCODE_FILL;
  assign elem_log2   = dtype_log2_bytes(cmd_i.dst_dtype);  // COPY's source has the same type
  assign cmd_ready_o = state_q == IDLE;
  assign start       = cmd_valid_i && cmd_ready_o;
  assign drain       = read_err_q || write_err_q;

  always_comb begin
    unique case (elem_log2)
      2'd0:    pattern = {4{cmd_i.fill_value[7:0]}};
      2'd1:    pattern = {2{cmd_i.fill_value[15:0]}};
      default: pattern = cmd_i.fill_value;
    endcase
  end

  npu_move_walk #(.RunW(RunW)) u_src_walk (
    .clk_i, .rst_ni,
    .start_i(start && !fill), .stop_i(drain), .busy_o(src_busy),
    .view_i(cmd_i.src1), .merge_i('1), .elem_log2_i(elem_log2),
    .req_valid_o(src_valid), .req_ready_i(src_ready),
    .req_addr_o(rd_req_addr_o), .req_bytes_o(rd_req_bytes_o), .req_last_o(), .loop_o()
  );

  // A request goes to the memory controller and to the queue in the same cycle.
  assign rd_req_valid_o = src_valid && src_room;
  assign src_ready      = rd_req_ready_i && src_room;

  npu_move_run #(.BusBits(BusBits), .Depth(MaxReads)) u_src_run (
    .clk_i, .rst_ni,
    .request_valid_i(src_valid && rd_req_ready_i), .request_ready_o(src_room),
    .request_lane_i(rd_req_addr_o[LaneW-1:0]), .request_bytes_i(rd_req_bytes_o),
    .empty_o(src_empty), .valid_o(src_run), .lane_o(src_lane), .left_o(src_left),
    .take_i(src_take), .take_bytes_i(src_bytes)
  );

  npu_move_walk #(.RunW(RunW)) u_dst_walk (
    .clk_i, .rst_ni,
    .start_i(start), .stop_i(drain), .busy_o(dst_busy),
    .view_i(cmd_i.dst), .merge_i('1), .elem_log2_i(elem_log2),
    .req_valid_o(dst_valid), .req_ready_i(dst_ready),
    .req_addr_o(wr_req_addr_o), .req_bytes_o(wr_req_bytes_o), .req_last_o(), .loop_o()
  );

  assign wr_req_valid_o = dst_valid && dst_room && flowing_q;
  assign dst_ready      = wr_req_ready_i && dst_room && flowing_q;
  assign write_fire     = wr_req_valid_o && wr_req_ready_i;

  npu_move_run #(.BusBits(BusBits), .Depth(MaxWrites)) u_dst_run (
    .clk_i, .rst_ni,
    .request_valid_i(dst_valid && wr_req_ready_i && flowing_q), .request_ready_o(dst_room),
    .request_lane_i(wr_req_addr_o[LaneW-1:0]), .request_bytes_i(wr_req_bytes_o),
    .empty_o(), .valid_o(dst_run), .lane_o(dst_lane), .left_o(dst_left),
    .take_i(dst_take), .take_bytes_i(dst_bytes)
  );

  npu_move_align #(.BusBits(BusBits)) u_align (
    .clk_i, .rst_ni, .fill_i(fill), .pattern_i(pattern), .drain_i(drain),
    .src_valid_i(src_run), .src_lane_i(src_lane), .src_left_i(src_left),
    .src_take_o(src_take), .src_bytes_o(src_bytes),
    .beat_valid_i(rd_rsp_valid_i), .beat_ready_o(rd_rsp_ready_o), .beat_i(rd_rsp_data_i),
    .dst_valid_i(dst_run), .dst_lane_i(dst_lane), .dst_left_i(dst_left),
    .dst_take_o(dst_take), .dst_bytes_o(dst_bytes),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_o(out_data), .strb_o(out_strb),
    .stats_o(stats_o)
  );

  npu_fifo #(.Width(BusBits + StrbW), .Depth(2)) u_out (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(out_valid), .in_ready_o(out_ready), .in_data_i({out_strb, out_data}),
    .out_valid_o(wr_data_valid_o), .out_ready_i(wr_data_ready_i),
    .out_data_o({wr_strb_o, wr_data_o}), .count_o()
  );

  // Bytes on their way to the memory belong to a request that is not acknowledged.
  assign finished = !src_busy && !dst_busy && src_empty && unacked_q == '0;
  assign done_o   = state_q == DONE;
  assign err_o    = read_err_q ? ERROR_BUS_READ : write_err_q ? ERROR_BUS_WRITE : ERROR_NONE;

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
      unacked_q   <= '0;
    end else begin
      state_q <= state_d;
      if (start) begin
        flowing_q   <= fill;
        read_err_q  <= 1'b0;
        write_err_q <= 1'b0;
      end else if (state_q == BUSY) begin
        flowing_q   <= flowing_q || rd_rsp_valid_i;
        read_err_q  <= read_err_q || (rd_rsp_valid_i && rd_rsp_ready_o && rd_rsp_err_i);
        write_err_q <= write_err_q || (wr_rsp_valid_i && wr_rsp_err_i);
      end
      if (write_fire != wr_rsp_valid_i) begin
        unacked_q <= write_fire ? unacked_q + AckW'(1) : unacked_q - AckW'(1);
      end
    end
  end
endmodule
