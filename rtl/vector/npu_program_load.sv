// SPDX-License-Identifier: Apache-2.0
/// Runs a LOAD: reads the image twice, checks it in the first reading and stores it in the second.
///
/// The image comes as the vectors of a source, a line each, eight cycles per line. Nothing of the
/// program memory changes unless the first reading is sound. Between the readings the directory
/// forgets what the LOAD overwrites; the program is loaded when the second reading is sound as
/// well, so that no word that was not checked is ever run. A reading goes to its end before its
/// verdict: a bus error in any line comes before what is wrong in the image. `done_o` pulses with
/// the error.
module npu_program_load
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,

  // Stable from start_i until done_o
  input  logic          start_i,
  input  ram_line_t     line_i,        // of the loadable part
  input  image_lines_t  lines_i,
  output logic          done_o,
  output error_e        error_o,
  output logic          stores_o,      // the lines are being overwritten
  output logic          word_o,        // a word is being looked at
  output logic          waits_o,       // for the next line

  // The source that reads the image
  output logic          read_o,        // begin
  input  logic          read_err_i,    // a beat failed
  input  logic          vec_valid_i,
  output logic          vec_ready_o,
  input  vector_t       vec_i,

  // Program memory
  output logic          write_o,
  output ram_addr_t     write_addr_o,
  output logic [63:0]   write_data_o,

  // Directory
  output logic          invalidate_o,
  input  logic          dir_busy_i,
  output logic          insert_o,
  output program_info_t insert_info_o
);
  localparam int unsigned WordW = $clog2(LINE_WORDS);

  typedef enum logic [2:0] {
    IDLE,
    CHECK,          // first reading
    CHECK_VERDICT,
    STORE,          // second reading
    STORE_VERDICT   // when the directory has forgotten what was overwritten
  } state_e;

  state_e           state_q, state_d;
  logic [WordW-1:0] word_q;            // of the line
  image_lines_t     left_q;            // lines to come, this one included
  ram_addr_t        addr_q;
  logic             busy, read_err_q, reading, line_done, last, sound;
  error_e           verdict;
  program_info_t    info;

  npu_program_check u_check (
    .clk_i, .start_i(read_o), .lines_i, .valid_i(word_o), .word_i(write_data_o),
    .ok_o(sound), .info_o(info)
  );

  assign reading      = state_q == CHECK || state_q == STORE;
  assign word_o       = reading && vec_valid_i;
  assign waits_o      = reading && !vec_valid_i;
  assign line_done    = word_o && word_q == '1;
  assign last         = line_done && left_q == image_lines_t'(1);
  assign vec_ready_o  = line_done;
  assign write_data_o = vec_i[32'(word_q) * 64 +: 64];
  assign write_o      = word_o && state_q == STORE;
  assign write_addr_o = addr_q;
  assign stores_o     = state_q == STORE;

  always_comb begin
    verdict = ERROR_NONE;
    if (read_err_q)  verdict = ERROR_BUS_READ;
    else if (!sound) verdict = ERROR_BAD_IMAGE;
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      IDLE:          if (start_i) state_d = CHECK;
      CHECK:         if (last) state_d = CHECK_VERDICT;
      CHECK_VERDICT: state_d = (verdict == ERROR_NONE) ? STORE : IDLE;
      STORE:         if (last) state_d = STORE_VERDICT;
      STORE_VERDICT: if (!dir_busy_i) state_d = IDLE;
      default:       state_d = IDLE;
    endcase
  end

  assign busy       = state_q != IDLE;
  assign done_o       = busy && state_d == IDLE;
  assign error_o      = verdict;
  assign read_o       = (start_i && !busy) || (state_q == CHECK_VERDICT && state_d == STORE);
  assign invalidate_o     = state_q == CHECK_VERDICT && state_d == STORE;
  assign insert_o      = state_q == STORE_VERDICT && done_o && verdict == ERROR_NONE;
  assign insert_info_o = info;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= IDLE;
    else         state_q <= state_d;
  end

  always_ff @(posedge clk_i) begin
    if (read_o) begin
      word_q     <= '0;
      left_q     <= lines_i;
      addr_q     <= ram_addr_t'(line_i) << WordW;
      read_err_q <= 1'b0;
    end else begin
      if (word_o) begin
        word_q <= word_q + WordW'(1);
        addr_q <= addr_q + ram_addr_t'(1);
      end
      if (line_done)  left_q <= left_q - image_lines_t'(1);
      if (read_err_i) read_err_q <= 1'b1;
    end
  end
endmodule
