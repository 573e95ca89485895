// SPDX-License-Identifier: Apache-2.0
/// Types inside the vector engine.
///
/// A vector is up to 16 neighbouring elements of one innermost row, as 32-bit words in 16 logical
/// lanes; the last one of a row has what is left. A group is up to GROUP vectors on which the
/// program runs instruction by instruction, so that the vectors of a group hide the latency of the
/// lanes. Physical lanes take a vector in one or more beats.
package npu_vector_types_pkg;
  import npu_vector_pkg::*;

  localparam int unsigned LOGICAL_LANES = REDUCTION_LANES;
  localparam int unsigned VECTOR_BITS = 32 * LOGICAL_LANES;
  localparam int unsigned GROUP = 8;
  /// Cycles of a division or square root; more than any FmaLatency.
  localparam int unsigned DIV_LATENCY = 12;

  typedef logic [VECTOR_BITS-1:0] vector_t;
  typedef logic [2:0] slot_t;   // of a group
  typedef logic [1:0] beat_t;   // of a vector, ascending
  typedef logic [4:0] count_t;  // elements of a vector, 1 to 16

  typedef struct packed {
    logic        row_end;
    count_t      count;
    logic [31:0] index;  // of the first element in its row
  } meta_t;

  /// One beat on its way through the lanes. Payload beside it.
  typedef struct packed {
    logic       valid;
    logic       out;       // leaves the lanes instead of going to register `dst`
    logic [3:0] dst;
    slot_t      slot;
    beat_t      beat;
    logic       last;      // beat of its vector
    logic       row_end;
    count_t     count;
  } tag_t;

  function automatic logic is_slow(micro_op_e op);
    return op == MICRO_DIV || op == MICRO_SQRT;
  endfunction

  function automatic logic has_b(micro_op_e op);
    return !(op inside {MICRO_MOV, MICRO_SQRT, MICRO_I2F, MICRO_F2I, MICRO_F2I_TRUNC});
  endfunction

  function automatic logic has_c(micro_op_e op);
    return op inside {MICRO_FMA, MICRO_SEL};
  endfunction
endpackage
