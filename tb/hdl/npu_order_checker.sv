// SPDX-License-Identifier: Apache-2.0
/// Order of writes on m_axi (simulation only): the command processor's own writes, SYNC's word and
/// completion records, start only when every write of the engines before them is acknowledged.
/// A DRAM that answers in order would hide a violation. Ids are {client, host id}.
module npu_order_checker #(
  parameter int unsigned IdBits = 8
) (
  input logic              clk_i,
  input logic              rst_ni,

  input logic              awvalid,
  input logic              awready,
  input logic [IdBits-1:0] awid,
  input logic              bvalid,
  input logic              bready,
  input logic [IdBits-1:0] bid
);
  // Clients of npu_mem_ctrl as npu_core numbers them.
  localparam logic [3:0] Processor = 4'd0;
  localparam logic [3:0] Host      = npu_mem_pkg::HOST_CLIENT;

  logic [31:0] open_q;  // bursts of the engines without a response
  logic        opened, closed;

  function automatic logic of_engine(logic [IdBits-1:0] id);
    return id[IdBits-1-:4] != Processor && id[IdBits-1-:4] != Host;
  endfunction

  assign opened = awvalid && awready && of_engine(awid);
  assign closed = bvalid && bready && of_engine(bid);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= '0;
    else         open_q <= open_q + 32'(opened) - 32'(closed);
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && awvalid && awid[IdBits-1-:4] == Processor) begin
      EnginesAnswered: assert (open_q == '0)
        else $error("m_axi: record or word of SYNC written with %0d writes of engines open",
                    open_q);
    end
  end
endmodule
