// SPDX-License-Identifier: Apache-2.0
/// Writes vectors to the destination's view, in order.
///
/// Words become elements by what docs/numerics.md calls the store of their type. Contiguous
/// elements leave at the rate of the bus or a vector per cycle, others one per cycle. A write is
/// requested when its first data is here, and is short, so that other writers are not delayed for
/// long. With `whole_i` all its data must have arrived, here or in the queue of QueueDepth vectors
/// in front of `vec_i`: then no write waits for what another store's vectors hold up. Such writes
/// are short and of one row, and the queue holds what one needs. `busy_o` falls when every write is
/// acknowledged.
module npu_vector_store
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_types_pkg::*;
#(
  parameter int unsigned BusBits    = 256,
  parameter int unsigned QueueDepth = 16,
  localparam int unsigned StrbW     = BusBits / 8
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  // Stable from start_i until busy_o falls
  input  logic                       start_i,
  output logic                       busy_o,
  input  npu_tensor_t                view_i,
  input  dtype_e                     dtype_i,
  input  logic                       whole_i,

  // A vector that enters the queue
  input  logic                       arrive_i,
  input  count_t                     arrive_count_i,

  input  logic                       vec_valid_i,
  output logic                       vec_ready_o,
  input  vector_t                    vec_i,
  input  count_t                     count_i,

  output mem_wr_req_t                wr_req_o,
  input  mem_wr_rsp_t                wr_rsp_i,
  output logic [BusBits-1:0]         wr_data_o,
  output logic [StrbW-1:0]           wr_strb_o
);
  localparam int unsigned LaneW = $clog2(StrbW);
  // A vector of 8-byte elements.
  localparam int unsigned PackedBits = 2 * VECTOR_BITS;
  localparam int unsigned BytesW = $clog2(PackedBits / 8 + 1);
  // Requests of 16 beats.
  localparam int unsigned RequestW = LaneW + 4;
  // Elements that have arrived: of the vectors in the queue and of the one here.
  localparam int unsigned ArrivedW = $clog2((QueueDepth + 1) * LOGICAL_LANES + 1);
  localparam logic [MAX_RANK-1:0] RowOnly = MAX_RANK'(1) << (MAX_RANK - 1);

  logic [1:0]                 elem_log2;
  logic                       full_q, load, used_up, dst_busy, dst_valid, sent;
  logic                       offered_q, dst_run, take, dst_take, out_valid, out_ready;
  logic [PackedBits-1:0]      packed_q;
  logic [BytesW-1:0]          bytes_q, offset_q, left;
  logic [LaneW-1:0]           dst_lane;
  logic [LaneW:0]             bytes, dst_bytes;
  logic [REQ_BYTES_WIDTH-1:0] dst_left;
  logic [BusBits-1:0]         beat, out_data;
  logic [StrbW-1:0]           out_strb;
  logic                       all_answered;
  mem_range_t                 range;
  logic [ArrivedW-1:0]        arrived_q;   // and not yet in a request
  logic                       enough;

  assign elem_log2 = dtype_log2_bytes(dtype_i);

  // ---- words to elements ----
  function automatic logic [PackedBits-1:0] elements(vector_t words, dtype_e dtype);
    // verilator no_inline_task
    elements = '0;
    unique case (dtype)
      DTYPE_FP16: for (int unsigned l = 0; l < LOGICAL_LANES; l++) begin
        elements[l*16 +: 16] = npu_fp_pkg::fp32_to_fp16(words[l*32 +: 32]);
      end
      DTYPE_BF16: for (int unsigned l = 0; l < LOGICAL_LANES; l++) begin
        elements[l*16 +: 16] = npu_fp_pkg::fp32_to_bf16(words[l*32 +: 32]);
      end
      DTYPE_INT8, DTYPE_UINT8: for (int unsigned l = 0; l < LOGICAL_LANES; l++) begin
        elements[l*8 +: 8] = words[l*32 +: 8];
      end
      DTYPE_INT64: for (int unsigned l = 0; l < LOGICAL_LANES; l++) begin
        elements[l*64 +: 64] = {{32{words[l*32+31]}}, words[l*32 +: 32]};
      end
      default: elements[VECTOR_BITS-1:0] = words;
    endcase
  endfunction

  assign left        = bytes_q - offset_q;
  assign used_up     = take && BytesW'(bytes) == left;
  assign vec_ready_o = !full_q || used_up;
  assign load        = vec_valid_i && vec_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)      full_q <= 1'b0;
    else if (load)    full_q <= 1'b1;
    else if (used_up) full_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      packed_q <= elements(vec_i, dtype_i);
      bytes_q  <= BytesW'(count_i) << elem_log2;
      offset_q <= '0;
    end else if (take) begin
      offset_q <= offset_q + BytesW'(bytes);
    end
  end

  always_comb begin
    beat = '0;
    if (full_q) beat = packed_q[(32'(offset_q) >> LaneW) * BusBits +: BusBits];
  end

  // ---- the destination, as in npu_copy ----
  npu_copy_walk #(.RequestW(RequestW)) u_walk (
    .clk_i, .rst_ni, .start_i, .stop_i(1'b0), .busy_o(dst_busy),
    .view_i, .merge_i(whole_i ? RowOnly : '1), .short_i(whole_i), .elem_log2_i(elem_log2),
    .req_valid_o(dst_valid), .req_ready_i(sent),
    .req_range_o(range), .req_last_o(), .loop_o()
  );

  // Offered when there is data, and then until it is taken.
  assign enough = whole_i ? range.bytes >> elem_log2 <= REQ_BYTES_WIDTH'(arrived_q) : full_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) arrived_q <= '0;
    else if (whole_i) begin
      arrived_q <= arrived_q + (arrive_i ? ArrivedW'(arrive_count_i) : '0)
                 - (sent ? ArrivedW'(range.bytes >> elem_log2) : '0);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) offered_q <= 1'b0;
    else         offered_q <= wr_req_o.valid && !wr_rsp_i.ready;
  end

  npu_copy_align #(.BusBits(BusBits)) u_align (
    .clk_i, .rst_ni, .fill_i(1'b0), .pattern_i('0), .drain_i(1'b0),
    .src_valid_i(full_q), .src_lane_i(offset_q[LaneW-1:0]),
    .src_left_i(REQ_BYTES_WIDTH'(left)),
    .src_take_o(take), .src_bytes_o(bytes),
    .beat_valid_i(full_q), .beat_ready_o(), .beat_i(beat),
    .dst_valid_i(dst_run), .dst_lane_i(dst_lane), .dst_left_i(dst_left),
    .dst_take_o(dst_take), .dst_bytes_o(dst_bytes),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_o(out_data), .strb_o(out_strb),
    .stats_o()
  );

  npu_copy_write #(.BusBits(BusBits)) u_write (
    .clk_i, .rst_ni,
    .open_i(dst_valid && (enough || offered_q)), .range_i(range), .sent_o(sent),
    .all_answered_o(all_answered),
    .empty_o(), .run_valid_o(dst_run), .lane_o(dst_lane), .left_o(dst_left),
    .take_i(dst_take), .take_bytes_i(dst_bytes),
    .beat_valid_i(out_valid), .beat_ready_o(out_ready), .beat_i(out_data), .strb_i(out_strb),
    .wr_req_o, .wr_rsp_i, .wr_data_o, .wr_strb_o
  );

  // Else a write could wait for ever for a vector that has no room: of one byte each, and neither
  // the first nor the last one whole.
  if (QueueDepth < SHORT_REQ_BYTES / LOGICAL_LANES + 2) begin : gen_bad_queue_depth
    $error("npu_vector_store: QueueDepth %0d", QueueDepth);
  end

  assign busy_o = dst_busy || !all_answered;
endmodule
