// SPDX-License-Identifier: Apache-2.0
/// Turns a packet's operands into tensors: reads descriptors, runs every check that concerns an
/// operand.
///
/// `start_i` begins with a packet that has passed npu_cmd_decode and stays stable until `done_o`,
/// which pulses with the first failing check in `error_o`, or ERROR_NONE and the tensors of the
/// operands that the opcode uses, or for MATMUL its windows, transposes folded in, and `dim_o`, the
/// position of GATHER's and SCATTER's dimension. Before that, `span_valid_o` pulses once per
/// operand with the bytes that it lies in. Order: src1 to src4, dst to dst3; but a COPY from
/// direct data to a descriptor looks at dst first, because that gives src1 its shape. `dtypes_o`
/// are the types that the descriptors of an operand list state.
///
/// All descriptors are requested first, one per cycle, up to one whose address is illegal; then the
/// operands are checked one after the other as the descriptors arrive. The second line of a window
/// is requested when its first one arrives. After an error, lines that are still on their way are
/// awaited and dropped.
module npu_operand_resolve
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
  input  packet_t     packet_i,
  input  program_info_t prog_i,  // of a VECTOR; stable like packet_i
  output logic        done_o,
  output error_e      error_o,
  output npu_tensor_t src1_o,
  output npu_tensor_t src2_o,
  output npu_tensor_t src3_o,
  output npu_tensor_t src4_o,
  output npu_tensor_t dst_o,
  output npu_tensor_t dst2_o,
  output npu_tensor_t dst3_o,
  output dtype_e      dtypes_o [CMD_OPERANDS],
  output npu_window_t src1_window_o,
  output npu_window_t src2_window_o,
  output npu_window_t src3_window_o,
  output npu_window_t dst_window_o,
  output logic [2:0]  dim_o,
  output logic        span_valid_o,  // an operand has passed its checks
  output span_t       span_o,

  // Descriptor port of the line reader
  output logic        req_valid_o,
  input  logic        req_ready_i,
  output line_addr_t  req_addr_o,
  input  logic        line_valid_i,
  input  line_t       line_i,
  input  logic        line_err_i
);
  typedef enum logic [3:0] {
    IDLE,
    REQUEST,   // request the descriptors
    SELECT,    // look at the next operand
    RECEIVE,   // wait for its descriptor
    VALIDATE,  // check the descriptor
    EXTEND,    // wait for the second line of a window
    WINDOW,    // wait for npu_window_check
    RANGE,     // wait for npu_range_check
    DRAIN,     // wait for what is left of the descriptors
    FINISH
  } state_e;

  localparam int unsigned MaxDescs = CMD_OPERANDS + 1;

  state_e      state_q, state_d;
  cmd_operand_e step_q, which, first_step, next_operand;
  logic [CMD_OPERANDS-1:0] used;
  logic [1:0]  log2_bytes;
  logic        last_step, misaligned_line;
  operand_t    operand;
  error_e      error_q, error_d;
  line_t       desc_q, extension_q;
  window_t     window;
  view_t       range_in, range_out;
  npu_tensor_t desc_tensor;
  logic [WINDOW_RANK-1:0][63:0] range_step;
  logic        ref_valid_q;
  logic [2:0]  ref_rank_q, desc_rank;
  shape_t      ref_shape_q;
  logic        desc_ok, desc_legal, range_start, range_done, next_step;
  logic        ask, asked, all_asked, arrived, take, awaited;
  logic        is_matmul, is_window, window_start, window_done, window_ok, window_q;
  logic        extend, extension_arrived, take_extension, extension_err, window_started_q;
  line_addr_t  extend_addr;
  line_t       arrived_extension;
  error_e      range_error, address_error;
  logic        arrived_err;
  line_t       arrived_line;

  npu_operand_select u_select (
    .packet_i,
    .prog_i,
    .step_i     (step_q),
    .ref_valid_i(ref_valid_q),
    .ref_rank_i (ref_rank_q),
    .ref_shape_i(ref_shape_q),
    .used_o     (used),
    .which_o    (which),
    .operand_o  (operand)
  );

  npu_desc_check u_desc_check (
    .desc_i       (descriptor_t'(desc_q)),
    .is_dst_i     (operand.is_dst),
    .dtype_i      (operand.dtype),
    .own_dtype_i  (operand.own_dtype),
    .shape_known_i(operand.shape_known),
    .rank_i       (operand.rank),
    .shape_i      (operand.shape),
    .has_dim_i    (operand.has_dim),
    .free_dim_i   (operand.free_dim),
    .dim_i        (operand.dim),
    .ok_o         (desc_ok),
    .rank_o       (desc_rank),
    .tensor_o     (desc_tensor)
  );

  npu_range_check #(
    .MemBase (MemBase),
    .MemLimit(MemLimit)
  ) u_range_check (
    .clk_i,
    .rst_ni,
    .start_i     (range_start),
    .view_i      (range_in),
    .window_i    (window_q),
    .dense_i     (!operand.is_desc),
    .log2_bytes_i(log2_bytes),
    .done_o      (range_done),
    .error_o     (range_error),
    .view_o      (range_out),
    .step_o      (range_step),
    .first_o     (span_o.first),
    .last_o      (span_o.last)
  );

  npu_window_check u_window_check (
    .clk_i,
    .rst_ni,
    .start_i     (window_start),
    .window_i    (window),
    .is_dst_i    (operand.is_dst),
    .transposed_i(operand.transposed),
    .dtype_i     (operand.dtype),
    .shape_i     (operand.shape),
    .done_o      (window_done),
    .ok_o        (window_ok)
  );

  always_comb begin
    address_error = ERROR_NONE;
    if (operand.addr[5:0] != '0) address_error = ERROR_MISALIGNED;
    else if (!line_inside(operand.addr[63:6], MemBase, MemLimit)) begin
      address_error = ERROR_OUT_OF_RANGE;
    end
  end

  // Steps without an operand are passed over.
  always_comb begin
    first_step   = CMD_DST;
    next_operand = CMD_DST;
    last_step    = 1'b1;
    for (int s = CMD_OPERANDS - 1; s >= 0; s--) begin
      if (used[s]) begin
        first_step = cmd_operand_e'(3'(s));
        if (3'(s) > step_q) begin
          next_operand = cmd_operand_e'(3'(s));
          last_step    = 1'b0;
        end
      end
    end
  end

  assign log2_bytes = operand.own_dtype ? dtype_log2_bytes(window.dtype[3:0]) : operand.log2_bytes;

  assign desc_legal = address_error == ERROR_NONE;
  assign ask        = state_q == REQUEST && operand.is_desc && desc_legal;
  assign asked      = ask && req_ready_i;
  // No operand behind an illegal descriptor address is looked at.
  assign all_asked  = last_step || (operand.is_desc && !desc_legal);
  assign misaligned_line = operand.is_line && operand.addr[5:0] != '0;

  npu_desc_lines #(.MaxDescs(MaxDescs), .MemBase(MemBase), .MemLimit(MemLimit)) u_lines (
    .clk_i, .rst_ni,
    .asked_i(asked), .asked_addr_i(operand.addr[63:6]), .windows_i(is_matmul),
    .ask_i(state_q != REQUEST), .drop_i(state_q == DRAIN),
    .req_valid_o(extend), .req_ready_i, .req_addr_o(extend_addr),
    .line_valid_i, .line_i, .line_err_i,
    .first_valid_o(arrived), .first_ready_i(take), .first_o(arrived_line),
    .first_err_o(arrived_err),
    .second_valid_o(extension_arrived), .second_ready_i(take_extension),
    .second_o(arrived_extension), .second_err_o(extension_err),
    .awaited_o(awaited)
  );

  assign is_matmul      = packet_i.opcode == OPCODE_MATMUL;
  assign take           = arrived && (state_q == RECEIVE || state_q == DRAIN);
  assign take_extension = extension_arrived &&
                          (state_q == EXTEND || (state_q == DRAIN && !arrived));

  assign window    = {extension_q, desc_q};
  assign is_window = is_matmul && line_is_window(desc_q);

  always_comb begin
    range_in.base = window.base;
    for (int unsigned i = 0; i < WINDOW_RANK; i++) begin
      range_in.size[i]   = window.size[i];
      range_in.stride[i] = window.stride[i];
    end
    if (!window_q) begin
      range_in.base   = operand.is_desc ? desc_tensor.base : operand.addr;
      range_in.size   = {WINDOW_RANK{32'd1}};
      range_in.stride = '0;
      range_in.size[WINDOW_RANK-1:VIEW_TENSOR]   = operand.is_desc ? desc_tensor.size
                                                                   : operand.shape;
      range_in.stride[WINDOW_RANK-1:VIEW_TENSOR] = operand.is_desc ? desc_tensor.stride : '0;
    end
  end

  always_comb begin
    state_d     = state_q;
    error_d     = error_q;
    range_start = 1'b0;
    next_step   = 1'b0;
    window_start = 1'b0;
    unique case (state_q)
      IDLE: if (start_i) state_d = REQUEST;
      REQUEST: if ((!ask || req_ready_i) && all_asked) state_d = SELECT;
      SELECT: begin
        if (!operand.is_desc) begin
          range_start = !misaligned_line;
          state_d     = RANGE;
          if (misaligned_line) error_d = ERROR_MISALIGNED;
        end else begin
          state_d = RECEIVE;
          error_d = address_error;
        end
      end
      RECEIVE: if (arrived) begin
        state_d = VALIDATE;
        if (arrived_err) error_d = ERROR_BUS_READ;
      end
      VALIDATE: if (is_window) begin
        state_d = EXTEND;
        if (!line_inside(line_behind(operand.addr[63:6]), MemBase, MemLimit)) begin
          error_d = ERROR_OUT_OF_RANGE;
        end
      end else begin
        range_start = desc_ok;
        state_d     = RANGE;
        if (!desc_ok) error_d = ERROR_BAD_DESCRIPTOR;
      end
      EXTEND: if (extension_arrived) begin
        state_d = WINDOW;
        if (extension_err) error_d = ERROR_BUS_READ;
      end
      WINDOW: begin
        window_start = !window_started_q;
        if (window_done) begin
          range_start = window_ok;
          state_d     = RANGE;
          if (!window_ok) error_d = ERROR_BAD_DESCRIPTOR;
        end
      end
      RANGE: if (range_done) begin
        next_step = 1'b1;
        error_d   = range_error;
      end
      DRAIN: if (!awaited) state_d = FINISH;
      FINISH: begin
        state_d = IDLE;
        error_d = ERROR_NONE;
      end
      default: state_d = IDLE;
    endcase
    if (next_step) state_d = last_step ? FINISH : SELECT;
    if (error_q == ERROR_NONE && error_d != ERROR_NONE) state_d = DRAIN;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
      error_q <= ERROR_NONE;
    end else begin
      state_q <= state_d;
      error_q <= error_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      step_q <= first_step;
    end else if (state_q == REQUEST) begin
      if (state_d == SELECT)        step_q <= first_step;
      else if (!ask || req_ready_i) step_q <= next_operand;
    end else if (next_step) begin
      step_q <= next_operand;
    end
    if (take) desc_q <= arrived_line;
    if (take_extension) extension_q <= arrived_extension;
  end

  always_ff @(posedge clk_i) begin
    window_started_q <= state_q == WINDOW;
    // The operand at hand is a window.
    if (start_i || next_step)     window_q <= 1'b0;
    else if (state_q == VALIDATE) window_q <= is_window;
  end

  // What the next operand's shape is compared with.
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      ref_valid_q <= 1'b0;
    end else if (state_q == VALIDATE) begin
      ref_valid_q <= 1'b1;
      ref_rank_q  <= desc_rank;
      ref_shape_q <= desc_tensor.size;
    end
  end

  npu_operand_views u_views (
    .clk_i,
    .take_i      (range_done),
    .which_i     (which),
    .is_matmul_i (is_matmul),
    .is_window_i (window_q),
    .transposed_i(operand.transposed),
    .dtype_i     (dtype_e'(window.dtype[3:0])),
    .view_i      (range_out),
    .step_i      (range_step),
    .src1_o, .src2_o, .src3_o, .src4_o, .dst_o, .dst2_o, .dst3_o, .dtypes_o,
    .src1_window_o, .src2_window_o, .src3_window_o, .dst_window_o
  );

  assign req_valid_o  = ask || extend;
  assign req_addr_o   = ask ? operand.addr[63:6] : extend_addr;
  assign span_valid_o = range_done && range_error == ERROR_NONE;
  assign span_o.write = operand.is_dst;
  assign done_o       = state_q == FINISH;
  assign error_o      = error_q;
  assign dim_o        = tensor_dim(operand.dim, ref_rank_q);
endmodule
