// SPDX-License-Identifier: Apache-2.0
/// Types inside the command processor.
package npu_ctrl_pkg;
  import npu_isa_pkg::*;
  import npu_vector_pkg::*;

  /// Packets, descriptors and completion records all fill one 64-byte line.
  localparam int unsigned LINE_BITS       = 512;
  localparam int unsigned LINE_BYTES      = 64;
  localparam int unsigned LINE_ADDR_WIDTH = 58;  // byte address bits 63:6
  localparam int unsigned INDEX_WIDTH     = 16;  // slots of the largest ring: 2^16
  localparam int unsigned PROGRAM_INDEX_WIDTH = $clog2(PROGRAM_COUNT);

  typedef logic [LINE_BITS-1:0]         line_t;
  typedef logic [LINE_ADDR_WIDTH-1:0]   line_addr_t;
  typedef logic [INDEX_WIDTH-1:0]       index_t;
  typedef logic [MAX_RANK-1:0][31:0]    shape_t;  // [MAX_RANK-1] innermost, missing dimensions 1

  /// A ring of lines in memory, as software configured it.
  typedef struct packed {
    logic       enable;
    logic [4:0] log2_entries;
    line_addr_t base;
  } ring_config_t;

  /// What software reads back.
  typedef struct packed {
    state_e      state;
    logic        csr_queue_empty;
    logic        csr_queue_full;
    logic        ring_empty;
    error_e      error_code;
    logic [31:0] error_seq;
    logic [31:0] completed;
    index_t      ring_head;
  } ctrl_status_t;

  /// Interrupt causes, one cycle each.
  typedef struct packed {
    logic complete;
    logic empty;
    logic error;
  } irq_events_t;

  /// What is counted for the whole device and for each command, one bit per cycle.
  typedef struct packed {
    logic active;
    logic operand_stall;
    logic result_stall;
    logic read_beat;
    logic write_beat;
  } perf_events_t;

  typedef enum logic [1:0] {
    OPERAND_SRC1 = 2'd0,
    OPERAND_SRC2 = 2'd1,
    OPERAND_SRC3 = 2'd2,
    OPERAND_DST  = 2'd3
  } operand_e;

  /// The engines, as positions in vectors of one bit or value per engine.
  localparam int unsigned NUM_ENGINES   = 4;
  localparam int unsigned ENGINE_MOVE   = 0;
  localparam int unsigned ENGINE_MATRIX = 1;
  localparam int unsigned ENGINE_VECTOR = 2;
  localparam int unsigned ENGINE_GATHER = 3;

  typedef logic [NUM_ENGINES-1:0] engines_t;

  /// Which engine runs an opcode, one bit; none for what the command processor does by itself.
  function automatic engines_t opcode_engine(logic [31:0] opcode);
    unique case (opcode)
      OPCODE_COPY, OPCODE_FILL:      return engines_t'(1 << ENGINE_MOVE);
      OPCODE_MATMUL:                 return engines_t'(1 << ENGINE_MATRIX);
      OPCODE_VECTOR:                 return engines_t'(1 << ENGINE_VECTOR);
      OPCODE_GATHER, OPCODE_SCATTER: return engines_t'(1 << ENGINE_GATHER);
      default:                       return '0;
    endcase
  endfunction

  /// One operand as the packet states it. `shape` is that of the data in memory; it is meaningless
  /// for a descriptor unless `shape_known`, and must then be the descriptor's, `rank` included.
  /// With `has_dim` the packet picks dimension `dim`, which must exist; with `free_dim` the
  /// descriptor's size there is its own.
  typedef struct packed {
    logic        used;
    logic        is_desc;
    logic        is_dst;
    logic        transposed;  // the engine's view swaps the two inner dimensions
    logic        shape_known;
    logic        has_dim;
    logic        free_dim;
    logic [2:0]  dim;
    logic [63:0] addr;
    logic [3:0]  dtype;
    logic [1:0]  log2_bytes;
    logic [2:0]  rank;
    shape_t      shape;
  } operand_t;

  /// Selects an index within a ring of 2^log2_entries slots; above 16 counts as 16.
  function automatic index_t index_mask(logic [4:0] log2_entries);
    return INDEX_WIDTH'((17'd1 << log2_entries) - 17'd1);
  endfunction

  /// Where dimension `dim` of a descriptor of that rank lies in npu_tensor_t and shape_t.
  function automatic logic [2:0] tensor_dim(logic [2:0] dim, logic [2:0] rank);
    return dim + 3'(MAX_RANK) - rank;
  endfunction

  /// The program that a VECTOR packet names; of no meaning unless it exists.
  function automatic program_t vector_program(logic [31:0] number);
    return (number < PROGRAM_COUNT) ? PROGRAMS[number[PROGRAM_INDEX_WIDTH-1:0]] : '0;
  endfunction
endpackage
