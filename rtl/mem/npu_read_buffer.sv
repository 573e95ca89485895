// SPDX-License-Identifier: Apache-2.0
/// Buffer for read data: a request leaves only when there is room for all its beats.
///
/// A beat that waits in the read path delays all others. When one stream waits for another, as data
/// waits for its index, both must therefore accept their beats at once. Beats come out in order
/// with their error, one per cycle, one cycle after they came in. `idle_o`: nothing
/// is under way and nothing waits. `req_beats_o` is the number of beats of the request.
module npu_read_buffer
  import npu_pkg::*;
#(
  parameter int unsigned BusBits = 256,
  parameter int unsigned Beats   = 128,  // at least those of the largest request
  localparam int unsigned StrbW  = BusBits / 8,
  localparam int unsigned LaneW  = $clog2(StrbW),
  localparam int unsigned BeatsW = $clog2(Beats + 1)
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       req_valid_i,
  input  mem_range_t                 req_range_i,
  output logic [BeatsW-1:0]          req_beats_o,

  // To the memory controller, the same range; a transfer ends the request
  output logic                       mem_valid_o,
  input  logic                       mem_ready_i,
  input  logic                       data_valid_i,
  input  logic [BusBits-1:0]         data_i,
  input  logic                       data_err_i,

  output logic                       beat_valid_o,
  input  logic                       beat_ready_i,
  output logic [BusBits-1:0]         beat_o,
  output logic                       beat_err_o,
  output logic                       idle_o
);
  logic [BeatsW-1:0] room_q, room_d;
  logic              fire, pop;

  assign req_beats_o = BeatsW'((req_range_i.bytes + REQ_BYTES_WIDTH'(req_range_i.addr[LaneW-1:0])
                                + REQ_BYTES_WIDTH'(StrbW - 1)) >> LaneW);
  assign mem_valid_o = req_valid_i && room_q >= req_beats_o;
  assign fire        = mem_valid_o && mem_ready_i;
  assign pop         = beat_valid_o && beat_ready_i;
  assign idle_o      = room_q == BeatsW'(Beats);

  always_comb begin
    room_d = room_q;
    if (fire) room_d -= req_beats_o;
    if (pop)  room_d += BeatsW'(1);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni)          room_q <= BeatsW'(Beats);
    else if (fire || pop) room_q <= room_d;
  end

  npu_fifo #(.Width(BusBits + 1), .Depth(Beats), .NeverFull(1'b1)) u_beats (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(data_valid_i), .in_ready_o(), .in_data_i({data_err_i, data_i}),
    .out_valid_o(beat_valid_o), .out_ready_i(beat_ready_i), .out_data_o({beat_err_o, beat_o}),
    .count_o()
  );

  always_ff @(posedge clk_i) begin
    if (rst_ni && req_valid_i) begin
      RequestFits: assert (req_beats_o <= BeatsW'(Beats) && req_beats_o != '0)
        else $error("npu_read_buffer: a request of %0d beats", req_beats_o);
    end
  end
endmodule
