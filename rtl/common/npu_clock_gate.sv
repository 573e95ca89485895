// SPDX-License-Identifier: Apache-2.0
/// Clock gate: the standard cell of a latch and an AND. Replace this file by the library's cell.
///
/// `clk_o` has the pulses of `clk_i` before whose rising edge `en_i` was high. The latch holds the
/// enable while the clock is high, so a late change of `en_i` makes no short pulse. `en_i` comes
/// from registers on `clk_i`, or on gates of it, and at the ports of the host also from pins, which
/// must be stable when `clk_i` falls. This is the only latch of the design.
module npu_clock_gate (
  input  logic clk_i,
  input  logic en_i,
  output logic clk_o
);
  logic en_q;

  always_latch begin
    if (!clk_i) en_q = en_i;
  end

  assign clk_o = clk_i & en_q;
endmodule
