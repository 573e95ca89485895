// SPDX-License-Identifier: Apache-2.0
/// An address channel of the DRAM port: the requests of the clients as bursts, in turn with the
/// bursts of the host.
///
/// One burst per cycle, round robin between the clients of `may_issue_i` that have one, and the
/// host. A burst goes to the channel and to the port `burst_*` together, where it is counted or its
/// data are put in order. One bit of `grant_o` and `host_grant_o` tells whose it is; it may change
/// until `burst_ready_i`.
module npu_addr_channel
  import npu_pkg::*;
  import npu_mem_pkg::*;
#(
  parameter int unsigned BusBits    = 256,
  parameter int unsigned NumClients = 3,
  localparam int unsigned IndexW    = $clog2(NumClients)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic [NumClients-1:0] valid_i,
  output logic [NumClients-1:0] ready_o,
  input  mem_range_t            range_i [NumClients],
  input  logic [NumClients-1:0] may_issue_i,

  input  logic                  host_valid_i,
  output logic                  host_ready_o,
  input  host_addr_t            host_i,

  output logic                  burst_valid_o,
  input  logic                  burst_ready_i,
  output logic [NumClients-1:0] grant_o,
  output logic                  host_grant_o,
  output logic [IndexW-1:0]     client_o,  // whose it is, if not the host's
  output logic [7:0]            len_o,
  output logic                  last_o,    // of a client's request

  output logic                  addr_valid_o,
  input  logic                  addr_ready_i,
  output axi_addr_t             addr_o
);
  localparam int unsigned ClientW = AXI_ID_WIDTH - HOST_ID_WIDTH;

  logic [NumClients-1:0] valid, grant;
  logic [ADDR_WIDTH-1:0] addr;
  logic [7:0]            len;
  logic [ClientW-1:0]    client;
  logic                  host_grant, any, ready, take;
  axi_addr_t             next;

  npu_burst_split #(.BusBits(BusBits), .NumClients(NumClients)) u_split (
    .clk_i, .rst_ni,
    .valid_i, .ready_o, .range_i,
    .valid_o(valid), .grant_i(grant), .take_i(take), .addr_o(addr), .len_o(len), .last_o
  );

  npu_rr_arb #(.N(NumClients + 1)) u_arb (
    .clk_i, .rst_ni,
    .req_i({host_valid_i, valid & may_issue_i}), .take_i(take), .grant_o({host_grant, grant})
  );

  assign any           = host_grant || grant != '0;
  assign take          = ready && burst_ready_i;
  assign host_ready_o  = take && host_grant;
  assign burst_valid_o = ready && any;
  assign grant_o       = grant;
  assign host_grant_o  = host_grant;

  always_comb begin
    client = '0;
    for (int unsigned c = 0; c < NumClients; c++) begin
      if (grant[c]) client = ClientW'(c);
    end
  end
  assign client_o = client[IndexW-1:0];
  assign len_o    = host_grant ? host_i.len : len;
  // Field by field: a choice between structures of 85 bits is slow to simulate.
  assign next     = '{
    id: host_grant ? {HOST_CLIENT, host_i.id} : {client, HOST_ID_WIDTH'(0)},
    addr: host_grant ? host_i.addr : addr, len: len_o,
    size: host_grant ? host_i.size : 3'($clog2(BusBits / 8)),
    burst: host_grant ? host_i.burst : BURST_INCR
  };

  npu_stream_reg #(.Width($bits(axi_addr_t))) u_addr (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(any && burst_ready_i), .in_ready_o(ready), .in_data_i(next),
    .out_valid_o(addr_valid_o), .out_ready_i(addr_ready_i), .out_data_o(addr_o)
  );
endmodule
