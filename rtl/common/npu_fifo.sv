// SPDX-License-Identifier: Apache-2.0
/// First-word fall-through FIFO with valid/ready on both sides.
///
/// A word accepted in cycle t is at the output in cycle t+1. Throughput is one word per cycle; a
/// full FIFO frees its slot for the next cycle, not the same one, so that no ready path runs
/// through. `flush_i` empties it at the next edge and wins over a push or pop in the same cycle.
/// `count_o` is the number of words held. Depth may be any number from 1.
///
/// `NeverFull`: whoever sends knows that there is room, and does not look at `in_ready_o`.
module npu_fifo #(
  parameter int unsigned Width = 32,
  parameter int unsigned Depth = 4,
  parameter bit          NeverFull = 1'b0,
  localparam int unsigned CountW = $clog2(Depth + 1)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              flush_i,

  input  logic              in_valid_i,
  output logic              in_ready_o,
  input  logic [Width-1:0]  in_data_i,

  output logic              out_valid_o,
  input  logic              out_ready_i,
  output logic [Width-1:0]  out_data_o,

  output logic [CountW-1:0] count_o
);
  localparam int unsigned PtrW = (Depth > 1) ? $clog2(Depth) : 1;
  localparam logic [PtrW-1:0] LastSlot = PtrW'(Depth - 1);

  logic [Width-1:0]  mem_q [Depth];
  logic [PtrW-1:0]   wr_ptr_q, rd_ptr_q;
  logic [CountW-1:0] count_q;
  logic              push, pop;

  assign in_ready_o  = count_q != CountW'(Depth);
  assign out_valid_o = count_q != '0;
  assign out_data_o  = mem_q[rd_ptr_q];
  assign count_o     = count_q;
  assign push        = in_valid_i && in_ready_o;
  assign pop         = out_valid_o && out_ready_i;

  always_ff @(posedge clk_i) begin
    if (push) mem_q[wr_ptr_q] <= in_data_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || flush_i) begin
      wr_ptr_q <= '0;
      rd_ptr_q <= '0;
      count_q  <= '0;
    end else begin
      if (push) wr_ptr_q <= (wr_ptr_q == LastSlot) ? '0 : wr_ptr_q + PtrW'(1);
      if (pop)  rd_ptr_q <= (rd_ptr_q == LastSlot) ? '0 : rd_ptr_q + PtrW'(1);
      if (push != pop) count_q <= push ? count_q + CountW'(1) : count_q - CountW'(1);
    end
  end

  // Immediate, as all assertions in blocks with many instances: the operands of a concurrent one
  // are copied in every cycle.
  if (NeverFull) begin : gen_never_full
    always_ff @(posedge clk_i) begin
      if (rst_ni && in_valid_i && !flush_i) begin
        RoomForWord: assert (in_ready_o)
          else $error("npu_fifo: a word without room");
      end
    end
  end
endmodule
