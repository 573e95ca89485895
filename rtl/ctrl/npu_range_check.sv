// SPDX-License-Identifier: Apache-2.0
/// Checks that a whole tensor lies in memory; gives a dense tensor its strides on the way.
///
/// Starts on `start_i`, when the inputs are taken; `done_o` pulses 2 to 12 cycles later with
/// `error_o` (ERROR_MISALIGNED before ERROR_OUT_OF_RANGE) and, if none, `tensor_o`, which stays.
/// The sum of (size - 1) * stride is formed without wrapping, one dimension after the other,
/// innermost first. A dense tensor that needs a stride of 2^32 elements or more is out of range.
module npu_range_check
  import npu_isa_pkg::*;
  import npu_pkg::*;
#(
  parameter logic [63:0] MemBase  = 64'h0000_0000,
  parameter logic [63:0] MemLimit = 64'h2000_0000
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        start_i,
  input  npu_tensor_t tensor_i,
  input  logic        dense_i,  // ignore tensor_i's strides, make row-major ones
  input  logic [1:0]  log2_bytes_i,

  output logic        done_o,
  output error_e      error_o,
  output npu_tensor_t tensor_o
);
  localparam int unsigned ExtentW = 67;             // 5 products of 64 bits
  localparam int unsigned EndW    = ExtentW + 3 + 2;  // 8-byte elements, plus the base, and a sign
  localparam logic [2:0]  LastDim = 3'(MAX_RANK - 1);

  typedef enum logic [1:0] {
    IDLE,
    PRODUCT,  // multiply one dimension, or step over it
    SUM,      // add the product
    VERDICT
  } state_e;

  state_e             state_q, state_d;
  logic [2:0]         dim_q;
  npu_tensor_t        tensor_q;
  logic               dense_q, too_far_q;
  logic [1:0]         log2_bytes_q;
  logic [31:0]        size, stride;
  logic [63:0]        product_q;
  logic [63:0]        dense_stride_q;  // elements within the inner dimensions
  logic [ExtentW-1:0] extent_q;
  logic [EndW-1:0]    offset, last_byte;  // from MemBase; a negative offset is below the memory
  logic               step_over, misaligned, outside;

  assign size      = tensor_q.size[dim_q];
  assign stride    = dense_q ? dense_stride_q[31:0] : tensor_q.stride[dim_q];
  assign step_over = size == 32'd1;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      IDLE:    if (start_i) state_d = PRODUCT;
      PRODUCT: if (!step_over) state_d = SUM;
               else if (dim_q == '0) state_d = VERDICT;
      SUM:     state_d = (dim_q == '0) ? VERDICT : PRODUCT;
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
        tensor_q       <= tensor_i;
        dense_q        <= dense_i;
        log2_bytes_q   <= log2_bytes_i;
        dim_q          <= LastDim;
        extent_q       <= '0;
        dense_stride_q <= 64'd1;
        too_far_q      <= 1'b0;
      end
      PRODUCT: begin
        product_q <= 64'(size - 32'd1) * 64'(stride);
        if (dense_q) tensor_q.stride[dim_q] <= step_over ? '0 : stride;
        if (step_over) dim_q <= dim_q - 3'd1;
        else if (dense_q && dense_stride_q[63:32] != '0) too_far_q <= 1'b1;
      end
      SUM: begin
        extent_q       <= extent_q + ExtentW'(product_q);
        dense_stride_q <= product_q + 64'(stride);  // size * stride
        dim_q          <= dim_q - 3'd1;
      end
      default: ;
    endcase
  end

  // The mask of bytes within an element is (1 << log2_bytes) - 1: 0, 1, 3 or 7.
  logic [2:0] byte_mask;
  assign byte_mask  = 3'((4'd1 << log2_bytes_q) - 4'd1);
  assign offset     = EndW'(tensor_q.base) - EndW'(MemBase);
  assign last_byte  = offset + (EndW'(extent_q) << log2_bytes_q) + EndW'(byte_mask);
  assign misaligned = (tensor_q.base[2:0] & byte_mask) != '0;
  assign outside    = offset[EndW-1] || last_byte >= EndW'(MemLimit - MemBase) || too_far_q;

  assign done_o   = state_q == VERDICT;
  assign error_o  = misaligned ? ERROR_MISALIGNED : (outside ? ERROR_OUT_OF_RANGE : ERROR_NONE);
  assign tensor_o = tensor_q;
endmodule
