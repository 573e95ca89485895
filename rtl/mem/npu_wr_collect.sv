// SPDX-License-Identifier: Apache-2.0
/// Turns the burst responses of one write client into one response per request.
///
/// `issue_*` notes each burst as it is sent; B responses arrive in the same order. `rsp_valid_o`
/// pulses one cycle after the last burst of a request is acknowledged, with the OR of the request's
/// errors.
module npu_wr_collect #(
  parameter int unsigned MaxBursts = 256
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic issue_valid_i,
  output logic issue_ready_o,
  input  logic issue_last_i,

  input  logic b_valid_i,
  input  logic b_err_i,

  output logic rsp_valid_o,
  output logic rsp_err_o
);
  logic known, last, err_q, rsp_valid_q, rsp_err_q;

  npu_fifo #(.Width(1), .Depth(MaxBursts)) u_bursts (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(issue_valid_i), .in_ready_o(issue_ready_o), .in_data_i(issue_last_i),
    .out_valid_o(known), .out_ready_i(b_valid_i), .out_data_o(last), .count_o()
  );

  assign rsp_valid_o = rsp_valid_q;
  assign rsp_err_o   = rsp_err_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      err_q       <= 1'b0;
      rsp_valid_q <= 1'b0;
      rsp_err_q   <= 1'b0;
    end else begin
      rsp_valid_q <= b_valid_i && last;
      if (b_valid_i) begin
        rsp_err_q <= err_q || b_err_i;
        err_q     <= !last && (err_q || b_err_i);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && b_valid_i) begin
      ResponseExpected: assert (known)
        else $error("npu_wr_collect: response without a burst");
    end
  end
endmodule
