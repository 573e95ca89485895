// SPDX-License-Identifier: Apache-2.0
/// Takes the beats of operand reads, or whole lines from the operand buffer, apart into 32-bit
/// lanes.
///
/// Each beat gives the lanes it covers: fp16 and bf16 widened to fp32, int8 sign extended, 32-bit
/// types as they are, as are words of weights of four bits. One beat per cycle; only those of B
/// wait, while `b_hold_i` (other buffers were reserved at request time). The write leaves one cycle
/// after its beat. `tile_done_o` pulses with a tile's last write.
module npu_matrix_unpack
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize = 16,
  parameter int unsigned BusBits   = 256
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  npu_engine_cmd_t cmd_i,

  // From the operand buffer; no beat is taken in the same cycle
  input  logic                    line_valid_i,
  input  pending_t                line_i,
  input  logic [ArraySize*32-1:0] line_data_i,

  input  logic            b_hold_i,         // beats of B wait

  input  logic            pending_valid_i,  // a request past the operand buffer
  output logic            pending_ready_o,
  output logic            beat_ready_o,
  input  pending_t        pending_i,

  input  logic               beat_valid_i,
  input  logic [BusBits-1:0] beat_i,

  output logic                       wr_valid_o,
  output buffer_addr_t               wr_place_o,
  output logic [ArraySize-1:0]       wr_mask_o,
  output logic [ArraySize-1:0][31:0] wr_data_o,
  output logic                       tile_done_o
);
  localparam int unsigned BeatW = $clog2(BusBits / 8);

  logic [3:0]             beat_q;
  logic                   last_beat, step, held;
  pending_t               source;
  logic [3:0]             dtype;
  logic [1:0]             log2_bytes;
  logic [BusBits-1:0]     line_bytes;  // the beat, rotated so that lane 0's byte is at 0
  logic [BeatW-1:0]       offset;
  logic [ArraySize-1:0]   mask;
  logic [ArraySize-1:0][31:0] lanes;

  assign step            = beat_valid_i && pending_valid_i && !line_valid_i && !held;
  assign held            = b_hold_i && pending_i.operand == MATRIX_B;
  assign last_beat       = beat_q + 4'd1 == pending_i.beats;
  assign beat_ready_o    = pending_valid_i && !line_valid_i && !held;
  assign pending_ready_o = step && last_beat;
  assign source          = line_valid_i ? line_i : pending_i;
  assign dtype      = operand_dtype(source.operand, cmd_i.int4_group != '0, cmd_i.src_dtype,
                                    cmd_i.dst_dtype);
  assign log2_bytes = dtype_log2_bytes(dtype);

  function automatic logic [31:0] widened(logic [3:0] of_dtype, logic [15:0] word);
    return (of_dtype == DTYPE_FP16) ? npu_fp_pkg::fp16_to_fp32(word)
                                    : npu_fp_pkg::bf16_to_fp32(word);
  endfunction

  assign offset = pending_i.skew[BeatW-1:0];

  always_comb begin
    line_bytes = beat_i;
    if (step && offset != '0) line_bytes = BusBits'({beat_i, beat_i} >> {offset, 3'b000});
  end

  // Lane l starts at byte (skew + l·size) of the request, so in beat (…) >> BeatW; that is not
  // negative for the lanes that the request covers.
  always_comb begin
    mask = '0;
    if (step || line_valid_i) begin
      for (int l = 0; l < ArraySize; l++) begin
        mask[l] = 6'(l) - 6'(source.elem) < source.elems && (line_valid_i || source.same ||
            4'((8'(source.skew) + (8'(l) << log2_bytes)) >> BeatW) == beat_q);
      end
    end
  end

  always_comb begin
    lanes = '0;
    if (line_valid_i) begin
      unique case (log2_bytes)
        2'd0: for (int l = 0; l < ArraySize; l++) begin
          lanes[l] = 32'(signed'(line_data_i[(line_i.same ? 0 : l) * 8 +: 8]));
        end
        2'd1: for (int l = 0; l < ArraySize; l++) begin
          lanes[l] = widened(dtype, line_data_i[(line_i.same ? 0 : l) * 16 +: 16]);
        end
        default: for (int l = 0; l < ArraySize; l++) begin
          lanes[l] = line_data_i[(line_i.same ? 0 : l) * 32 +: 32];
        end
      endcase
    end else if (step) begin
      unique case (log2_bytes)
        2'd0: for (int l = 0; l < ArraySize; l++) begin
          lanes[l] = 32'(signed'(line_bytes[(pending_i.same ? 0 : l % (BusBits / 8)) * 8 +: 8]));
        end
        2'd1: for (int l = 0; l < ArraySize; l++) begin
          lanes[l] = widened(dtype,
              line_bytes[(pending_i.same ? 0 : l % (BusBits / 16)) * 16 +: 16]);
        end
        default: for (int l = 0; l < ArraySize; l++) begin
          lanes[l] = line_bytes[(pending_i.same ? 0 : l % (BusBits / 32)) * 32 +: 32];
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_q      <= '0;
      wr_valid_o  <= 1'b0;
      tile_done_o <= 1'b0;
    end else begin
      if (step) beat_q <= last_beat ? '0 : beat_q + 4'd1;
      wr_valid_o  <= step || line_valid_i;
      tile_done_o <= (line_valid_i || (step && last_beat)) && source.last;
    end
  end

  always_ff @(posedge clk_i) begin
    if (step || line_valid_i) begin
      wr_place_o <= '{operand: source.operand, half: source.half, place: source.place,
                      along_k: source.along_k, line: source.line};
      wr_mask_o  <= mask;
      wr_data_o  <= lanes;
    end
  end
endmodule
