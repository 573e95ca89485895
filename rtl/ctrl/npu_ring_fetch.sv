// SPDX-License-Identifier: Apache-2.0
/// Fetches packets of the command ring ahead of their execution.
///
/// Slots from head to tail are read in order, at most `Depth` of them fetched and not yet taken.
/// The head moves one slot per `retire_i` pulse, which follows the completion of a packet taken
/// here. `hold_i` stops new fetches. `flush_i` drops everything, head takes the value of tail; the
/// line reader must be idle then. `pending_o`: something is left to fetch, to take or to retire.
module npu_ring_fetch
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned Depth = 4
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  ring_config_t ring_i,
  input  ring_index_t  tail_i,
  input  logic         hold_i,
  input  logic         flush_i,
  input  logic         retire_i,
  output ring_index_t  head_o,
  output logic         empty_o,
  output logic         pending_o,

  output logic         req_valid_o,
  input  logic         req_ready_i,
  output line_addr_t   req_addr_o,
  input  logic         line_valid_i,
  input  line_t        line_i,
  input  logic         line_err_i,

  output logic         packet_valid_o,
  input  logic         packet_ready_i,
  output line_t        packet_o,
  output logic         packet_err_o
);
  localparam int unsigned CountW = $clog2(Depth + 1);

  ring_index_t       mask, tail, head, fetched, head_q, fetch_q;
  logic [CountW-1:0] in_use_q, stored;
  logic              fetch, take;

  assign mask           = index_mask(ring_i.log2_entries);
  // The ring may have become smaller since.
  assign tail           = tail_i & mask;
  assign head           = head_q & mask;
  assign fetched        = fetch_q & mask;
  assign head_o         = head;
  assign empty_o        = head == tail;
  assign pending_o      = (ring_i.enable && !empty_o) || head != fetched;

  assign req_valid_o    = ring_i.enable && !hold_i && fetched != tail && in_use_q != CountW'(Depth);
  assign req_addr_o     = ring_i.base + LINE_ADDR_WIDTH'(fetched);
  assign fetch          = req_valid_o && req_ready_i;
  assign take           = packet_valid_o && packet_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q   <= '0;
      fetch_q  <= '0;
      in_use_q <= '0;
    end else if (flush_i) begin
      head_q   <= tail;
      fetch_q  <= tail;
      in_use_q <= '0;
    end else begin
      if (retire_i) head_q  <= (head_q + ring_index_t'(1)) & mask;
      if (fetch)    fetch_q <= (fetch_q + ring_index_t'(1)) & mask;
      if (fetch != take) in_use_q <= fetch ? in_use_q + CountW'(1) : in_use_q - CountW'(1);
    end
  end

  npu_fifo #(
    .Width(LINE_BITS + 1),
    .Depth(Depth),
    .NeverFull(1'b1)
  ) u_packets (
    .clk_i,
    .rst_ni,
    .flush_i,
    .in_valid_i (line_valid_i),
    .in_ready_o (),
    .in_data_i  ({line_err_i, line_i}),
    .out_valid_o(packet_valid_o),
    .out_ready_i(packet_ready_i),
    .out_data_o ({packet_err_o, packet_o}),
    .count_o    (stored)
  );

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      InUseCountsStored: assert (stored <= in_use_q)
        else $error("npu_ring_fetch: %0d packets stored, %0d accounted for", stored, in_use_q);
    end
  end
endmodule
