// SPDX-License-Identifier: Apache-2.0
/// The two sources of packets: the queue behind CMD_PUSH, and the ring in memory. The queue goes
/// before the ring.
///
/// A push into a full queue is dropped. One `retire_i` pulse follows for each packet taken from the
/// ring, but for those that are dropped before a flush. `flush_i` empties both. `pending_o`: a
/// packet waits here, or one from the ring has not been retired.
module npu_cmd_queue
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned CsrDepth  = 4,
  parameter int unsigned RingDepth = 4
) (
  input  logic           clk_i,
  input  logic           rst_ni,

  input  logic           push_i,
  input  line_t          push_packet_i,
  input  ring_config_t   ring_i,
  input  ring_index_t    tail_i,
  input  logic           hold_i,
  input  logic           flush_i,
  input  logic           retire_i,

  output logic           csr_empty_o,
  output logic           csr_full_o,
  output ring_index_t    ring_head_o,
  output logic           ring_empty_o,
  output logic           pending_o,

  output logic           fetch_valid_o,
  input  logic           fetch_ready_i,
  output line_addr_t     fetch_addr_o,
  input  logic           line_valid_i,
  input  line_t          line_i,
  input  logic           line_err_i,

  output logic           cmd_valid_o,
  input  logic           cmd_ready_i,
  output queued_packet_t cmd_o
);
  localparam int unsigned CountW = $clog2(CsrDepth + 1);

  logic              csr_valid, csr_ready, ring_valid, ring_pending, ring_err;
  line_t             csr_packet, ring_packet;
  logic [CountW-1:0] csr_count;

  npu_fifo #(
    .Width(LINE_BITS),
    .Depth(CsrDepth)
  ) u_csr_queue (
    .clk_i,
    .rst_ni,
    .flush_i,
    .in_valid_i (push_i),
    .in_ready_o (csr_ready),
    .in_data_i  (push_packet_i),
    .out_valid_o(csr_valid),
    .out_ready_i(cmd_ready_i),
    .out_data_o (csr_packet),
    .count_o    (csr_count)
  );

  npu_ring_fetch #(
    .Depth(RingDepth)
  ) u_ring_fetch (
    .clk_i,
    .rst_ni,
    .ring_i,
    .tail_i,
    .hold_i,
    .flush_i,
    .retire_i,
    .head_o        (ring_head_o),
    .empty_o       (ring_empty_o),
    .pending_o     (ring_pending),
    .req_valid_o   (fetch_valid_o),
    .req_ready_i   (fetch_ready_i),
    .req_addr_o    (fetch_addr_o),
    .line_valid_i,
    .line_i,
    .line_err_i,
    .packet_valid_o(ring_valid),
    .packet_ready_i(cmd_ready_i && !csr_valid),
    .packet_o      (ring_packet),
    .packet_err_o  (ring_err)
  );

  assign csr_empty_o = csr_count == '0;
  assign csr_full_o  = !csr_ready;
  assign pending_o   = csr_valid || ring_pending;

  assign cmd_valid_o = csr_valid || ring_valid;
  assign cmd_o       = '{qid: 1'b0, from_ring: !csr_valid, fetch_err: !csr_valid && ring_err,
                         packet: csr_valid ? csr_packet : ring_packet};
endmodule
