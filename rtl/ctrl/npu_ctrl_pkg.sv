// SPDX-License-Identifier: Apache-2.0
/// Types inside the command processor.
package npu_ctrl_pkg;
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::*;

  /// Packets, descriptors and completion records all fill one 64-byte line.
  localparam int unsigned LINE_BITS       = 512;
  localparam int unsigned LINE_BYTES      = 64;
  localparam int unsigned LINE_ADDR_WIDTH = 58;  // byte address bits 63:6
  localparam int unsigned RING_INDEX_WIDTH = 16;  // slots of the largest ring: 2^16

  typedef logic [LINE_BITS-1:0]        line_t;
  typedef logic [LINE_ADDR_WIDTH-1:0]  line_addr_t;
  typedef logic [RING_INDEX_WIDTH-1:0] ring_index_t;
  typedef logic [MAX_RANK-1:0][31:0]   shape_t;  // [MAX_RANK-1] innermost, missing dimensions 1

  /// What lies in memory: a window, or a tensor in the innermost dimensions. [WINDOW_RANK-1] is the
  /// innermost; missing dimensions have size 1 and stride 0.
  typedef struct packed {
    logic [ADDR_WIDTH-1:0]        base;
    logic [WINDOW_RANK-1:0][31:0] size;
    logic [WINDOW_RANK-1:0][31:0] stride;
  } view_t;
  // Where a tensor begins in a view, and a window's batch, rows and columns.
  localparam int unsigned VIEW_TENSOR = WINDOW_RANK - MAX_RANK;
  localparam int unsigned VIEW_BATCH  = 0;
  localparam int unsigned VIEW_ROW    = 1;
  localparam int unsigned VIEW_COL    = VIEW_ROW + WINDOW_GROUP;

  /// What the host drives on the AXI4-Lite port.
  typedef struct packed {
    logic        aw_valid;
    logic [15:0] aw_addr;
    logic [2:0]  aw_prot;
    logic        w_valid;
    logic [31:0] w_data;
    logic [3:0]  w_strb;
    logic        b_ready;
    logic        ar_valid;
    logic [15:0] ar_addr;
    logic [2:0]  ar_prot;
    logic        r_ready;
  } axil_req_t;

  /// What the registers answer.
  typedef struct packed {
    logic        aw_ready;
    logic        w_ready;
    logic        b_valid;
    logic [1:0]  b_resp;
    logic        ar_ready;
    logic        r_valid;
    logic [31:0] r_data;
    logic [1:0]  r_resp;
  } axil_rsp_t;

  /// A ring of lines in memory, as software configured it.
  typedef struct packed {
    logic       enable;
    logic [4:0] log2_entries;
    line_addr_t base;
  } ring_config_t;

  /// Commands that have started and are not completed, at most; a power of two.
  localparam int unsigned CMD_SLOTS  = 8;
  localparam int unsigned CMD_SLOT_WIDTH = $clog2(CMD_SLOTS);
  /// Operands of one command, at most: sources and results.
  localparam int unsigned CMD_SPANS  = 8;

  typedef logic [CMD_SLOT_WIDTH-1:0] cmd_slot_t;
  typedef logic [CMD_SLOTS-1:0]      cmd_slots_t;  // one bit per slot

  /// Command queues: the ring with the queue behind CMD_PUSH, and the second ring. A queue's number
  /// selects among vectors of this size.
  localparam int unsigned QUEUES = 2;

  typedef logic                    queue_t;
  typedef logic [QUEUES-1:0]       queues_t;       // one bit per queue
  typedef cmd_slots_t [QUEUES-1:0] queue_slots_t;  // the slots of each queue's table

  /// Where a command that has started is kept.
  typedef struct packed {
    queue_t    qid;
    cmd_slot_t slot;
  } cmd_slot_id_t;

  /// The bytes of an operand, from its first to its last one, counted from the start of the memory.
  typedef struct packed {
    logic        write;  // a destination
    logic [63:0] first;
    logic [63:0] last;
  } span_t;

  /// What is counted for the whole device and for each command, one bit per cycle.
  typedef struct packed {
    logic active;
    logic operand_stall;
    logic result_stall;
    logic read_beat;
    logic write_beat;
  } perf_events_t;

  /// What one command cost its engine, in cycles and beats; counts wrap.
  typedef struct packed {
    logic [31:0] active;
    logic [31:0] operand_stall;
    logic [31:0] result_stall;
    logic [31:0] read_beats;
    logic [31:0] write_beats;
  } cmd_counts_t;

  /// The counts with the events of a cycle more.
  function automatic cmd_counts_t counted(cmd_counts_t counts, perf_events_t now);
    return '{active: counts.active + 32'(now.active),
             operand_stall: counts.operand_stall + 32'(now.operand_stall),
             result_stall: counts.result_stall + 32'(now.result_stall),
             read_beats: counts.read_beats + 32'(now.read_beat),
             write_beats: counts.write_beats + 32'(now.write_beat)};
  endfunction

  /// How long a command waited between its checks and its start.
  typedef struct packed {
    logic [31:0] engine;      // cycles: its engine was busy
    logic [31:0] operand;     // cycles: an earlier command was not done with its memory
    logic [31:0] waited_for;  // sequence number of the last one of those
    queue_t      qid;       // and its queue
  } cmd_waits_t;

  /// What a packet waits for in this cycle.
  typedef struct packed {
    logic        operand;  // memory that an earlier command uses
    logic        engine;   // its engine alone
    queue_t      qid;    // with operand: the last one of those commands
    logic [31:0] seq;
  } wait_now_t;

  /// A command that has started.
  typedef struct packed {
    logic        from_ring;
    logic        irq;
    logic [31:0] seq;
    logic [31:0] opcode;
    logic [63:0] start_cycle;
    cmd_waits_t  waits;
  } cmd_started_t;

  /// How a command ended.
  typedef struct packed {
    error_e      error;
    logic [63:0] end_cycle;
    cmd_counts_t counts;
  } cmd_ended_t;

  /// A packet on its way from the queue. A packet that could not be read has `fetch_err`.
  typedef struct packed {
    queue_t qid;
    logic   from_ring;
    logic   fetch_err;
    line_t  packet;
  } queued_packet_t;

  /// What the command processor writes to memory: a line, or with `word` the lowest 32 bits of it.
  typedef struct packed {
    logic                  word;
    logic [ADDR_WIDTH-1:0] addr;
    line_t                 data;
  } line_write_t;

  /// What software reads back.
  typedef struct packed {
    device_state_e            state;
    logic                     csr_queue_empty;
    logic                     csr_queue_full;
    queues_t                  ring_empty;
    error_e                   error_code;
    queue_t                   error_queue;
    logic [31:0]              error_seq;
    logic [QUEUES-1:0][31:0]  completed;
    ring_index_t [QUEUES-1:0] ring_head;
  } ctrl_status_t;

  /// Interrupt causes, one cycle each.
  typedef struct packed {
    queues_t complete;
    queues_t empty;
    logic    error;
  } irq_events_t;

  localparam int unsigned ENGINE_PAIRS = NUM_ENGINES * NUM_ENGINES;

  /// What is counted for each engine, one bit per cycle.
  typedef struct packed {
    logic [NUM_ENGINES-1:0]  busy;          // it has a command
    logic [NUM_ENGINES-1:0]  engine_wait;   // a command waits for it
    logic [ENGINE_PAIRS-1:0] command_wait;  // see wait_pair
  } engine_events_t;

  /// 32-bit counts of those since the last clear.
  typedef struct packed {
    logic [NUM_ENGINES-1:0][31:0]  busy;
    logic [NUM_ENGINES-1:0][31:0]  engine_wait;
    logic [ENGINE_PAIRS-1:0][31:0] command_wait;
  } engine_counts_t;

  /// 64-bit counts of the cycles since reset, and of commands and events since the last clear.
  typedef struct packed {
    logic [63:0] cycle;
    logic [63:0] busy;
    logic [63:0] active;
    logic [63:0] operand_stall;
    logic [63:0] result_stall;
    logic [63:0] read_beats;
    logic [63:0] write_beats;
    logic [63:0] commands;
  } perf_counts_t;

  /// In the order in which they are checked.
  typedef enum logic [2:0] {
    CMD_SRC1 = 3'd0,
    CMD_SRC2 = 3'd1,
    CMD_SRC3 = 3'd2,
    CMD_SRC4 = 3'd3,
    CMD_DST  = 3'd4,
    CMD_DST2 = 3'd5,
    CMD_DST3 = 3'd6
  } cmd_operand_e;

  localparam int unsigned CMD_OPERANDS = 7;

  /// Which engine runs an opcode.
  function automatic engine_e opcode_engine(logic [31:0] opcode);
    unique case (opcode)
      OPCODE_COPY, OPCODE_FILL:      return ENGINE_COPY;
      OPCODE_MATMUL:                 return ENGINE_MATRIX;
      OPCODE_VECTOR, OPCODE_LOAD:    return ENGINE_VECTOR;
      OPCODE_GATHER, OPCODE_SCATTER: return ENGINE_GATHER;
      default:                       return ENGINE_NONE;
    endcase
  endfunction

  /// Starts when every command of its queue before it has ended; LOAD: every command of both.
  function automatic logic opcode_waits_for_all(logic [31:0] opcode);
    return opcode == OPCODE_FENCE || opcode == OPCODE_SYNC || opcode == OPCODE_LOAD;
  endfunction

  /// May fail by its data: nothing behind it starts before it has ended.
  function automatic logic opcode_fails_by_data(logic [31:0] opcode);
    return opcode == OPCODE_GATHER || opcode == OPCODE_SCATTER || opcode == OPCODE_LOAD;
  endfunction

  /// The bit of "a command of `opcode` waits for one of `awaited`", if both have an engine.
  function automatic logic [ENGINE_PAIRS-1:0] wait_pair(logic [31:0] opcode, logic [31:0] awaited);
    logic [ENGINE_PAIRS-1:0] pair;
    pair = '0;
    for (int unsigned i = 0; i < ENGINE_PAIRS; i++) begin
      pair[i] = opcode_engine(opcode) == engine_e'(i / NUM_ENGINES)
             && opcode_engine(awaited) == engine_e'(i % NUM_ENGINES);
    end
    return pair;
  endfunction

  /// One operand as the packet states it. `shape` is that of the data in memory; it is meaningless
  /// for a descriptor unless `shape_known`, and must then be the descriptor's, `rank` included.
  /// With `has_dim` the packet picks dimension `dim`, which must exist; with `free_dim` the
  /// descriptor's size there is its own. With `own_dtype` the descriptor says the type, and `dtype`
  /// nothing.
  typedef struct packed {
    logic        is_line;     // begins at a line: a program's image
    logic        own_dtype;
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
  function automatic ring_index_t index_mask(logic [4:0] log2_entries);
    return RING_INDEX_WIDTH'((17'd1 << log2_entries) - 17'd1);
  endfunction

  /// Where dimension `dim` of a descriptor of that rank lies in npu_tensor_t and shape_t.
  function automatic logic [2:0] tensor_dim(logic [2:0] dim, logic [2:0] rank);
    return dim + 3'(MAX_RANK) - rank;
  endfunction

  /// Whether a first line says that it is a window's.
  function automatic logic line_is_window(line_t line);
    descriptor_t desc;
    desc = line;
    return desc.rank == WINDOW_RANK;
  endfunction

  function automatic line_addr_t line_behind(line_addr_t line);
    return line + LINE_ADDR_WIDTH'(1);
  endfunction

  /// Whether a line lies in [base, limit). The offset is negative, that is, with its top bit set,
  /// below the memory.
  function automatic logic line_inside(line_addr_t line, logic [63:0] base, logic [63:0] limit);
    logic [64:0] offset;
    offset = 65'({line, 6'b0}) - 65'(base);
    return !offset[64] && offset <= 65'(limit - base) - 65'(LINE_BYTES);
  endfunction
endpackage
