// SPDX-License-Identifier: Apache-2.0
/// Command processor: registers, command queue, checks, dispatch to the engines, completion
/// records.
///
/// One command runs at a time, on one engine; the ring is prefetched meanwhile. Every engine is
/// offered the same command, and only the one with `valid` takes it. `soft_rst_o` is high for one
/// cycle when CTRL.soft_reset takes effect: the engines and this module's memory clients are idle
/// then, so that no bus transaction is abandoned.
module npu_ctrl
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::IMMEDIATES;
  import npu_vector_pkg::PLAIN_IMMEDIATES;
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned       ArraySize  = 16,
  parameter int unsigned       BusBits    = 256,
  parameter int unsigned       FmaLatency = 4,
  parameter logic [63:0]       MemBase    = 64'h0000_0000,
  parameter logic [63:0]       MemLimit   = 64'h2000_0000,  // first byte beyond the memory
  localparam int unsigned      StrbW      = BusBits / 8
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  axil_req_t                  axil_req_i,
  output axil_rsp_t                  axil_rsp_o,

  output logic                       irq_o,
  output logic                       soft_rst_o,

  // Memory controller
  output mem_rd_req_t                rd_req_o,
  input  mem_rd_rsp_t                rd_rsp_i,
  input  logic [BusBits-1:0]         rd_data_i,
  output mem_wr_req_t                wr_req_o,
  input  mem_wr_rsp_t                wr_rsp_i,
  output logic [BusBits-1:0]         wr_data_o,
  output logic [StrbW-1:0]           wr_strb_o,

  // The program that begins at the line which a VECTOR names
  output logic [31:0]                program_line_o,
  input  program_info_t              program_info_i,

  output engine_req_t                engine_req_o [NUM_ENGINES],
  input  engine_rsp_t                engine_rsp_i [NUM_ENGINES],

  // One bit per beat on m_axi's R and W channels
  input  logic                       rd_beat_i,
  input  logic                       wr_beat_i
);
  // Registers
  logic         core_rst_n, retire, soft_reset, error_ack, ack_clear;
  ring_config_t ring, records;
  index_t       ring_tail;
  logic         push;
  line_t        push_packet;
  logic [63:0]  cycle;
  ctrl_status_t status;
  irq_events_t  irq_events;
  perf_events_t perf_events;

  assign core_rst_n = rst_ni && !soft_rst_o;

  npu_csr_wrap #(.ArraySize(ArraySize), .BusBits(BusBits), .FmaLatency(FmaLatency)) u_csr_wrap (
    .clk_i,
    .rst_ni,
    .soft_rst_i       (soft_rst_o),
    .axil_req_i,
    .axil_rsp_o,
    .soft_reset_o     (soft_reset),
    .error_ack_o      (error_ack),
    .ring_o           (ring),
    .ring_tail_o      (ring_tail),
    .records_o        (records),
    .push_o           (push),
    .push_packet_o    (push_packet),
    .cycle_o          (cycle),
    .error_ack_clear_i(ack_clear),
    .status_i         (status),
    .irq_events_i     (irq_events),
    .retire_i         (retire),
    .perf_events_i    (perf_events),
    .irq_o
  );

  // Everything but registers and counters stands still while an engine runs and the prefetched ring
  // is full, and while there is nothing to do. One clock more lets the pulses after a command end.
  logic           exec_waits, reader_idle, fetch_valid, active, active_q, ctrl_clk;

  assign active = !core_rst_n || !exec_waits || !reader_idle || fetch_valid || push;

  always_ff @(posedge clk_i) active_q <= active;

  npu_clock_gate u_gate (.clk_i, .en_i(active || active_q), .clk_o(ctrl_clk));

  // Queue and line reader
  logic           hold, flush, queue_pending;
  logic           fetch_ready, fetch_line_valid, line_err;
  line_addr_t     fetch_addr, desc_addr;
  line_t          line;
  logic           desc_valid, desc_ready, desc_line_valid, cmd_valid, cmd_ready;
  logic           start, finish, retire_ring, exec_idle, in_error;
  queued_packet_t cmd;

  npu_cmd_queue u_cmd_queue (
    .clk_i          (ctrl_clk),
    .rst_ni         (core_rst_n),
    .push_i         (push),
    .push_packet_i  (push_packet),
    .ring_i         (ring),
    .tail_i         (ring_tail),
    .hold_i         (hold),
    .flush_i        (flush),
    .retire_i       (retire_ring),
    .csr_empty_o    (status.csr_queue_empty),
    .csr_full_o     (status.csr_queue_full),
    .ring_head_o    (status.ring_head),
    .ring_empty_o   (status.ring_empty),
    .pending_o      (queue_pending),
    .fetch_valid_o  (fetch_valid),
    .fetch_ready_i  (fetch_ready),
    .fetch_addr_o   (fetch_addr),
    .line_valid_i   (fetch_line_valid),
    .line_i         (line),
    .line_err_i     (line_err),
    .cmd_valid_o    (cmd_valid),
    .cmd_ready_i    (cmd_ready),
    .cmd_o          (cmd)
  );

  npu_line_reader #(.BusBits(BusBits)) u_line_reader (
    .clk_i            (ctrl_clk),
    .rst_ni           (core_rst_n),
    .desc_valid_i     (desc_valid),
    .desc_ready_o     (desc_ready),
    .desc_addr_i      (desc_addr),
    .desc_line_valid_o(desc_line_valid),
    .ring_valid_i     (fetch_valid),
    .ring_ready_o     (fetch_ready),
    .ring_addr_i      (fetch_addr),
    .ring_line_valid_o(fetch_line_valid),
    .line_o           (line),
    .line_err_o       (line_err),
    .idle_o           (reader_idle),
    .rd_req_o,
    .rd_rsp_i,
    .rd_data_i
  );

  npu_recovery u_recovery (
    .soft_reset_i (soft_reset),
    .error_ack_i  (error_ack),
    .in_error_i   (in_error),
    .exec_idle_i  (exec_idle),
    .reader_idle_i(reader_idle),
    .hold_o       (hold),
    .soft_rst_o,
    .flush_o      (flush),
    .ack_clear_o  (ack_clear)
  );

  // Checks and execution
  packet_t                packet;
  flags_t                 flags;
  logic                   unused_flags;
  error_e                 decode_error, resolve_error, error;
  logic                   resolve_start, resolve_done;
  logic                   write_valid, write_ready, write_done, write_err;
  logic [ADDR_WIDTH-1:0]  record_addr;
  line_write_t            write;
  index_t                 record_slot;
  completion_t            record;
  logic [31:0]            seq;
  npu_engine_cmd_t        engine_cmd;
  npu_window_t            init_window;
  npu_stats_t             stats;
  logic [NUM_ENGINES-1:0] engine_valid;

  assign flags        = packet.flags;
  assign unused_flags = ^flags;  // this module needs some of them

  dtype_e listed_dtype [NUM_OPERANDS];
  logic   listed;

  assign listed         = flags.operand_list;
  assign program_line_o = packet.param[VECTOR_PROGRAM];

  npu_cmd_decode u_cmd_decode (
    .packet_i(packet), .prog_i(program_info_i), .error_o(decode_error)
  );

  npu_operand_resolve #(.MemBase(MemBase), .MemLimit(MemLimit)) u_operand_resolve (
    .clk_i       (ctrl_clk),
    .rst_ni      (core_rst_n),
    .start_i     (resolve_start),
    .packet_i    (packet),
    .prog_i      (program_info_i),
    .done_o      (resolve_done),
    .error_o     (resolve_error),
    .src1_o      (engine_cmd.src1),
    .src2_o      (engine_cmd.src2),
    .src3_o      (engine_cmd.src3),
    .src4_o      (engine_cmd.src4),
    .dst_o       (engine_cmd.dst),
    .dst2_o      (engine_cmd.dst2),
    .dst3_o      (engine_cmd.dst3),
    .dtypes_o    (listed_dtype),
    .src1_window_o(engine_cmd.a),
    .src2_window_o(engine_cmd.b),
    .src3_window_o(init_window),
    .dst_window_o (engine_cmd.c),
    .dim_o       (engine_cmd.dim),
    .req_valid_o (desc_valid),
    .req_ready_i (desc_ready),
    .req_addr_o  (desc_addr),
    .line_valid_i(desc_line_valid),
    .line_i      (line),
    .line_err_i  (line_err)
  );

  assign engine_cmd.init       = flags.src3_desc ? init_window : engine_cmd.c;
  assign engine_cmd.product    = '{
    m: packet.param[MATMUL_M], k: packet.param[MATMUL_K], n: packet.param[MATMUL_N],
    batch: packet.param[MATMUL_BATCH]
  };
  assign engine_cmd.opcode     = opcode_e'(packet.opcode);
  assign engine_cmd.src_dtype  = listed ? listed_dtype[OPERAND_SRC1] : dtype_e'(flags.src_dtype);
  assign engine_cmd.src2_dtype = listed ? listed_dtype[OPERAND_SRC2] : dtype_e'(flags.src2_dtype);
  assign engine_cmd.src3_dtype = listed ? listed_dtype[OPERAND_SRC3] : dtype_e'(flags.src3_dtype);
  assign engine_cmd.src4_dtype = listed_dtype[OPERAND_SRC4];
  assign engine_cmd.dst_dtype  = listed ? listed_dtype[OPERAND_DST] : dtype_e'(flags.dst_dtype);
  assign engine_cmd.dst2_dtype = listed_dtype[OPERAND_DST2];
  assign engine_cmd.dst3_dtype = listed_dtype[OPERAND_DST3];
  assign engine_cmd.accumulate = flags.accumulate;
  assign engine_cmd.fill_value = packet.param[FILL_VALUE];
  assign engine_cmd.prog       = packet.param[VECTOR_PROGRAM][PROGRAM_LINE_WIDTH-1:0];  // LOAD_LINE
  assign engine_cmd.prog_info  = program_info_i;
  assign engine_cmd.load_lines = packet.param[LOAD_LINES][IMAGE_LINES_WIDTH-1:0];

  // Only an operand list leaves room for the last immediates.
  always_comb begin
    for (int unsigned i = 0; i < IMMEDIATES; i++) begin
      engine_cmd.imm[i] = (listed || i < PLAIN_IMMEDIATES) ? packet.param[VECTOR_IMM0+i] : '0;
    end
  end

  for (genvar e = 0; e < NUM_ENGINES; e++) begin : gen_engine
    assign engine_req_o[e] = '{valid: engine_valid[e], cmd: engine_cmd};
  end

  npu_cmd_exec u_cmd_exec (
    .clk_i          (ctrl_clk),
    .rst_ni         (core_rst_n),
    .cmd_valid_i    (cmd_valid),
    .cmd_ready_o    (cmd_ready),
    .cmd_i          (cmd),
    .hold_i         (hold),
    .resume_i       (flush),
    .packet_o       (packet),
    .decode_error_i (decode_error),
    .resolve_start_o(resolve_start),
    .resolve_done_i (resolve_done),
    .resolve_error_i(resolve_error),
    .engine_valid_o (engine_valid),
    .engine_rsp_i,
    .record_enable_i(records.enable),
    .record_addr_i  (record_addr),
    .record_i       (record),
    .write_valid_o  (write_valid),
    .write_ready_i  (write_ready),
    .write_o        (write),
    .write_done_i   (write_done),
    .write_err_i    (write_err),
    .start_o        (start),
    .finish_o       (finish),
    .retire_o       (retire),
    .retire_ring_o  (retire_ring),
    .error_o        (error),
    .seq_o          (seq),
    .idle_o         (exec_idle),
    .waits_o        (exec_waits),
    .in_error_o     (in_error)
  );

  // Completion records
  npu_cmd_stats u_cmd_stats (
    .clk_i,
    .rst_ni  (core_rst_n),
    .start_i (start),
    .finish_i(finish),
    .events_i(perf_events),
    .cycle_i (cycle),
    .seq_i   (seq),
    .error_i (error),
    .opcode_i(packet.opcode),
    .record_o(record)
  );

  assign record_slot = seq[INDEX_WIDTH-1:0] & index_mask(records.log2_entries);
  assign record_addr = {records.base + LINE_ADDR_WIDTH'(record_slot),
                        {(ADDR_WIDTH - LINE_ADDR_WIDTH){1'b0}}};

  npu_line_writer #(.BusBits(BusBits)) u_line_writer (
    .clk_i          (ctrl_clk),
    .rst_ni         (core_rst_n),
    .req_valid_i    (write_valid),
    .req_ready_o    (write_ready),
    .req_i          (write),
    .done_o         (write_done),
    .err_o          (write_err),
    .wr_req_o,
    .wr_rsp_i,
    .wr_data_o,
    .wr_strb_o
  );

  // State, interrupts, events
  npu_ctrl_status u_ctrl_status (
    .clk_i           (ctrl_clk),
    .rst_ni          (core_rst_n),
    .queue_pending_i (queue_pending),
    .exec_idle_i     (exec_idle),
    .in_error_i      (in_error),
    .soft_reset_i    (soft_reset),
    .flush_i         (flush),
    .retire_i        (retire),
    .error_i         (error),
    .irq_wanted_i    (flags.irq),
    .seq_i           (seq),
    .state_o         (status.state),
    .error_seq_o     (status.error_seq),
    .irq_events_o    (irq_events)
  );

  assign status.error_code = in_error ? error : ERROR_NONE;
  assign status.completed  = seq;

  // One engine runs at a time; the others are idle.
  always_comb begin
    stats = '0;
    for (int unsigned e = 0; e < NUM_ENGINES; e++) stats |= engine_rsp_i[e].stats;
  end

  assign perf_events = '{
    active: stats.active, operand_stall: stats.operand_stall, result_stall: stats.result_stall,
    read_beat: rd_beat_i, write_beat: wr_beat_i
  };

  AnsweredWithClock: assert property (@(posedge clk_i) disable iff (!rst_ni)
      rd_rsp_i.data_valid || wr_rsp_i.done |-> active || active_q)
    else $error("npu_ctrl: a response while the clock is off");
endmodule
