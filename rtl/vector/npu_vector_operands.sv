// SPDX-License-Identifier: Apache-2.0
/// The storage of the lanes (sources of two groups, registers of one, the program's constants) and
/// the operands of a beat.
///
/// A beat that is issued has its operands at the output in the next cycle; lanes without an
/// element, operands that the instruction does not have, and cycles without a beat keep theirs. A
/// column of a table comes from npu_vector_table in that cycle. A result that is written back is
/// readable from the next cycle on.
module npu_vector_operands
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
#(
  parameter int unsigned VectorLanes = 16,
  localparam int unsigned BeatBits   = 32 * VectorLanes
) (
  input  logic                         clk_i,

  input  logic [IMMEDIATES-1:0][31:0]  imm_i,
  input  logic [2:0]                   sources_i,

  // Constants, two per pair
  input  logic                         pair_valid_i,
  input  pair_t                        pair_i,
  input  logic [63:0]                  pair_data_i,

  // Sources
  input  logic                         fill_i,
  input  logic                         fill_half_i,
  input  group_slot_t                  fill_slot_i,
  input  vector_t                      fill_vec_i [MAX_SOURCES],

  // A beat
  input  logic                         issue_i,
  input  instruction_t                 instruction_i,
  input  logic                         half_i,
  input  group_slot_t                  slot_i,
  input  lane_beat_t                   beat_i,
  input  meta_t                        meta_i,
  input  logic [BeatBits-1:0]          table_i,        // in the cycle after the issue
  output logic [BeatBits-1:0]          a_o,
  output logic [BeatBits-1:0]          b_o,
  output logic [BeatBits-1:0]          c_o,

  // Results
  input  tag_t                         write_i,
  input  logic [BeatBits-1:0]          result_i
);
  vector_t             source_q [MAX_SOURCES * 2 * GROUP];
  vector_t             register_q [REGISTERS * GROUP];
  logic [63:0]         constant_q [MAX_CONSTANTS / 2];
  logic [BeatBits-1:0] a_q, b_q, c_q;
  logic                a_table_q, b_table_q, c_table_q;  // the operand is table_i instead

  function automatic logic [BeatBits-1:0] beat_of(vector_t vector, lane_beat_t beat);
    return BeatBits'(vector >> (32'(beat) * BeatBits));
  endfunction

  function automatic logic [BeatBits-1:0] indices(logic [31:0] index, lane_beat_t beat);
    // verilator unroll_full
    for (int unsigned l = 0; l < VectorLanes; l++) begin
      indices[l*32 +: 32] = index + 32'(beat) * 32'(VectorLanes) + 32'(l);
    end
  endfunction

  // Codes begin at multiples of the powers of two that hold them: their low bits say which one.
  function automatic logic [BeatBits-1:0] operand(logic [6:0] code);
    if (code >= 7'(OPERAND_CONST))
      return {VectorLanes{constant_q[code[5:1]][32'(code[0]) * 32 +: 32]}};
    if (code < 7'(OPERAND_SRC)) return beat_of(register_q[{code[3:0], slot_i}], beat_i);
    if (code < 7'(OPERAND_INDEX)) return beat_of(source_q[{code[1:0], half_i, slot_i}], beat_i);
    if (code == 7'(OPERAND_INDEX)) return indices(meta_i.index, beat_i);
    return {VectorLanes{imm_i[code[2:0]]}};
  endfunction

  // SEGMENT has no operand b, and its b is the number of a table: the lanes get the table's end.
  function automatic logic [BeatBits-1:0] operand_b(micro_op_e op, logic [6:0] code);
    return op == MICRO_SEGMENT ? {VectorLanes{TABLE_LIMIT[table_t'(code)]}} : operand(code);
  endfunction

  // Lanes with an element, of `count` in the vector, take the new operand.
  function automatic logic [BeatBits-1:0] present(logic [BeatBits-1:0] value,
                                                  logic [BeatBits-1:0] held,
                                                  lane_beat_t beat, count_t count);
    // verilator no_inline_task
    present = value;
    // verilator unroll_full
    for (int unsigned l = 0; l < VectorLanes; l++) begin
      if (!has_element(l, 32'(VectorLanes), beat, count)) begin
        present[l*32 +: 32] = held[l*32 +: 32];
      end
    end
  endfunction

  always_ff @(posedge clk_i) begin
    if (pair_valid_i) constant_q[pair_i] <= pair_data_i;
  end

  always_ff @(posedge clk_i) begin
    if (fill_i) begin
      // verilator unroll_full
      for (int unsigned s = 0; s < MAX_SOURCES; s++) begin
        if (s < 32'(sources_i)) source_q[{2'(s), fill_half_i, fill_slot_i}] <= fill_vec_i[s];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (issue_i) begin
      a_table_q <= is_table(instruction_i.a);
      b_table_q <= is_table(instruction_i.b);
      c_table_q <= is_table(instruction_i.c);
      if (!is_table(instruction_i.a)) begin
        a_q <= present(operand(instruction_i.a), a_q, beat_i, meta_i.count);
      end
      if (instruction_i.op == MICRO_SEGMENT
          || (has_b(instruction_i.op) && !is_table(instruction_i.b))) begin
        b_q <= present(operand_b(instruction_i.op, instruction_i.b), b_q, beat_i, meta_i.count);
      end
      if (has_c(instruction_i.op) && !is_table(instruction_i.c)) begin
        c_q <= present(operand(instruction_i.c), c_q, beat_i, meta_i.count);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (write_i.valid && !write_i.out) begin
      register_q[{write_i.dst, write_i.slot}][32'(write_i.beat) * BeatBits +: BeatBits] <= result_i;
    end
  end

  assign a_o = a_table_q ? table_i : a_q;
  assign b_o = b_table_q ? table_i : b_q;
  assign c_o = c_table_q ? table_i : c_q;
endmodule
