// SPDX-License-Identifier: Apache-2.0
/// Vector engine: one VECTOR command is one pass of a program over up to four strided sources, with
/// up to three results.
///
///     load ×4 → groups → seq → operands → lanes → results ×3 → store ×3 → (memory)
///               fetch ↗    ↘ table ↗↑________|           ↘ reduce ↗
///
/// Rows of any length stream through; nothing of them is kept. Takes a command when idle. After a
/// bus error the command runs to its end (its results are unspecified) and is then reported, a read
/// error before a write error. A result may be a source, element for element: an element is read
/// before it is written, and never again.
///
/// LOAD puts a program into the program memory; `program_line_i` asks which program begins at a
/// line, at any time. The first source reads the image, as rows of one line.
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

  // What is loaded
  input  logic [31:0]                   program_line_i,
  output program_info_t                 program_info_o,

  // Memory controller
  output mem_rd_req_t [MAX_SOURCES-1:0] rd_req_o,
  input  mem_rd_rsp_t [MAX_SOURCES-1:0] rd_rsp_i,
  input  logic [BusBits-1:0]            rd_data_i,
  output mem_wr_req_t [MAX_RESULTS-1:0] wr_req_o,
  input  mem_wr_rsp_t [MAX_RESULTS-1:0] wr_rsp_i,
  output logic [MAX_RESULTS-1:0][BusBits-1:0] wr_data_o,
  output logic [MAX_RESULTS-1:0][StrbW-1:0]   wr_strb_o
);
  localparam int unsigned BeatBits = 32 * VectorLanes;

  typedef enum logic [1:0] {
    IDLE,  // waiting for a command
    BUSY,  // streaming, draining
    DONE   // reporting
  } state_e;

  state_e                 state_q, state_d;
  npu_engine_cmd_t        cmd;
  program_info_t          prog;
  logic                   start, start_vector, read_err, read_err_q, results_busy, drained;
  logic                   write_err, write_err_q, loads, load_done, ended;
  error_e                 load_error_q;

  assign cmd          = req_i.cmd;
  assign prog         = loads ? '0 : cmd.prog_info;
  assign loads        = cmd.opcode == OPCODE_LOAD;
  assign rsp_o.ready  = state_q == IDLE;
  assign start        = req_i.valid && rsp_o.ready;
  assign start_vector = start && !loads;

  // ---- program memory ----
  logic          image_read, image_valid, image_ready, load_stores, load_word, load_waits;
  logic          invalidate, dir_busy, insert, fetch_read, ram_write, pair_valid;
  logic          program_ready, program_last, program_advance;
  error_e        load_error;
  program_addr_t fetch_addr;
  logic [63:0]   fetched, ram_data, pair_data;
  ram_addr_t     ram_addr;
  ram_line_t     load_line;
  program_info_t insert_info;
  pair_t         pair;
  instruction_t  instruction;
  vector_t       image_line;

  logic load_clk;
  npu_clock_gate u_load_gate (.clk_i, .en_i(!rst_ni || loads), .clk_o(load_clk));

  assign load_line = ram_line_t'(cmd.prog);  // PROGRAM_RAM is a multiple of PROGRAM_RAM_LINES

  npu_program_load u_program_load (
    .clk_i(load_clk), .rst_ni,
    .start_i(start && loads), .line_i(load_line), .lines_i(cmd.load_lines),
    .done_o(load_done), .error_o(load_error), .stores_o(load_stores), .word_o(load_word),
    .waits_o(load_waits),
    .read_o(image_read), .read_err_i(read_err), .vec_valid_i(image_valid),
    .vec_ready_o(image_ready), .vec_i(image_line),
    .write_o(ram_write), .write_addr_o(ram_addr), .write_data_o(ram_data),
    .invalidate_o(invalidate), .dir_busy_i(dir_busy), .insert_o(insert), .insert_info_o(insert_info)
  );

  npu_program_dir u_program_dir (
    .clk_i(load_clk), .rst_ni, .line_i(program_line_i), .info_o(program_info_o),
    .invalidate_i(invalidate), .invalidate_line_i(load_line), .invalidate_lines_i(cmd.load_lines),
    .busy_o(dir_busy), .insert_i(insert), .insert_line_i(load_line), .insert_info_i(insert_info)
  );

  npu_program_mem u_program_mem (
    .clk_i, .read_i(fetch_read), .read_addr_i(fetch_addr), .read_data_o(fetched),
    .write_i(ram_write), .write_addr_i(ram_addr), .write_data_i(ram_data)
  );

  npu_vector_fetch u_fetch (
    .clk_i, .rst_ni, .start_i(start_vector), .invalidate_i(load_stores),
    .line_i(cmd.prog), .info_i(prog), .ready_o(program_ready), .instruction_o(instruction),
    .last_o(program_last), .advance_i(program_advance), .pair_valid_o(pair_valid), .pair_o(pair),
    .pair_data_o(pair_data), .read_o(fetch_read), .read_addr_o(fetch_addr), .read_data_i(fetched)
  );

  // ---- sources; the first one reads the image of a LOAD ----
  npu_tensor_t            source [MAX_SOURCES], image;
  dtype_e                 source_dtype [MAX_SOURCES];
  logic [MAX_SOURCES-1:0] vec_valid;
  vector_t                vec [MAX_SOURCES];
  logic                   fill, filling, fill_half, group_valid, group_half, group_free;
  group_slot_t            fill_slot, group_last, slot;
  meta_t                  meta;

  always_comb begin
    image = '{base: cmd.src1.base, size: {5{32'd1}}, stride: '0};
    image.size[MAX_RANK-1]   = 32'(LOGICAL_LANES) * 32'(cmd.load_lines);
    image.stride[MAX_RANK-1] = 32'd1;
  end

  assign source       = '{loads ? image : cmd.src1, cmd.src2, cmd.src3, cmd.src4};
  assign source_dtype = '{loads ? DTYPE_INT32 : cmd.src_dtype, cmd.src2_dtype, cmd.src3_dtype,
                          cmd.src4_dtype};
  assign image_line   = vec[0];
  assign image_valid  = vec_valid[0];

  for (genvar s = 0; s < MAX_SOURCES; s++) begin : gen_source
    logic used, is_image, source_clk;
    assign is_image = loads && s == 0;
    assign used     = is_image || s < 32'(prog.sources);
    npu_clock_gate u_gate (.clk_i, .en_i(!rst_ni || used), .clk_o(source_clk));
    npu_vector_load #(.BusBits(BusBits)) u_load (
      .clk_i(source_clk), .rst_ni,
      .start_i(is_image ? image_read : start_vector && used),
      .view_i(source[s]), .dtype_i(source_dtype[s]),
      .req_valid_o(rd_req_o[s].valid), .req_ready_i(rd_rsp_i[s].ready),
      .req_range_o(rd_req_o[s].range), .beat_valid_i(rd_rsp_i[s].data_valid), .beat_i(rd_data_i),
      .vec_valid_o(vec_valid[s]), .vec_ready_i(is_image ? image_ready : fill), .vec_o(vec[s])
    );
    assign rd_req_o[s].data_ready = 1'b1;
  end

  npu_vector_groups u_groups (
    .clk_i, .rst_ni, .start_i(start_vector),
    .size_i((prog.sources != '0) ? cmd.src1.size : cmd.dst.size), .sources_i(prog.sources),
    .vec_valid_i(vec_valid), .vec_ready_o(fill), .filling_o(filling),
    .fill_half_o(fill_half), .fill_slot_o(fill_slot),
    .group_valid_o(group_valid), .group_half_o(group_half), .group_last_o(group_last),
    .group_free_i(group_free), .meta_slot_i(slot), .meta_o(meta)
  );

  // ---- compute ----
  logic                   issue, beat_last, waits_room, out;
  result_no_t             result_no;
  logic [MAX_RESULTS-1:0] room;
  micro_op_e              op_q;
  lane_beat_t             beat;
  tag_t                   tag_q, tag;
  logic [BeatBits-1:0]    a, b, c, from_table, result;

  npu_vector_seq #(.VectorLanes(VectorLanes), .FmaLatency(FmaLatency)) u_seq (
    .clk_i, .rst_ni, .ready_i(program_ready), .instruction_i(instruction), .last_i(program_last),
    .advance_o(program_advance),
    .group_valid_i(group_valid), .group_last_i(group_last), .group_free_o(group_free),
    .slot_o(slot), .meta_i(meta), .room_i(room), .issue_o(issue), .out_o(out),
    .result_o(result_no), .beat_o(beat), .beat_last_o(beat_last), .waits_room_o(waits_room)
  );

  npu_vector_operands #(.VectorLanes(VectorLanes)) u_operands (
    .clk_i, .imm_i(cmd.imm), .sources_i(prog.sources),
    .pair_valid_i(pair_valid), .pair_i(pair), .pair_data_i(pair_data),
    .fill_i(fill), .fill_half_i(fill_half), .fill_slot_i(fill_slot), .fill_vec_i(vec),
    .issue_i(issue), .instruction_i(instruction), .half_i(group_half), .slot_i(slot),
    .beat_i(beat), .meta_i(meta), .table_i(from_table), .a_o(a), .b_o(b), .c_o(c),
    .write_i(tag), .result_i(result)
  );

  npu_vector_table #(.VectorLanes(VectorLanes)) u_table (
    .clk_i, .rst_ni, .issue_i(issue), .advance_i(program_advance), .instruction_i(instruction),
    .slot_i(slot), .beat_i(beat), .count_i(meta.count), .a_i(a), .word_o(from_table)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) tag_q <= '0;
    else if (issue) begin
      tag_q <= '{valid: 1'b1, out: out, result: result_no, dst: instruction.dst[3:0], slot: slot,
                 beat: beat, last: beat_last, row_end: meta.row_end, count: meta.count};
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
  logic       push_q;
  result_no_t push_no_q;
  result_t    whole_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) push_q <= 1'b0;
    else         push_q <= tag.valid && tag.out && tag.last;
  end
  always_ff @(posedge clk_i) begin
    if (tag.valid && tag.out) begin
      push_no_q                                          <= tag.result;
      whole_q.row_end                                    <= tag.row_end;
      whole_q.count                                      <= tag.count;
      whole_q.data[32'(tag.beat) * BeatBits +: BeatBits] <= result;
    end
  end

  npu_vector_results #(.BusBits(BusBits), .FmaLatency(FmaLatency)) u_results (
    .clk_i, .rst_ni, .start_i(start_vector), .reduce_i(prog.reduce), .results_i(prog.results),
    .view_i('{cmd.dst, cmd.dst2, cmd.dst3}),
    .dtype_i('{cmd.dst_dtype, cmd.dst2_dtype, cmd.dst3_dtype}), .busy_o(results_busy),
    .result_issue_i(issue && out && beat_last), .result_idx_i(result_no), .room_o(room),
    .push_i(push_q), .push_no_i(push_no_q), .vec_i(whole_q), .drained_o(drained),
    .wr_req_o, .wr_rsp_i, .wr_data_o, .wr_strb_o
  );

  // ---- begin and end ----
  assign rsp_o.done = state_q == DONE;
  assign rsp_o.err  = loads ? load_error_q
                    : read_err_q ? ERROR_BUS_READ : write_err_q ? ERROR_BUS_WRITE : ERROR_NONE;

  assign rsp_o.stats.active        = issue || load_word;
  assign rsp_o.stats.result_stall  = waits_room;
  assign rsp_o.stats.operand_stall = load_waits || (group_valid ? !program_ready : filling);

  always_comb begin
    read_err = 1'b0;
    for (int unsigned s = 0; s < MAX_SOURCES; s++) begin
      if (rd_rsp_i[s].data_valid && rd_rsp_i[s].data_err) read_err = 1'b1;
    end
  end

  always_comb begin
    write_err = 1'b0;
    for (int unsigned n = 0; n < MAX_RESULTS; n++) begin
      if (wr_rsp_i[n].done && wr_rsp_i[n].err) write_err = 1'b1;
    end
  end

  assign ended = loads ? load_done : !results_busy;

  always_comb begin
    unique case (state_q)
      IDLE:    state_d = start ? BUSY : IDLE;
      BUSY:    state_d = ended ? DONE : BUSY;
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
        if (read_err)  read_err_q <= 1'b1;
        if (write_err) write_err_q <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (load_done) load_error_q <= load_error;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && rsp_o.done) begin
      EveryElementStored: assert (!group_valid && drained)
        else $error("npu_vector: done with results under way");
    end
  end
endmodule
