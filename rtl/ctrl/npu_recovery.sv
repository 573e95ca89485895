// SPDX-License-Identifier: Apache-2.0
/// Soft reset and error acknowledge: both wait until nothing of the command processor is under way.
///
/// Combinational. While `hold_o`, nothing new is fetched or started. `soft_rst_o` pulses for one
/// cycle when a requested soft reset takes effect, `flush_o` when an acknowledged error is left; a
/// reset that is requested wins. `ack_clear_o` ends the acknowledge request, which outside ERROR
/// does nothing.
module npu_recovery (
  input  logic soft_reset_i,  // level, until soft_rst_o clears it
  input  logic error_ack_i,   // level, until ack_clear_o clears it
  input  logic in_error_i,
  input  logic exec_idle_i,
  input  logic reader_idle_i,
  output logic hold_o,
  output logic soft_rst_o,
  output logic flush_o,
  output logic ack_clear_o
);
  logic quiet;

  assign quiet       = exec_idle_i && reader_idle_i;
  assign hold_o      = soft_reset_i || in_error_i;
  assign soft_rst_o  = soft_reset_i && quiet;
  assign flush_o     = error_ack_i && in_error_i && quiet && !soft_reset_i;
  assign ack_clear_o = error_ack_i && (flush_o || !in_error_i);
endmodule
