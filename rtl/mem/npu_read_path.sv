// SPDX-License-Identifier: Apache-2.0
/// Reads: sends the bursts of the engines and of the host, routes the data by id.
///
/// One burst per cycle on AR, one beat per cycle on R. The engines stop sending while MaxReadBeats
/// are in flight (one burst may overshoot). Beats with an unknown id are dropped.
///
/// The latency of the client Critical counts most: the matrix engine asks for a few beats at a
/// time, and stands still while it waits for them. Turns are those of everybody, but while its data
/// is in flight the other engines have at most OtherBeats in flight (one burst may overshoot), so
/// its next request does not wait in the memory behind a thousand beats of theirs.
module npu_read_path
  import npu_pkg::*;
  import npu_mem_pkg::*;
#(
  parameter int unsigned BusBits      = 256,
  parameter int unsigned NumClients   = 3,
  parameter int unsigned MaxReadBeats = 1024,
  parameter int unsigned Critical     = 0
) (
  input  logic                                       clk_i,
  input  logic                                       rst_ni,

  input  mem_rd_req_t [NumClients-1:0]               req_i,
  output mem_rd_rsp_t [NumClients-1:0]               rsp_o,

  // Host bursts; their data is always accepted
  input  logic                                       host_valid_i,
  output logic                                       host_ready_o,
  input  host_addr_t                                 host_i,
  output logic                                       host_beat_o,

  // The beat that a client's data_valid or host_beat_o announces
  output logic [HOST_ID_WIDTH-1:0]                   beat_id_o,
  output logic [BusBits-1:0]                         beat_data_o,
  output resp_e                                      beat_resp_o,
  output logic                                       beat_last_o,

  output logic                                       ar_valid_o,
  input  logic                                       ar_ready_i,
  output axi_addr_t                                  ar_o,
  input  logic                                       r_valid_i,
  output logic                                       r_ready_o,
  input  logic [AXI_ID_WIDTH-1:0]                    r_id_i,
  input  logic [BusBits-1:0]                         r_data_i,
  input  resp_e                                      r_resp_i,
  input  logic                                       r_last_i
);
  localparam int unsigned ClientW = AXI_ID_WIDTH - HOST_ID_WIDTH;
  // One burst may start when a single beat of the budget is left.
  localparam int unsigned FlightW = $clog2(MaxReadBeats + MAX_BURST_BEATS);
  // At a beat per cycle about the latency of a DRAM: the others lose no bandwidth.
  localparam int unsigned OtherBeats = 128;
  localparam logic [NumClients-1:0] CriticalOnly = NumClients'(1) << Critical;

  // Data lowest: whole words for the simulator.
  typedef struct packed {
    logic [AXI_ID_WIDTH-1:0] id;
    resp_e                   resp;
    logic                    last;
    logic [BusBits-1:0]      data;
  } beat_t;

  logic [NumClients-1:0] ask, asked, may_issue, grant, is_for, refused, sent, came;
  mem_range_t            range [NumClients];
  logic [7:0]            len;
  logic                  issue, beat_valid, beat_ready;
  beat_t                 beat;
  logic [ClientW-1:0]    beat_client;
  logic [FlightW-1:0]    critical_q, others_q;  // beats in flight

  for (genvar c = 0; c < NumClients; c++) begin : gen_client
    assign ask[c]         = req_i[c].valid;
    assign range[c]       = req_i[c].range;
    assign rsp_o[c].ready = asked[c];
    assign is_for[c]      = beat_valid && beat_client == ClientW'(c);
    assign refused[c]     = is_for[c] && !req_i[c].data_ready;
    assign rsp_o[c].data_valid = is_for[c];
    assign rsp_o[c].data_err   = beat.resp[1];  // SLVERR and DECERR
  end

  always_comb begin
    may_issue = '0;
    if (critical_q + others_q < FlightW'(MaxReadBeats)) begin
      may_issue           = {NumClients{critical_q == '0 || others_q < FlightW'(OtherBeats)}};
      may_issue[Critical] = 1'b1;
    end
  end

  npu_addr_channel #(.BusBits(BusBits), .NumClients(NumClients)) u_ar (
    .clk_i, .rst_ni,
    .valid_i(ask), .ready_o(asked), .range_i(range), .may_issue_i(may_issue),
    .host_valid_i, .host_ready_o, .host_i,
    .burst_valid_o(issue), .burst_ready_i(1'b1), .grant_o(grant), .host_grant_o(),
    .client_o(), .len_o(len), .last_o(),
    .addr_valid_o(ar_valid_o), .addr_ready_i(ar_ready_i), .addr_o(ar_o)
  );

  npu_stream_reg #(.Width($bits(beat_t))) u_r (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(r_valid_i), .in_ready_o(r_ready_o),
    .in_data_i({r_id_i, r_resp_i, r_last_i, r_data_i}),
    .out_valid_o(beat_valid), .out_ready_i(beat_ready), .out_data_o(beat)
  );

  assign beat_client = beat.id[AXI_ID_WIDTH-1:HOST_ID_WIDTH];
  assign host_beat_o = beat_valid && beat_client == HOST_CLIENT;
  assign beat_ready  = refused == '0;
  assign beat_id_o   = beat.id[HOST_ID_WIDTH-1:0];
  assign beat_data_o = beat.data;
  assign beat_resp_o = beat.resp;
  assign beat_last_o = beat.last;

  assign sent = issue ? grant : '0;
  assign came = beat_ready ? is_for : '0;

  function automatic logic [FlightW-1:0] in_flight(
    input logic [FlightW-1:0] beats, input logic sends, input logic [7:0] length, input logic comes
  );
    in_flight = beats;
    if (sends) in_flight += FlightW'(length) + FlightW'(1);
    if (comes) in_flight -= FlightW'(1);
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      critical_q <= '0;
      others_q   <= '0;
    end else begin
      critical_q <= in_flight(critical_q, sent[Critical], len, came[Critical]);
      others_q   <= in_flight(others_q, (sent & ~CriticalOnly) != '0, len,
                              (came & ~CriticalOnly) != '0);
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && beat_valid) begin
      KnownClient: assert (host_beat_o || is_for != '0)
        else $error("npu_read_path: data with id %02x belongs to no client", beat.id);
    end
  end
endmodule
