// SPDX-License-Identifier: Apache-2.0
/// Finds which beats of a request are in the operand buffer (npu_matrix_banks), and requests only
/// the others.
///
/// The buffer is direct mapped: consecutive beats lie in consecutive banks, and a set is one beat
/// of each bank. A beat counts as present from the moment it is requested: answers arrive, and the
/// buffer is read, in the order of the requests. What one request misses is asked for with one
/// request, from the first such beat to the last. `start_i` forgets everything, so that nothing
/// older than the command is read. Requests without `reuse` pass at once; the others take one cycle
/// more, one in each cycle.
module npu_matrix_tags
  import npu_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned BusBits = 256
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       start_i,

  input  logic       in_valid_i,
  output logic       in_ready_o,
  input  mem_range_t in_range_i,
  input  pending_t   in_i,

  output logic       req_valid_o,
  input  logic       req_ready_i,
  output mem_range_t req_range_o,

  output logic       pending_valid_o,
  input  logic       pending_ready_i,
  output pending_t   pending_o
);
  localparam int unsigned BeatW = $clog2(BusBits / 8);
  localparam int unsigned LineW = ADDR_WIDTH - BeatW;   // number of a beat in memory
  localparam int unsigned TagW  = LineW - REUSE_WIDTH;
  localparam int unsigned SetW  = REUSE_WIDTH - 2;

  logic             held_q, take, leave, pass;
  logic [LineW-1:0] line_q;                             // first beat of the request at hand
  pending_t         request_q;
  logic [REUSE_BANKS-1:0] bank_missed, missed;          // by bank; by place in the request
  logic [1:0]       first_miss, last_miss;
  logic             any_miss;

  assign take       = in_valid_i && in_i.reuse && (!held_q || leave);
  assign pass       = in_valid_i && !in_i.reuse && !held_q && pending_ready_i && req_ready_i;
  assign leave      = held_q && pending_ready_i && (req_ready_i || !any_miss);
  assign in_ready_o = take || pass;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)            held_q <= 1'b0;
    else if (take || leave) held_q <= take;
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      line_q    <= in_range_i.addr[ADDR_WIDTH-1:BeatW];
      request_q <= in_i;
    end
  end

  for (genvar b = 0; b < REUSE_BANKS; b++) begin : gen_bank
    logic [TagW-1:0]            tag_q [2**SetW];
    logic [2**SetW-1:0]         valid_q;
    logic [1:0]                 place;  // of this bank's beat in the request
    logic [LineW-1:2]           row;    // that beat's number, without the bank
    logic [SetW-1:0]            set;
    logic                       update;

    assign place  = 2'(b) - line_q[1:0];
    assign row    = line_q[LineW-1:2] + (LineW-2)'(3'(line_q[1:0]) > 3'(b));
    assign set    = row[REUSE_WIDTH-1:2];
    assign update = leave && any_miss && place >= first_miss && place <= last_miss;
    assign bank_missed[b] = 4'(place) < request_q.beats &&
                            !(valid_q[set] && tag_q[set] == row[LineW-1:REUSE_WIDTH]);

    always_ff @(posedge clk_i) begin
      if (!rst_ni || start_i) valid_q      <= '0;
      else if (update)        valid_q[set] <= 1'b1;
    end

    always_ff @(posedge clk_i) begin
      if (update) tag_q[set] <= row[LineW-1:REUSE_WIDTH];
    end
  end

  always_comb begin
    first_miss = '0;
    last_miss  = '0;
    for (int unsigned p = 0; p < REUSE_BANKS; p++) begin
      missed[p] = bank_missed[2'(p) + line_q[1:0]];
      if (missed[p]) last_miss = 2'(p);
    end
    for (int unsigned p = REUSE_BANKS; p > 0; p--) begin
      if (missed[p-1]) first_miss = 2'(p - 1);
    end
  end
  assign any_miss = held_q && missed != '0;

  always_comb begin
    req_valid_o     = held_q ? any_miss && pending_ready_i
                             : in_valid_i && !in_i.reuse && pending_ready_i;
    req_range_o     = in_range_i;
    pending_valid_o = leave || pass;
    pending_o       = in_i;
    if (held_q) begin
      req_range_o.addr  = {line_q + LineW'(first_miss), BeatW'(0)};
      req_range_o.bytes = (REQ_BYTES_WIDTH'(last_miss - first_miss) + 1'b1) << BeatW;
      pending_o         = request_q;
      pending_o.first   = line_q[REUSE_WIDTH-1:0];
      pending_o.missed  = line_q[REUSE_WIDTH-1:0] + REUSE_WIDTH'(first_miss);
      pending_o.misses  = any_miss ? 3'(last_miss - first_miss) + 3'd1 : '0;
    end
  end
endmodule
