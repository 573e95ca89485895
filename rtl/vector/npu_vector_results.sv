// SPDX-License-Identifier: Apache-2.0
/// The results of a program on their way to memory: for each a queue of vectors and a store; the
/// first may be reduced.
///
/// `room_o` says for each result whether a vector may be issued; `result_issue_i` issues it, and
/// `push_i` brings it. With several results a write waits in its store until all its data is there:
/// the stores share one way to memory, and the vectors of one result come after those of another.
module npu_vector_results
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
#(
  parameter int unsigned BusBits    = 256,
  parameter int unsigned FmaLatency = 4,
  localparam int unsigned StrbW     = BusBits / 8
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  // Stable from start_i until busy_o falls
  input  logic                                start_i,
  input  reduce_e                             reduce_i,
  input  logic [1:0]                          results_i,
  input  npu_tensor_t                         view_i [MAX_RESULTS],
  input  dtype_e                              dtype_i [MAX_RESULTS],
  output logic                                busy_o,

  input  logic                                result_issue_i,
  input  result_no_t                          result_idx_i,
  output logic [MAX_RESULTS-1:0]              room_o,

  input  logic                                push_i,
  input  result_no_t                          push_no_i,
  input  result_t                             vec_i,
  output logic                                drained_o,  // no vector is under way

  output mem_wr_req_t [MAX_RESULTS-1:0]       wr_req_o,
  input  mem_wr_rsp_t [MAX_RESULTS-1:0]       wr_rsp_i,
  output logic [MAX_RESULTS-1:0][BusBits-1:0] wr_data_o,
  output logic [MAX_RESULTS-1:0][StrbW-1:0]   wr_strb_o
);
  // Vectors in the lanes and waiting for the store: two groups.
  localparam int unsigned Depth = 2 * GROUP;
  localparam int unsigned RoomW = $clog2(Depth + 1);

  logic                   reduces, reduce_clk, reduce_ready, row_valid;
  logic [31:0]            row;
  logic [MAX_RESULTS-1:0] store_busy, store_ready, queued_valid, drained;
  result_t                queued [MAX_RESULTS];

  assign reduces   = reduce_i != REDUCE_NONE;
  assign busy_o    = store_busy != '0;
  assign drained_o = drained == '1 && !row_valid;

  npu_clock_gate u_reduce_gate (.clk_i, .en_i(!rst_ni || reduces), .clk_o(reduce_clk));

  npu_vector_reduce #(.FmaLatency(FmaLatency)) u_reduce (
    .clk_i(reduce_clk), .rst_ni, .reduce_i,
    .vec_valid_i(queued_valid[0] && reduces), .vec_ready_o(reduce_ready), .vec_i(queued[0].data),
    .count_i(queued[0].count), .row_end_i(queued[0].row_end),
    .out_valid_o(row_valid), .out_ready_i(store_ready[0] && reduces), .out_o(row)
  );

  for (genvar n = 0; n < MAX_RESULTS; n++) begin : gen_result
    logic             used, result_clk, reduced, push, out_ready;
    logic [RoomW-1:0] room_q;

    assign used    = n < 32'(results_i);
    assign reduced = reduces && n == 0;
    assign push    = push_i && push_no_i == result_no_t'(n);
    npu_clock_gate u_gate (.clk_i, .en_i(!rst_ni || used), .clk_o(result_clk));

    npu_fifo #(.Width($bits(result_t)), .Depth(Depth), .NeverFull(1'b1)) u_queue (
      .clk_i(result_clk), .rst_ni, .flush_i(1'b0),
      .in_valid_i(push), .in_ready_o(), .in_data_i(vec_i),
      .out_valid_o(queued_valid[n]), .out_ready_i(out_ready), .out_data_o(queued[n]), .count_o()
    );

    assign out_ready  = reduced ? reduce_ready : store_ready[n];
    assign room_o[n]  = room_q != '0;
    assign drained[n] = room_q == RoomW'(Depth);

    always_ff @(posedge result_clk) begin
      if (!rst_ni) room_q <= RoomW'(Depth);
      else room_q <= room_q + RoomW'(queued_valid[n] && out_ready)
                   - RoomW'(result_issue_i && result_idx_i == result_no_t'(n));
    end

    npu_vector_store #(.BusBits(BusBits), .QueueDepth(Depth)) u_store (
      .clk_i(result_clk), .rst_ni, .start_i(start_i && used), .busy_o(store_busy[n]),
      .view_i(view_i[n]), .dtype_i(dtype_i[n]), .whole_i(results_i > 2'd1),
      .arrive_i(push), .arrive_count_i(vec_i.count),
      .vec_valid_i(reduced ? row_valid : queued_valid[n]), .vec_ready_o(store_ready[n]),
      .vec_i(reduced ? VECTOR_BITS'(row) : queued[n].data),
      .count_i(reduced ? count_t'(1) : queued[n].count),
      .wr_req_o(wr_req_o[n]), .wr_rsp_i(wr_rsp_i[n]), .wr_data_o(wr_data_o[n]),
      .wr_strb_o(wr_strb_o[n])
    );
  end
endmodule
