// SPDX-License-Identifier: Apache-2.0
/// Types of the ports between command processor, engines and memory controller.
///
/// A request structure holds what its sender drives, the response structure what comes back. Bus
/// data has ports of its own beside them: its width is a parameter, which a package does not know.
package npu_pkg;
  import npu_isa_pkg::*;
  import npu_vector_pkg::*;

  localparam int unsigned ADDR_WIDTH = 64;

  /// Lines of program memory.
  localparam int unsigned PROGRAM_LINE_WIDTH = $clog2(2 * PROGRAM_RAM);

  /// Lines of an image, 1 to PROGRAM_MAX_LINES.
  localparam int unsigned IMAGE_LINES_WIDTH = $clog2(PROGRAM_MAX_LINES + 1);
  typedef logic [IMAGE_LINES_WIDTH-1:0] image_lines_t;

  /// What the header of a program says; `loaded` is low where no program begins.
  typedef struct packed {
    logic loaded;
    logic [7:0] instructions;
    logic [6:0] constants;
    logic [2:0] sources;
    logic [1:0] results;
    reduce_e reduce;
  } program_info_t;

  /// No burst reaches across a boundary of this many bytes.
  localparam int unsigned PAGE_BYTES = 4096;

  /// Bytes of one client request to the memory controller, 1 to MAX_REQ_BYTES.
  localparam int unsigned MAX_REQ_BYTES = 65536;
  localparam int unsigned REQ_BYTES_WIDTH = $clog2(MAX_REQ_BYTES + 1);
  /// Bytes of a request of those that are short, at most (npu_copy_walk).
  localparam int unsigned SHORT_REQ_BYTES = 128;

  /// Bursts of a client without a response, at most, and its requests: a few more are on their way.
  localparam int unsigned MAX_OPEN_BURSTS = 256;
  localparam int unsigned MAX_OPEN_WRITES = MAX_OPEN_BURSTS + 8;

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

  /// The rows or the columns of a matrix: places counted in mixed radix, with three digits. `inner`
  /// and `middle` are the sizes of the two fastest digits; how many places there are says the
  /// command. step: elements from one place to the next; [0] within the innermost digit, [1] when
  /// it starts again and the middle one counts, [2] when the outermost one counts.
  typedef struct packed {
    logic [2:0][ADDR_WIDTH-1:0] step;
    logic [31:0] middle;
    logic [31:0] inner;
  } npu_axis_t;

  /// MATMUL's view of an operand. `batch` is the step in elements from one matrix to the next.
  typedef struct packed {
    npu_axis_t row;
    npu_axis_t col;
    logic [31:0] batch;
    logic [ADDR_WIDTH-1:0] base;
  } npu_window_t;

  /// The sizes of a MATMUL.
  typedef struct packed {
    logic [31:0] batch;
    logic [31:0] n;
    logic [31:0] k;
    logic [31:0] m;
  } npu_product_t;

  /// A command whose checks have all passed. MATMUL: the operands are windows and the tensors mean
  /// nothing; a is [batch, M, K], b [batch, K, N], c [batch, M, N], transposes already folded into
  /// the steps; with `accumulate` the sums start from `init`, which is c unless the packet names
  /// another. With `int4_group` b is of words of INT4_ROWS rows, and `scales` of one row for
  /// 2^int4_group rows. VECTOR: the sources that the program has are of one shape, its results
  /// too, but for a reduction's innermost size of 1.
  typedef struct packed {
    opcode_e opcode;
    dtype_e src_dtype;
    dtype_e src2_dtype;  // VECTOR; GATHER and SCATTER: of the indices
    dtype_e src3_dtype;  // VECTOR
    dtype_e src4_dtype;  // VECTOR
    dtype_e dst_dtype;
    dtype_e dst2_dtype;  // VECTOR: of the second and third result
    dtype_e dst3_dtype;
    logic accumulate;
    logic [3:0] int4_group;              // MATMUL; 0: no weights of four bits
    logic [31:0] fill_value;
    logic [PROGRAM_LINE_WIDTH-1:0] prog; // VECTOR: where its program begins; LOAD: first line
    program_info_t prog_info;            // VECTOR: what is loaded there
    image_lines_t load_lines;            // LOAD
    logic [IMMEDIATES-1:0][31:0] imm;    // VECTOR
    logic [2:0] dim;                     // GATHER, SCATTER: position in npu_tensor_t's arrays
    npu_tensor_t src1;
    npu_tensor_t src2;
    npu_tensor_t src3;
    npu_tensor_t src4;
    npu_tensor_t dst;
    npu_tensor_t dst2;
    npu_tensor_t dst3;
    npu_product_t product;               // MATMUL
    npu_window_t a;
    npu_window_t b;
    npu_window_t init;
    npu_window_t scales;
    npu_window_t c;
  } npu_engine_cmd_t;

  /// The engines, as indices of arrays with one element per engine; the last row is their number.
  typedef enum int unsigned {
    ENGINE_COPY,
    ENGINE_MATRIX,
    ENGINE_VECTOR,
    ENGINE_GATHER,
    ENGINE_NONE  // what the command processor does by itself
  } engine_e;

  localparam int unsigned NUM_ENGINES = ENGINE_NONE;

  /// What runs one command at a time, as indices: each engine's channel has the engine's number,
  /// the last one is the second channel of ENGINE_COPY.
  localparam int unsigned CHANNEL_COPY1 = NUM_ENGINES;
  localparam int unsigned NUM_CHANNELS = NUM_ENGINES + 1;

  /// One bit per cycle and kind, counted by the command processor.
  typedef struct packed {
    logic active;
    logic operand_stall;
    logic result_stall;
  } npu_stats_t;

  /// Whether a command of npu_copy has requests to make, at one of its two clients.
  typedef struct packed {
    logic reading;
    logic writing;
  } copy_pending_t;

  /// To an engine. `cmd` is stable from `valid` until the engine's `done`.
  typedef struct packed {
    logic valid;
    npu_engine_cmd_t cmd;
  } engine_req_t;

  /// From an engine. `done` pulses at least one cycle after the handshake, with `err`, when all
  /// writes of the command are acknowledged.
  typedef struct packed {
    logic ready;
    logic done;
    error_e err;
    npu_stats_t stats;
  } engine_rsp_t;

  /// The bytes [addr, addr + bytes) of the memory; 1 to 65536, at any alignment.
  typedef struct packed {
    logic [ADDR_WIDTH-1:0] addr;
    logic [REQ_BYTES_WIDTH-1:0] bytes;
  } mem_range_t;

  /// From a read client of the memory controller.
  typedef struct packed {
    logic valid;  // asks for `range`
    mem_range_t range;
    logic data_ready;
  } mem_rd_req_t;

  /// To a read client: one beat per aligned beat of the bus that covers the range, unshifted and in
  /// the order of the requests. All clients see the same data.
  typedef struct packed {
    logic ready;
    logic data_valid;  // the beat is this client's
    logic data_err;
  } mem_rd_rsp_t;

  /// From a write client of the memory controller: ranges, and their beats in the same order,
  /// during or after the request.
  typedef struct packed {
    logic valid;
    mem_range_t range;
    logic data_valid;
  } mem_wr_req_t;

  /// To a write client. `done` pulses once per request, with the OR of its bursts' errors.
  typedef struct packed {
    logic ready;
    logic data_ready;
    logic done;
    logic err;
  } mem_wr_rsp_t;
endpackage
