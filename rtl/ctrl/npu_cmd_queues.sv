// SPDX-License-Identifier: Apache-2.0
/// The two command queues: the ring with the queue behind CMD_PUSH, and the second ring.
///
/// Ports have one element per queue, and are those of npu_cmd_queue and npu_ring_fetch. The second
/// ring has the clock `queue1_clk_i`.
module npu_cmd_queues
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned RingDepth = 4
) (
  input  logic                          clk_i,
  input  logic                          queue1_clk_i,
  input  logic                          rst_ni,

  input  logic                          push_i,
  input  line_t                         push_packet_i,
  input  ring_config_t   [QUEUES-1:0]   ring_i,
  input  ring_index_t    [QUEUES-1:0]   tail_i,
  input  logic                          hold_i,
  input  logic                          flush_i,
  input  queues_t                       retire_i,  // a packet of the ring is completed

  output logic                          csr_empty_o,
  output logic                          csr_full_o,
  output ring_index_t    [QUEUES-1:0]   ring_head_o,
  output queues_t                       ring_empty_o,
  output queues_t                       pending_o,

  output queues_t                       fetch_valid_o,
  input  queues_t                       fetch_ready_i,
  output line_addr_t     [QUEUES-1:0]   fetch_addr_o,
  input  queues_t                       line_valid_i,
  input  line_t                         line_i,
  input  logic                          line_err_i,

  output queues_t                       cmd_valid_o,
  input  queues_t                       cmd_ready_i,
  output queued_packet_t [QUEUES-1:0]   cmd_o
);
  line_t packet1;
  logic  packet1_err;

  npu_cmd_queue #(.RingDepth(RingDepth)) u_queue0 (
    .clk_i,
    .rst_ni,
    .push_i,
    .push_packet_i,
    .ring_i       (ring_i[0]),
    .tail_i       (tail_i[0]),
    .hold_i,
    .flush_i,
    .retire_i     (retire_i[0]),
    .csr_empty_o,
    .csr_full_o,
    .ring_head_o  (ring_head_o[0]),
    .ring_empty_o (ring_empty_o[0]),
    .pending_o    (pending_o[0]),
    .fetch_valid_o(fetch_valid_o[0]),
    .fetch_ready_i(fetch_ready_i[0]),
    .fetch_addr_o (fetch_addr_o[0]),
    .line_valid_i (line_valid_i[0]),
    .line_i,
    .line_err_i,
    .cmd_valid_o  (cmd_valid_o[0]),
    .cmd_ready_i  (cmd_ready_i[0]),
    .cmd_o        (cmd_o[0])
  );

  npu_ring_fetch #(.Depth(RingDepth)) u_queue1 (
    .clk_i         (queue1_clk_i),
    .rst_ni,
    .ring_i        (ring_i[1]),
    .tail_i        (tail_i[1]),
    .hold_i,
    .flush_i,
    .retire_i      (retire_i[1]),
    .head_o        (ring_head_o[1]),
    .empty_o       (ring_empty_o[1]),
    .pending_o     (pending_o[1]),
    .req_valid_o   (fetch_valid_o[1]),
    .req_ready_i   (fetch_ready_i[1]),
    .req_addr_o    (fetch_addr_o[1]),
    .line_valid_i  (line_valid_i[1]),
    .line_i,
    .line_err_i,
    .packet_valid_o(cmd_valid_o[1]),
    .packet_ready_i(cmd_ready_i[1]),
    .packet_o      (packet1),
    .packet_err_o  (packet1_err)
  );

  assign cmd_o[1] = '{qid: 1'b1, from_ring: 1'b1, fetch_err: packet1_err, packet: packet1};
endmodule
