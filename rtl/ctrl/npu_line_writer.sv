// SPDX-License-Identifier: Apache-2.0
/// Writes one 64-byte line, or one 4-byte word, through a write client port of the memory
/// controller.
///
/// One write at a time: `req_ready_o` is high while idle. The address of a word is a multiple of 4,
/// that of a line a multiple of 64. `done_o` pulses, with `err_o`, when the write is acknowledged.
module npu_line_writer
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  localparam int unsigned StrbW  = BusBits / 8
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       req_valid_i,
  output logic                       req_ready_o,
  input  line_write_t                req_i,
  output logic                       done_o,
  output logic                       err_o,

  output mem_wr_req_t                wr_req_o,
  input  mem_wr_rsp_t                wr_rsp_i,
  output logic [BusBits-1:0]         wr_data_o,
  output logic [StrbW-1:0]           wr_strb_o
);
  localparam int unsigned Beats   = LINE_BITS / BusBits;
  localparam int unsigned BeatW   = $clog2(Beats + 1);
  localparam int unsigned OffsetW = $clog2(StrbW);

  logic                  busy_q, req_valid_q, word_q, accept, beat_done;
  logic [BeatW-1:0]      beats_left_q;
  logic [ADDR_WIDTH-1:0] addr_q;
  line_t                 data_q;

  assign req_ready_o = !busy_q;
  assign accept      = req_valid_i && req_ready_o;
  assign beat_done   = wr_req_o.data_valid && wr_rsp_i.data_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q       <= 1'b0;
      req_valid_q  <= 1'b0;
      beats_left_q <= '0;
    end else if (accept) begin
      busy_q       <= 1'b1;
      req_valid_q  <= 1'b1;
      beats_left_q <= req_i.word ? BeatW'(1) : BeatW'(Beats);
    end else begin
      if (wr_rsp_i.done)  busy_q       <= 1'b0;
      if (wr_rsp_i.ready) req_valid_q  <= 1'b0;
      if (beat_done)      beats_left_q <= beats_left_q - BeatW'(1);
    end
  end

  // A word is repeated over the beat; the strobes pick its place.
  always_ff @(posedge clk_i) begin
    if (accept) begin
      word_q <= req_i.word;
      addr_q <= req_i.addr;
      data_q <= req_i.word ? {(LINE_BITS / 32){req_i.data[31:0]}} : req_i.data;
    end else if (beat_done) begin
      data_q <= data_q >> BusBits;
    end
  end

  assign wr_req_o.valid       = req_valid_q;
  assign wr_req_o.range.addr  = addr_q;
  assign wr_req_o.range.bytes = word_q ? REQ_BYTES_WIDTH'(4) : REQ_BYTES_WIDTH'(LINE_BYTES);
  assign wr_req_o.data_valid  = beats_left_q != '0;
  assign wr_data_o            = data_q[BusBits-1:0];
  assign wr_strb_o            = word_q ? StrbW'(4'hF) << addr_q[OffsetW-1:0] : '1;
  assign done_o               = busy_q && wr_rsp_i.done;
  assign err_o                = wr_rsp_i.err;

  always_ff @(posedge clk_i) begin
    if (rst_ni && wr_rsp_i.done) begin
      AcknowledgedAfterData: assert (busy_q && !req_valid_q && beats_left_q == '0)
        else $error("npu_line_writer: acknowledged before request and data were taken");
    end
  end
endmodule
