// SPDX-License-Identifier: Apache-2.0
/// Checks a window descriptor against what its packet says.
///
/// Starts on `start_i`; the inputs stay until `done_o`, which pulses 6 cycles later with `ok_o`:
/// low means ERROR_BAD_DESCRIPTOR. The products of sizes are formed with one multiplier, one size
/// after the other. A product that needs more than 32 bits contradicts the packet, since no size is
/// 0.
module npu_window_check
  import npu_isa_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic       clk_i,
  input  logic       rst_ni,

  input  logic       start_i,
  input  window_t    window_i,
  input  logic       is_dst_i,
  input  logic       transposed_i,  // a flag that a window must not have
  input  logic [3:0] dtype_i,
  input  shape_t     shape_i,       // [batch, rows, columns], as for a descriptor of rank 3
  output logic       done_o,
  output logic       ok_o
);
  typedef enum logic [2:0] {
    IDLE,
    ROWS0,  // two sizes of the rows
    ROWS1,  // times the third
    COLS0,  // the rows' product is known; likewise for the columns
    COLS1,
    DECIDE
  } state_e;

  state_e      state_q, state_d;
  logic [31:0] factor, size;
  logic [63:0] product_q;
  logic        words_bad, wide_q, rows_bad_q, cols_bad;

  always_comb begin
    words_bad = window_i.reserved != '0 || window_i.reserved_end != '0 || transposed_i ||
                window_i.dtype != 32'(dtype_i) ||
                window_i.size[VIEW_BATCH] != shape_i[MAX_RANK-3];
    for (int unsigned i = 0; i < WINDOW_RANK; i++) begin
      if (window_i.size[i] == '0) words_bad = 1'b1;
      if (is_dst_i && window_i.size[i] > 32'd1 && window_i.stride[i] == '0) words_bad = 1'b1;
    end
  end

  always_comb begin
    state_d = state_q;
    factor  = product_q[31:0];
    size    = window_i.size[VIEW_ROW];
    unique case (state_q)
      IDLE:  if (start_i) state_d = ROWS0;
      ROWS0: begin
        factor  = window_i.size[VIEW_ROW+2];
        size    = window_i.size[VIEW_ROW+1];
        state_d = ROWS1;
      end
      ROWS1: state_d = COLS0;
      COLS0: begin
        factor  = window_i.size[VIEW_COL+2];
        size    = window_i.size[VIEW_COL+1];
        state_d = COLS1;
      end
      COLS1: begin
        size    = window_i.size[VIEW_COL];
        state_d = DECIDE;
      end
      default: state_d = IDLE;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= IDLE;
    else         state_q <= state_d;
  end

  // `wide_q`: the first product of the group did not fit.
  always_ff @(posedge clk_i) begin
    if (state_q != IDLE) product_q <= 64'(factor) * 64'(size);
    wide_q <= product_q[63:32] != '0;
    if (state_q == COLS0) begin
      rows_bad_q <= wide_q || product_q != 64'(shape_i[MAX_RANK-2]);
    end
  end

  assign cols_bad = wide_q || product_q != 64'(shape_i[MAX_RANK-1]);
  assign done_o   = state_q == DECIDE;
  assign ok_o     = !words_bad && !rows_bad_q && !cols_bad;
endmodule
