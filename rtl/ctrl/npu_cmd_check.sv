// SPDX-License-Identifier: Apache-2.0
/// Checks a packet, and makes the command of it that an engine gets.
///
/// `decode_error_o` is that of the packet's own words, combinational. `resolve_start_i` begins the
/// checks of its operands, see npu_operand_resolve. `cmd_o` is valid from `resolve_done_o` on, as
/// long as the packet is stable.
module npu_cmd_check
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter logic [63:0] MemBase,
  parameter logic [63:0] MemLimit
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  packet_t         packet_i,
  output logic [31:0]     program_line_o,
  input  program_info_t   program_info_i,  // of that line

  output error_e          decode_error_o,
  input  logic            resolve_start_i,
  output logic            resolve_done_o,
  output error_e          resolve_error_o,
  output npu_engine_cmd_t cmd_o,
  output logic            span_valid_o,
  output span_t           span_o,

  // Descriptor port of the line reader
  output logic            req_valid_o,
  input  logic            req_ready_i,
  output line_addr_t      req_addr_o,
  input  logic            line_valid_i,
  input  line_t           line_i,
  input  logic            line_err_i
);
  flags_t      flags;
  dtype_e      listed_dtype [CMD_OPERANDS];
  npu_window_t init_window;
  logic        listed, unused_flags;

  assign flags          = packet_i.flags;
  assign unused_flags   = ^flags;  // this module needs some of them
  assign listed         = flags.operand_list;
  assign program_line_o = packet_i.param[VECTOR_PROGRAM];

  npu_cmd_decode u_cmd_decode (
    .packet_i, .prog_i(program_info_i), .error_o(decode_error_o)
  );

  npu_operand_resolve #(.MemBase(MemBase), .MemLimit(MemLimit)) u_operand_resolve (
    .clk_i,
    .rst_ni,
    .start_i      (resolve_start_i),
    .packet_i,
    .prog_i       (program_info_i),
    .done_o       (resolve_done_o),
    .error_o      (resolve_error_o),
    .src1_o       (cmd_o.src1),
    .src2_o       (cmd_o.src2),
    .src3_o       (cmd_o.src3),
    .src4_o       (cmd_o.src4),
    .dst_o        (cmd_o.dst),
    .dst2_o       (cmd_o.dst2),
    .dst3_o       (cmd_o.dst3),
    .dtypes_o     (listed_dtype),
    .src1_window_o(cmd_o.a),
    .src2_window_o(cmd_o.b),
    .src3_window_o(init_window),
    .dst_window_o (cmd_o.c),
    .dim_o        (cmd_o.dim),
    .span_valid_o,
    .span_o,
    .req_valid_o,
    .req_ready_i,
    .req_addr_o,
    .line_valid_i,
    .line_i,
    .line_err_i
  );

  assign cmd_o.init       = (flags.src3_desc && flags.int4_group == '0) ? init_window : cmd_o.c;
  assign cmd_o.scales     = init_window;
  assign cmd_o.int4_group = flags.int4_group;
  assign cmd_o.product    = '{
    m: packet_i.param[MATMUL_M], k: packet_i.param[MATMUL_K], n: packet_i.param[MATMUL_N],
    batch: packet_i.param[MATMUL_BATCH]
  };
  assign cmd_o.opcode     = opcode_e'(packet_i.opcode);
  assign cmd_o.src_dtype  = listed ? listed_dtype[CMD_SRC1] : dtype_e'(flags.src_dtype);
  assign cmd_o.src2_dtype = listed ? listed_dtype[CMD_SRC2] : dtype_e'(flags.src2_dtype);
  assign cmd_o.src3_dtype = listed ? listed_dtype[CMD_SRC3] : dtype_e'(flags.src3_dtype);
  assign cmd_o.src4_dtype = listed_dtype[CMD_SRC4];
  assign cmd_o.dst_dtype  = listed ? listed_dtype[CMD_DST] : dtype_e'(flags.dst_dtype);
  assign cmd_o.dst2_dtype = listed_dtype[CMD_DST2];
  assign cmd_o.dst3_dtype = listed_dtype[CMD_DST3];
  assign cmd_o.accumulate = flags.accumulate;
  assign cmd_o.fill_value = packet_i.param[FILL_VALUE];
  assign cmd_o.prog       = packet_i.param[VECTOR_PROGRAM][PROGRAM_LINE_WIDTH-1:0];  // LOAD_LINE
  assign cmd_o.prog_info  = program_info_i;
  assign cmd_o.load_lines = packet_i.param[LOAD_LINES][IMAGE_LINES_WIDTH-1:0];

  // Only an operand list leaves room for the last immediates.
  always_comb begin
    for (int unsigned i = 0; i < IMMEDIATES; i++) begin
      cmd_o.imm[i] = (listed || i < PLAIN_IMMEDIATES) ? packet_i.param[VECTOR_IMM0+i] : '0;
    end
  end
endmodule
