// SPDX-License-Identifier: Apache-2.0
/// The checks that a packet's own words decide: opcode, reserved bits, data types, parameters.
///
/// Combinational. `error_o` is the first failing check in that order, or ERROR_NONE.
module npu_cmd_decode
  import npu_isa_pkg::*;
  import npu_vector_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  packet_t packet_i,
  output error_e  error_o
);
  usage_t   usage;
  flags_t   flags;
  program_t prog;
  logic     unused_flags, unused_prog;
  logic     unused_param, reserved_bad, value_bad, source_bad, init_bad, dtype_bad, param_bad;
  logic     move_by_count;  // no operand is a descriptor: the packet gives the element count
  logic     prog_known, all_desc, any_desc, vector_bad, indexed_bad;
  logic [MAX_SOURCES-1:0] present;  // sources that VECTOR's program has

  assign usage = opcode_usage(packet_i.opcode);
  assign flags = packet_i.flags;
  assign prog  = vector_program(packet_i.param[VECTOR_PROGRAM]);
  assign unused_flags = ^flags;  // the word as a whole is checked against the opcode's mask
  assign unused_prog  = ^prog;   // where the program lies concerns the engine

  assign prog_known = packet_i.param[VECTOR_PROGRAM] < PROGRAM_COUNT;
  assign present    = {prog.sources > 2'd2, prog.sources > 2'd1, prog.sources > 2'd0};

  always_comb begin
    unused_param = 1'b0;
    for (int unsigned i = 0; i < PARAM_COUNT; i++) begin
      if (!usage.params[i] && packet_i.param[i] != '0) unused_param = 1'b1;
    end
  end

  // FILL's value must fit the element type, if that type exists.
  always_comb begin
    unique case (dtype_log2_bytes(flags.dst_dtype))
      2'd0:    value_bad = packet_i.param[FILL_VALUE][31:8] != '0;
      2'd1:    value_bad = packet_i.param[FILL_VALUE][31:16] != '0;
      default: value_bad = 1'b0;
    endcase
    if (!dtype_known(flags.dst_dtype) || packet_i.opcode != OPCODE_FILL) value_bad = 1'b0;
  end

  // What VECTOR's packet says of a source that its program does not have.
  assign source_bad = packet_i.opcode == OPCODE_VECTOR && prog_known && (
      (!present[0] && (flags.src_dtype != '0 || flags.src1_desc || packet_i.src1 != '0)) ||
      (!present[1] && (flags.src2_dtype != '0 || flags.src2_desc || packet_i.src2 != '0)) ||
      (!present[2] && (flags.src3_dtype != '0 || flags.src3_desc ||
                       packet_i.param[VECTOR_SRC3_LOW] != '0 ||
                       packet_i.param[VECTOR_SRC3_HIGH] != '0)));

  // Where MATMUL's sums start, when not from the destination's old values.
  assign init_bad = packet_i.opcode == OPCODE_MATMUL && (flags.src3_desc ? !flags.accumulate :
      packet_i.param[MATMUL_SRC3_LOW] != '0 || packet_i.param[MATMUL_SRC3_HIGH] != '0);

  assign reserved_bad = (packet_i.flags & ~usage.flags) != '0 ||
                        (!usage.src1 && packet_i.src1 != '0) ||
                        (!usage.src2 && packet_i.src2 != '0) ||
                        (!usage.dst && packet_i.dst != '0) ||
                        unused_param || value_bad || source_bad || init_bad;

  assign move_by_count = !flags.src1_desc && !flags.dst_desc;

  // VECTOR's operands are all direct, with a count, or all descriptors, without.
  assign all_desc   = flags.dst_desc
                    && ({flags.src3_desc, flags.src2_desc, flags.src1_desc} | ~present) == '1;
  assign any_desc   = flags.dst_desc
                    || {flags.src3_desc, flags.src2_desc, flags.src1_desc} != '0;
  assign vector_bad = !prog_known || (packet_i.param[VECTOR_COUNT] == '0
                    ? !all_desc : any_desc || prog.reduce != REDUCE_NONE);

  // GATHER and SCATTER: the dimension is in the same place.
  assign indexed_bad = !flags.src1_desc || !flags.src2_desc || !flags.dst_desc ||
                       packet_i.param[GATHER_DIM] >= MAX_RANK;

  always_comb begin
    dtype_bad = 1'b0;
    param_bad = 1'b0;
    unique case (packet_i.opcode)
      OPCODE_MATMUL: begin
        dtype_bad = !matmul_dtypes_ok(flags.src_dtype, flags.dst_dtype);
        param_bad = packet_i.param[MATMUL_M] == '0 || packet_i.param[MATMUL_K] == '0 ||
                    packet_i.param[MATMUL_N] == '0 || packet_i.param[MATMUL_BATCH] == '0;
      end
      OPCODE_VECTOR: begin
        dtype_bad = !dtype_known(flags.src_dtype) || !dtype_known(flags.src2_dtype) ||
                    !dtype_known(flags.src3_dtype) || !dtype_known(flags.dst_dtype);
        param_bad = vector_bad;
      end
      OPCODE_COPY: begin
        dtype_bad = !dtype_known(flags.src_dtype) || flags.src_dtype != flags.dst_dtype;
        param_bad = move_by_count == (packet_i.param[COPY_COUNT] == '0);
      end
      OPCODE_FILL: begin
        dtype_bad = !dtype_known(flags.dst_dtype) || flags.dst_dtype == DTYPE_INT64;
        param_bad = move_by_count == (packet_i.param[FILL_COUNT] == '0);
      end
      OPCODE_GATHER, OPCODE_SCATTER: begin
        dtype_bad = !dtype_known(flags.src_dtype) || flags.src_dtype != flags.dst_dtype ||
                    !index_dtype_ok(flags.src2_dtype) ||
                    (flags.accumulate && !scatter_add_dtype_ok(flags.src_dtype));
        param_bad = indexed_bad;
      end
      default: ;
    endcase
  end

  always_comb begin
    if (!usage.known)      error_o = ERROR_BAD_OPCODE;
    else if (reserved_bad) error_o = ERROR_RESERVED_BITS;
    else if (dtype_bad)    error_o = ERROR_BAD_DTYPE;
    else if (param_bad)    error_o = ERROR_BAD_PARAM;
    else                   error_o = ERROR_NONE;
  end
endmodule
