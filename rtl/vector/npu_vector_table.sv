// SPDX-License-Identifier: Apache-2.0
/// Tables of piecewise functions: the segment that each element of a group lies in, and the ROM.
///
/// A beat of SEGMENT that is issued has its operand at `a_i` in the next cycle; its segments are in
/// their registers one cycle later, before the next instruction may begin. A beat with a table
/// operand reads the ROM in the cycle of its issue, one port per lane, and has the words at
/// `word_o` in the next cycle, as the other operands have theirs. SEGMENT may itself have a table
/// operand: it reads the table of the SEGMENT before it. Lanes without an element, and cycles
/// without such a beat, keep what they have. The clock runs for these beats only.
module npu_vector_table
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
#(
  parameter int unsigned VectorLanes = 16,
  localparam int unsigned BeatBits   = 32 * VectorLanes
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // A beat; its operand a comes in the next cycle
  input  logic                issue_i,
  input  logic                advance_i,      // it is the last one of its instruction
  input  instruction_t        instruction_i,
  input  group_slot_t         slot_i,
  input  lane_beat_t          beat_i,
  input  count_t              count_i,
  input  logic [BeatBits-1:0] a_i,
  output logic [BeatBits-1:0] word_o
);
  typedef logic [$clog2(TABLE_ROWS)-1:0] row_t;
  // Of an element: the row of its table's words, and whether those of odd columns are negated.
  typedef struct packed {
    logic negative;
    row_t row;
  } segment_t;
  typedef segment_t [VectorLanes-1:0] segments_t;

  localparam int unsigned Beats = LOGICAL_LANES / VectorLanes;

  segments_t [Beats-1:0]  segment_q [GROUP];
  segments_t              segments;
  table_t                 table_q;       // of the last SEGMENT
  column_t                column;
  logic                   segment, reads, table_clk;

  // The beat of SEGMENT before this cycle
  logic                   found_q;
  group_slot_t            found_slot_q;
  lane_beat_t             found_beat_q;
  count_t                 found_count_q;
  table_t                 found_table_q;

  function automatic segment_t segment_of(logic [31:0] word, table_t number);
    logic [31:0] magnitude, index;
    magnitude = {1'b0, word[30:0]};
    index = magnitude < TABLE_FIRST[number] ? '0
          : (magnitude - TABLE_FIRST[number]) >> TABLE_SHIFT[number];
    if (index > 32'(TABLE_LAST[number])) index = 32'(TABLE_LAST[number]);
    return '{negative: word[31], row: row_t'(32'(TABLE_ROW[number]) + index)};
  endfunction

  assign segment = issue_i && instruction_i.op == MICRO_SEGMENT;
  assign reads   = issue_i && reads_table(instruction_i);
  assign column  = table_column(instruction_i);

  npu_clock_gate u_gate (
    .clk_i, .en_i(!rst_ni || segment || reads || found_q), .clk_o(table_clk)
  );

  always_ff @(posedge table_clk) begin
    if (!rst_ni) found_q <= 1'b0;
    else         found_q <= segment;
  end
  always_ff @(posedge table_clk) begin
    if (segment) begin
      found_slot_q  <= slot_i;
      found_beat_q  <= beat_i;
      found_count_q <= count_i;
      found_table_q <= table_t'(instruction_i.b);
    end
    if (segment && advance_i) table_q <= table_t'(instruction_i.b);
  end

  // ---- segments ----
  assign segments = segment_q[slot_i][beat_i];

  always_ff @(posedge table_clk) begin
    if (found_q) begin
      for (int unsigned l = 0; l < VectorLanes; l++) begin
        if (has_element(l, 32'(VectorLanes), found_beat_q, found_count_q)) begin
          segment_q[found_slot_q][found_beat_q][l] <= segment_of(a_i[l*32 +: 32], found_table_q);
        end
      end
    end
  end

  // ---- words ----
  for (genvar l = 0; l < VectorLanes; l++) begin : gen_lane
    logic [31:0] rom_q;
    logic        negate_q;
    always_ff @(posedge table_clk) begin
      if (reads && has_element(l, 32'(VectorLanes), beat_i, count_i)) begin
        rom_q    <= TABLE_ROM[{segments[l].row, column}];
        negate_q <= segments[l].negative && TABLE_ODD[table_q][column];
      end
    end
    assign word_o[l*32 +: 32] = rom_q ^ {negate_q, 31'd0};
  end
endmodule
