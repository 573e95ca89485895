// SPDX-License-Identifier: Apache-2.0
/// Writes: sends the bursts of the engines and of the host, the data in the order of the addresses,
/// and collects the responses by id. One with an unknown id is dropped.
///
/// One burst per cycle on AW, one beat per cycle on W, B always accepted. Data may reach the DRAM
/// port before its address. At most MaxAhead addresses are granted before their data.
module npu_write_path
  import npu_pkg::*;
  import npu_mem_pkg::*;
#(
  parameter int unsigned BusBits    = 256,
  parameter int unsigned NumClients = 3,
  localparam int unsigned StrbW     = BusBits / 8
) (
  input  logic                                       clk_i,
  input  logic                                       rst_ni,

  input  mem_wr_req_t [NumClients-1:0]               req_i,
  output mem_wr_rsp_t [NumClients-1:0]               rsp_o,
  input  logic [NumClients-1:0][BusBits-1:0]         data_i,
  input  logic [NumClients-1:0][StrbW-1:0]           strb_i,

  // Host bursts; their responses are always accepted
  input  logic                                       host_valid_i,
  output logic                                       host_ready_o,
  input  host_addr_t                                 host_i,
  input  logic                                       host_data_valid_i,
  output logic                                       host_data_ready_o,
  input  logic [BusBits-1:0]                         host_data_i,
  input  logic [StrbW-1:0]                           host_strb_i,
  output logic                                       host_ack_valid_o,
  output logic [HOST_ID_WIDTH-1:0]                   host_ack_id_o,
  output resp_e                                      host_ack_resp_o,

  output logic                                       aw_valid_o,
  input  logic                                       aw_ready_i,
  output axi_addr_t                                  aw_o,
  output logic                                       w_valid_o,
  input  logic                                       w_ready_i,
  output logic [BusBits-1:0]                         w_data_o,
  output logic [StrbW-1:0]                           w_strb_o,
  output logic                                       w_last_o,
  input  logic                                       b_valid_i,
  output logic                                       b_ready_o,
  input  logic [AXI_ID_WIDTH-1:0]                    b_id_i,
  input  resp_e                                      b_resp_i
);
  localparam int unsigned NumSources = NumClients + 1;  // the last one is the host
  localparam int unsigned ClientW = AXI_ID_WIDTH - HOST_ID_WIDTH;
  localparam int unsigned IndexW = $clog2(NumClients);
  // Enough to hide the registers between address and data; more would only delay the other clients.
  localparam int unsigned MaxAhead = 4;

  typedef struct packed {
    logic [NumSources-1:0] source;  // one bit set
    logic [7:0]            len;
  } turn_t;

  // Data lowest: whole words for the simulator.
  typedef struct packed {
    logic               last;
    logic [StrbW-1:0]   strb;
    logic [BusBits-1:0] data;
  } beat_t;

  mem_range_t            range [NumClients];
  logic [NumClients-1:0] ask, asked, track_ready, grant, done;
  logic [NumSources-1:0] data_valid, data_ready;
  logic                  host_grant, issue, issue_ready, issue_last, done_err;
  logic                  turn_valid, turn_pop;
  logic                  beat_valid, beat_ready, beat_fire, last;
  logic [IndexW-1:0]     client;
  logic [ClientW-1:0]    b_client;
  logic [7:0]            len, sent_q;
  turn_t                 turn;
  beat_t                 beat;

  npu_addr_channel #(.BusBits(BusBits), .NumClients(NumClients)) u_aw (
    .clk_i, .rst_ni,
    .valid_i(ask), .ready_o(asked), .range_i(range), .may_issue_i(track_ready),
    .host_valid_i, .host_ready_o, .host_i,
    .burst_valid_o(issue), .burst_ready_i(issue_ready), .grant_o(grant),
    .host_grant_o(host_grant), .client_o(client), .len_o(len), .last_o(issue_last),
    .addr_valid_o(aw_valid_o), .addr_ready_i(aw_ready_i), .addr_o(aw_o)
  );

  npu_wr_resp_merge #(.NumClients(NumClients)) u_wr_resp_merge (
    .clk_i, .rst_ni,
    .ready_o(track_ready), .issue_valid_i(issue && issue_ready && !host_grant),
    .issue_client_i(client), .issue_last_i(issue_last),
    .b_valid_i(b_valid_i && b_client < ClientW'(NumClients)), .b_client_i(b_client[IndexW-1:0]),
    .b_err_i(b_resp_i[1]), .done_o(done), .err_o(done_err)
  );

  for (genvar c = 0; c < NumClients; c++) begin : gen_client
    assign ask[c]         = req_i[c].valid;
    assign range[c]       = req_i[c].range;
    assign rsp_o[c].ready = asked[c];
    assign rsp_o[c].done  = done[c];
    assign rsp_o[c].err   = done_err;
    assign data_valid[c]  = req_i[c].data_valid;
    assign rsp_o[c].data_ready = data_ready[c];
  end

  npu_fifo #(.Width($bits(turn_t)), .Depth(MaxAhead)) u_order (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(issue), .in_ready_o(issue_ready), .in_data_i({host_grant, grant, len}),
    .out_valid_o(turn_valid), .out_ready_i(turn_pop), .out_data_o(turn), .count_o()
  );

  assign data_valid[NumClients] = host_data_valid_i;
  assign host_data_ready_o      = data_ready[NumClients];
  assign beat_valid = turn_valid && (turn.source & data_valid) != '0;
  assign data_ready = (turn_valid && beat_ready) ? turn.source : '0;
  assign beat_fire  = beat_valid && beat_ready;
  assign last       = sent_q == turn.len;
  assign turn_pop   = beat_fire && last;

  always_comb begin
    beat = '0;
    if (beat_valid) begin
      beat.last = last;
      if (turn.source[NumClients]) begin
        beat.data = host_data_i;
        beat.strb = host_strb_i;
      end
      for (int unsigned c = 0; c < NumClients; c++) begin
        if (turn.source[c]) begin
          beat.data = data_i[c];
          beat.strb = strb_i[c];
        end
      end
    end
  end

  npu_stream_reg #(.Width($bits(beat_t))) u_w (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(beat_valid), .in_ready_o(beat_ready), .in_data_i(beat),
    .out_valid_o(w_valid_o), .out_ready_i(w_ready_i),
    .out_data_o({w_last_o, w_strb_o, w_data_o})
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni)        sent_q <= '0;
    else if (beat_fire) sent_q <= last ? '0 : sent_q + 8'd1;
  end

  assign b_ready_o    = 1'b1;
  assign b_client         = b_id_i[AXI_ID_WIDTH-1:HOST_ID_WIDTH];
  assign host_ack_valid_o = b_valid_i && b_client == HOST_CLIENT;
  assign host_ack_id_o    = b_id_i[HOST_ID_WIDTH-1:0];
  assign host_ack_resp_o  = b_resp_i;

  always_ff @(posedge clk_i) begin
    if (rst_ni && b_valid_i) begin
      KnownClient: assert (host_ack_valid_o || b_client < ClientW'(NumClients))
        else $error("npu_write_path: response with id %02x belongs to no client", b_id_i);
    end
  end
endmodule
