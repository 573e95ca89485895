// SPDX-License-Identifier: Apache-2.0
/// Counts requests that are sent and not answered, at most `Most`.
///
/// Both may happen in the same cycle; no request is answered in the cycle in which it is sent.
module npu_outstanding #(
  parameter int unsigned Most = 256
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic sent_i,
  input  logic answered_i,
  output logic none_o
);
  localparam int unsigned CountW = $clog2(Most + 1);

  logic [CountW-1:0] count_q;

  assign none_o = count_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)                   count_q <= '0;
    else if (sent_i != answered_i) count_q <= sent_i ? count_q + CountW'(1) : count_q - CountW'(1);
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && sent_i) begin
      RoomToCount: assert (count_q != CountW'(Most))
        else $error("npu_outstanding: more than %0d requests without an answer", Most);
    end
    if (rst_ni && answered_i) begin
      AnswersRequest: assert (count_q != '0)
        else $error("npu_outstanding: an answer without a request");
    end
  end
endmodule
