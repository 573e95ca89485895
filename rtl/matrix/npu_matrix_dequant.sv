// SPDX-License-Identifier: Apache-2.0
/// Weights of four bits become numbers: each, 8 less, times the scale of its column and its group
/// of rows, rounded to the sources' type.
///
/// Takes lines from the unpacker: of MATRIX_S, which it keeps, and of MATRIX_B, where a lane is a
/// word of INT4_ROWS rows of its column. A beat of such words leaves two cycles later as a weight
/// for each of INT4_ROWS rows of the array. Words of one beat are in lanes that differ modulo
/// Words.
/// `done_o` pulses with the last of a tile. Scales are here before their words, because both come
/// in the order of their requests: a row per column tile of a block, or, where a tile has several
/// groups, a row per group of the tile at hand.
module npu_matrix_dequant
  import npu_isa_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize = 16,
  parameter int unsigned AccTiles  = 64,
  parameter int unsigned Words     = 8   // of a beat
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic [3:0] dtype_i,   // of the sources
  input  logic [3:0] group_i,   // log2 of the rows that share a scale

  input  logic                       wr_valid_i,
  input  buffer_addr_t               wr_place_i,
  input  logic [ArraySize-1:0]       wr_mask_i,
  input  logic [ArraySize-1:0][31:0] wr_data_i,
  input  logic                       tile_done_i,

  output logic                                   valid_o,
  output buffer_addr_t                           place_o,  // `line`: row of words of the tile
  output logic [ArraySize-1:0]                   mask_o,   // columns
  output logic [INT4_ROWS-1:0][Words-1:0][31:0]  data_o,   // column c has word c modulo Words
  output logic                                   done_o
);
  // A tile of groups has a row of scales for each of them; else each tile of a block has one row.
  localparam int unsigned Groups  = ArraySize / INT4_ROWS;
  localparam int unsigned Rows    = (AccTiles > Groups) ? AccTiles : Groups;
  localparam int unsigned Entries = (Rows > 1) ? Rows : 2;
  localparam int unsigned EntryW  = $clog2(Entries);
  localparam int unsigned RowsW  = $clog2(INT4_ROWS);

  typedef logic [ArraySize-1:0][31:0] lanes_t;
  typedef logic [Words-1:0][31:0]     words_t;

  logic [ArraySize-1:0][31:0] scales_q [Entries];
  lanes_t               row_q;      // scales of the words at hand
  words_t               words_q, words_scale;
  buffer_addr_t         place_q;
  logic [ArraySize-1:0] mask_q;
  logic                 valid_q, done_q, write, take;
  logic [EntryW-1:0]    write_entry, read_entry, group_line;

  assign write       = wr_valid_i && wr_place_i.operand == MATRIX_S;
  assign take        = wr_valid_i && wr_place_i.operand == MATRIX_B;
  assign write_entry = EntryW'(wr_place_i.place) + EntryW'(wr_place_i.line);
  // A group of ArraySize rows or more is that of the whole tile.
  assign group_line  = (group_i >= 4'($clog2(ArraySize)))
                       ? '0 : EntryW'(wr_place_i.line >> (group_i - 4'(RowsW)));
  assign read_entry  = EntryW'(wr_place_i.place[15:8]) + group_line;

  // The lane of each word that a beat brings.
  function automatic words_t picked(lanes_t lanes, logic [ArraySize-1:0] mask);
    // verilator no_inline_task
    picked = '0;
    for (int unsigned l = 0; l < ArraySize; l++) begin
      if (mask[l]) picked[l % Words] = lanes[l];
    end
  endfunction

  // (nibble - 8) * scale. The scale is a number of the sources' type as fp32, and so is the result.
  function automatic logic [31:0] scaled(logic [3:0] dtype, logic [3:0] nibble, logic [31:0] scale);
    logic        sign, up;
    logic [3:0]  number;     // magnitude, 0 to 8
    logic [1:0]  grown;      // by so many bits the product is longer than its scale
    logic [4:0]  dropped;    // its lowest bits, which are rounded
    logic [27:0] product, half, tail;
    logic [8:0]  exponent;   // of the scale; that of subnormal numbers is 1
    logic [8:0]  limit;      // exponents from here on are infinity
    logic [31:0] bits;
    sign     = scale[31] ^ !nibble[3];
    number   = nibble[3] ? 4'(nibble[2:0]) : 4'd8 - nibble;
    exponent = 9'(scale[30:23]) + 9'(scale[30:23] == '0);
    product  = 28'({scale[30:23] != '0, scale[22:0]}) * 28'(number);
    grown    = product[26] ? 2'd3 : product[25] ? 2'd2 : 2'(product[24]);
    unique case (dtype)
      DTYPE_BF16: dropped = 5'd16 + 5'(grown);
      DTYPE_FP16: dropped = 5'd13 + 5'(grown);
      default:    dropped = 5'(grown);
    endcase
    limit    = (dtype == DTYPE_FP16) ? 9'd143 : 9'd255;
    half     = (28'd1 << dropped) >> 1;
    tail     = product & ((28'd1 << dropped) - 28'd1);
    product  = product >> dropped;
    up       = tail > half || (tail == half && half != '0 && product[0]);
    product  = (product + 28'(up)) << (dropped - 5'(grown));
    // The leading bit of a normal product counts one more exponent, and a carry another one.
    bits     = {exponent - 9'd1 + 9'(grown), 23'd0} + 32'(product);
    if (bits[31:23] >= limit) bits = 32'h7f80_0000;
    scaled = {sign, bits[30:0]};
    if (number == '0) scaled = {scale[31], 31'd0};
    if (scale[30:23] == '1) begin
      scaled = (scale[22:0] != '0 || number == '0) ? 32'h7fc0_0000 : {sign, 31'h7f80_0000};
    end
  endfunction

  always_ff @(posedge clk_i) begin
    if (write) begin
      for (int unsigned l = 0; l < ArraySize; l++) begin
        if (wr_mask_i[l]) scales_q[write_entry][l] <= wr_data_i[l];
      end
    end
    if (take) row_q <= scales_q[read_entry];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      valid_o <= 1'b0;
      done_q  <= 1'b0;
      done_o  <= 1'b0;
    end else begin
      valid_q <= take;
      valid_o <= valid_q;
      done_q  <= take && tile_done_i;
      done_o  <= done_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      words_q <= picked(wr_data_i, wr_mask_i);
      place_q <= wr_place_i;
      mask_q  <= wr_mask_i;
    end
  end

  assign words_scale = picked(row_q, mask_q);

  always_ff @(posedge clk_i) begin
    if (valid_q) begin
      place_o <= place_q;
      mask_o  <= mask_q;
      for (int unsigned r = 0; r < INT4_ROWS; r++) begin
        for (int unsigned w = 0; w < Words; w++) begin
          data_o[r][w] <= scaled(dtype_i, words_q[w][4*r +: 4], words_scale[w]);
        end
      end
    end
  end
endmodule
