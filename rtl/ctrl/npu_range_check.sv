// SPDX-License-Identifier: Apache-2.0
/// Checks that a whole tensor or window lies in memory; gives a dense tensor its strides on the
/// way, and a window the steps from place to place (npu_axis_t).
///
/// Starts on `start_i`, when the inputs are taken; `done_o` pulses 6 to 15 cycles later with
/// `error_o` (ERROR_MISALIGNED before ERROR_OUT_OF_RANGE) and, if none, the other outputs, which
/// stay. The sum of (size - 1) * stride is formed without wrapping, one dimension after the other,
/// innermost first. A dense tensor that needs a stride of 2^32 elements or more is out of range.
module npu_range_check
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter logic [63:0] MemBase,
  parameter logic [63:0] MemLimit
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        start_i,
  input  view_t       view_i,
  input  logic        window_i,
  input  logic        dense_i,  // ignore view_i's strides, make row-major ones
  input  logic [1:0]  log2_bytes_i,

  output logic        done_o,
  output error_e      error_o,
  output view_t       view_o,
  // Of a window, per dimension: its stride less the way back over the faster ones of its group
  output logic [WINDOW_RANK-1:0][63:0] step_o,
  // Without an error: its first and last byte, counted from MemBase
  output logic [63:0] first_o,
  output logic [63:0] last_o
);
  localparam int unsigned ExtentW = 67;             // 7 products of 64 bits
  localparam int unsigned EndW    = ExtentW + 3 + 2;  // 8-byte elements, plus the base, and a sign
  localparam logic [2:0]  LastDim = 3'(WINDOW_RANK - 1);

  typedef enum logic [1:0] {
    IDLE,
    PRODUCT,  // multiply one dimension, or step over it
    SUM,      // add the product
    VERDICT
  } state_e;

  state_e             state_q, state_d;
  logic [2:0]         dim_q;
  view_t              view_q;
  logic               window_q, dense_q, too_far_q;
  logic [1:0]         log2_bytes_q;
  logic [31:0]        size, stride;
  logic [63:0]        product_q;
  logic [63:0]        dense_stride_q;  // elements within the inner dimensions
  logic [ExtentW-1:0] extent_q;
  logic [EndW-1:0]    offset, last_byte;  // from MemBase; a negative offset is below the memory
  logic [63:0]        group_q;                    // extent of the window's group so far
  logic [WINDOW_RANK-1:0][63:0] step_q;
  logic               step_over, misaligned, outside, outermost, group_end;

  assign size      = view_q.size[dim_q];
  assign stride    = dense_q ? dense_stride_q[31:0] : view_q.stride[dim_q];
  assign step_over = size == 32'd1;
  assign outermost = dim_q == (window_q ? 3'(VIEW_BATCH) : 3'(VIEW_TENSOR));
  assign group_end = dim_q == 3'(VIEW_ROW) || dim_q == 3'(VIEW_COL);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      IDLE:    if (start_i) state_d = PRODUCT;
      PRODUCT: if (!step_over) state_d = SUM;
               else if (outermost) state_d = VERDICT;
      SUM:     state_d = outermost ? VERDICT : PRODUCT;
      VERDICT: state_d = IDLE;
      default: state_d = IDLE;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= IDLE;
    else         state_q <= state_d;
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      IDLE: if (start_i) begin
        view_q         <= view_i;
        window_q       <= window_i;
        dense_q        <= dense_i;
        log2_bytes_q   <= log2_bytes_i;
        dim_q          <= LastDim;
        extent_q       <= '0;
        group_q        <= '0;
        step_q         <= '0;
        dense_stride_q <= 64'd1;
        too_far_q      <= 1'b0;
      end
      PRODUCT: begin
        product_q <= 64'(size - 32'd1) * 64'(stride);
        step_q[dim_q] <= 64'(stride) - group_q;
        if (dense_q) view_q.stride[dim_q] <= step_over ? '0 : stride;
        if (step_over) begin
          dim_q <= dim_q - 3'd1;
          if (group_end) group_q <= '0;
        end else if (dense_q && dense_stride_q[63:32] != '0) too_far_q <= 1'b1;
      end
      SUM: begin
        extent_q       <= extent_q + ExtentW'(product_q);
        group_q        <= group_end ? '0 : group_q + product_q;
        dense_stride_q <= product_q + 64'(stride);  // size * stride
        dim_q          <= dim_q - 3'd1;
      end
      default: ;
    endcase
  end

  // The mask of bytes within an element is (1 << log2_bytes) - 1: 0, 1, 3 or 7.
  logic [2:0] byte_mask;
  assign byte_mask  = 3'((4'd1 << log2_bytes_q) - 4'd1);
  assign offset     = EndW'(view_q.base) - EndW'(MemBase);
  assign last_byte  = offset + (EndW'(extent_q) << log2_bytes_q) + EndW'(byte_mask);
  assign misaligned = (view_q.base[2:0] & byte_mask) != '0;
  assign outside    = offset[EndW-1] || last_byte >= EndW'(MemLimit - MemBase) || too_far_q;

  assign done_o   = state_q == VERDICT;
  assign error_o  = misaligned ? ERROR_MISALIGNED : (outside ? ERROR_OUT_OF_RANGE : ERROR_NONE);
  assign view_o   = view_q;
  assign step_o   = step_q;
  assign first_o  = offset[63:0];
  assign last_o   = last_byte[63:0];
endmodule
