// SPDX-License-Identifier: Apache-2.0
/// Types shared between the command processor and the engines.
package npu_pkg;
  import npu_isa_pkg::*;
  import npu_vector_pkg::IMMEDIATES;

  localparam int unsigned ADDR_WIDTH = 64;

  /// Numbers of vector programs.
  localparam int unsigned PROGRAM_WIDTH = 16;

  /// Bytes of one client request to the memory controller, 1 to 65536.
  localparam int unsigned REQ_BYTES_WIDTH = 17;

  /// A strided view, always of MAX_RANK dimensions, [MAX_RANK-1] innermost; missing outer
  /// dimensions have size 1 and stride 0. Strides count elements.
  typedef struct packed {
    logic [ADDR_WIDTH-1:0] base;
    logic [MAX_RANK-1:0][31:0] size;
    logic [MAX_RANK-1:0][31:0] stride;
  } npu_tensor_t;

  // Dimensions of MATMUL's tensors inside npu_tensor_t.
  localparam int unsigned DIM_BATCH = MAX_RANK - 3;
  localparam int unsigned DIM_ROW = MAX_RANK - 2;
  localparam int unsigned DIM_COL = MAX_RANK - 1;

  /// A command whose checks have all passed. MATMUL: src1 is [batch, M, K], src2 [batch, K, N],
  /// dst [batch, M, N], transposes already folded into the strides. VECTOR: the sources that the
  /// program has are of one shape, dst too, but for a reduction's innermost size of 1.
  typedef struct packed {
    opcode_e opcode;
    dtype_e src_dtype;
    dtype_e src2_dtype;  // VECTOR; GATHER and SCATTER: of the indices
    dtype_e src3_dtype;  // VECTOR
    dtype_e dst_dtype;
    logic accumulate;
    logic [31:0] fill_value;
    logic [PROGRAM_WIDTH-1:0] prog;      // VECTOR: an existing program
    logic [IMMEDIATES-1:0][31:0] imm;    // VECTOR
    logic [2:0] dim;                     // GATHER, SCATTER: position in npu_tensor_t's arrays
    npu_tensor_t src1;
    npu_tensor_t src2;
    npu_tensor_t src3;
    npu_tensor_t dst;
  } npu_engine_cmd_t;

  /// One bit per cycle and kind, counted by the command processor.
  typedef struct packed {
    logic active;
    logic operand_stall;
    logic result_stall;
  } npu_stats_t;
endpackage
