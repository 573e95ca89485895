// SPDX-License-Identifier: Apache-2.0
/// Write half of the host port: passes legal bursts on, drops the others and answers DECERR.
///
/// A burst goes to the DRAM only when all its data and room for its response are here, so a slow
/// host never blocks the engines. An illegal burst waits until everything before it has been
/// answered, which keeps the order of responses within an id. Data may come before its address.
module npu_host_write
  import npu_pkg::*;
  import npu_mem_pkg::*;
#(
  parameter int unsigned BusBits  = 256,
  parameter logic [63:0] MemBase,
  parameter logic [63:0] MemLimit,
  localparam int unsigned StrbW   = BusBits / 8
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  input  logic                     aw_valid_i,
  output logic                     aw_ready_o,
  input  host_addr_t               aw_i,
  input  logic                     w_valid_i,
  output logic                     w_ready_o,
  input  logic [BusBits-1:0]       w_data_i,
  input  logic [StrbW-1:0]         w_strb_i,
  input  logic                     w_last_i,
  output logic                     b_valid_o,
  input  logic                     b_ready_i,
  output logic [HOST_ID_WIDTH-1:0] b_id_o,
  output resp_e                    b_resp_o,

  // Legal bursts on their way to the DRAM, their data, and their responses, always accepted
  output logic                     burst_valid_o,
  input  logic                     burst_ready_i,
  output host_addr_t               burst_o,
  output logic                     data_valid_o,
  input  logic                     data_ready_i,
  output logic [BusBits-1:0]       data_o,
  output logic [StrbW-1:0]         strb_o,
  input  logic                     ack_valid_i,
  input  logic [HOST_ID_WIDTH-1:0] ack_id_i,
  input  resp_e                    ack_resp_i
);
  localparam int unsigned DataBeats = MAX_BURST_BEATS;
  localparam int unsigned DataCountW = $clog2(DataBeats + 1);
  localparam int unsigned MaxBursts = 16;
  localparam int unsigned BurstCountW = $clog2(MaxBursts + 1);

  // Data lowest: whole words for the simulator.
  typedef struct packed {
    logic               last;
    logic [StrbW-1:0]   strb;
    logic [BusBits-1:0] data;
  } beat_t;

  logic                   head_valid, head_pop, head_ok, burst_fire;
  logic                   data_pop, whole_in, whole_out, refuse, drop, dropped_q;
  logic                   ack_valid, b_pop;
  logic [DataCountW-1:0]  whole_q;  // whole bursts in the FIFO that no address has claimed
  logic [BurstCountW-1:0] room_q;
  host_addr_t             head;
  beat_t                  beat;
  logic [HOST_ID_WIDTH-1:0] ack_id;
  resp_e                  ack_resp;

  // Clocked while something is on its way.
  logic active, host_clk;
  assign active = !rst_ni || aw_valid_i || w_valid_i || head_valid || data_valid_o ||
                  room_q != BurstCountW'(MaxBursts);
  npu_clock_gate u_gate (.clk_i, .en_i(active), .clk_o(host_clk));

  npu_fifo #(.Width($bits(host_addr_t)), .Depth(2)) u_requests (
    .clk_i(host_clk), .rst_ni, .flush_i(1'b0),
    .in_valid_i(aw_valid_i), .in_ready_o(aw_ready_o), .in_data_i(aw_i),
    .out_valid_o(head_valid), .out_ready_i(head_pop), .out_data_o(head), .count_o()
  );

  npu_host_check #(.BusBits(BusBits), .MemBase(MemBase), .MemLimit(MemLimit)) u_check (
    .valid_i(head_valid), .addr_i(head.addr), .len_i(head.len), .size_i(head.size),
    .burst_i(head.burst), .ok_o(head_ok)
  );

  npu_fifo #(.Width($bits(beat_t)), .Depth(DataBeats)) u_data (
    .clk_i(host_clk), .rst_ni, .flush_i(1'b0),
    .in_valid_i(w_valid_i), .in_ready_o(w_ready_o), .in_data_i({w_last_i, w_strb_i, w_data_i}),
    .out_valid_o(data_valid_o), .out_ready_i(data_pop), .out_data_o(beat), .count_o()
  );

  npu_fifo #(.Width(HOST_ID_WIDTH + $bits(resp_e)), .Depth(MaxBursts), .NeverFull(1'b1)) u_acks (
    .clk_i(host_clk), .rst_ni, .flush_i(1'b0),
    .in_valid_i(ack_valid_i), .in_ready_o(), .in_data_i({ack_id_i, ack_resp_i}),
    .out_valid_o(ack_valid), .out_ready_i(b_pop), .out_data_o({ack_id, ack_resp}), .count_o()
  );

  assign burst_valid_o = head_valid && head_ok && whole_q != '0 && room_q != '0;
  assign burst_o       = head;
  assign burst_fire    = burst_valid_o && burst_ready_i;
  assign data_o        = beat.data;
  assign strb_o        = beat.strb;

  // All room free means that every earlier burst has been answered: the data at the head belongs to
  // the refused burst.
  assign refuse   = head_valid && !head_ok && room_q == BurstCountW'(MaxBursts);
  assign drop     = refuse && whole_q != '0 && !dropped_q;
  assign data_pop = data_ready_i || drop;
  assign b_pop    = ack_valid && b_ready_i;
  assign head_pop = burst_fire || (dropped_q && b_ready_i);

  assign b_valid_o = dropped_q || ack_valid;
  assign b_id_o    = dropped_q ? head.id : ack_id;
  assign b_resp_o  = dropped_q ? RESP_DECERR : ack_resp;

  assign whole_in  = w_valid_i && w_ready_o && w_last_i;
  assign whole_out = burst_fire || (drop && beat.last);

  always_ff @(posedge host_clk) begin
    if (!rst_ni) begin
      whole_q   <= '0;
      room_q    <= BurstCountW'(MaxBursts);
      dropped_q <= 1'b0;
    end else begin
      if (whole_in != whole_out) begin
        whole_q <= whole_in ? whole_q + DataCountW'(1) : whole_q - DataCountW'(1);
      end
      if (burst_fire != b_pop) begin
        room_q <= b_pop ? room_q + BurstCountW'(1) : room_q - BurstCountW'(1);
      end
      if (drop)           dropped_q <= beat.last;
      else if (b_ready_i) dropped_q <= 1'b0;
    end
  end
endmodule
