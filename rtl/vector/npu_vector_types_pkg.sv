// SPDX-License-Identifier: Apache-2.0
/// Types inside the vector engine.
///
/// A vector is up to 16 neighbouring elements of one innermost row, as 32-bit words in 16 logical
/// lanes; the last one of a row has what is left. A group is up to GROUP vectors on which the
/// program runs instruction by instruction, so that the vectors of a group hide the latency of the
/// lanes. Physical lanes take a vector in one or more beats.
package npu_vector_types_pkg;
  import npu_pkg::*;
  import npu_vector_pkg::*;

  localparam int unsigned LOGICAL_LANES = REDUCTION_LANES;
  localparam int unsigned VECTOR_BITS = 32 * LOGICAL_LANES;
  localparam int unsigned GROUP = 8;
  /// Cycles of a division or square root; more than any FmaLatency.
  localparam int unsigned DIV_LATENCY = 12;

  typedef logic [VECTOR_BITS-1:0] vector_t;
  typedef logic [2:0]             group_slot_t;  // of a group
  typedef logic [1:0]             lane_beat_t;   // of a vector, ascending
  typedef logic [4:0]             count_t;       // elements of a vector, 1 to 16

  /// Whether physical lane `lane` of `lanes` has an element in a beat of a vector with `count`.
  function automatic logic has_element(logic [31:0] lane, logic [31:0] lanes, lane_beat_t beat,
                                       count_t count);
    return 32'(beat) * lanes + lane < 32'(count);
  endfunction

  typedef logic [1:0] result_no_t;  // of a program: 0 is result 1

  typedef struct packed {
    logic        row_end;
    count_t      count;
    logic [31:0] index;  // of the first element in its row
  } meta_t;

  /// One beat on its way through the lanes. Payload beside it.
  typedef struct packed {
    logic        valid;
    logic        out;   // leaves the lanes as result `result`, else it goes to register `dst`
    result_no_t  result;
    logic [3:0]  dst;
    group_slot_t slot;
    lane_beat_t  beat;
    logic        last;  // beat of its vector
    logic        row_end;
    count_t      count;
  } tag_t;

  /// A vector of a result, on its way to memory.
  typedef struct packed {
    logic    row_end;
    count_t  count;
    vector_t data;
  } result_t;

  // ---- tables of piecewise functions ----
  typedef logic [(TABLES > 1 ? $clog2(TABLES) : 1)-1:0] table_t;  // its number
  typedef logic [2:0] column_t;
  typedef logic [3:0] column_count_t;

  // ---- program memory ----
  typedef logic [$clog2(PROGRAM_RAM)+$clog2(LINE_WORDS):0] program_addr_t;  // of a word
  typedef logic [$clog2(PROGRAM_RAM):0] program_line_t;
  typedef logic [$clog2(PROGRAM_RAM_LINES*LINE_WORDS)-1:0] ram_addr_t;      // in the loadable part
  typedef logic [$clog2(PROGRAM_RAM_LINES)-1:0] ram_line_t;
  typedef logic [8:0] image_word_t;                                         // of an image
  typedef logic [4:0] pair_t;                                               // of constants

  /// Lines that an image with these numbers of instructions and constants has.
  function automatic image_word_t image_lines(logic [7:0] instructions, logic [7:0] constants);
    return (image_word_t'(instructions) + ((image_word_t'(constants) + 9'd1) >> 1)
            + image_word_t'(LINE_WORDS)) / image_word_t'(LINE_WORDS);
  endfunction

  /// Lines of a program that is loaded.
  function automatic image_word_t program_lines(program_info_t info);
    return image_lines(info.instructions, 8'(info.constants));
  endfunction

  /// What the header of a sound image says.
  function automatic program_info_t info_of(program_header_t header);
    return '{loaded: 1'b1, instructions: header.instructions, constants: header.constants[6:0],
             sources: header.sources[2:0], results: header.results[1:0],
             reduce: reduce_e'(header.reduce[2:0])};
  endfunction

  /// An instruction of a sound image as the lanes take it.
  function automatic instruction_t instruction_of(program_instruction_t word);
    return '{op: micro_op_e'(word.op[5:0]), dst: word.dst[4:0], a: word.a[6:0], b: word.b[6:0],
             c: word.c[6:0]};
  endfunction

  /// A column of a table. The codes of the columns fill a power of two: the upper bits tell.
  function automatic logic is_table(logic [6:0] code);
    return code[6:3] == 4'(OPERAND_TABLE >> 3);
  endfunction

  /// An operand of the instruction is one. Operands that a sound instruction does not have are 0,
  /// and the table's number of SEGMENT is below 8.
  function automatic logic reads_table(instruction_t instruction);
    return is_table(instruction.a) || is_table(instruction.b) || is_table(instruction.c);
  endfunction

  /// Which one that is; there is one at most.
  function automatic column_t table_column(instruction_t instruction);
    if (is_table(instruction.a)) return instruction.a[2:0];
    return is_table(instruction.b) ? instruction.b[2:0] : instruction.c[2:0];
  endfunction

  function automatic logic is_slow(micro_op_e op);
    return op == MICRO_DIV || op == MICRO_SQRT;
  endfunction

  function automatic logic has_b(micro_op_e op);
    return micro_operands(8'(op)) > 2'd1;
  endfunction

  function automatic logic has_c(micro_op_e op);
    return micro_operands(8'(op)) > 2'd2;
  endfunction
endpackage
