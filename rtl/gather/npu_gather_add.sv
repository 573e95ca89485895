// SPDX-License-Identifier: Apache-2.0
/// Adds beats of new elements to the beats of old ones that lie in the same lanes.
///
/// Rounds as docs/numerics.md says of SCATTER: once to fp32, once to the element type; INT32 wraps.
/// One 32-bit word per cycle, words without a strobe skipped, FmaLatency cycles for each; a beat is
/// given out before the next is taken. While `drain_i` is high, new beats pass at once and without
/// strobes, and old ones are dropped.
module npu_gather_add
  import npu_isa_pkg::*;
  import npu_fma_pkg::*;
  import npu_fp_pkg::*;
#(
  parameter int unsigned BusBits    = 256,
  parameter int unsigned FmaLatency = 4,
  localparam int unsigned StrbW     = BusBits / 8
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  dtype_e             dtype_i,  // FP32, FP16, BF16 or INT32
  input  logic               drain_i,

  input  logic               new_valid_i,
  output logic               new_ready_o,
  input  logic [BusBits-1:0] new_i,
  input  logic [StrbW-1:0]   strb_i,
  input  logic               old_valid_i,
  output logic               old_ready_o,
  input  logic [BusBits-1:0] old_i,

  output logic               out_valid_o,
  input  logic               out_ready_i,
  output logic [BusBits-1:0] out_o,
  output logic [StrbW-1:0]   strb_o
);
  localparam int unsigned Words = BusBits / 32;
  localparam int unsigned WordW = $clog2(Words);
  localparam logic [31:0] One = 32'h3F80_0000;

  // A sum on its way, and the word that it is for.
  typedef struct packed {
    logic             valid;
    logic [WordW-1:0] word;
    logic [31:0]      sum;
  } stage_t;

  typedef enum logic [1:0] {
    IDLE,   // waiting for a pair of beats
    ADD,    // words start, sums arrive
    OFFER   // the beat is ready
  } state_e;

  state_e                 state_q, state_d;
  logic [Words-1:0][31:0] new_q, old_q;  // sums take the place of old_q's words
  logic [StrbW-1:0]       strb_q;
  logic [Words-1:0]       todo_q, touched;
  logic [WordW-1:0]       word;
  logic                   load, issue, waiting;
  stage_t                 first, last;
  stage_t                 pipe_q [FmaLatency];

  function automatic logic [31:0] add_word(dtype_e dtype, logic [31:0] was, logic [31:0] more);
    unique case (dtype)
      DTYPE_FP32: return fp32_fma(was, One, more);
      DTYPE_FP16: return {
        fp32_to_fp16(fp32_fma(fp16_to_fp32(was[31:16]), One, fp16_to_fp32(more[31:16]))),
        fp32_to_fp16(fp32_fma(fp16_to_fp32(was[15:0]), One, fp16_to_fp32(more[15:0])))};
      DTYPE_BF16: return {
        fp32_to_bf16(fp32_fma(bf16_to_fp32(was[31:16]), One, bf16_to_fp32(more[31:16]))),
        fp32_to_bf16(fp32_fma(bf16_to_fp32(was[15:0]), One, bf16_to_fp32(more[15:0])))};
      default:    return was + more;
    endcase
  endfunction

  for (genvar i = 0; i < Words; i++) begin : gen_touched
    assign touched[i] = strb_i[4*i+:4] != '0;
  end

  // Lowest word first.
  always_comb begin
    word = '0;
    for (int unsigned i = Words; i > 0; i--) begin
      if (todo_q[i-1]) word = WordW'(i - 1);
    end
  end

  assign load  = state_q == IDLE && !drain_i && new_valid_i && old_valid_i;
  assign issue = state_q == ADD && todo_q != '0;

  always_comb begin
    first = '0;
    if (issue) first = '{valid: 1'b1, word: word, sum: add_word(dtype_i, old_q[word], new_q[word])};
  end

  // The sum in the last stage is stored in this cycle.
  assign last = pipe_q[FmaLatency-1];
  always_comb begin
    waiting = 1'b0;
    for (int unsigned i = 1; i < FmaLatency; i++) waiting |= pipe_q[i-1].valid;
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      IDLE:    if (load) state_d = ADD;
      ADD:     if (todo_q == '0 && !waiting) state_d = OFFER;
      OFFER:   if (out_ready_i) state_d = IDLE;
      default: state_d = IDLE;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
      todo_q  <= '0;
    end else begin
      state_q <= state_d;
      if (load)       todo_q <= touched;
      else if (issue) todo_q[word] <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      new_q  <= new_i;
      old_q  <= old_i;
      strb_q <= strb_i;
    end else if (last.valid) begin
      old_q[last.word] <= last.sum;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < FmaLatency; i++) begin
      if (!rst_ni) pipe_q[i].valid <= 1'b0;
      else if (state_q == ADD) pipe_q[i] <= (i == 0) ? first : pipe_q[i-1];
    end
  end

  logic passing;
  assign passing     = state_q == IDLE && drain_i;
  assign new_ready_o = load || (passing && out_ready_i);
  assign old_ready_o = load || drain_i;
  assign out_valid_o = state_q == OFFER || (passing && new_valid_i);
  assign out_o       = old_q;
  assign strb_o      = (state_q == OFFER) ? strb_q : '0;
endmodule
