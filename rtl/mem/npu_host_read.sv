// SPDX-License-Identifier: Apache-2.0
/// Read half of the host port: passes legal bursts on, answers the others with DECERR.
///
/// A burst goes to the DRAM only when the return FIFO has room for all of it, so a host that is
/// slow to take its data never blocks the engines. An illegal burst waits until everything before
/// it has been delivered, which keeps the order of responses within an id. Latency AR to request:
/// one cycle.
module npu_host_read
  import npu_pkg::*;
  import npu_mem_pkg::*;
#(
  parameter int unsigned BusBits  = 256,
  parameter logic [63:0] MemBase,
  parameter logic [63:0] MemLimit
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  input  logic                     ar_valid_i,
  output logic                     ar_ready_o,
  input  host_addr_t               ar_i,
  output logic                     r_valid_o,
  input  logic                     r_ready_i,
  output logic [HOST_ID_WIDTH-1:0] r_id_o,
  output logic [BusBits-1:0]       r_data_o,
  output resp_e                    r_resp_o,
  output logic                     r_last_o,

  // Legal bursts on their way to the DRAM, and their data; the data is always accepted
  output logic                     burst_valid_o,
  input  logic                     burst_ready_i,
  output host_addr_t               burst_o,
  input  logic                     beat_valid_i,
  input  logic [HOST_ID_WIDTH-1:0] beat_id_i,
  input  logic [BusBits-1:0]       beat_data_i,
  input  resp_e                    beat_resp_i,
  input  logic                     beat_last_i
);
  localparam int unsigned ReturnBeats = MAX_BURST_BEATS;
  localparam int unsigned CountW = $clog2(ReturnBeats + 1);

  // Data lowest: whole words for the simulator.
  typedef struct packed {
    logic [HOST_ID_WIDTH-1:0] id;
    resp_e                    resp;
    logic                     last;
    logic [BusBits-1:0]       data;
  } beat_t;

  logic              head_valid, head_pop, head_ok, burst_fire;
  logic              ret_valid, ret_pop, refuse, refuse_last;
  logic [CountW-1:0] room_q, need;
  logic [7:0]        refused_q;
  host_addr_t        head;
  beat_t             ret;

  // Clocked while something is on its way.
  logic active, host_clk;
  assign active = !rst_ni || ar_valid_i || head_valid || room_q != CountW'(ReturnBeats);
  npu_clock_gate u_gate (.clk_i, .en_i(active), .clk_o(host_clk));

  npu_fifo #(.Width($bits(host_addr_t)), .Depth(2)) u_requests (
    .clk_i(host_clk), .rst_ni, .flush_i(1'b0),
    .in_valid_i(ar_valid_i), .in_ready_o(ar_ready_o), .in_data_i(ar_i),
    .out_valid_o(head_valid), .out_ready_i(head_pop), .out_data_o(head), .count_o()
  );

  npu_host_check #(.BusBits(BusBits), .MemBase(MemBase), .MemLimit(MemLimit)) u_check (
    .valid_i(head_valid), .addr_i(head.addr), .len_i(head.len), .size_i(head.size),
    .burst_i(head.burst), .ok_o(head_ok)
  );

  npu_fifo #(.Width($bits(beat_t)), .Depth(ReturnBeats), .NeverFull(1'b1)) u_return (
    .clk_i(host_clk), .rst_ni, .flush_i(1'b0),
    .in_valid_i(beat_valid_i), .in_ready_o(),
    .in_data_i({beat_id_i, beat_resp_i, beat_last_i, beat_data_i}),
    .out_valid_o(ret_valid), .out_ready_i(ret_pop), .out_data_o(ret), .count_o()
  );

  assign need          = CountW'(head.len) + CountW'(1);
  assign burst_valid_o = head_valid && head_ok && room_q >= need;
  assign burst_o       = head;
  assign burst_fire    = burst_valid_o && burst_ready_i;

  // All room free means that nothing is in flight and nothing waits for the host.
  assign refuse      = head_valid && !head_ok && room_q == CountW'(ReturnBeats);
  assign refuse_last = refused_q == head.len;
  assign head_pop    = burst_fire || (refuse && refuse_last && r_ready_i);
  assign ret_pop     = ret_valid && r_ready_i;

  assign r_valid_o = refuse || ret_valid;
  assign r_id_o    = refuse ? head.id : ret.id;
  assign r_data_o  = refuse ? '0 : ret.data;
  assign r_resp_o  = refuse ? RESP_DECERR : ret.resp;
  assign r_last_o  = refuse ? refuse_last : ret.last;

  always_ff @(posedge host_clk) begin
    if (!rst_ni) begin
      room_q    <= CountW'(ReturnBeats);
      refused_q <= '0;
    end else begin
      if (burst_fire || ret_pop) begin
        room_q <= room_q - (burst_fire ? need : '0) + CountW'(ret_pop);
      end
      if (refuse && r_ready_i) refused_q <= refuse_last ? '0 : refused_q + 8'd1;
    end
  end
endmodule
