// SPDX-License-Identifier: Apache-2.0
/// Reads 64-byte lines through one read client port of the memory controller, for descriptors and
/// the rings.
///
/// The descriptor port goes before the rings, which take turns. Lines come back in request order;
/// `line_o` and `line_err_o` belong to the user whose `*_line_valid_o` pulses, which must take it
/// at once. The pulse comes one cycle after the line's last bus beat. `idle_o`: nothing requested,
/// nothing outstanding.
module npu_line_reader
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned BusBits  = 256,
  parameter int unsigned MaxLines = 8  // lines outstanding; more requests wait
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       desc_valid_i,
  output logic                       desc_ready_o,
  input  line_addr_t                 desc_addr_i,
  output logic                       desc_line_valid_o,

  input  queues_t                    ring_valid_i,
  output queues_t                    ring_ready_o,
  input  line_addr_t [QUEUES-1:0]    ring_addr_i,
  output queues_t                    ring_line_valid_o,

  output line_t                      line_o,
  output logic                       line_err_o,
  output logic                       idle_o,

  output mem_rd_req_t                rd_req_o,
  input  mem_rd_rsp_t                rd_rsp_i,
  input  logic [BusBits-1:0]         rd_data_i
);
  localparam int unsigned Beats  = LINE_BITS / BusBits;
  localparam int unsigned BeatW  = (Beats > 1) ? $clog2(Beats) : 1;
  localparam int unsigned CountW = $clog2(MaxLines + 1);
  localparam logic [BeatW-1:0] LastBeat = BeatW'(Beats - 1);

  // Request: arbitrate, note which user it is for, hold the address until it is accepted.
  logic              req_valid, req_ready, hold_ready, tag_ready;
  line_addr_t        held_addr;
  queue_t            ring, last_ring_q;  // the ring whose turn it is, and that of the last request

  assign ring         = (ring_valid_i == '1) ? !last_ring_q : ring_valid_i[1];
  assign req_valid    = (desc_valid_i || ring_valid_i != '0) && tag_ready;
  assign req_ready    = hold_ready && tag_ready;
  assign desc_ready_o = req_ready;

  always_comb begin
    ring_ready_o       = '0;
    ring_ready_o[ring] = req_ready && !desc_valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni)                                  last_ring_q <= 1'b0;
    else if ((ring_ready_o & ring_valid_i) != '0) last_ring_q <= ring;
  end

  npu_stream_reg #(
    .Width(LINE_ADDR_WIDTH)
  ) u_request (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (req_valid),
    .in_ready_o (hold_ready),
    .in_data_i  (desc_valid_i ? desc_addr_i : ring_addr_i[ring]),
    .out_valid_o(rd_req_o.valid),
    .out_ready_i(rd_rsp_i.ready),
    .out_data_o (held_addr)
  );

  assign rd_req_o.range.addr  = {held_addr, {(ADDR_WIDTH - LINE_ADDR_WIDTH){1'b0}}};
  assign rd_req_o.range.bytes = REQ_BYTES_WIDTH'(LINE_BYTES);
  assign rd_req_o.data_ready  = 1'b1;

  // Response: shift the beats in, the first ends up lowest.
  logic [BeatW-1:0]  beat_q;
  logic              last_beat, err_q, done_q, tag_is_desc, tag_valid;
  queue_t            tag_ring;
  logic [CountW-1:0] tag_count;
  line_t             line_q;

  assign last_beat = rd_rsp_i.data_valid && (beat_q == LastBeat);

  npu_fifo #(
    .Width(2),
    .Depth(MaxLines)
  ) u_tags (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (req_valid && hold_ready),
    .in_ready_o (tag_ready),
    .in_data_i  ({desc_valid_i, ring}),
    .out_valid_o(tag_valid),
    .out_ready_i(done_q),
    .out_data_o ({tag_is_desc, tag_ring}),
    .count_o    (tag_count)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_q <= '0;
      done_q <= 1'b0;
    end else begin
      done_q <= last_beat;
      if (rd_rsp_i.data_valid) beat_q <= last_beat ? '0 : beat_q + BeatW'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_rsp_i.data_valid) begin
      line_q <= LINE_BITS'({rd_data_i, line_q} >> BusBits);
      err_q  <= rd_rsp_i.data_err || (err_q && beat_q != '0);
    end
  end

  assign line_o            = line_q;
  assign line_err_o        = err_q;
  assign desc_line_valid_o = done_q && tag_is_desc;

  always_comb begin
    ring_line_valid_o           = '0;
    ring_line_valid_o[tag_ring] = done_q && !tag_is_desc;
  end

  assign idle_o            = tag_count == '0;

  always_ff @(posedge clk_i) begin
    if (rst_ni && rd_rsp_i.data_valid) begin
      ResponseWasAskedFor: assert (tag_valid)
        else $error("npu_line_reader: response beat without a request");
    end
  end
endmodule
