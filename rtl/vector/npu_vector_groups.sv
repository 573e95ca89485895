// SPDX-License-Identifier: Apache-2.0
/// Gathers the vectors of the sources into groups, two of them: one fills while the other is worked
/// on.
///
/// Takes one vector of every source per cycle, when all that the program has are there; a program
/// without sources needs none. A group is handed over when it has GROUP vectors or the last one of
/// the command. Groups ignore the ends of rows, so that short rows fill them as well.
module npu_vector_groups
  import npu_pkg::*;
  import npu_isa_pkg::MAX_RANK;
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
(
  input  logic                      clk_i,
  input  logic                      rst_ni,

  // Stable from start_i until the last group is free
  input  logic                      start_i,
  input  logic [MAX_RANK-1:0][31:0] size_i,
  input  logic [2:0]                sources_i,

  input  logic [MAX_SOURCES-1:0]    vec_valid_i,
  output logic                      vec_ready_o,

  // Vectors are still to come; where this cycle's go
  output logic                      filling_o,
  output logic                      fill_half_o,
  output group_slot_t               fill_slot_o,

  // The group to work on
  output logic                      group_valid_o,
  output logic                      group_half_o,
  output group_slot_t               group_last_o,   // slot of its last vector
  input  logic                      group_free_i,
  input  group_slot_t               meta_slot_i,
  output meta_t                     meta_o
);
  localparam logic [31:0] Lanes = 32'(LOGICAL_LANES);

  logic                      busy_q, half_q, group_half_q, have_all, take, row_end, last, hand_over;
  logic [1:0]                full_q;
  group_slot_t               slot_q;
  group_slot_t               last_slot_q [2];
  logic [31:0]               index_q, left;
  logic [MAX_RANK-2:0][31:0] outer_q;    // position in the outer dimensions
  logic [MAX_RANK-2:0]       at_end;
  logic [MAX_RANK-2:0]       carry;      // all dimensions inside this one are at their end
  meta_t                     meta;
  meta_t                     meta_q [2 * GROUP];

  always_comb begin
    have_all = 1'b1;
    for (int unsigned s = 0; s < MAX_SOURCES; s++) begin
      if (s < 32'(sources_i) && !vec_valid_i[s]) have_all = 1'b0;
    end
    for (int unsigned d = 0; d < MAX_RANK - 1; d++) at_end[d] = outer_q[d] == size_i[d] - 32'd1;
    carry[MAX_RANK-2] = 1'b1;
    for (int d = MAX_RANK - 3; d >= 0; d--) carry[d] = carry[d+1] && at_end[d+1];
  end

  assign take      = busy_q && have_all && !full_q[half_q];
  assign left      = size_i[MAX_RANK-1] - index_q;
  assign row_end   = left <= Lanes;
  assign last      = row_end && at_end == '1;
  assign hand_over = take && (last || slot_q == group_slot_t'(GROUP - 1));
  assign meta      = '{row_end: row_end, count: row_end ? left[4:0] : count_t'(Lanes),
                       index: index_q};

  assign vec_ready_o   = take;
  assign filling_o     = busy_q;
  assign fill_half_o   = half_q;
  assign fill_slot_o   = slot_q;
  assign group_valid_o = full_q[group_half_q];
  assign group_half_o  = group_half_q;
  assign group_last_o  = last_slot_q[group_half_q];
  assign meta_o        = meta_q[{group_half_q, meta_slot_i}];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q       <= 1'b0;
      full_q       <= '0;
      half_q       <= 1'b0;
      group_half_q <= 1'b0;
      slot_q       <= '0;
    end else begin
      if (start_i)           busy_q <= 1'b1;
      else if (take && last) busy_q <= 1'b0;
      if (hand_over) begin
        full_q[half_q] <= 1'b1;
        half_q         <= !half_q;
      end
      if (take) slot_q <= hand_over ? '0 : slot_q + group_slot_t'(1);
      if (group_free_i) begin
        full_q[group_half_q] <= 1'b0;
        group_half_q         <= !group_half_q;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i)   index_q <= '0;
    else if (take) index_q <= row_end ? '0 : index_q + Lanes;
  end

  // The innermost of the outer dimensions that is not at its end takes a step.
  for (genvar d = 0; d < MAX_RANK - 1; d++) begin : gen_outer
    always_ff @(posedge clk_i) begin
      if (start_i) outer_q[d] <= '0;
      else if (take && row_end && carry[d]) begin
        outer_q[d] <= at_end[d] ? '0 : outer_q[d] + 32'd1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (take)      meta_q[{half_q, slot_q}] <= meta;
    if (hand_over) last_slot_q[half_q]      <= slot_q;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && group_free_i) begin
      FreesWhatItHas: assert (group_valid_o)
        else $error("npu_vector_groups: freed a group that was not handed over");
    end
  end
endmodule
