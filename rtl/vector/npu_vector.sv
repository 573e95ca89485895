// SPDX-License-Identifier: Apache-2.0
/// Vector engine: one VECTOR command is one pass of a program over up to three strided sources.
///
///     load ×3 → groups → seq → operands → lanes → results → store → (memory)
///                                  ↑________|        ↘ reduce ↗
///
/// Rows of any length stream through; nothing of them is kept. Takes a command when idle. After a
/// bus error the command runs to its end (its result is unspecified) and is then reported, a read
/// error before a write error. The destination may be a source, element for element: an element is
/// read before it is written, and never again.
module npu_vector
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
#(
  parameter int unsigned VectorLanes = 16,   // 4, 8, 16
  parameter int unsigned BusBits     = 256,
  parameter int unsigned FmaLatency  = 4,
  localparam int unsigned StrbW      = BusBits / 8
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  engine_req_t                   req_i,
  output engine_rsp_t                   rsp_o,

  // Memory controller
  output mem_rd_req_t [MAX_SOURCES-1:0] rd_req_o,
  input  mem_rd_rsp_t [MAX_SOURCES-1:0] rd_rsp_i,
  input  logic [BusBits-1:0]            rd_data_i,
  output mem_wr_req_t                   wr_req_o,
  input  mem_wr_rsp_t                   wr_rsp_i,
  output logic [BusBits-1:0]            wr_data_o,
  output logic [StrbW-1:0]              wr_strb_o
);
  localparam int unsigned BeatBits = 32 * VectorLanes;
  // Vectors in the lanes and waiting for the store: two groups.
  localparam int unsigned OutDepth = 2 * GROUP;
  localparam int unsigned RoomW = $clog2(OutDepth + 1);

  typedef enum logic [1:0] {
    IDLE,  // waiting for a command
    BUSY,  // streaming, draining
    DONE   // reporting
  } state_e;

  typedef struct packed {
    logic    row_end;
    count_t  count;
    vector_t data;
  } result_t;

  state_e          state_q, state_d;
  npu_engine_cmd_t cmd;
  program_t        prog;
  logic            start, reduces, store_busy, read_err, read_err_q, write_err_q;

  assign cmd         = req_i.cmd;
  assign prog        = PROGRAMS[$clog2(PROGRAM_COUNT)'(cmd.prog)];
  assign reduces     = prog.reduce != REDUCE_NONE;
  assign rsp_o.ready = state_q == IDLE;
  assign start       = req_i.valid && rsp_o.ready;

  // ---- sources ----
  npu_tensor_t            source [MAX_SOURCES];
  dtype_e                 source_dtype [MAX_SOURCES];
  logic [MAX_SOURCES-1:0] vec_valid;
  vector_t                vec [MAX_SOURCES];
  logic                   fill, filling, fill_half, group_valid, group_half, group_free;
  slot_t                  fill_slot, group_last, slot;
  meta_t                  meta;

  assign source       = '{cmd.src1, cmd.src2, cmd.src3};
  assign source_dtype = '{cmd.src_dtype, cmd.src2_dtype, cmd.src3_dtype};

  for (genvar s = 0; s < MAX_SOURCES; s++) begin : gen_source
    logic used, source_clk;
    assign used = s < 32'(prog.sources);
    npu_clock_gate u_gate (.clk_i, .en_i(!rst_ni || used), .clk_o(source_clk));
    npu_vector_load #(.BusBits(BusBits)) u_load (
      .clk_i(source_clk), .rst_ni,
      .start_i(start && used), .view_i(source[s]), .dtype_i(source_dtype[s]),
      .req_valid_o(rd_req_o[s].valid), .req_ready_i(rd_rsp_i[s].ready),
      .req_range_o(rd_req_o[s].range), .beat_valid_i(rd_rsp_i[s].data_valid), .beat_i(rd_data_i),
      .vec_valid_o(vec_valid[s]), .vec_ready_i(fill), .vec_o(vec[s])
    );
    assign rd_req_o[s].data_ready = 1'b1;
  end

  npu_vector_groups u_groups (
    .clk_i, .rst_ni, .start_i(start),
    .size_i((prog.sources != '0) ? cmd.src1.size : cmd.dst.size), .sources_i(prog.sources),
    .vec_valid_i(vec_valid), .vec_ready_o(fill), .filling_o(filling),
    .fill_half_o(fill_half), .fill_slot_o(fill_slot),
    .group_valid_o(group_valid), .group_half_o(group_half), .group_last_o(group_last),
    .group_free_i(group_free), .meta_slot_i(slot), .meta_o(meta)
  );

  // ---- compute ----
  logic                issue, beat_last, room, waits_room, out;
  logic [RoomW-1:0]    room_q;
  instruction_t        instruction;
  micro_op_e           op_q;
  beat_t               beat;
  tag_t                tag_q, tag;
  logic [BeatBits-1:0] a, b, c, result;

  npu_vector_seq #(.VectorLanes(VectorLanes), .FmaLatency(FmaLatency)) u_seq (
    .clk_i, .rst_ni, .program_i(prog),
    .group_valid_i(group_valid), .group_last_i(group_last), .group_free_o(group_free),
    .slot_o(slot), .meta_i(meta), .out_room_i(room), .issue_o(issue),
    .instruction_o(instruction), .beat_o(beat), .beat_last_o(beat_last),
    .waits_room_o(waits_room)
  );

  npu_vector_operands #(.VectorLanes(VectorLanes)) u_operands (
    .clk_i, .imm_i(cmd.imm), .sources_i(prog.sources),
    .fill_i(fill), .fill_half_i(fill_half), .fill_slot_i(fill_slot), .fill_vec_i(vec),
    .issue_i(issue), .instruction_i(instruction), .half_i(group_half), .slot_i(slot),
    .beat_i(beat), .meta_i(meta), .a_o(a), .b_o(b), .c_o(c),
    .write_i(tag), .result_i(result)
  );

  assign out = instruction.dst == 5'(DST_OUT);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) tag_q <= '0;
    else if (issue) begin
      tag_q <= '{valid: 1'b1, out: out, dst: instruction.dst[3:0], slot: slot, beat: beat,
                 last: beat_last, row_end: meta.row_end, count: meta.count};
    end else tag_q.valid <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (issue) op_q <= instruction.op;
  end

  npu_vector_lanes #(.VectorLanes(VectorLanes), .FmaLatency(FmaLatency)) u_lanes (
    .clk_i, .rst_ni, .tag_i(tag_q), .op_i(op_q), .a_i(a), .b_i(b), .c_i(c),
    .tag_o(tag), .result_o(result)
  );

  // ---- results: the beats of a vector, then a queue in front of store or reduction ----
  logic    push_q, out_valid, out_ready;
  result_t whole_q, queued;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) push_q <= 1'b0;
    else         push_q <= tag.valid && tag.out && tag.last;
  end
  always_ff @(posedge clk_i) begin
    if (tag.valid && tag.out) begin
      whole_q.row_end                                      <= tag.row_end;
      whole_q.count                                        <= tag.count;
      whole_q.data[32'(tag.beat) * BeatBits +: BeatBits]   <= result;
    end
  end

  npu_fifo #(.Width($bits(result_t)), .Depth(OutDepth)) u_results (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(push_q), .in_ready_o(), .in_data_i(whole_q),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_data_o(queued), .count_o()
  );

  assign room = room_q != '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) room_q <= RoomW'(OutDepth);
    else room_q <= room_q + RoomW'(out_valid && out_ready) - RoomW'(issue && out && beat_last);
  end

  logic        reduce_clk, reduce_ready, row_valid, store_valid, store_ready;
  logic [31:0] row;
  vector_t     store_vec;
  count_t      store_count;

  npu_clock_gate u_reduce_gate (.clk_i, .en_i(!rst_ni || reduces), .clk_o(reduce_clk));

  npu_vector_reduce #(.FmaLatency(FmaLatency)) u_reduce (
    .clk_i(reduce_clk), .rst_ni, .reduce_i(prog.reduce),
    .vec_valid_i(out_valid && reduces), .vec_ready_o(reduce_ready), .vec_i(queued.data),
    .count_i(queued.count), .row_end_i(queued.row_end),
    .out_valid_o(row_valid), .out_ready_i(store_ready && reduces), .out_o(row)
  );

  assign out_ready   = reduces ? reduce_ready : store_ready;
  assign store_valid = reduces ? row_valid : out_valid;
  assign store_vec   = reduces ? VECTOR_BITS'(row) : queued.data;
  assign store_count = reduces ? count_t'(1) : queued.count;

  npu_vector_store #(.BusBits(BusBits)) u_store (
    .clk_i, .rst_ni, .start_i(start), .busy_o(store_busy),
    .view_i(cmd.dst), .dtype_i(cmd.dst_dtype),
    .vec_valid_i(store_valid), .vec_ready_o(store_ready), .vec_i(store_vec),
    .count_i(store_count),
    .wr_req_o, .wr_rsp_i, .wr_data_o, .wr_strb_o
  );

  // ---- begin and end ----
  assign rsp_o.done = state_q == DONE;
  assign rsp_o.err  = read_err_q ? ERROR_BUS_READ : write_err_q ? ERROR_BUS_WRITE : ERROR_NONE;

  assign rsp_o.stats.active        = issue;
  assign rsp_o.stats.result_stall  = waits_room;
  assign rsp_o.stats.operand_stall = filling && !group_valid;

  always_comb begin
    read_err = 1'b0;
    for (int unsigned s = 0; s < MAX_SOURCES; s++) begin
      if (rd_rsp_i[s].data_valid && rd_rsp_i[s].data_err) read_err = 1'b1;
    end
  end

  always_comb begin
    unique case (state_q)
      IDLE:    state_d = start ? BUSY : IDLE;
      BUSY:    state_d = store_busy ? BUSY : DONE;
      DONE:    state_d = IDLE;
      default: state_d = IDLE;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= IDLE;
      read_err_q  <= 1'b0;
      write_err_q <= 1'b0;
    end else begin
      state_q <= state_d;
      if (start) begin
        read_err_q  <= 1'b0;
        write_err_q <= 1'b0;
      end else begin
        if (read_err)                      read_err_q <= 1'b1;
        if (wr_rsp_i.done && wr_rsp_i.err) write_err_q <= 1'b1;
      end
    end
  end

  EveryElementStored: assert property (@(posedge clk_i) disable iff (!rst_ni)
      rsp_o.done |-> !group_valid && !out_valid && !row_valid && room_q == RoomW'(OutDepth))
    else $error("npu_vector: done with results under way");
endmodule
