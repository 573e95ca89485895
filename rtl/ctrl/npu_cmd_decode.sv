// SPDX-License-Identifier: Apache-2.0
/// The checks that a packet's own words decide: opcode, reserved bits, data types, parameters.
///
/// Combinational. `prog_i` is the program at the line that a VECTOR names. `error_o` is the first
/// failing check in that order, or ERROR_NONE.
module npu_cmd_decode
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  packet_t       packet_i,
  input  program_info_t prog_i,
  output error_e        error_o
);
  usage_t   usage;
  flags_t   flags;
  logic     unused_flags, unused_prog;
  logic     unused_param, reserved_bad, value_bad, vector_reserved, init_bad, dtype_bad, param_bad;
  logic     copy_by_count;  // no operand is a descriptor: the packet gives the element count
  logic     is_vector, listed, not_loaded, all_desc, any_desc, any_dtype, plain_bad, indexed_bad;
  logic     src3_set, load_bad, int4;
  logic [PLAIN_SOURCES-1:0] present, has_desc;  // sources that VECTOR's program has

  assign usage = opcode_usage(packet_i.opcode);
  assign flags = packet_i.flags;
  assign unused_flags = ^flags;   // the word as a whole is checked against the opcode's mask
  assign unused_prog  = ^prog_i;  // its length concerns the engine

  assign is_vector = packet_i.opcode == OPCODE_VECTOR;
  assign listed    = flags.operand_list;
  assign present   = {prog_i.sources > 3'd2, prog_i.sources > 3'd1, prog_i.sources > 3'd0};
  assign has_desc  = {flags.src3_desc, flags.src2_desc, flags.src1_desc};
  assign src3_set  = packet_i.param[VECTOR_SRC3_LOW] != '0
                  || packet_i.param[VECTOR_SRC3_HIGH] != '0;

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

  // What VECTOR's packet says of a source that its program does not have, or besides its list.
  assign any_dtype = {flags.src_dtype, flags.src2_dtype, flags.src3_dtype, flags.dst_dtype} != '0;
  assign any_desc  = flags.dst_desc || has_desc != '0;
  always_comb begin
    vector_reserved = 1'b0;
    if (listed) begin
      vector_reserved = any_dtype || any_desc || packet_i.src2 != '0 || packet_i.dst != '0;
    end else if (prog_i.loaded) begin
      if (!present[0]) vector_reserved = flags.src_dtype != '0 || packet_i.src1 != '0;
      if (!present[1] && (flags.src2_dtype != '0 || packet_i.src2 != '0)) vector_reserved = 1'b1;
      if (!present[2] && (flags.src3_dtype != '0 || src3_set))            vector_reserved = 1'b1;
      if ((has_desc & ~present) != '0)                                    vector_reserved = 1'b1;
    end
  end

  // Where MATMUL's sums start, when not from the destination's old values; with weights of four
  // bits the third source is their scales.
  assign int4     = flags.int4_group != '0;
  assign init_bad = packet_i.opcode == OPCODE_MATMUL && !int4 &&
                    (flags.src3_desc ? !flags.accumulate :
      packet_i.param[MATMUL_SRC3_LOW] != '0 || packet_i.param[MATMUL_SRC3_HIGH] != '0);

  assign reserved_bad = (packet_i.flags & ~usage.flags) != '0 ||
                        (!usage.src1 && packet_i.src1 != '0) ||
                        (!usage.src2 && packet_i.src2 != '0) ||
                        (!usage.dst && packet_i.dst != '0) ||
                        unused_param || value_bad || init_bad || (is_vector && vector_reserved);

  assign copy_by_count = !flags.src1_desc && !flags.dst_desc;

  // VECTOR's operands are all direct, with a count, or all descriptors, without. The plain form
  // does not reach all sources and results.
  assign not_loaded = is_vector && !prog_i.loaded;
  assign all_desc   = flags.dst_desc && (has_desc | ~present) == '1;
  always_comb begin
    plain_bad = prog_i.sources > 3'(PLAIN_SOURCES) || prog_i.results > 2'd1;
    if (packet_i.param[VECTOR_COUNT] == '0) begin
      if (!all_desc) plain_bad = 1'b1;
    end else begin
      if (any_desc || prog_i.reduce != REDUCE_NONE) plain_bad = 1'b1;
    end
  end

  // LOAD: lines of the loadable part, computed without wrapping.
  assign load_bad = packet_i.param[LOAD_LINES] == '0
                 || packet_i.param[LOAD_LINES] > 32'(PROGRAM_MAX_LINES)
                 || packet_i.param[LOAD_LINE] < 32'(PROGRAM_RAM)
                 || packet_i.param[LOAD_LINE] >= 32'(PROGRAM_RAM + PROGRAM_RAM_LINES)
                 || packet_i.param[LOAD_LINE] + packet_i.param[LOAD_LINES]
                    > 32'(PROGRAM_RAM + PROGRAM_RAM_LINES);

  // GATHER and SCATTER: the dimension is in the same place.
  assign indexed_bad = !flags.src1_desc || !flags.src2_desc || !flags.dst_desc ||
                       packet_i.param[GATHER_DIM] >= MAX_RANK;

  always_comb begin
    dtype_bad = 1'b0;
    param_bad = 1'b0;
    unique case (packet_i.opcode)
      OPCODE_MATMUL: begin
        dtype_bad = !matmul_dtypes_ok(flags.src_dtype, flags.dst_dtype) ||
                    (int4 && flags.src_dtype == DTYPE_INT8);
        param_bad = packet_i.param[MATMUL_M] == '0 || packet_i.param[MATMUL_K] == '0 ||
                    packet_i.param[MATMUL_N] == '0 || packet_i.param[MATMUL_BATCH] == '0 ||
                    (int4 && flags.int4_group < 4'(INT4_FIRST_GROUP));
      end
      OPCODE_VECTOR: begin
        dtype_bad = !dtype_known(flags.src_dtype) || !dtype_known(flags.src2_dtype) ||
                    !dtype_known(flags.src3_dtype) || !dtype_known(flags.dst_dtype);
        param_bad = listed ? packet_i.param[VECTOR_COUNT] != '0 : plain_bad;
      end
      OPCODE_COPY: begin
        dtype_bad = !dtype_known(flags.src_dtype) || flags.src_dtype != flags.dst_dtype;
        param_bad = copy_by_count == (packet_i.param[COPY_COUNT] == '0);
      end
      OPCODE_FILL: begin
        dtype_bad = !dtype_known(flags.dst_dtype) || flags.dst_dtype == DTYPE_INT64;
        param_bad = copy_by_count == (packet_i.param[FILL_COUNT] == '0);
      end
      OPCODE_GATHER, OPCODE_SCATTER: begin
        dtype_bad = !dtype_known(flags.src_dtype) || flags.src_dtype != flags.dst_dtype ||
                    !index_dtype_ok(flags.src2_dtype) ||
                    (flags.accumulate && !scatter_add_dtype_ok(flags.src_dtype));
        param_bad = indexed_bad;
      end
      OPCODE_LOAD: param_bad = load_bad;
      default: ;
    endcase
  end

  always_comb begin
    if (!usage.known)      error_o = ERROR_BAD_OPCODE;
    else if (reserved_bad) error_o = ERROR_RESERVED_BITS;
    else if (dtype_bad)    error_o = ERROR_BAD_DTYPE;
    else if (not_loaded)   error_o = ERROR_NOT_LOADED;
    else if (param_bad)    error_o = ERROR_BAD_PARAM;
    else                   error_o = ERROR_NONE;
  end
endmodule
