// SPDX-License-Identifier: Apache-2.0
/// STATUS.state and the interrupt causes.
///
/// DONE remembers that a command has finished since reset or the last error acknowledge. A command
/// that fails raises `error` alone. Causes come one cycle after `retire_i`, when queue and table
/// say whether the command was the last of its queue: `empty`. Vectors have one bit per queue.
module npu_ctrl_status
  import npu_isa_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,

  input  queues_t     queue_pending_i,
  input  queues_t     queue_busy_i,  // commands of it are on their way
  input  logic        exec_idle_i,
  input  logic        in_error_i,
  input  logic        soft_reset_i,
  input  logic        flush_i,
  input  queues_t     retire_i,
  input  error_e      error_i,       // with retire_i
  input  logic        irq_wanted_i,  // with retire_i: the command's IRQ flag
  input  logic [31:0] seq_i,         // with retire_i

  output device_state_e state_o,
  output logic [31:0] error_seq_o,  // of the last command that failed
  output irq_events_t irq_events_o
);
  logic        ran_something_q, failed_q, irq_wanted_q;
  queues_t     passed_q;
  logic [31:0] error_seq_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || flush_i) ran_something_q <= 1'b0;
    else if (retire_i != '0) ran_something_q <= 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      passed_q     <= '0;
      failed_q     <= 1'b0;
      irq_wanted_q <= 1'b0;
    end else begin
      passed_q     <= error_i == ERROR_NONE ? retire_i : '0;
      failed_q     <= retire_i != '0 && error_i != ERROR_NONE;
      irq_wanted_q <= irq_wanted_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni)                                      error_seq_q <= '0;
    else if (retire_i != '0 && error_i != ERROR_NONE) error_seq_q <= seq_i;
  end

  always_comb begin
    if (soft_reset_i)                               state_o = DEVICE_STATE_BUSY;
    else if (in_error_i)                            state_o = DEVICE_STATE_ERROR;
    else if (!exec_idle_i || queue_pending_i != '0) state_o = DEVICE_STATE_BUSY;
    else if (ran_something_q)                       state_o = DEVICE_STATE_DONE;
    else                                            state_o = DEVICE_STATE_IDLE;
  end

  assign error_seq_o = error_seq_q;

  assign irq_events_o.complete = irq_wanted_q ? passed_q : '0;
  assign irq_events_o.empty    = passed_q & ~queue_pending_i & ~queue_busy_i;
  assign irq_events_o.error    = failed_q;
endmodule
