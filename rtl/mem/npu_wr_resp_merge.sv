// SPDX-License-Identifier: Apache-2.0
/// Turns the burst responses of each write client into one response per request.
///
/// `issue_*` notes each burst as it is sent; the B responses of a client arrive in the same order.
/// `done_o` pulses one cycle after the last burst of a request is acknowledged, and `err_o` is then
/// the OR of the request's errors. A client may issue while its bit of `ready_o` is set: at most
/// MaxBursts of its bursts are without a response.
module npu_wr_resp_merge #(
  parameter int unsigned NumClients = 2,
  parameter int unsigned MaxBursts  = npu_pkg::MAX_OPEN_BURSTS,  // a power of two
  localparam int unsigned ClientW   = $clog2(NumClients)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  output logic [NumClients-1:0] ready_o,
  input  logic                  issue_valid_i,
  input  logic [ClientW-1:0]    issue_client_i,
  input  logic                  issue_last_i,

  input  logic                  b_valid_i,
  input  logic [ClientW-1:0]    b_client_i,
  input  logic                  b_err_i,

  output logic [NumClients-1:0] done_o,
  output logic                  err_o
);
  localparam int unsigned PtrW = $clog2(MaxBursts);

  logic                            bursts_q [NumClients*MaxBursts];  // whether it is the last one
  logic [NumClients-1:0][PtrW-1:0] wr_q, rd_q;
  logic [NumClients-1:0]           full_q, err_q, done_q;
  logic [PtrW-1:0]                 wr, rd;
  logic                            last, same, rsp_err_q;

  assign ready_o = ~full_q;
  assign done_o  = done_q;
  assign err_o   = rsp_err_q;
  assign wr      = wr_q[issue_client_i];
  assign rd      = rd_q[b_client_i];
  assign last    = bursts_q[{b_client_i, rd}];
  assign same    = issue_valid_i && b_valid_i && issue_client_i == b_client_i;

  always_ff @(posedge clk_i) begin
    if (issue_valid_i) bursts_q[{issue_client_i, wr}] <= issue_last_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q   <= '0;
      rd_q   <= '0;
      full_q <= '0;
    end else begin
      if (issue_valid_i) begin
        wr_q[issue_client_i] <= wr + PtrW'(1);
        if (!same) full_q[issue_client_i] <= wr + PtrW'(1) == rd_q[issue_client_i];
      end
      if (b_valid_i) begin
        rd_q[b_client_i] <= rd + PtrW'(1);
        if (!same) full_q[b_client_i] <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      err_q     <= '0;
      done_q    <= '0;
      rsp_err_q <= 1'b0;
    end else begin
      done_q <= '0;
      if (b_valid_i) begin
        done_q[b_client_i] <= last;
        rsp_err_q          <= err_q[b_client_i] || b_err_i;
        err_q[b_client_i]  <= !last && (err_q[b_client_i] || b_err_i);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && b_valid_i) begin
      ResponseExpected: assert (rd != wr_q[b_client_i] || full_q[b_client_i])
        else $error("npu_wr_resp_merge: response without a burst");
    end
    if (rst_ni && issue_valid_i) begin
      BurstHasRoom: assert (!full_q[issue_client_i])
        else $error("npu_wr_resp_merge: more than %0d bursts without a response", MaxBursts);
    end
  end
endmodule
