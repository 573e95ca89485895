// SPDX-License-Identifier: Apache-2.0
/// Types inside the matrix engine. Widths hold the largest configuration; unused bits stay zero.
///
/// A tile is ArraySize × ArraySize elements. A block is the part of one output matrix that the
/// accumulators hold at a time: up to RowTiles row tiles, and as many column tiles as then fit.
package npu_matrix_pkg;
  typedef logic [5:0] slot_t;    // of an operand buffer, in tiles
  typedef logic [4:0] lane_t;    // 0 … ArraySize-1
  typedef logic [5:0] extent_t;  // 0 … ArraySize valid rows, columns or ks of a tile
  typedef logic [15:0] entry_t;  // of the accumulators, one row of one tile

  /// One block of work, handed from loader to sequencer to drain.
  typedef struct packed {
    logic [63:0] a_addr;  // of A[b, first row, 0]
    logic [63:0] b_addr;  // of B[b, 0, first column]
    logic [63:0] c_addr;  // of C[b, first row, first column]
    logic [15:0] rows;
    logic [15:0] cols;
    logic [7:0]  row_tiles;
    logic [7:0]  col_tiles;
    logic        half;    // of the accumulators
    logic        last;    // of the command
  } block_t;

  typedef enum logic [1:0] {
    OPERAND_A,
    OPERAND_B,
    OPERAND_C
  } operand_e;

  /// A tile to fetch, as lines of elements: the direction in memory that has unit stride.
  typedef struct packed {
    operand_e    operand;
    logic        half;         // of the accumulators (C)
    entry_t      place;        // slot of A or B; first entry of C
    logic        along_k;      // a line runs along k (A, B)
    logic        single;       // no unit stride: each element is a request of its own
    logic [63:0] addr;
    logic [63:0] line_step;    // bytes
    logic [63:0] elem_step;    // bytes
    extent_t     lines;
    extent_t     elems;
  } tile_t;

  /// What to do with the beats of one read request.
  typedef struct packed {
    operand_e   operand;
    logic       half;
    entry_t     place;
    logic       along_k;
    logic       single;
    logic       last;          // request of its tile
    lane_t      line;
    lane_t      elem;          // first element in the line
    extent_t    elems;
    logic [5:0] offset;        // bytes before the first element in the first beat
    logic [3:0] beats;
  } pending_t;

  /// Where a (partial) line goes in the operand buffers or accumulators; data travels beside it.
  typedef struct packed {
    operand_e operand;
    logic     half;
    entry_t   place;
    logic     along_k;
    lane_t    line;
  } place_t;

  /// One row of A on its way down the array; reaches row r after r × FmaLatency cycles.
  typedef struct packed {
    logic    valid;
    slot_t   a_slot;
    lane_t   a_lane;
    slot_t   b_slot;
    logic    weights;     // first row with this weight tile: take it from b_slot
    logic    a_free;      // last use of a_slot
    extent_t ks;          // rows of the array in use
    extent_t cols;        // columns in use
    logic    first;       // partial sum starts at +0
    logic    half;        // accumulator half
    entry_t  entry;
    logic    block_end;
  } token_t;
endpackage
