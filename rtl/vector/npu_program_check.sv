// SPDX-License-Identifier: Apache-2.0
/// Checks a program's image word by word, as docs/isa.md says what a sound one is.
///
/// `start_i` begins with an image of `lines_i` lines; then come all its words in order, each with
/// `valid_i`. `ok_o` and `info_o` are those of the words that have come, complete from the cycle
/// after the last one on.
module npu_program_check
  import npu_pkg::*;
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
(
  input  logic          clk_i,

  input  logic          start_i,
  input  image_lines_t  lines_i,
  input  logic          valid_i,
  input  logic [63:0]   word_i,

  output logic          ok_o,
  output program_info_t info_o
);
  program_header_t        header;
  program_instruction_t   instr;
  program_info_t          info_q;
  image_word_t            place_q;      // of the word that comes next
  image_word_t            first_constant, end_constant;
  logic                   bad_q, header_bad, instr_bad, constant_bad, word_bad;
  logic [REGISTERS-1:0]   written_q;    // registers that an instruction has written
  logic [MAX_RESULTS-1:0] results_q;    // results likewise
  column_count_t          columns_q;    // of the last SEGMENT's table; none before the first one
  logic                   is_header, is_instr, is_constant, is_last_instr, dst_is_register;
  logic                   is_segment, b_bad;
  logic [1:0]             columns;      // operands of the instruction that are columns
  logic [MAX_RESULTS-1:0] all_results;
  logic [1:0]             result;

  assign header = word_i;
  assign instr  = word_i;

  assign first_constant = image_word_t'(info_q.instructions) + image_word_t'(1);
  assign end_constant   = first_constant
                        + ((image_word_t'(info_q.constants) + image_word_t'(1)) >> 1);
  assign is_header     = place_q == '0;
  assign is_instr      = !is_header && place_q < first_constant;
  assign is_last_instr = place_q + image_word_t'(1) == first_constant;
  assign is_constant   = place_q >= first_constant && place_q < end_constant;

  always_comb begin
    header_bad = header.instructions == '0 || header.constants > 8'(MAX_CONSTANTS)
               || header.sources > 8'(MAX_SOURCES) || header.results == '0
               || header.results > 8'(MAX_RESULTS) || header.reduce >= 8'(REDUCTIONS)
               || header.zero != '0 || header.magic != 16'(PROGRAM_MAGIC)
               || (header.reduce != '0 && (header.results != 8'd1 || header.sources == '0));
    if (image_lines(header.instructions, header.constants) != image_word_t'(lines_i)) begin
      header_bad = 1'b1;
    end
  end

  // An operand that the instruction has.
  function automatic logic operand_bad(logic [7:0] code);
    if (code < 8'(REGISTERS))          return !written_q[code[3:0]];
    if (code < 8'(OPERAND_INDEX))      return code - 8'(OPERAND_SRC) >= 8'(info_q.sources);
    if (code == 8'(OPERAND_INDEX))     return 1'b0;
    if (code < 8'(OPERAND_IMM))        return 1'b1;
    if (code < 8'(OPERAND_IMM + IMMEDIATES)) return 1'b0;
    if (code < 8'(OPERAND_TABLE))      return 1'b1;
    if (is_column(code))               return column_count_t'(code[2:0]) >= columns_q;
    if (code < 8'(OPERAND_CONST))      return 1'b1;
    return code - 8'(OPERAND_CONST) >= 8'(info_q.constants);
  endfunction

  function automatic logic is_column(logic [7:0] code);
    return code >= 8'(OPERAND_TABLE) && code < 8'(OPERAND_TABLE + TABLE_COLUMNS);
  endfunction

  // Whether the instruction has it or not: where it has none, a column is malformed anyway.
  assign columns = 2'(is_column(instr.a)) + 2'(is_column(instr.b)) + 2'(is_column(instr.c));

  assign is_segment      = instr.op == 8'(MICRO_SEGMENT);
  assign dst_is_register = instr.dst < 8'(REGISTERS);
  assign result          = 2'(instr.dst - 8'(DST_RESULT));

  always_comb begin
    instr_bad = instr.op >= 8'(MICRO_OPS) || instr.zero != '0;
    if (operand_bad(instr.a)) instr_bad = 1'b1;
    if (is_segment)                            b_bad = instr.b >= 8'(TABLES);
    else if (micro_operands(instr.op) > 2'd1)  b_bad = operand_bad(instr.b);
    else                                       b_bad = instr.b != '0;
    if (b_bad) instr_bad = 1'b1;
    if (micro_operands(instr.op) > 2'd2 ? operand_bad(instr.c) : instr.c != '0) instr_bad = 1'b1;
    if (columns > 2'd1) instr_bad = 1'b1;
    if (!dst_is_register) begin
      if (instr.dst < 8'(DST_RESULT)
          || instr.dst - 8'(DST_RESULT) >= 8'(info_q.results)) instr_bad = 1'b1;
      else if (results_q[result])                              instr_bad = 1'b1;
    end
    if (is_last_instr && dst_is_register) instr_bad = 1'b1;
  end

  assign constant_bad = place_q + image_word_t'(1) == end_constant && info_q.constants[0]
                      && word_i[63:32] != '0;

  always_comb begin
    if (is_header)        word_bad = header_bad;
    else if (is_instr)    word_bad = instr_bad;
    else if (is_constant) word_bad = constant_bad;
    else                  word_bad = word_i != '0;
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      place_q   <= '0;
      bad_q     <= 1'b0;
      written_q <= '0;
      results_q <= '0;
      columns_q <= '0;
    end else if (valid_i) begin
      place_q <= place_q + image_word_t'(1);
      bad_q   <= bad_q || word_bad;
      if (is_instr && is_segment)       columns_q <= TABLE_USED[table_t'(instr.b)];
      if (is_instr && dst_is_register)  written_q[instr.dst[3:0]] <= 1'b1;
      if (is_instr && !dst_is_register) results_q <= results_q | (MAX_RESULTS'(1) << result);
    end
  end

  always_ff @(posedge clk_i) begin
    if (valid_i && is_header) begin
      info_q <= info_of(header);
    end
  end

  assign all_results = MAX_RESULTS'((4'd1 << info_q.results) - 4'd1);
  assign ok_o        = !bad_q && results_q == all_results;
  assign info_o      = info_q;
endmodule
