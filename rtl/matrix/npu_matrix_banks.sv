// SPDX-License-Identifier: Apache-2.0
/// The operand buffer: beats of the bus that window operands read again and again, in banks that
/// are read together. Gives the line of one request per cycle, wherever it lies.
///
/// The request at the head of the queue takes the beats that it missed, one per cycle; with the
/// last of them, or at once without, all its beats are read. The line leaves one cycle later:
/// `line_valid_o` with its request and its elements, lane 0's first, without the gaps between
/// runs. Beats of later requests wait:
/// `beat_ready_o`. That delays other clients at most by the requests in front, one cycle each.
module npu_matrix_banks
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize = 16,
  parameter int unsigned BusBits   = 256,
  localparam int unsigned LineBits = ArraySize * 32
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                pending_valid_i,  // the head is a request with `reuse`
  output logic                pending_ready_o,
  input  pending_t            pending_i,

  input  logic                beat_valid_i,
  output logic                beat_ready_o,
  input  logic [BusBits-1:0]  beat_i,

  output logic                line_valid_o,
  output pending_t            line_o,
  output logic [LineBits-1:0] line_data_o
);
  localparam int unsigned SetW       = REUSE_WIDTH - 2;
  localparam int unsigned WindowBits = REUSE_BANKS * BusBits;
  localparam int unsigned ByteW      = $clog2(WindowBits / 8);

  logic [2:0]             taken_q;  // of the head's missed beats
  logic                   needs, take, read, valid_q;
  logic [REUSE_WIDTH-1:0] slot;     // of the beat that is taken
  pending_t               line_q;
  logic [REUSE_BANKS-1:0] fresh_q;  // the beat was taken in the cycle of the read
  logic [BusBits-1:0]     beat_q;
  logic [REUSE_BANKS-1:0][BusBits-1:0] bank_data;

  assign needs = pending_valid_i && taken_q != pending_i.misses;
  assign take  = needs && beat_valid_i;
  assign read  = pending_valid_i && (needs ? beat_valid_i && taken_q + 3'd1 == pending_i.misses
                                           : 1'b1);
  assign slot  = pending_i.missed + REUSE_WIDTH'(taken_q);
  assign beat_ready_o    = needs;
  assign pending_ready_o = read;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      taken_q <= '0;
      valid_q <= 1'b0;
    end else begin
      if (read)      taken_q <= '0;
      else if (take) taken_q <= taken_q + 3'd1;
      valid_q <= read;
    end
  end

  always_ff @(posedge clk_i) begin
    if (read) line_q <= pending_i;
    if (take) beat_q <= beat_i;
  end

  for (genvar b = 0; b < REUSE_BANKS; b++) begin : gen_bank
    logic [BusBits-1:0]     mem_q [2**SetW];
    logic [BusBits-1:0]     out_q;
    logic [SetW-1:0]        set;    // of this bank's beat among the request's

    assign set = pending_i.first[REUSE_WIDTH-1:2] + SetW'(3'(pending_i.first[1:0]) > 3'(b));

    always_ff @(posedge clk_i) begin
      if (take && slot[1:0] == 2'(b)) mem_q[slot[REUSE_WIDTH-1:2]] <= beat_i;
    end
    always_ff @(posedge clk_i) begin
      if (read) begin
        out_q      <= mem_q[set];
        fresh_q[b] <= take && slot[1:0] == 2'(b);
      end
    end
    assign bank_data[b] = fresh_q[b] ? beat_q : out_q;
  end

  // ---- the line: the request's beats in order, turned until lane 0 is at bit 0 ----
  logic [WindowBits-1:0] window;
  logic [LineBits-1:0]   line;
  logic [ByteW-1:0]      skew, gap;
  always_comb begin
    window = '0;
    line   = '0;
    if (valid_q) begin
      for (int unsigned p = 0; p < REUSE_BANKS; p++) begin
        window[p*BusBits +: BusBits] = bank_data[2'(p) + line_q.first[1:0]];
      end
      window = WindowBits'({window, window} >> {skew, 3'b000});
      line   = LineBits'({window, window});
      if (line_q.cut != '1) line = merged(line, turned(window, gap), line_q.cut);
      if (line_q.cut2 != '1) line = merged(line, turned(window, gap << 1), line_q.cut2);
    end
  end
  assign skew         = ByteW'(line_q.skew);
  assign gap          = ByteW'(line_q.gap);
  assign line_valid_o = valid_q;
  assign line_o       = line_q;
  assign line_data_o  = line;

  // The bytes of the window from `by` on: behind a gap, or two. In a line that is longer than the
  // window they come twice, as the elements of a request have their own lanes everywhere.
  function automatic logic [LineBits-1:0] turned(logic [WindowBits-1:0] held,
                                                 logic [ByteW-1:0] by);
    logic [WindowBits-1:0] first;
    first = WindowBits'({held, held} >> {by, 3'b000});
    return LineBits'({first, first});
  endfunction

  // From byte `cut` on the second line.
  function automatic logic [LineBits-1:0] merged(logic [LineBits-1:0] low,
                                                 logic [LineBits-1:0] high, logic [7:0] cut);
    logic [LineBits-1:0] rest;
    rest = '1;
    rest = rest << {cut, 3'b000};
    return (low & ~rest) | (high & rest);
  endfunction
endmodule
