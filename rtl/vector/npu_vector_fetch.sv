// SPDX-License-Identifier: Apache-2.0
/// Fetches the instructions of a program, one ahead, and its constants.
///
/// `start_i` begins a command. A program other than the last one, or one of a line that has been
/// overwritten since (`invalidate_i`), is fetched from the program memory: first instruction,
/// constants, second instruction; `ready_o` 2 cycles after the start and one more per pair of
/// constants. The program of the command before is still there and is ready at once: after the last
/// instruction comes the first again. `instruction_o` is to be run, `advance_i` moves on, in every
/// cycle if need be.
module npu_vector_fetch
  import npu_pkg::*;
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
(
  input  logic           clk_i,
  input  logic           rst_ni,

  input  logic           start_i,
  input  logic           invalidate_i,
  input  program_line_t  line_i,         // stable from start_i on, with info_i
  input  program_info_t  info_i,

  output logic           ready_o,
  output instruction_t   instruction_o,
  output logic           last_o,         // the last one of the program
  input  logic           advance_i,

  // Constants, two per word
  output logic           pair_valid_o,
  output pair_t          pair_o,
  output logic [63:0]    pair_data_o,

  // Program memory
  output logic           read_o,
  output program_addr_t  read_addr_o,
  input  logic [63:0]    read_data_i
);
  typedef enum logic [1:0] {
    READY,
    FIRST,     // the first instruction is here: keep it
    CONSTANTS  // a pair of constants is here
  } state_e;

  state_e        state_q, state_d;
  program_line_t line_q;            // of the program that is here
  logic          held_q, fresh, last_pair;
  instruction_t  current_q;
  logic [7:0]    pc_q, next_q;      // numbers of the instruction to be run and of the one behind it
  logic [7:0]    after_next;
  logic [5:0]    pair_q, asked;     // pairs of constants that are here; the one to be asked for
  logic [8:0]    place;             // of the word that is asked for, in the image

  function automatic logic [7:0] following(logic [7:0] pc, logic [7:0] instructions);
    return (pc + 8'd1 == instructions) ? 8'd0 : pc + 8'd1;
  endfunction

  assign fresh      = start_i && !(held_q && line_q == line_i);
  assign after_next = following(next_q, info_i.instructions);
  assign asked      = (state_q == FIRST) ? 6'd0 : pair_q + 6'd1;
  assign last_pair  = asked == 6'((info_i.constants + 7'd1) >> 1);

  // Word 0 of the image is the header; the constants follow the instructions.
  always_comb begin
    state_d = state_q;
    read_o  = 1'b1;
    place   = 9'd1;
    unique case (state_q)
      READY: begin
        read_o = fresh || advance_i;
        if (fresh)          state_d = FIRST;
        else if (advance_i) place   = 9'(after_next) + 9'd1;
      end
      default: begin
        state_d = last_pair ? READY : CONSTANTS;
        place   = 9'd1 + (last_pair ? 9'(next_q) : 9'(info_i.instructions) + 9'(asked));
      end
    endcase
  end

  assign read_addr_o   = {line_i, 3'd0} + program_addr_t'(place);
  assign pair_valid_o  = state_q == CONSTANTS;
  assign pair_o        = pair_t'(pair_q);
  assign pair_data_o   = read_data_i;
  assign ready_o       = state_q == READY;
  assign instruction_o = current_q;
  assign last_o        = pc_q + 8'd1 == info_i.instructions;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= READY;
      held_q  <= 1'b0;
    end else begin
      state_q <= state_d;
      if (invalidate_i)   held_q <= 1'b0;
      else if (fresh) held_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fresh) begin
      line_q <= line_i;
      pc_q   <= '0;
      next_q <= following('0, info_i.instructions);
    end else if (advance_i) begin
      pc_q   <= next_q;
      next_q <= after_next;
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance_i || state_q == FIRST) current_q <= instruction_of(read_data_i);
    if (state_q != READY)              pair_q    <= asked;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && advance_i) begin
      AdvancesWhenReady: assert (state_q == READY && !start_i)
        else $error("npu_vector_fetch: moves on before its program is here");
    end
  end
endmodule
