// SPDX-License-Identifier: Apache-2.0
/// Types inside the matrix engine. Widths hold the largest configuration; unused bits stay zero.
///
/// A tile is ArraySize × ArraySize elements. A block is the part of one output matrix that the
/// accumulators hold at a time: up to RowTiles row tiles, and as many column tiles as then fit.
package npu_matrix_pkg;
  import npu_isa_pkg::*;
  import npu_pkg::*;

  typedef logic [5:0]  tile_slot_t;  // of an operand buffer, in tiles
  typedef logic [4:0]  lane_t;       // 0 … ArraySize-1
  typedef logic [5:0]  extent_t;     // 0 … ArraySize valid rows, columns or ks of a tile
  typedef logic [15:0] entry_t;      // of the accumulators, one row of one tile

  /// A place in the rows or columns of an operand: how much is left of the two fastest digits, this
  /// place included, and the distance from place 0 in elements.
  typedef struct packed {
    logic [63:0] offset;
    logic [31:0] middle;
    logic [31:0] inner;
  } position_t;

  /// Place 0.
  function automatic position_t origin(npu_axis_t axis);
    // verilator no_inline_task
    return '{offset: '0, middle: axis.middle, inner: axis.inner};
  endfunction

  /// One block of work, handed from loader to sequencer to drain.
  typedef struct packed {
    logic [15:0] rows;
    logic [15:0] cols;
    logic [7:0]  row_tiles;
    logic [7:0]  col_tiles;
    logic        half;      // of the accumulators
    logic        last_col;  // no block beside it
    logic        last_row;  // nor below it
    logic        last;      // of the command
  } block_t;

  typedef enum logic [1:0] {
    MATRIX_A,
    MATRIX_B,
    MATRIX_C,
    MATRIX_S   // scales of weights of four bits
  } matrix_operand_e;

  /// The type in which an operand is read, of a command with these types.
  function automatic logic [3:0] operand_dtype(matrix_operand_e operand, logic int4,
                                               logic [3:0] src_dtype, logic [3:0] dst_dtype);
    if (operand == MATRIX_C)         return dst_dtype;
    if (operand == MATRIX_B && int4) return DTYPE_INT32;
    return src_dtype;
  endfunction

  /// How the elements of a line follow each other in memory, within the innermost digit.
  typedef enum logic [1:0] {
    RUN_SINGLE,  // with gaps: each element is a request of its own
    RUN_UNIT,    // adjacent
    RUN_REPEAT   // one element in all places
  } run_e;

  function automatic run_e run_of(npu_axis_t axis);
    // verilator no_inline_task
    if (axis.inner == 32'd1)   return RUN_SINGLE;
    if (axis.step[0] == 64'd1) return RUN_UNIT;
    if (axis.step[0] == '0)    return RUN_REPEAT;
    return RUN_SINGLE;
  endfunction

  /// The place of a tile of B of four bits: its slot, and the first entry of its scales.
  function automatic entry_t place_of_int4(tile_slot_t slot, logic [7:0] scales);
    return {scales, 2'b00, slot};
  endfunction

  /// A tile to fetch, as lines of elements: the direction that has the longer runs in memory.
  typedef struct packed {
    matrix_operand_e operand;
    logic            half;     // of the accumulators (C)
    entry_t          place;    // slot of A or B; first entry of C or of the scales
    logic            along_k;  // a line runs along k (A, B)
    logic            reuse;    // read through the operand buffer
    run_e            run;
    extent_t         lines;
    extent_t         elems;
    logic [63:0]     base;     // of the operand in this batch
    position_t       line;     // of the first line
    position_t       elem;     // of the first element of each line
  } tile_t;

  /// The operand buffer: beats in REUSE_BANKS banks, 2^REUSE_WIDTH of them together.
  localparam int unsigned REUSE_BANKS = 4;
  localparam int unsigned REUSE_WIDTH = 8;

  /// Whether an operand reads elements again, or may: its rows or columns have more than one digit,
  /// or both of them are adjacent elements.
  function automatic logic reads_again(npu_window_t window);
    // verilator no_inline_task
    return window.row.middle != 32'd1 || window.col.middle != 32'd1 ||
           (run_of(window.row) == RUN_UNIT && run_of(window.col) == RUN_UNIT);
  endfunction

  /// What to do with the beats of one read request.
  typedef struct packed {
    matrix_operand_e        operand;
    logic                   half;
    entry_t                 place;
    logic                   along_k;
    logic                   same;    // one element for all lanes
    logic                   last;    // request of its tile
    lane_t                  line;
    lane_t                  elem;    // first element in the line
    extent_t                elems;
    logic [7:0]             skew;    // byte of lane 0, were it there, in the first beat; modulo 256
    logic [3:0]             beats;
    logic                   reuse;   // through the operand buffer, then:
    logic [7:0]             cut;     // byte of the line where its second run begins; lane 0 at 0
    logic [7:0]             cut2;    // where its third does; all ones without one
    logic [5:0]             gap;     // bytes of the memory between two runs
    logic [REUSE_WIDTH-1:0] first;   // the first one
    logic [REUSE_WIDTH-1:0] missed;  // the first one that is requested
    logic [2:0]             misses;  // so many are
  } pending_t;

  /// Where a (partial) line goes in the operand buffers or accumulators; data travels beside it.
  typedef struct packed {
    matrix_operand_e operand;
    logic            half;
    entry_t          place;
    logic            along_k;
    lane_t           line;
  } buffer_addr_t;

  /// One row of A on its way down the array, as its rows see it: it reaches row r after
  /// r × FmaLatency cycles.
  typedef struct packed {
    tile_slot_t a_slot;
    lane_t      a_lane;
    tile_slot_t b_slot;
    logic       weights;  // first row with this weight tile: take it from b_slot
    logic       a_free;   // last use of a_slot
    extent_t    ks;       // rows of the array in use
    extent_t    cols;     // columns in use
  } row_token_t;

  /// Where its sums lie in the accumulators.
  typedef struct packed {
    logic    half;
    entry_t  entry;
    logic    tile_end;    // last pass: the sums of a column tile are final
  } sum_token_t;

  /// One row of A as it enters the array.
  typedef struct packed {
    logic       valid;
    logic       first;    // its sums start at +0
    row_token_t row;
    sum_token_t sum;
  } token_t;
endpackage
