// SPDX-License-Identifier: Apache-2.0
/// What a packet says of one of its operands: where it is, of which type, of which shape.
///
/// Combinational; the packet must have passed npu_cmd_decode. Step SRC1, SRC2, DST is that
/// operand's turn, except for a COPY from direct data to a descriptor, where dst comes first.
/// `ref_*_i` is the shape of COPY's other operand, for the second of the two to be looked at
/// (`ref_valid_i`).
module npu_operand_select
  import npu_isa_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  packet_t    packet_i,
  input  operand_e   step_i,
  input  logic       ref_valid_i,
  input  logic [2:0] ref_rank_i,
  input  shape_t     ref_shape_i,
  output operand_e   which_o,
  output operand_t   operand_o
);
  localparam logic [31:0] One = 32'd1;

  flags_t      flags;
  usage_t      usage;
  logic        unused_flags, unused_usage;
  logic [31:0] m, k, n, rows, cols;

  // The members that do not concern an operand have been checked before.
  assign flags        = packet_i.flags;
  assign usage        = opcode_usage(packet_i.opcode);
  assign unused_flags = ^flags;
  assign unused_usage = ^usage;

  assign m = packet_i.param[MATMUL_M];
  assign k = packet_i.param[MATMUL_K];
  assign n = packet_i.param[MATMUL_N];

  // Whose turn it is.
  always_comb begin
    which_o = step_i;
    if (packet_i.opcode == OPCODE_COPY && !flags.src1_desc && flags.dst_desc) begin
      if (step_i == OPERAND_SRC1) which_o = OPERAND_DST;
      if (step_i == OPERAND_DST)  which_o = OPERAND_SRC1;
    end
  end

  // MATMUL's operand as it lies in memory.
  always_comb begin
    unique case (which_o)
      OPERAND_SRC1: {cols, rows} = flags.trans_a ? {m, k} : {k, m};
      OPERAND_SRC2: {cols, rows} = flags.trans_b ? {k, n} : {n, k};
      default:      {cols, rows} = {n, m};
    endcase
  end

  // Which operand: address, type, descriptor or not.
  always_comb begin
    operand_o         = '0;
    operand_o.is_dst  = which_o == OPERAND_DST;
    operand_o.dtype   = flags.src_dtype;
    unique case (which_o)
      OPERAND_SRC1: begin
        operand_o.used       = usage.src1;
        operand_o.is_desc    = flags.src1_desc;
        operand_o.addr       = packet_i.src1;
        operand_o.transposed = flags.trans_a;
      end
      OPERAND_SRC2: begin
        operand_o.used       = usage.src2;
        operand_o.is_desc    = flags.src2_desc;
        operand_o.addr       = packet_i.src2;
        operand_o.transposed = flags.trans_b;
      end
      default: begin
        operand_o.used    = usage.dst;
        operand_o.is_desc = flags.dst_desc;
        operand_o.addr    = packet_i.dst;
        operand_o.dtype   = flags.dst_dtype;
      end
    endcase
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
      OPCODE_FILL: begin
        operand_o.shape_known = 1'b0;
        operand_o.shape       = {packet_i.param[FILL_COUNT], One, One, One, One};
      end
      OPCODE_SYNC: operand_o.log2_bytes = dtype_log2_bytes(DTYPE_INT32);  // writes one u32
      default: ;
    endcase
  end
endmodule
