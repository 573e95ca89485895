// SPDX-License-Identifier: Apache-2.0
/// What a packet says of one of its operands: where it is, of which type, of which shape.
///
/// Combinational; the packet must have passed npu_cmd_decode, with `prog_i` as the program of a
/// VECTOR. Each step selects the operand of its name, except for a COPY from direct data to a
/// descriptor, where dst comes first; `used_o` has a bit for every step that has an operand.
/// `ref_*_i` is the shape of the descriptor that was looked at before this one, if any
/// (`ref_valid_i`): COPY's other operand, VECTOR's source before this operand, GATHER's and
/// SCATTER's src1 for src2 and src2 for dst.
module npu_operand_select
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  packet_t                 packet_i,
  input  program_info_t           prog_i,
  input  cmd_operand_e            step_i,
  input  logic                    ref_valid_i,
  input  logic [2:0]              ref_rank_i,
  input  shape_t                  ref_shape_i,
  output logic [CMD_OPERANDS-1:0] used_o,
  output cmd_operand_e            which_o,
  output operand_t                operand_o
);
  localparam logic [31:0] One = 32'd1;

  flags_t      flags;
  usage_t      usage;
  logic        unused_flags, unused_usage, unused_prog, is_vector, listed;
  logic [2:0]  place;  // in VECTOR's operand list
  logic [31:0] m, k, n, rows, cols, b_rows;
  logic        int4;

  // The members that do not concern an operand have been checked before.
  assign flags        = packet_i.flags;
  assign usage        = opcode_usage(packet_i.opcode);
  assign is_vector    = packet_i.opcode == OPCODE_VECTOR;
  assign unused_flags = ^flags;
  assign unused_usage = ^usage;
  assign unused_prog  = ^prog_i;
  assign listed       = is_vector && flags.operand_list;

  assign m = packet_i.param[MATMUL_M];
  assign k = packet_i.param[MATMUL_K];
  assign n = packet_i.param[MATMUL_N];

  // Rows of 2^shift that hold so many rows.
  function automatic logic [31:0] rounded_up(logic [31:0] rows_of_one, logic [3:0] shift);
    return 32'((33'(rows_of_one) + (33'd1 << shift) - 33'd1) >> shift);
  endfunction
  assign int4   = flags.int4_group != '0;
  assign b_rows = int4 ? rounded_up(k, 4'($clog2(INT4_ROWS))) : k;

  // Which steps have an operand.
  always_comb begin
    used_o = '0;
    if (is_vector) begin
      for (int unsigned s = 0; s < MAX_SOURCES; s++) begin
        used_o[32'(CMD_SRC1) + s] = s < 32'(prog_i.sources);
      end
      for (int unsigned r = 0; r < MAX_RESULTS; r++) begin
        used_o[32'(CMD_DST) + r] = r < 32'(prog_i.results);
      end
    end else begin
      used_o[CMD_SRC1] = usage.src1;
      used_o[CMD_SRC2] = usage.src2;
      used_o[CMD_SRC3] = flags.src3_desc || int4;  // MATMUL: where its sums start, or scales
      used_o[CMD_DST]  = usage.dst;
    end
  end

  assign place = (step_i >= CMD_DST) ? 3'(step_i - CMD_DST) + prog_i.sources : step_i;

  // The operand of this step.
  always_comb begin
    which_o = step_i;
    if (packet_i.opcode == OPCODE_COPY && !flags.src1_desc && flags.dst_desc) begin
      if (step_i == CMD_SRC1) which_o = CMD_DST;
      if (step_i == CMD_DST)  which_o = CMD_SRC1;
    end
  end

  // MATMUL's operand as it lies in memory.
  always_comb begin
    unique case (which_o)
      CMD_SRC1: {cols, rows} = flags.trans_a ? {m, k} : {k, m};
      CMD_SRC2: {cols, rows} = flags.trans_b ? {b_rows, n} : {n, b_rows};
      CMD_SRC3: {cols, rows} = {n, int4 ? rounded_up(k, flags.int4_group) : m};
      default:      {cols, rows} = {n, m};
    endcase
  end

  // Which operand: address, type, descriptor or not.
  always_comb begin
    operand_o         = '0;
    operand_o.is_dst  = which_o >= CMD_DST;
    operand_o.dtype   = flags.src_dtype;
    unique case (which_o)
      CMD_SRC1: begin
        operand_o.is_desc    = flags.src1_desc;
        operand_o.addr       = packet_i.src1;
        operand_o.transposed = flags.trans_a;
      end
      CMD_SRC2: begin
        operand_o.is_desc    = flags.src2_desc;
        operand_o.addr       = packet_i.src2;
        operand_o.transposed = flags.trans_b;
        if (packet_i.opcode != OPCODE_MATMUL) operand_o.dtype = flags.src2_dtype;
        else if (int4)                        operand_o.dtype = DTYPE_INT32;
      end
      CMD_SRC3: begin
        operand_o.is_desc = flags.src3_desc;
        operand_o.addr    = {packet_i.param[VECTOR_SRC3_HIGH], packet_i.param[VECTOR_SRC3_LOW]};
        operand_o.dtype   = is_vector ? flags.src3_dtype
                                      : int4 ? flags.src_dtype : flags.dst_dtype;
      end
      default: begin
        operand_o.is_desc = flags.dst_desc;
        operand_o.addr    = packet_i.dst;
        operand_o.dtype   = flags.dst_dtype;
      end
    endcase
    if (listed) begin
      operand_o.is_desc   = 1'b1;
      operand_o.own_dtype = 1'b1;
      operand_o.addr      = packet_i.src1 + {55'd0, place, 6'd0};
    end
    operand_o.log2_bytes = dtype_log2_bytes(operand_o.dtype);

    // Its shape, as far as the packet or the other operand gives it.
    operand_o.shape_known = 1'b1;
    operand_o.rank        = 3'd1;
    operand_o.shape       = {One, One, One, One, One};
    unique case (packet_i.opcode)
      OPCODE_MATMUL: begin
        operand_o.rank  = 3'd3;
        operand_o.shape = {cols, rows, packet_i.param[MATMUL_BATCH], One, One};
      end
      OPCODE_COPY: begin
        operand_o.shape_known       = ref_valid_i;
        operand_o.rank              = ref_rank_i;
        operand_o.shape             = ref_shape_i;
        if (!flags.src1_desc && !flags.dst_desc) begin
          operand_o.shape = {packet_i.param[COPY_COUNT], One, One, One, One};
        end
      end
      OPCODE_VECTOR: begin
        operand_o.shape_known = ref_valid_i;
        operand_o.rank        = ref_rank_i;
        operand_o.shape       = ref_shape_i;
        if (packet_i.param[VECTOR_COUNT] != '0) begin
          operand_o.shape = {packet_i.param[VECTOR_COUNT], One, One, One, One};
        end else if (which_o == CMD_DST && prog_i.reduce != REDUCE_NONE) begin
          operand_o.shape[MAX_RANK-1] = One;
        end
      end
      OPCODE_GATHER, OPCODE_SCATTER: begin
        operand_o.shape_known = ref_valid_i;
        operand_o.rank        = ref_rank_i;
        operand_o.shape       = ref_shape_i;
        operand_o.has_dim     = 1'b1;
        operand_o.dim         = packet_i.param[GATHER_DIM][2:0];
        // The table is GATHER's src1 and SCATTER's dst; src2 and the other operand agree.
        operand_o.free_dim    = which_o
                              == (packet_i.opcode == OPCODE_GATHER ? CMD_SRC2 : CMD_DST);
      end
      OPCODE_FILL: begin
        operand_o.shape_known = 1'b0;
        operand_o.shape       = {packet_i.param[FILL_COUNT], One, One, One, One};
      end
      OPCODE_LOAD: begin
        operand_o.is_line    = 1'b1;
        operand_o.log2_bytes = '0;
        operand_o.shape      = {32'(LINE_BYTES) * packet_i.param[LOAD_LINES], One, One, One, One};
      end
      OPCODE_SYNC: operand_o.log2_bytes = dtype_log2_bytes(DTYPE_INT32);  // writes one u32
      default: ;
    endcase
  end
endmodule
