// SPDX-License-Identifier: Apache-2.0
/// The register block with its counters and interrupt, in the command processor's own types.
///
/// `rst_ni` resets the bus interface and the registers, `soft_rst_i` the registers only. `push_o`
/// pulses with `push_packet_o` in the cycle after the write of CMD_PUSH. `irq_o` is a level.
module npu_csr_wrap
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::PROGRAM_DIGEST;
  import npu_vector_pkg::PROGRAM_RAM;
  import npu_vector_pkg::PROGRAM_RAM_LINES;
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned ArraySize  = 16,
  parameter int unsigned BusBits    = 256,
  parameter int unsigned FmaLatency = 4
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         soft_rst_i,

  input  axil_req_t    axil_req_i,
  output axil_rsp_t    axil_rsp_o,

  // To the command processor
  output logic         soft_reset_o,
  output logic         error_ack_o,
  output ring_config_t [QUEUES-1:0] ring_o,
  output ring_index_t  [QUEUES-1:0] ring_tail_o,
  output ring_config_t [QUEUES-1:0] records_o,
  output logic         push_o,
  output line_t        push_packet_o,
  output logic [63:0]  cycle_o,

  // From it
  input  logic         error_ack_clear_i,
  input  ctrl_status_t status_i,
  input  irq_events_t  irq_events_i,
  input  logic         retire_i,
  input  perf_events_t perf_events_i,
  input  engine_events_t engine_events_i,
  output logic         irq_o
);
  npu_csr_pkg::npu_csr__in_t  hwif_in;
  npu_csr_pkg::npu_csr__out_t hwif_out;

  // The registers are clocked while the bus is in use, and two cycles more: a write's pulse ends
  // after its response, and two requests can wait for each other. Else only by events.
  logic       bus_active, event_now, csr_clk;
  logic [1:0] bus_was_active_q;

  assign bus_active = axil_req_i.aw_valid || axil_req_i.w_valid || axil_req_i.ar_valid ||
                      axil_rsp_o.b_valid || axil_rsp_o.r_valid;
  assign event_now  = !rst_ni || soft_rst_i || error_ack_clear_i || irq_events_i != '0;

  always_ff @(posedge clk_i) bus_was_active_q <= {bus_was_active_q[0], bus_active};

  npu_clock_gate u_gate (
    .clk_i,
    .en_i (bus_active || bus_was_active_q != '0 || event_now),
    .clk_o(csr_clk)
  );

  npu_csr u_csr (
    .clk           (csr_clk),
    .rst_n         (rst_ni),
    .s_axil_awready(axil_rsp_o.aw_ready),
    .s_axil_awvalid(axil_req_i.aw_valid),
    .s_axil_awaddr (axil_req_i.aw_addr),
    .s_axil_awprot (axil_req_i.aw_prot),
    .s_axil_wready (axil_rsp_o.w_ready),
    .s_axil_wvalid (axil_req_i.w_valid),
    .s_axil_wdata  (axil_req_i.w_data),
    .s_axil_wstrb  (axil_req_i.w_strb),
    .s_axil_bready (axil_req_i.b_ready),
    .s_axil_bvalid (axil_rsp_o.b_valid),
    .s_axil_bresp  (axil_rsp_o.b_resp),
    .s_axil_arready(axil_rsp_o.ar_ready),
    .s_axil_arvalid(axil_req_i.ar_valid),
    .s_axil_araddr (axil_req_i.ar_addr),
    .s_axil_arprot (axil_req_i.ar_prot),
    .s_axil_rready (axil_req_i.r_ready),
    .s_axil_rvalid (axil_rsp_o.r_valid),
    .s_axil_rdata  (axil_rsp_o.r_data),
    .s_axil_rresp  (axil_rsp_o.r_resp),
    .hwif_in,
    .hwif_out
  );

  logic field_rst_n;
  assign field_rst_n         = rst_ni && !soft_rst_i;
  assign hwif_in.field_rst_n = field_rst_n;

  // Constants
  assign hwif_in.ID.value.next           = DEVICE_ID;
  assign hwif_in.VERSION.minor.next      = ISA_VERSION[15:0];
  assign hwif_in.VERSION.major.next      = ISA_VERSION[31:16];
  assign hwif_in.CONFIG.array_size.next  = 8'(ArraySize);
  assign hwif_in.CONFIG.bus_bits.next    = 16'(BusBits);
  assign hwif_in.CONFIG.fma_latency.next = 8'(FmaLatency);
  assign hwif_in.PROGRAM_RAM.first.next  = 16'(PROGRAM_RAM);
  assign hwif_in.PROGRAM_RAM.lines.next  = 16'(PROGRAM_RAM_LINES);
  assign {hwif_in.PROGRAM_DIGEST_HI.value.next, hwif_in.PROGRAM_DIGEST_LO.value.next} =
      PROGRAM_DIGEST;

  // Control and state
  assign hwif_in.CTRL.error_ack.hwclr        = error_ack_clear_i;
  assign hwif_in.STATUS.state.next           = status_i.state;
  assign hwif_in.STATUS.csr_queue_empty.next = status_i.csr_queue_empty;
  assign hwif_in.STATUS.csr_queue_full.next  = status_i.csr_queue_full;
  assign hwif_in.STATUS.ring_empty.next      = status_i.ring_empty[0];
  assign hwif_in.STATUS.ring1_empty.next     = status_i.ring_empty[1];
  assign hwif_in.ERROR_CODE.code.next        = status_i.error_code;
  assign hwif_in.ERROR_CODE.qid.next         = status_i.error_queue;
  assign hwif_in.ERROR_SEQ.seq.next          = status_i.error_seq;
  assign hwif_in.COMPLETED.count.next        = status_i.completed[0];
  assign hwif_in.COMPLETED1.count.next       = status_i.completed[1];
  assign hwif_in.RING_HEAD.index.next        = status_i.ring_head[0];
  assign hwif_in.RING1_HEAD.index.next       = status_i.ring_head[1];

  assign soft_reset_o = hwif_out.CTRL.soft_reset.value;
  assign error_ack_o  = hwif_out.CTRL.error_ack.value;

  // Interrupts
  assign hwif_in.IRQ_STATUS.complete.hwset  = irq_events_i.complete[0];
  assign hwif_in.IRQ_STATUS.complete1.hwset = irq_events_i.complete[1];
  assign hwif_in.IRQ_STATUS.empty.hwset     = irq_events_i.empty[0];
  assign hwif_in.IRQ_STATUS.empty1.hwset    = irq_events_i.empty[1];
  assign hwif_in.IRQ_STATUS.error.hwset     = irq_events_i.error;

  assign irq_o = (hwif_out.IRQ_STATUS.complete.value && hwif_out.IRQ_ENABLE.complete.value) ||
                 (hwif_out.IRQ_STATUS.empty.value && hwif_out.IRQ_ENABLE.empty.value) ||
                 (hwif_out.IRQ_STATUS.error.value && hwif_out.IRQ_ENABLE.error.value) ||
                 (hwif_out.IRQ_STATUS.complete1.value && hwif_out.IRQ_ENABLE.complete1.value) ||
                 (hwif_out.IRQ_STATUS.empty1.value && hwif_out.IRQ_ENABLE.empty1.value);

  // Rings
  assign ring_o[0].enable          = hwif_out.RING_CTRL.enable.value;
  assign ring_o[0].log2_entries    = hwif_out.RING_CTRL.log2_entries.value;
  assign ring_o[0].base            = {hwif_out.RING_BASE_HI.addr.value,
                                     hwif_out.RING_BASE_LO.addr.value};
  assign ring_tail_o[0]            = hwif_out.RING_TAIL.index.value;
  assign records_o[0].enable       = hwif_out.CPL_CTRL.enable.value;
  assign records_o[0].log2_entries = hwif_out.CPL_CTRL.log2_entries.value;
  assign records_o[0].base         = {hwif_out.CPL_BASE_HI.addr.value,
                                     hwif_out.CPL_BASE_LO.addr.value};
  assign ring_o[1].enable          = hwif_out.RING1_CTRL.enable.value;
  assign ring_o[1].log2_entries    = hwif_out.RING1_CTRL.log2_entries.value;
  assign ring_o[1].base            = {hwif_out.RING1_BASE_HI.addr.value,
                                     hwif_out.RING1_BASE_LO.addr.value};
  assign ring_tail_o[1]            = hwif_out.RING1_TAIL.index.value;
  assign records_o[1].enable       = hwif_out.CPL1_CTRL.enable.value;
  assign records_o[1].log2_entries = hwif_out.CPL1_CTRL.log2_entries.value;
  assign records_o[1].base         = {hwif_out.CPL1_BASE_HI.addr.value,
                                     hwif_out.CPL1_BASE_LO.addr.value};

  // Command registers
  assign push_o = hwif_out.CMD_PUSH.push.value;

  for (genvar i = 0; i < LINE_BITS / 32; i++) begin : gen_packet
    assign push_packet_o[32*i+:32] = hwif_out.CMD_WORD[i].word.value;
  end

  perf_counts_t counts;

  npu_perf_counters u_perf_counters (
    .clk_i,
    .read_clk_i(csr_clk),
    .rst_ni    (field_rst_n),
    .clear_i   (hwif_out.PERF_CTRL.clear.value),
    .busy_i    (status_i.state == DEVICE_STATE_BUSY),
    .command_i (retire_i),
    .events_i  (perf_events_i),
    .cycle_o,
    .counts_o  (counts)
  );

  assign hwif_in.CYCLE.value.next         = counts.cycle;
  assign hwif_in.BUSY_CYCLES.value.next   = counts.busy;
  assign hwif_in.ACTIVE_CYCLES.value.next = counts.active;
  assign hwif_in.OPERAND_STALL.value.next = counts.operand_stall;
  assign hwif_in.RESULT_STALL.value.next  = counts.result_stall;
  assign hwif_in.READ_BEATS.value.next    = counts.read_beats;
  assign hwif_in.WRITE_BEATS.value.next   = counts.write_beats;
  assign hwif_in.COMMANDS.value.next      = counts.commands;

  engine_counts_t engine_counts;

  npu_engine_counters u_engine_counters (
    .clk_i,
    .read_clk_i(csr_clk),
    .rst_ni    (field_rst_n),
    .clear_i   (hwif_out.PERF_CTRL.clear.value),
    .events_i  (engine_events_i),
    .counts_o  (engine_counts)
  );

  for (genvar e = 0; e < NUM_ENGINES; e++) begin : gen_engine
    assign hwif_in.ENGINE_BUSY[e].cycles.next = engine_counts.busy[e];
    assign hwif_in.ENGINE_WAIT[e].cycles.next = engine_counts.engine_wait[e];
  end
  for (genvar i = 0; i < ENGINE_PAIRS; i++) begin : gen_pair
    assign hwif_in.COMMAND_WAIT[i].cycles.next = engine_counts.command_wait[i];
  end
endmodule
