// SPDX-License-Identifier: Apache-2.0
// Generated from driver/isa by `make gen`. Do not edit.
/// Numbers and layouts of the instruction set; described in docs/isa.md.
package npu_isa_pkg;
  localparam logic [31:0] DEVICE_ID = 32'h4e505530;
  localparam logic [31:0] ISA_VERSION = 32'h00020001;
  localparam int unsigned MAX_RANK = 5;
  localparam int unsigned WINDOW_RANK = 7;
  localparam int unsigned WINDOW_GROUP = 3;
  localparam int unsigned PARAM_COUNT = 8;
  localparam int unsigned INT4_ROWS = 8;
  localparam int unsigned INT4_FIRST_GROUP = 3;

  typedef enum logic [31:0] {
    OPCODE_NOP = 32'd0,
    OPCODE_MATMUL = 32'd1,
    OPCODE_VECTOR = 32'd2,
    OPCODE_COPY = 32'd3,
    OPCODE_FILL = 32'd4,
    OPCODE_GATHER = 32'd5,
    OPCODE_SCATTER = 32'd6,
    OPCODE_FENCE = 32'd7,
    OPCODE_SYNC = 32'd8,
    OPCODE_LOAD = 32'd9
  } opcode_e;

  typedef enum logic [3:0] {
    DTYPE_FP32 = 4'd0,
    DTYPE_FP16 = 4'd1,
    DTYPE_BF16 = 4'd2,
    DTYPE_INT8 = 4'd3,
    DTYPE_INT32 = 4'd4,
    DTYPE_UINT8 = 4'd5,
    DTYPE_INT64 = 4'd6
  } dtype_e;

  typedef enum logic [3:0] {
    ERROR_NONE = 4'd0,
    ERROR_BAD_OPCODE = 4'd1,
    ERROR_RESERVED_BITS = 4'd2,
    ERROR_BAD_DTYPE = 4'd3,
    ERROR_BAD_PARAM = 4'd4,
    ERROR_BAD_DESCRIPTOR = 4'd5,
    ERROR_MISALIGNED = 4'd6,
    ERROR_OUT_OF_RANGE = 4'd7,
    ERROR_BUS_READ = 4'd8,
    ERROR_BUS_WRITE = 4'd9,
    ERROR_BAD_INDEX = 4'd10,
    ERROR_NOT_LOADED = 4'd11,
    ERROR_BAD_IMAGE = 4'd12
  } error_e;

  typedef enum logic [1:0] {
    DEVICE_STATE_IDLE = 2'd0,
    DEVICE_STATE_BUSY = 2'd1,
    DEVICE_STATE_DONE = 2'd2,
    DEVICE_STATE_ERROR = 2'd3
  } device_state_e;

  /// Packet as a 512-bit word, byte 0 in bits 7:0.
  typedef struct packed {
    logic [7:0] [31:0] param;
    logic [63:0] dst;
    logic [63:0] src2;
    logic [63:0] src1;
    logic [31:0] flags;
    logic [31:0] opcode;
  } packet_t;

  /// Descriptor as a 512-bit word, byte 0 in bits 7:0.
  typedef struct packed {
    logic [63:0] reserved;
    logic [4:0] [31:0] stride;
    logic [4:0] [31:0] size;
    logic [31:0] rank;
    logic [31:0] dtype;
    logic [63:0] base;
  } descriptor_t;

  /// Window as a 1024-bit word, byte 0 in bits 7:0.
  typedef struct packed {
    logic [8:0] [31:0] reserved_end;
    logic [6:0] [31:0] stride;
    logic [4:0] [31:0] reserved;
    logic [6:0] [31:0] size;
    logic [31:0] rank;
    logic [31:0] dtype;
    logic [63:0] base;
  } window_t;

  /// Completion as a 512-bit word, byte 0 in bits 7:0.
  typedef struct packed {
    logic [31:0] waited_queue;
    logic [31:0] waited_for;
    logic [31:0] operand_wait;
    logic [31:0] engine_wait;
    logic [31:0] opcode;
    logic [31:0] write_beats;
    logic [31:0] read_beats;
    logic [31:0] result_stall;
    logic [31:0] operand_stall;
    logic [31:0] active_cycles;
    logic [63:0] end_cycle;
    logic [63:0] start_cycle;
    logic [31:0] status;
    logic [31:0] seq;
  } completion_t;

  /// The flags word of a packet.
  typedef struct packed {
    logic [2:0] reserved_29;
    logic [3:0] int4_group;
    logic operand_list;
    logic [3:0] src3_dtype;
    logic [3:0] src2_dtype;
    logic irq;
    logic dst_desc;
    logic src2_desc;
    logic src1_desc;
    logic src3_desc;
    logic accumulate;
    logic trans_b;
    logic trans_a;
    logic [3:0] dst_dtype;
    logic [3:0] src_dtype;
  } flags_t;

  /// What an opcode may use; everything else in its packet must be zero.
  typedef struct packed {
    logic known;
    logic [31:0] flags;
    logic src1;
    logic src2;
    logic dst;
    logic [7:0] params;
  } usage_t;

  function automatic usage_t opcode_usage(logic [31:0] opcode);
    unique case (opcode)
      OPCODE_NOP: return '{known: 1'b1, flags: 32'h00008000,
        src1: 1'b0, src2: 1'b0, dst: 1'b0, params: 8'h00};
      OPCODE_MATMUL: return '{known: 1'b1, flags: 32'h1e00ffff,
        src1: 1'b1, src2: 1'b1, dst: 1'b1, params: 8'hcf};
      OPCODE_VECTOR: return '{known: 1'b1, flags: 32'h01fff8ff,
        src1: 1'b1, src2: 1'b1, dst: 1'b1, params: 8'hff};
      OPCODE_COPY: return '{known: 1'b1, flags: 32'h0000d0ff,
        src1: 1'b1, src2: 1'b0, dst: 1'b1, params: 8'h01};
      OPCODE_FILL: return '{known: 1'b1, flags: 32'h0000c0f0,
        src1: 1'b0, src2: 1'b0, dst: 1'b1, params: 8'h03};
      OPCODE_GATHER: return '{known: 1'b1, flags: 32'h000ff0ff,
        src1: 1'b1, src2: 1'b1, dst: 1'b1, params: 8'h01};
      OPCODE_SCATTER: return '{known: 1'b1, flags: 32'h000ff4ff,
        src1: 1'b1, src2: 1'b1, dst: 1'b1, params: 8'h01};
      OPCODE_FENCE: return '{known: 1'b1, flags: 32'h00008000,
        src1: 1'b0, src2: 1'b0, dst: 1'b0, params: 8'h00};
      OPCODE_SYNC: return '{known: 1'b1, flags: 32'h00008000,
        src1: 1'b0, src2: 1'b0, dst: 1'b1, params: 8'h01};
      OPCODE_LOAD: return '{known: 1'b1, flags: 32'h00008000,
        src1: 1'b1, src2: 1'b0, dst: 1'b0, params: 8'h03};
      default: return '0;
    endcase
  endfunction

  /// log2 of the bytes of one element; the type must exist.
  function automatic logic [1:0] dtype_log2_bytes(logic [3:0] dtype);
    unique case (dtype)
      DTYPE_FP32: return 2'd2;
      DTYPE_FP16: return 2'd1;
      DTYPE_BF16: return 2'd1;
      DTYPE_INT8: return 2'd0;
      DTYPE_INT32: return 2'd2;
      DTYPE_UINT8: return 2'd0;
      DTYPE_INT64: return 2'd3;
      default: return 2'd0;
    endcase
  endfunction

  function automatic logic dtype_known(logic [3:0] dtype);
    return dtype <= 4'd6;
  endfunction

  function automatic logic index_dtype_ok(logic [3:0] dtype);
    return dtype == DTYPE_INT32 || dtype == DTYPE_INT64;
  endfunction

  function automatic logic scatter_add_dtype_ok(logic [3:0] dtype);
    return dtype == DTYPE_FP32 || dtype == DTYPE_FP16 || dtype == DTYPE_BF16 || dtype == DTYPE_INT32;
  endfunction

  /// Whether MATMUL has this pair of operand and result types.
  function automatic logic matmul_dtypes_ok(logic [3:0] src, logic [3:0] dst);
    return (src == DTYPE_FP32 && dst == DTYPE_FP32) ||
           (src == DTYPE_FP16 && dst == DTYPE_FP16) ||
           (src == DTYPE_FP16 && dst == DTYPE_FP32) ||
           (src == DTYPE_BF16 && dst == DTYPE_BF16) ||
           (src == DTYPE_BF16 && dst == DTYPE_FP32) ||
           (src == DTYPE_INT8 && dst == DTYPE_INT32);
  endfunction

  // Positions in param[].
  localparam int unsigned MATMUL_M = 0;
  localparam int unsigned MATMUL_K = 1;
  localparam int unsigned MATMUL_N = 2;
  localparam int unsigned MATMUL_BATCH = 3;
  localparam int unsigned MATMUL_SRC3_LOW = 6;
  localparam int unsigned MATMUL_SRC3_HIGH = 7;
  localparam int unsigned VECTOR_PROGRAM = 0;
  localparam int unsigned VECTOR_COUNT = 1;
  localparam int unsigned VECTOR_IMM0 = 2;
  localparam int unsigned VECTOR_IMM1 = 3;
  localparam int unsigned VECTOR_IMM2 = 4;
  localparam int unsigned VECTOR_IMM3 = 5;
  localparam int unsigned VECTOR_SRC3_LOW = 6;
  localparam int unsigned VECTOR_SRC3_HIGH = 7;
  localparam int unsigned COPY_COUNT = 0;
  localparam int unsigned FILL_COUNT = 0;
  localparam int unsigned FILL_VALUE = 1;
  localparam int unsigned GATHER_DIM = 0;
  localparam int unsigned SCATTER_DIM = 0;
  localparam int unsigned SYNC_VALUE = 0;
  localparam int unsigned LOAD_LINE = 0;
  localparam int unsigned LOAD_LINES = 1;
endpackage
