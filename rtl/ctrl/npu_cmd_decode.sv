// SPDX-License-Identifier: Apache-2.0
/// The checks that a packet's own words decide: opcode, reserved bits, data types, parameters.
///
/// Combinational. `error_o` is the first failing check in that order, or ERROR_NONE.
module npu_cmd_decode
  import npu_isa_pkg::*;
(
  input  packet_t packet_i,
  output error_e  error_o
);
  usage_t usage;
  flags_t flags;
  logic   unused_flags;
  logic   unused_param, reserved_bad, value_bad, dtype_bad, param_bad;
  logic   by_count;  // no operand is a descriptor: the packet gives the element count

  assign usage = opcode_usage(packet_i.opcode);
  assign flags = packet_i.flags;
  assign unused_flags = ^flags;  // the word as a whole is checked against the opcode's mask

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

  assign reserved_bad = (packet_i.flags & ~usage.flags) != '0 ||
                        (!usage.src1 && packet_i.src1 != '0) ||
                        (!usage.src2 && packet_i.src2 != '0) ||
                        (!usage.dst && packet_i.dst != '0) ||
                        unused_param || value_bad;

  assign by_count = !flags.src1_desc && !flags.dst_desc;

  always_comb begin
    dtype_bad = 1'b0;
    param_bad = 1'b0;
    unique case (packet_i.opcode)
      OPCODE_MATMUL: begin
        dtype_bad = !matmul_dtypes_ok(flags.src_dtype, flags.dst_dtype);
        param_bad = packet_i.param[MATMUL_M] == '0 || packet_i.param[MATMUL_K] == '0 ||
                    packet_i.param[MATMUL_N] == '0 || packet_i.param[MATMUL_BATCH] == '0;
      end
      OPCODE_COPY: begin
        dtype_bad = !dtype_known(flags.src_dtype) || flags.src_dtype != flags.dst_dtype;
        param_bad = by_count == (packet_i.param[COPY_COUNT] == '0);
      end
      OPCODE_FILL: begin
        dtype_bad = !dtype_known(flags.dst_dtype);
        param_bad = by_count == (packet_i.param[FILL_COUNT] == '0);
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
