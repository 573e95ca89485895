// SPDX-License-Identifier: Apache-2.0
/// Which unfinished commands a new one must wait for, because of the memory that they use.
///
/// The commands are those of one queue. `span_i` are the operands of the command that is being
/// checked; if it is of this queue, `own_i`, they are kept in slot `slot_i`, from which
/// `take_own_i` removes those of the slot's last user. `blocked_o` has a bit for each unfinished
/// command that writes a byte of them, or reads one that they write. `line_blocked_o` has a bit for
/// each unfinished command that writes a byte of the line at `line_addr_i`, which is about to be
/// read. Spans reach from the first to the last byte of an operand, so interleaved operands count
/// as overlapping.
module npu_hazard
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter logic [63:0] MemBase,
  parameter logic [63:0] MemLimit
) (
  input  logic       clk_i,
  input  logic       rst_ni,

  input  logic       take_i,       // a packet is taken
  input  logic       take_own_i,   // with take_i: it is one of this queue
  input  logic       own_i,        // the packet that is being checked is one of this queue
  input  cmd_slot_t  slot_i,
  input  logic       span_valid_i,
  input  span_t      span_i,
  input  cmd_slots_t unfinished_i,
  output cmd_slots_t blocked_o,

  input  logic       line_valid_i,
  input  line_addr_t line_addr_i,
  output cmd_slots_t line_blocked_o
);
  localparam int unsigned OffsetW = $clog2(MemLimit - MemBase);
  localparam int unsigned LineW   = $clog2(LINE_BYTES);
  localparam int unsigned CountW  = $clog2(CMD_SPANS + 1);

  typedef struct packed {
    logic               write;
    logic [OffsetW-1:0] first;
    logic [OffsetW-1:0] last;
  } held_t;

  held_t              held;
  cmd_slots_t         clash, blocked_q;
  logic [CountW-1:0]  count_q;
  logic [OffsetW-1:0] line_first, line_last;
  logic               unused;

  // Offsets of operands inside the memory have no more bits.
  assign held   = '{write: span_i.write, first: span_i.first[OffsetW-1:0],
                    last: span_i.last[OffsetW-1:0]};
  assign unused = ^{span_i.first[63:OffsetW], span_i.last[63:OffsetW]};

  assign line_first = OffsetW'({line_addr_i, {LineW{1'b0}}} - MemBase);
  assign line_last  = line_first | OffsetW'(LINE_BYTES - 1);

  for (genvar s = 0; s < CMD_SLOTS; s++) begin : gen_slot
    held_t [CMD_SPANS-1:0] spans_q;
    logic  [CMD_SPANS-1:0] used_q;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        used_q <= '0;
      end else if (slot_i == cmd_slot_t'(s)) begin
        if (take_own_i)                 used_q <= '0;
        else if (span_valid_i && own_i) used_q[count_q[CountW-2:0]] <= 1'b1;
      end
    end

    always_ff @(posedge clk_i) begin
      if (span_valid_i && own_i && slot_i == cmd_slot_t'(s)) spans_q[count_q[CountW-2:0]] <= held;
    end

    always_comb begin
      clash[s] = 1'b0;
      if (span_valid_i && unfinished_i[s]) begin
        for (int unsigned i = 0; i < CMD_SPANS; i++) begin
          if (used_q[i] && (spans_q[i].write || held.write) && spans_q[i].first <= held.last
              && held.first <= spans_q[i].last) clash[s] = 1'b1;
        end
      end
    end

    always_comb begin
      line_blocked_o[s] = 1'b0;
      if (line_valid_i && unfinished_i[s]) begin
        for (int unsigned i = 0; i < CMD_SPANS; i++) begin
          if (used_q[i] && spans_q[i].write && spans_q[i].first <= line_last
              && line_first <= spans_q[i].last) line_blocked_o[s] = 1'b1;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || take_i) begin
      blocked_q <= '0;
      count_q   <= '0;
    end else begin
      blocked_q <= (blocked_q | clash) & unfinished_i;
      if (span_valid_i) count_q <= count_q + CountW'(1);
    end
  end

  assign blocked_o = blocked_q & unfinished_i;

  always_ff @(posedge clk_i) begin
    if (rst_ni && span_valid_i && own_i) begin
      RoomForSpan: assert (count_q != CountW'(CMD_SPANS) && !unfinished_i[slot_i])
        else $error("npu_hazard: no room for an operand in slot %0d", slot_i);
    end
  end
endmodule
