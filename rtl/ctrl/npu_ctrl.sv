// SPDX-License-Identifier: Apache-2.0
/// Command processor: registers, command queue, checks, dispatch to the engines, completion
/// records.
///
/// One command runs at a time; the ring is prefetched meanwhile. `engine_cmd_o` is valid for the
/// engine whose `*_valid_o` is high and stays stable until that engine's `*_done_i` pulse, which
/// must come at least one cycle after the handshake, with all the command's writes acknowledged.
/// `soft_rst_o` is high for one cycle when CTRL.soft_reset takes effect: the engines and this
/// module's memory clients are idle then, so nobody has to abandon a bus transaction.
module npu_ctrl
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::IMMEDIATES;
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

  // AXI4-Lite slave
  input  logic                       s_axil_awvalid_i,
  output logic                       s_axil_awready_o,
  input  logic [15:0]                s_axil_awaddr_i,
  input  logic [2:0]                 s_axil_awprot_i,
  input  logic                       s_axil_wvalid_i,
  output logic                       s_axil_wready_o,
  input  logic [31:0]                s_axil_wdata_i,
  input  logic [3:0]                 s_axil_wstrb_i,
  output logic                       s_axil_bvalid_o,
  input  logic                       s_axil_bready_i,
  output logic [1:0]                 s_axil_bresp_o,
  input  logic                       s_axil_arvalid_i,
  output logic                       s_axil_arready_o,
  input  logic [15:0]                s_axil_araddr_i,
  input  logic [2:0]                 s_axil_arprot_i,
  output logic                       s_axil_rvalid_o,
  input  logic                       s_axil_rready_i,
  output logic [31:0]                s_axil_rdata_o,
  output logic [1:0]                 s_axil_rresp_o,

  output logic                       irq_o,
  output logic                       soft_rst_o,

  // Read client of the memory controller
  output logic                       rd_req_valid_o,
  input  logic                       rd_req_ready_i,
  output logic [ADDR_WIDTH-1:0]      rd_req_addr_o,
  output logic [REQ_BYTES_WIDTH-1:0] rd_req_bytes_o,
  input  logic                       rd_rsp_valid_i,
  output logic                       rd_rsp_ready_o,
  input  logic [BusBits-1:0]         rd_rsp_data_i,
  input  logic                       rd_rsp_err_i,

  // Write client of the memory controller
  output logic                       wr_req_valid_o,
  input  logic                       wr_req_ready_i,
  output logic [ADDR_WIDTH-1:0]      wr_req_addr_o,
  output logic [REQ_BYTES_WIDTH-1:0] wr_req_bytes_o,
  output logic                       wr_data_valid_o,
  input  logic                       wr_data_ready_i,
  output logic [BusBits-1:0]         wr_data_o,
  output logic [StrbW-1:0]           wr_strb_o,
  input  logic                       wr_rsp_valid_i,
  input  logic                       wr_rsp_err_i,

  // Engines: matrix runs MATMUL, move COPY and FILL, vector VECTOR, gather GATHER and SCATTER
  output npu_engine_cmd_t            engine_cmd_o,
  output logic                       matrix_valid_o,
  input  logic                       matrix_ready_i,
  input  logic                       matrix_done_i,
  input  error_e                     matrix_err_i,
  input  npu_stats_t                 matrix_stats_i,
  output logic                       move_valid_o,
  input  logic                       move_ready_i,
  input  logic                       move_done_i,
  input  error_e                     move_err_i,
  input  npu_stats_t                 move_stats_i,
  output logic                       vector_valid_o,
  input  logic                       vector_ready_i,
  input  logic                       vector_done_i,
  input  error_e                     vector_err_i,
  input  npu_stats_t                 vector_stats_i,
  output logic                       gather_valid_o,
  input  logic                       gather_ready_i,
  input  logic                       gather_done_i,
  input  error_e                     gather_err_i,
  input  npu_stats_t                 gather_stats_i,

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

  npu_csr_wrap #(
    .ArraySize (ArraySize),
    .BusBits   (BusBits),
    .FmaLatency(FmaLatency)
  ) u_csr_wrap (
    .clk_i,
    .rst_ni,
    .soft_rst_i       (soft_rst_o),
    .s_axil_awvalid_i, .s_axil_awready_o, .s_axil_awaddr_i, .s_axil_awprot_i, .s_axil_wvalid_i,
    .s_axil_wready_o, .s_axil_wdata_i, .s_axil_wstrb_i, .s_axil_bvalid_o, .s_axil_bready_i,
    .s_axil_bresp_o, .s_axil_arvalid_i, .s_axil_arready_o, .s_axil_araddr_i, .s_axil_arprot_i,
    .s_axil_rvalid_o, .s_axil_rready_i, .s_axil_rdata_o, .s_axil_rresp_o,
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

  // Queue and line reader
  logic       hold, flush, queue_pending;
  logic       fetch_valid, fetch_ready, fetch_line_valid, line_err, reader_idle;
  line_addr_t fetch_addr, desc_addr;
  line_t      line;
  logic       desc_valid, desc_ready, desc_line_valid;
  logic       cmd_valid, cmd_ready, cmd_from_ring, cmd_fetch_err;
  line_t      cmd_packet;
  logic       start, finish, retire_ring, exec_idle, in_error;

  npu_cmd_queue u_cmd_queue (
    .clk_i,
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
    .cmd_packet_o   (cmd_packet),
    .cmd_from_ring_o(cmd_from_ring),
    .cmd_fetch_err_o(cmd_fetch_err)
  );

  npu_line_reader #(
    .BusBits(BusBits)
  ) u_line_reader (
    .clk_i,
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
    .rd_req_valid_o,
    .rd_req_ready_i,
    .rd_req_addr_o,
    .rd_req_bytes_o,
    .rd_rsp_valid_i,
    .rd_rsp_ready_o,
    .rd_rsp_data_i,
    .rd_rsp_err_i
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
  packet_t               packet;
  flags_t                flags;
  logic                  unused_flags;
  error_e                decode_error, resolve_error, error;
  logic                  resolve_start, resolve_done;
  logic                  write_valid, write_ready, write_word, write_done, write_err;
  logic [ADDR_WIDTH-1:0] write_addr, record_addr;
  line_t                 write_data;
  index_t                record_slot;
  completion_t           record;
  logic [31:0]           seq;

  assign flags        = packet.flags;
  assign unused_flags = ^flags;  // this module needs some of them

  npu_cmd_decode u_cmd_decode (
    .packet_i(packet),
    .error_o (decode_error)
  );

  npu_operand_resolve #(
    .MemBase (MemBase),
    .MemLimit(MemLimit)
  ) u_operand_resolve (
    .clk_i,
    .rst_ni      (core_rst_n),
    .start_i     (resolve_start),
    .packet_i    (packet),
    .done_o      (resolve_done),
    .error_o     (resolve_error),
    .src1_o      (engine_cmd_o.src1),
    .src2_o      (engine_cmd_o.src2),
    .src3_o      (engine_cmd_o.src3),
    .dst_o       (engine_cmd_o.dst),
    .dim_o       (engine_cmd_o.dim),
    .req_valid_o (desc_valid),
    .req_ready_i (desc_ready),
    .req_addr_o  (desc_addr),
    .line_valid_i(desc_line_valid),
    .line_i      (line),
    .line_err_i  (line_err)
  );

  assign engine_cmd_o.opcode     = opcode_e'(packet.opcode);
  assign engine_cmd_o.src_dtype  = dtype_e'(flags.src_dtype);
  assign engine_cmd_o.src2_dtype = dtype_e'(flags.src2_dtype);
  assign engine_cmd_o.src3_dtype = dtype_e'(flags.src3_dtype);
  assign engine_cmd_o.dst_dtype  = dtype_e'(flags.dst_dtype);
  assign engine_cmd_o.accumulate = flags.accumulate;
  assign engine_cmd_o.fill_value = packet.param[FILL_VALUE];
  assign engine_cmd_o.prog       = packet.param[VECTOR_PROGRAM][PROGRAM_WIDTH-1:0];
  assign engine_cmd_o.imm        = packet.param[VECTOR_IMM0+:IMMEDIATES];

  engines_t                     engine_valid;
  npu_stats_t [NUM_ENGINES-1:0] engine_stats;
  npu_stats_t                   stats;

  assign move_valid_o   = engine_valid[ENGINE_MOVE];
  assign matrix_valid_o = engine_valid[ENGINE_MATRIX];
  assign vector_valid_o = engine_valid[ENGINE_VECTOR];
  assign gather_valid_o = engine_valid[ENGINE_GATHER];

  npu_cmd_exec u_cmd_exec (
    .clk_i,
    .rst_ni         (core_rst_n),
    .cmd_valid_i    (cmd_valid),
    .cmd_ready_o    (cmd_ready),
    .cmd_packet_i   (cmd_packet),
    .cmd_from_ring_i(cmd_from_ring),
    .cmd_fetch_err_i(cmd_fetch_err),
    .hold_i         (hold),
    .resume_i       (flush),
    .packet_o       (packet),
    .decode_error_i (decode_error),
    .resolve_start_o(resolve_start),
    .resolve_done_i (resolve_done),
    .resolve_error_i(resolve_error),
    .engine_valid_o (engine_valid),
    .engine_ready_i ({gather_ready_i, vector_ready_i, matrix_ready_i, move_ready_i}),
    .engine_done_i  ({gather_done_i, vector_done_i, matrix_done_i, move_done_i}),
    .engine_err_i   ({gather_err_i, vector_err_i, matrix_err_i, move_err_i}),
    .record_enable_i(records.enable),
    .record_addr_i  (record_addr),
    .record_i       (record),
    .write_valid_o  (write_valid),
    .write_ready_i  (write_ready),
    .write_word_o   (write_word),
    .write_addr_o   (write_addr),
    .write_data_o   (write_data),
    .write_done_i   (write_done),
    .write_err_i    (write_err),
    .start_o        (start),
    .finish_o       (finish),
    .retire_o       (retire),
    .retire_ring_o  (retire_ring),
    .error_o        (error),
    .seq_o          (seq),
    .idle_o         (exec_idle),
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

  npu_line_writer #(
    .BusBits(BusBits)
  ) u_line_writer (
    .clk_i,
    .rst_ni         (core_rst_n),
    .req_valid_i    (write_valid),
    .req_ready_o    (write_ready),
    .req_word_i     (write_word),
    .req_addr_i     (write_addr),
    .req_data_i     (write_data),
    .done_o         (write_done),
    .err_o          (write_err),
    .wr_req_valid_o,
    .wr_req_ready_i,
    .wr_req_addr_o,
    .wr_req_bytes_o,
    .wr_data_valid_o,
    .wr_data_ready_i,
    .wr_data_o,
    .wr_strb_o,
    .wr_rsp_valid_i,
    .wr_rsp_err_i
  );

  // State, interrupts, events
  npu_ctrl_status u_ctrl_status (
    .clk_i,
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
  assign engine_stats = {gather_stats_i, vector_stats_i, matrix_stats_i, move_stats_i};
  always_comb begin
    stats = '0;
    for (int unsigned i = 0; i < NUM_ENGINES; i++) stats |= engine_stats[i];
  end

  assign perf_events.active        = stats.active;
  assign perf_events.operand_stall = stats.operand_stall;
  assign perf_events.result_stall  = stats.result_stall;
  assign perf_events.read_beat     = rd_beat_i;
  assign perf_events.write_beat    = wr_beat_i;
endmodule
