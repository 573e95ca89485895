// SPDX-License-Identifier: Apache-2.0
/// Turns a packet's operands into tensors: reads descriptors, runs every check that concerns an
/// operand.
///
/// `start_i` begins with a packet that has passed npu_cmd_decode and stays stable until `done_o`,
/// which pulses with the first failing check in `error_o`, or ERROR_NONE and the tensors of the
/// operands that the opcode uses, MATMUL's transposes folded in, and `dim_o`, the position of
/// GATHER's and SCATTER's dimension. Order: src1, src2, src3, dst; but a COPY from direct data to a
/// descriptor looks at dst first, because that gives src1 its shape.
///
/// All descriptors are requested first, one per cycle, up to one whose address is illegal; then the
/// operands are checked one after the other as the descriptors arrive. After an error, descriptors
/// that are still on their way are awaited and dropped.
module npu_operand_resolve
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter logic [63:0] MemBase  = 64'h0000_0000,
  parameter logic [63:0] MemLimit = 64'h2000_0000
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        start_i,
  input  packet_t     packet_i,
  output logic        done_o,
  output error_e      error_o,
  output npu_tensor_t src1_o,
  output npu_tensor_t src2_o,
  output npu_tensor_t src3_o,
  output npu_tensor_t dst_o,
  output logic [2:0]  dim_o,

  // Descriptor port of the line reader
  output logic        req_valid_o,
  input  logic        req_ready_i,
  output line_addr_t  req_addr_o,
  input  logic        line_valid_i,
  input  line_t       line_i,
  input  logic        line_err_i
);
  typedef enum logic [2:0] {
    IDLE,
    REQUEST,   // request the descriptors
    SELECT,    // look at the next operand
    RECEIVE,   // wait for its descriptor
    VALIDATE,  // check the descriptor
    RANGE,     // wait for npu_range_check
    DRAIN,     // wait for what is left of the descriptors
    FINISH
  } state_e;

  localparam operand_e    LastStep = OPERAND_DST;
  localparam int unsigned MaxDescs = 4;
  localparam int unsigned CountW   = $clog2(MaxDescs + 1);

  state_e      state_q, state_d;
  operand_e    step_q, which;
  operand_t    operand;
  error_e      error_q, error_d;
  descriptor_t desc_q;
  npu_tensor_t desc_tensor, range_in, range_out, engine_view;
  npu_tensor_t src1_q, src2_q, src3_q, dst_q;
  logic        ref_valid_q;
  logic [2:0]  ref_rank_q, desc_rank;
  shape_t      ref_shape_q;
  logic        desc_ok, desc_legal, desc_inside, range_start, range_done, next_step;
  logic        ask, asked, all_asked, arrived, take, room;
  error_e      range_error, address_error;
  logic [64:0] desc_offset;
  logic        arrived_err;
  line_t       arrived_line;
  logic [CountW-1:0] awaited_q;  // requested, and not yet taken

  npu_operand_select u_select (
    .packet_i,
    .step_i     (step_q),
    .ref_valid_i(ref_valid_q),
    .ref_rank_i (ref_rank_q),
    .ref_shape_i(ref_shape_q),
    .which_o    (which),
    .operand_o  (operand)
  );

  npu_desc_check u_desc_check (
    .desc_i       (desc_q),
    .is_dst_i     (operand.is_dst),
    .dtype_i      (operand.dtype),
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
    .tensor_i    (range_in),
    .dense_i     (!operand.is_desc),
    .log2_bytes_i(operand.log2_bytes),
    .done_o      (range_done),
    .error_o     (range_error),
    .tensor_o    (range_out)
  );

  // Negative, that is, with its top bit set, below the memory.
  assign desc_offset = 65'(operand.addr) - 65'(MemBase);
  assign desc_inside = !desc_offset[64] && desc_offset <= 65'(MemLimit - MemBase) - 65'(LINE_BYTES);

  always_comb begin
    address_error = ERROR_NONE;
    if (operand.addr[5:0] != '0) address_error = ERROR_MISALIGNED;
    else if (!desc_inside)       address_error = ERROR_OUT_OF_RANGE;
  end

  assign desc_legal = address_error == ERROR_NONE;
  assign ask        = state_q == REQUEST && operand.used && operand.is_desc && desc_legal;
  assign asked      = ask && req_ready_i;
  // No operand behind an illegal descriptor address is looked at.
  assign all_asked  = step_q == LastStep || (operand.used && operand.is_desc && !desc_legal);

  npu_fifo #(.Width(LINE_BITS + 1), .Depth(MaxDescs)) u_descs (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(line_valid_i), .in_ready_o(room), .in_data_i({line_err_i, line_i}),
    .out_valid_o(arrived), .out_ready_i(take), .out_data_o({arrived_err, arrived_line}),
    .count_o()
  );

  assign take = arrived && (state_q == RECEIVE || state_q == DRAIN);

  always_ff @(posedge clk_i) begin
    if (!rst_ni)            awaited_q <= '0;
    else if (asked != take) awaited_q <= asked ? awaited_q + CountW'(1) : awaited_q - CountW'(1);
  end

  always_comb begin
    range_in = desc_tensor;
    if (!operand.is_desc) begin
      range_in.base   = operand.addr;
      range_in.size   = operand.shape;
      range_in.stride = '0;
    end
  end

  always_comb begin
    state_d     = state_q;
    error_d     = error_q;
    range_start = 1'b0;
    next_step   = 1'b0;
    unique case (state_q)
      IDLE: if (start_i) state_d = REQUEST;
      REQUEST: if ((!ask || req_ready_i) && all_asked) state_d = SELECT;
      SELECT: begin
        if (!operand.used) begin
          next_step = 1'b1;
        end else if (!operand.is_desc) begin
          range_start = 1'b1;
          state_d     = RANGE;
        end else begin
          state_d = RECEIVE;
          error_d = address_error;
        end
      end
      RECEIVE: if (arrived) begin
        state_d = VALIDATE;
        if (arrived_err) error_d = ERROR_BUS_READ;
      end
      VALIDATE: begin
        range_start = desc_ok;
        state_d     = RANGE;
        if (!desc_ok) error_d = ERROR_BAD_DESCRIPTOR;
      end
      RANGE: if (range_done) begin
        next_step = 1'b1;
        error_d   = range_error;
      end
      DRAIN: if (awaited_q == '0) state_d = FINISH;
      FINISH: begin
        state_d = IDLE;
        error_d = ERROR_NONE;
      end
      default: state_d = IDLE;
    endcase
    if (next_step) state_d = (step_q == LastStep) ? FINISH : SELECT;
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
      step_q <= OPERAND_SRC1;
    end else if (state_q == REQUEST) begin
      if (state_d == SELECT)        step_q <= OPERAND_SRC1;
      else if (!ask || req_ready_i) step_q <= operand_e'(step_q + 2'd1);
    end else if (next_step) begin
      step_q <= operand_e'(step_q + 2'd1);
    end
    if (take) desc_q <= arrived_line;
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

  always_comb begin
    engine_view = range_out;
    if (operand.transposed) begin
      engine_view.size[DIM_ROW]   = range_out.size[DIM_COL];
      engine_view.size[DIM_COL]   = range_out.size[DIM_ROW];
      engine_view.stride[DIM_ROW] = range_out.stride[DIM_COL];
      engine_view.stride[DIM_COL] = range_out.stride[DIM_ROW];
    end
  end

  always_ff @(posedge clk_i) begin
    if (range_done) begin
      unique case (which)
        OPERAND_SRC1: src1_q <= engine_view;
        OPERAND_SRC2: src2_q <= engine_view;
        OPERAND_SRC3: src3_q <= engine_view;
        default:      dst_q  <= engine_view;
      endcase
    end
  end

  assign req_valid_o = ask;
  assign req_addr_o  = operand.addr[63:6];
  assign done_o      = state_q == FINISH;
  assign error_o     = error_q;
  assign src1_o      = src1_q;
  assign src2_o      = src2_q;
  assign src3_o      = src3_q;
  assign dst_o       = dst_q;
  assign dim_o       = tensor_dim(operand.dim, ref_rank_q);

  DescriptorHasRoom: assert property (@(posedge clk_i) disable iff (!rst_ni)
      line_valid_i |-> room && awaited_q != '0)
    else $error("npu_operand_resolve: a descriptor that was not requested");
endmodule
