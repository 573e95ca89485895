// SPDX-License-Identifier: Apache-2.0
/// Cuts beats, in which every row starts in lane 0, into vectors of 32-bit words.
///
/// Per cycle one beat is taken or, where a beat holds several vectors, one vector made of it. Words
/// are what docs/numerics.md calls the load of their type. With `splat_i` a row has one element,
/// which becomes all elements of the row's vectors. With `gap_log2_i` the row's elements are every
/// second or fourth one of its beats. Lanes beyond the end of a row are not defined.
module npu_vector_unpack
  import npu_isa_pkg::*;
  import npu_vector_types_pkg::*;
#(
  parameter int unsigned BusBits = 256
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  // Stable from start_i until the last vector was taken
  input  logic               start_i,
  input  dtype_e             dtype_i,
  input  logic               splat_i,
  input  logic [1:0]         gap_log2_i,
  input  logic [31:0]        row_elems_i,

  input  logic               beat_valid_i,
  output logic               beat_ready_o,
  input  logic [BusBits-1:0] beat_i,

  output logic               vec_valid_o,
  input  logic               vec_ready_i,
  output vector_t            vec_o
);
  localparam logic [31:0] Lanes = 32'(LOGICAL_LANES);

  logic        full_q, take, made, row_done, free, vec_done;
  vector_t     vec_q;
  logic [3:0]  first_q;      // lane of the beat's first element
  logic [1:0]  part_q;       // vectors already made of the beat
  logic [31:0] left_q;       // elements of the row not yet in a vector
  logic [31:0] shown_q;      // splat: elements of the row after this vector
  logic [6:0]  beat_elems;
  logic [31:0] want;         // elements still to come for this vector

  // Which words of a vector a beat of 2^log2-byte elements holds from lane `first` on.
  function automatic logic [LOGICAL_LANES-1:0] lanes_of(logic [3:0] first, logic [6:0] elems);
    // verilator unroll_full
    for (int unsigned l = 0; l < LOGICAL_LANES; l++) begin
      lanes_of[l] = l >= 32'(first) && l < 32'(first) + 32'(elems);
    end
  endfunction

  // Elements of 8, 16, 32 and 64 bits; a beat of few elements is repeated over the lanes.
  function automatic vector_t words8(logic [BusBits-1:0] data, logic extend);
    // verilator unroll_full
    for (int unsigned l = 0; l < LOGICAL_LANES; l++) begin
      words8[l*32 +: 32] = {{24{extend && data[l*8+7]}}, data[l*8 +: 8]};
    end
  endfunction
  function automatic vector_t words_fp16(logic [BusBits-1:0] data);
    // verilator unroll_full
    for (int unsigned l = 0; l < LOGICAL_LANES; l++) begin
      words_fp16[l*32 +: 32] = npu_fp_pkg::fp16_to_fp32(data[(l*16) % BusBits +: 16]);
    end
  endfunction
  function automatic vector_t words_bf16(logic [BusBits-1:0] data);
    // verilator unroll_full
    for (int unsigned l = 0; l < LOGICAL_LANES; l++) begin
      words_bf16[l*32 +: 32] = npu_fp_pkg::bf16_to_fp32(data[(l*16) % BusBits +: 16]);
    end
  endfunction
  function automatic vector_t words32(logic [BusBits-1:0] data);
    // verilator unroll_full
    for (int unsigned l = 0; l < LOGICAL_LANES; l++) begin
      words32[l*32 +: 32] = data[(l*32) % BusBits +: 32];
    end
  endfunction
  function automatic vector_t words64(logic [BusBits-1:0] data);
    // verilator unroll_full
    for (int unsigned l = 0; l < LOGICAL_LANES; l++) begin
      words64[l*32 +: 32] = data[(l*64) % BusBits +: 32];
    end
  endfunction

  // Every second element of a beat, twice.
  localparam int unsigned HalfBits = BusBits / 2;
  function automatic logic [BusBits-1:0] thinned(logic [BusBits-1:0] data, dtype_e dtype);
    logic [HalfBits-1:0] half;
    // verilator no_inline_task
    half = '0;
    unique case (dtype_log2_bytes(dtype))
      2'd0:    for (int unsigned l = 0; l < HalfBits; l += 8) half[l +: 8] = data[2*l +: 8];
      2'd1:    for (int unsigned l = 0; l < HalfBits; l += 16) half[l +: 16] = data[2*l +: 16];
      2'd2:    for (int unsigned l = 0; l < HalfBits; l += 32) half[l +: 32] = data[2*l +: 32];
      default: for (int unsigned l = 0; l < HalfBits; l += 64) half[l +: 64] = data[2*l +: 64];
    endcase
    thinned = {2{half}};
  endfunction

  // The row's own elements of the beat. Where it holds several vectors, the one that is next.
  logic [BusBits-1:0] own, part;
  always_comb begin
    own = beat_i;
    if (take && gap_log2_i != 2'd0) own = thinned(beat_i, dtype_i);
    if (take && gap_log2_i == 2'd2) own = thinned(own, dtype_i);
    part = own;
    if (take && part_q != '0) part = own >> ((32'(part_q) << dtype_log2_bytes(dtype_i)) * 128);
  end

  vector_t words, merged;
  logic [LOGICAL_LANES-1:0] lanes;
  always_comb begin
    words  = '0;
    lanes  = '0;
    merged = vec_q;
    if (take) begin
      unique case (dtype_i)
        DTYPE_FP16:  words = words_fp16(part);
        DTYPE_BF16:  words = words_bf16(part);
        DTYPE_INT8:  words = words8(part, 1'b1);
        DTYPE_UINT8: words = words8(part, 1'b0);
        DTYPE_INT64: words = words64(part);
        default:     words = words32(part);
      endcase
      lanes = lanes_of(first_q, beat_elems);
      if (splat_i)          merged = {LOGICAL_LANES{words[31:0]}};
      else if (lanes == '1) merged = words;
      else begin
        // verilator unroll_full
        for (int unsigned l = 0; l < LOGICAL_LANES; l++) begin
          if (lanes[l]) merged[l*32 +: 32] = words[l*32 +: 32];
        end
      end
    end
  end

  // One shift: Verilator 5.048 adds the amounts of two in their own two bits.
  assign beat_elems = 7'(BusBits / 8) >> (3'(dtype_log2_bytes(dtype_i)) + 3'(gap_log2_i));
  assign free       = !full_q || (vec_ready_i && vec_done);
  assign take       = beat_valid_i && free;
  assign want       = (splat_i ? 32'd1 : (left_q < Lanes) ? left_q : Lanes) - 32'(first_q);
  assign made       = take && 32'(beat_elems) >= want;
  assign row_done   = splat_i || left_q <= Lanes;
  // The beat's other vectors come first; what follows the end of a row in a beat is
  // not used.
  assign beat_ready_o = take && (row_done || (32'(part_q) + 32'd1) * Lanes >= 32'(beat_elems)
                                 || !made);
  assign vec_done    = !splat_i || shown_q == '0;
  assign vec_valid_o = full_q;
  assign vec_o       = vec_q;

  function automatic logic [31:0] after(logic [31:0] elems);
    return (elems > Lanes) ? elems - Lanes : 32'd0;
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni)          full_q <= 1'b0;
    else if (made)        full_q <= 1'b1;
    else if (vec_ready_i && vec_done) full_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      first_q <= '0;
      part_q  <= '0;
      left_q  <= row_elems_i;
    end else if (take) begin
      first_q <= made ? '0 : first_q + beat_elems[3:0];
      part_q  <= beat_ready_o ? '0 : part_q + 2'd1;
      if (made) left_q <= row_done ? row_elems_i : left_q - Lanes;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) vec_q <= merged;
  end

  always_ff @(posedge clk_i) begin
    if (made)                        shown_q <= after(row_elems_i);
    else if (full_q && vec_ready_i) shown_q <= after(shown_q);
  end
endmodule
