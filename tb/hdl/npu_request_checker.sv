// SPDX-License-Identifier: Apache-2.0
/// The requests of the memory controller's clients: one that is offered stays as it is until it is
/// accepted (simulation only).
///
/// A client that withdraws or changes one may do no harm today, as npu_burst_split looks at a
/// request only when it takes it; an arbiter before that would act on what is gone.
module npu_request_checker
  import npu_pkg::*;
#(
  parameter int unsigned NumClients = 1
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [NumClients-1:0] valid_i,
  input logic [NumClients-1:0] ready_i,
  input mem_range_t            range_i [NumClients]
);
  logic [NumClients-1:0] waits, waited_q;
  mem_range_t            held_q [NumClients];

  // One process, with blocking assignments, as nothing else reads what it keeps.
  always @(posedge clk_i) begin
    waits = rst_ni ? valid_i & ~ready_i : '0;
    if (!rst_ni) waited_q = '0;
    if ((waits | waited_q) != '0) begin
      for (int unsigned c = 0; c < NumClients; c++) begin
        if (waited_q[c]) begin
          RequestStable: assert (valid_i[c] && range_i[c] == held_q[c])
            else $error("memory client %0d: request changed before it was accepted", c);
        end
        if (waits[c]) held_q[c] = range_i[c];
      end
    end
    waited_q = waits;
  end
endmodule
