// SPDX-License-Identifier: Apache-2.0
/// The writes that are not acknowledged yet, so that nothing reads what one of them will change.
///
/// `conflict_o` tells in the same cycle whether the range of `check_i` shares a bus beat with one
/// of them. Writes are acknowledged in order.
module npu_gather_hazard
  import npu_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  parameter int unsigned Depth   = 8,
  localparam int unsigned LaneW  = $clog2(BusBits / 8)
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       check_i,
  input  mem_range_t                 range_i,
  output logic                       conflict_o,
  output logic                       room_o,
  input  logic                       push_i,  // the range is being written
  input  logic                       pop_i    // the oldest write is acknowledged
);
  localparam int unsigned PtrW = $clog2(Depth);

  typedef logic [ADDR_WIDTH-1:LaneW] beat_addr_t;

  beat_addr_t            first, last;
  beat_addr_t            first_q [Depth], last_q [Depth];
  logic [Depth-1:0]      used_q;
  logic [PtrW-1:0]       wr_ptr_q, rd_ptr_q;
  logic [ADDR_WIDTH-1:0] end_addr;
  logic                  unused_lane;

  assign first       = range_i.addr[ADDR_WIDTH-1:LaneW];
  assign end_addr    = range_i.addr + ADDR_WIDTH'(range_i.bytes) - ADDR_WIDTH'(1);
  assign last        = end_addr[ADDR_WIDTH-1:LaneW];
  assign unused_lane = ^{range_i.addr[LaneW-1:0], end_addr[LaneW-1:0]};
  assign room_o      = !used_q[wr_ptr_q];

  always_comb begin
    conflict_o = 1'b0;
    if (check_i && used_q != '0) begin
      for (int unsigned i = 0; i < Depth; i++) begin
        if (used_q[i] && first <= last_q[i] && last >= first_q[i]) conflict_o = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (push_i) begin
      first_q[wr_ptr_q] <= first;
      last_q[wr_ptr_q]  <= last;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      used_q <= '0;
      wr_ptr_q <= '0;
      rd_ptr_q  <= '0;
    end else begin
      if (push_i) begin
        used_q[wr_ptr_q] <= 1'b1;
        wr_ptr_q         <= (wr_ptr_q == PtrW'(Depth - 1)) ? '0 : wr_ptr_q + PtrW'(1);
      end
      if (pop_i) begin
        used_q[rd_ptr_q] <= 1'b0;
        rd_ptr_q         <= (rd_ptr_q == PtrW'(Depth - 1)) ? '0 : rd_ptr_q + PtrW'(1);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && push_i) begin
      PushHasRoom: assert (room_o)
        else $error("npu_gather_hazard: more than %0d writes", Depth);
    end
  end
endmodule
