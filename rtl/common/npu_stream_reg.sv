// SPDX-License-Identifier: Apache-2.0
/// One pipeline register in a valid/ready stream: cuts the data and valid paths.
///
/// Latency one cycle, throughput one word per cycle. `in_ready_o` depends on `out_ready_i` in the
/// same cycle; use `npu_fifo` of depth 2 where the ready path must be cut too. `flush_i` drops the
/// word held at the next edge and refuses none: a word accepted in the same cycle is dropped as
/// well.
module npu_stream_reg #(
  parameter int unsigned Width = 32
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             flush_i,

  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [Width-1:0] in_data_i,

  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [Width-1:0] out_data_o
);
  logic             valid_q;
  logic [Width-1:0] data_q;

  assign in_ready_o  = !valid_q || out_ready_i;
  assign out_valid_o = valid_q;
  assign out_data_o  = data_q;

  always_ff @(posedge clk_i) begin
    if (in_valid_i && in_ready_o) data_q <= in_data_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || flush_i)   valid_q <= 1'b0;
    else if (in_ready_o)      valid_q <= in_valid_i;
  end
endmodule
