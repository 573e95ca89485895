// SPDX-License-Identifier: Apache-2.0
/// Makes of each operand that has passed its checks what the engines take, and keeps it.
///
/// With `take_i` the operand `which_i` is kept: for MATMUL as a window, with its rows and columns
/// exchanged if `transposed_i`, otherwise as the tensor in the view's innermost dimensions.
/// `view_i` and its `step_i` are those of npu_range_check. `is_window_i`: the view comes from a
/// window's two lines; otherwise rows and columns have one digit each. `dtypes_o` are the types
/// that the descriptors state, and mean nothing for an operand without one. Outputs stay until the
/// operand of their name is taken again.
module npu_operand_views
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic         clk_i,

  input  logic         take_i,
  input  cmd_operand_e which_i,
  input  logic         is_matmul_i,
  input  logic         is_window_i,
  input  logic         transposed_i,
  input  dtype_e       dtype_i,
  input  view_t        view_i,
  input  logic [WINDOW_RANK-1:0][63:0] step_i,

  output npu_tensor_t  src1_o,
  output npu_tensor_t  src2_o,
  output npu_tensor_t  src3_o,
  output npu_tensor_t  src4_o,
  output npu_tensor_t  dst_o,
  output npu_tensor_t  dst2_o,
  output npu_tensor_t  dst3_o,
  output dtype_e       dtypes_o [CMD_OPERANDS],
  output npu_window_t  src1_window_o,
  output npu_window_t  src2_window_o,
  output npu_window_t  src3_window_o,
  output npu_window_t  dst_window_o
);
  npu_tensor_t tensor, src1_q, src2_q, src3_q, src4_q, dst_q, dst2_q, dst3_q;
  npu_window_t window, src1_window_q, src2_window_q, src3_window_q, dst_window_q;
  dtype_e      dtype_q [CMD_OPERANDS];

  // Rows or columns of one dimension.
  function automatic npu_axis_t one_digit(logic [31:0] size, logic [31:0] stride);
    return '{inner: size, middle: 32'd1, step: 192'(stride)};
  endfunction

  function automatic npu_axis_t three_digits(view_t view, logic [WINDOW_RANK-1:0][63:0] step,
                                             int unsigned group);
    return '{inner: view.size[group+2], middle: view.size[group+1],
             step: {step[group], step[group+1], step[group+2]}};
  endfunction

  assign tensor = '{
    base: view_i.base, size: view_i.size[WINDOW_RANK-1:VIEW_TENSOR],
    stride: view_i.stride[WINDOW_RANK-1:VIEW_TENSOR]
  };

  // A descriptor or dense data is a window with two digits of size 1.
  always_comb begin
    window.base = view_i.base;
    if (is_window_i) begin
      window.batch = view_i.stride[VIEW_BATCH];
      window.row   = three_digits(view_i, step_i, VIEW_ROW);
      window.col   = three_digits(view_i, step_i, VIEW_COL);
    end else begin
      window.batch = tensor.stride[DIM_BATCH];
      window.row   = one_digit(tensor.size[DIM_ROW], tensor.stride[DIM_ROW]);
      window.col   = one_digit(tensor.size[DIM_COL], tensor.stride[DIM_COL]);
      if (transposed_i) {window.row, window.col} = {window.col, window.row};
    end
  end

  always_ff @(posedge clk_i) begin
    if (take_i && is_matmul_i) begin
      unique case (which_i)
        CMD_SRC1: src1_window_q <= window;
        CMD_SRC2: src2_window_q <= window;
        CMD_SRC3: src3_window_q <= window;
        default:  dst_window_q  <= window;
      endcase
    end else if (take_i) begin
      unique case (which_i)
        CMD_SRC1: src1_q <= tensor;
        CMD_SRC2: src2_q <= tensor;
        CMD_SRC3: src3_q <= tensor;
        CMD_SRC4: src4_q <= tensor;
        CMD_DST2: dst2_q <= tensor;
        CMD_DST3: dst3_q <= tensor;
        default:  dst_q  <= tensor;
      endcase
      dtype_q[which_i] <= dtype_i;
    end
  end

  assign {src1_o, src2_o, src3_o, src4_o} = {src1_q, src2_q, src3_q, src4_q};
  assign {dst_o, dst2_o, dst3_o}          = {dst_q, dst2_q, dst3_q};
  assign dtypes_o                         = dtype_q;
  assign {src1_window_o, src2_window_o}   = {src1_window_q, src2_window_q};
  assign {src3_window_o, dst_window_o}    = {src3_window_q, dst_window_q};
endmodule
