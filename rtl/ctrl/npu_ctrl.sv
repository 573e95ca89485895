// SPDX-License-Identifier: Apache-2.0
/// Command processor: registers, command queue, checks, dispatch to the engines, completion
/// records.
///
/// Commands of a queue start in the order of their packets, each as soon as its engine is free and
/// the memory of its operands is no earlier command's; they are completed in that order. While
/// commands run, the rings are prefetched and the next packet is checked. `soft_rst_o` is high for
/// one cycle when CTRL.soft_reset takes effect: the engines and this module's memory clients are
/// idle then, so that no bus transaction is abandoned.
module npu_ctrl
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned       ArraySize  = 16,
  parameter int unsigned       BusBits    = 256,
  parameter int unsigned       FmaLatency = 4,
  parameter logic [63:0]       MemBase,
  parameter logic [63:0]       MemLimit,  // first byte beyond the memory
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

  // Of each channel: its clock, and whether that is needed for a command
  input  logic                       engine_clk_i [NUM_CHANNELS],
  output logic [NUM_CHANNELS-1:0]    engine_on_o,
  output engine_req_t                engine_req_o [NUM_CHANNELS],
  input  engine_rsp_t                engine_rsp_i [NUM_CHANNELS],

  // One bit per beat on m_axi's R and W channels: any, and those of each engine's channel
  input  logic                       rd_beat_i,
  input  logic                       wr_beat_i,
  input  logic [NUM_CHANNELS-1:0]    engine_rd_beat_i,
  input  logic [NUM_CHANNELS-1:0]    engine_wr_beat_i
);
  // Registers
  logic                      core_rst_n, retire, soft_reset, error_ack, ack_clear;
  ring_config_t [QUEUES-1:0] ring, records;
  ring_index_t [QUEUES-1:0]  ring_tail;
  logic                      push;
  line_t                     push_packet;
  logic [63:0]               cycle;
  ctrl_status_t              status;
  irq_events_t               irq_events;
  perf_events_t              perf_events;
  engine_events_t            engine_events;

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
    .engine_events_i  (engine_events),
    .irq_o
  );

  // Everything but registers and counters stands still while the engines run and nothing can start,
  // and while there is nothing to do. One clock more lets the pulses after a command end.
  logic           front_settled, inflight_settled, reader_idle, active, active_q, ctrl_clk;
  logic           hold, flush;
  queues_t        fetch_valid, queue_pending, queue_busy, front_busy;

  assign active = !core_rst_n || !front_settled || !inflight_settled || !reader_idle ||
                  fetch_valid != '0 || push;

  always_ff @(posedge clk_i) active_q <= active;

  npu_clock_gate u_gate (.clk_i, .en_i(active || active_q), .clk_o(ctrl_clk));

  // The second queue's registers stand still while it is neither enabled nor in use.
  logic           queue1_on, queue1_on_q, queue1_clk;

  assign queue1_on = !core_rst_n || flush || ring[1].enable || queue_pending[1] || queue_busy[1];

  always_ff @(posedge clk_i) queue1_on_q <= queue1_on;

  npu_clock_gate u_queue1_gate (
    .clk_i,
    .en_i ((active || active_q) && (queue1_on || queue1_on_q)),
    .clk_o(queue1_clk)
  );

  // Queues and line reader
  queues_t        fetch_ready, fetch_line_valid, retire_ring, cmd_valid, cmd_ready;
  line_addr_t     desc_addr;
  line_addr_t [QUEUES-1:0] fetch_addr;
  line_t          line;
  logic           line_err, desc_valid, desc_ready, desc_line_valid;
  logic           irq_wanted, exec_idle, in_error;
  queued_packet_t [QUEUES-1:0] cmd;

  npu_cmd_queues u_cmd_queues (
    .clk_i          (ctrl_clk),
    .queue1_clk_i   (queue1_clk),
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

  // Packets until they start
  logic                      front_idle, stop;
  logic [NUM_ENGINES-1:0]    engine_start, engine_free;
  queue_t                    start_queue, error_queue;
  logic                      start_parked;
  npu_engine_cmd_t           checked_cmd, parked_cmd;
  queues_t                   full, push_command, push_ended;
  error_e                    error;
  error_e [QUEUES-1:0]       push_error;
  cmd_started_t [QUEUES-1:0] started;
  cmd_slot_t [QUEUES-1:0]    next_slot;
  logic [QUEUES-1:0][31:0]   next_seq;
  queue_slots_t              used, unfinished, may_fail;
  cmd_slot_id_t [1:0]        look;
  logic [1:0][31:0]          look_seq, look_opcode;

  // Writes of SYNC and of records
  logic                    write_valid, write_ready, write_done, write_err;
  logic                    sync_valid, record_valid;
  line_write_t             write, sync_write, record_write;

  npu_cmd_front #(.MemBase(MemBase), .MemLimit(MemLimit)) u_cmd_front (
    .clk_i,
    .ctrl_clk_i       (ctrl_clk),
    .queue1_clk_i     (queue1_clk),
    .rst_ni           (core_rst_n),
    .hold_i           (hold),
    .stop_i           (stop),
    .cycle_i          (cycle),
    .cmd_valid_i      (cmd_valid),
    .cmd_ready_o      (cmd_ready),
    .cmd_i            (cmd),
    .program_line_o,
    .program_info_i,
    .desc_valid_o     (desc_valid),
    .desc_ready_i     (desc_ready),
    .desc_addr_o      (desc_addr),
    .desc_line_valid_i(desc_line_valid),
    .line_i           (line),
    .line_err_i       (line_err),
    .write_valid_o    (sync_valid),
    .write_ready_i    (write_ready),
    .write_o          (sync_write),
    .write_done_i     (write_done),
    .write_err_i      (write_err),
    .full_i           (full),
    .next_slot_i      (next_slot),
    .next_seq_i       (next_seq),
    .used_i           (used),
    .unfinished_i     (unfinished),
    .may_fail_i       (may_fail),
    .look_o           (look),
    .look_seq_i       (look_seq),
    .look_opcode_i    (look_opcode),
    .push_o           (push_command),
    .push_ended_o     (push_ended),
    .push_error_o     (push_error),
    .push_command_o   (started),
    .engine_free_i    (engine_free),
    .start_o          (engine_start),
    .start_queue_o    (start_queue),
    .start_parked_o   (start_parked),
    .checked_cmd_o    (checked_cmd),
    .parked_cmd_o     (parked_cmd),
    .engine_wait_o    (engine_events.engine_wait),
    .command_wait_o   (engine_events.command_wait),
    .busy_o           (front_busy),
    .idle_o           (front_idle),
    .settled_o        (front_settled)
  );

  // Commands until they are completed
  logic        flight_idle;
  queues_t     retired;
  logic [31:0] retire_seq;

  npu_cmd_inflight u_cmd_inflight (
    .ctrl_clk_i    (ctrl_clk),
    .queue1_clk_i  (queue1_clk),
    .rst_ni        (core_rst_n),
    .resume_i      (flush),
    .cycle_i       (cycle),
    .push_i        (push_command),
    .push_ended_i  (push_ended),
    .push_error_i  (push_error),
    .push_command_i(started),
    .start_i       (engine_start),
    .start_queue_i (start_queue),
    .parked_i      (start_parked),
    .checked_cmd_i (checked_cmd),
    .parked_cmd_i  (parked_cmd),
    .front_idle_i  (front_idle),
    .free_o        (engine_free),
    .busy_o        (engine_events.busy),
    .full_o        (full),
    .stop_o        (stop),
    .next_slot_o   (next_slot),
    .next_seq_o    (next_seq),
    .used_o        (used),
    .unfinished_o  (unfinished),
    .may_fail_o    (may_fail),
    .look_i        (look),
    .look_seq_o    (look_seq),
    .look_opcode_o (look_opcode),
    .engine_clk_i,
    .on_o          (engine_on_o),
    .req_o         (engine_req_o),
    .rsp_i         (engine_rsp_i),
    .read_beat_i   (engine_rd_beat_i),
    .write_beat_i  (engine_wr_beat_i),
    .records_i     (records),
    .write_valid_o (record_valid),
    .write_ready_i (write_ready && !sync_valid),
    .write_o       (record_write),
    .write_done_i  (write_done),
    .write_err_i   (write_err),
    .retire_o      (retired),
    .retire_ring_o (retire_ring),
    .irq_wanted_o  (irq_wanted),
    .error_queue_o (error_queue),
    .error_o       (error),
    .retire_seq_o  (retire_seq),
    .completed_o   (status.completed),
    .idle_o        (flight_idle),
    .settled_o     (inflight_settled),
    .in_error_o    (in_error)
  );

  assign exec_idle   = front_idle && flight_idle;
  assign write_valid = sync_valid || record_valid;
  assign write       = sync_valid ? sync_write : record_write;
  assign retire      = retired != '0;

  for (genvar q = 0; q < QUEUES; q++) begin : gen_busy
    assign queue_busy[q] = front_busy[q] || used[q] != '0;
  end

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
    .queue_busy_i    (queue_busy),
    .exec_idle_i     (exec_idle),
    .in_error_i      (in_error),
    .soft_reset_i    (soft_reset),
    .flush_i         (flush),
    .retire_i        (retired),
    .error_i         (error),
    .irq_wanted_i    (irq_wanted),
    .seq_i           (retire_seq),
    .state_o         (status.state),
    .error_seq_o     (status.error_seq),
    .irq_events_o    (irq_events)
  );

  // A soft reset leaves state ERROR at once, and in_error when all that was asked for has come.
  logic error_state;
  assign error_state        = status.state == DEVICE_STATE_ERROR;
  assign status.error_code  = error_state ? error : ERROR_NONE;
  assign status.error_queue = error_state && error_queue;

  always_comb begin
    perf_events = '{read_beat: rd_beat_i, write_beat: wr_beat_i, default: '0};
    for (int unsigned e = 0; e < NUM_CHANNELS; e++) begin
      perf_events.active        |= engine_rsp_i[e].stats.active;
      perf_events.operand_stall |= engine_rsp_i[e].stats.operand_stall;
      perf_events.result_stall  |= engine_rsp_i[e].stats.result_stall;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && (rd_rsp_i.data_valid || wr_rsp_i.done)) begin
      AnsweredWithClock: assert (active || active_q)
        else $error("npu_ctrl: a response while the clock is off");
    end
  end
endmodule
