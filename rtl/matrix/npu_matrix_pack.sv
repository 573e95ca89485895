// SPDX-License-Identifier: Apache-2.0
/// Converts a line of a tile row to the destination type and writes it with one request.
///
/// A line is accepted with its request and waits, converted, for the beats of those before it: the
/// memory controller takes data only some cycles after the request, and lines of one beat follow
/// each other in every cycle.
module npu_matrix_pack
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_matrix_pkg::*;
#(
  parameter int unsigned ArraySize = 16,
  parameter int unsigned BusBits   = 256
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  npu_engine_cmd_t cmd_i,

  input  logic                    line_valid_i,
  output logic                    line_ready_o,
  input  logic [63:0]             line_addr_i,
  input  lane_t                   line_first_i,   // its first column in the tile row
  input  extent_t                 line_elems_i,
  input  logic [ArraySize*32-1:0] line_data_i,    // the tile row

  output mem_wr_req_t                wr_req_o,
  input  mem_wr_rsp_t                wr_rsp_i,
  output logic [BusBits-1:0]         wr_data_o,
  output logic [BusBits/8-1:0]       wr_strb_o
);
  localparam int unsigned BusBytes    = BusBits / 8;
  localparam int unsigned BeatW       = $clog2(BusBytes);
  localparam int unsigned LineBits    = ArraySize * 32;
  // A line of less than a beat may still lie in two.
  localparam int unsigned Beats       = (LineBits + BusBits - 1) / BusBits + 1;
  localparam int unsigned WindowBits  = Beats * BusBits;
  localparam int unsigned WindowBytes = WindowBits / 8;
  localparam int unsigned CountW      = $clog2(Beats + 1);

  // Lines between request and data, as many as cover the controller's latency.
  localparam int unsigned MaxAhead = 4;

  // Data lowest: whole words for the simulator.
  typedef struct packed {
    logic [7:0]          bytes;
    logic [BeatW-1:0]    offset;  // in its first beat
    logic [LineBits-1:0] data;    // from bit 0
  } packed_line_t;

  logic [CountW-1:0] beat_q;

  logic                    last_beat, step, room, line_valid;
  packed_line_t            line;
  logic [1:0]              log2_bytes;
  logic [7:0]              bytes;
  logic [LineBits-1:0]     packed_line;
  logic [WindowBits-1:0]   window;
  logic [WindowBytes-1:0]  window_strb;

  assign log2_bytes = dtype_log2_bytes(cmd_i.dst_dtype);
  assign bytes      = 8'(line_elems_i) << log2_bytes;
  assign last_beat  = (9'(beat_q) + 9'd1) << BeatW >= 9'(line.offset) + 9'(line.bytes);

  // ---- the line in the destination type, from bit 0 ----
  always_comb begin
    packed_line = '0;
    if (line_valid_i) begin
      unique case (cmd_i.dst_dtype)
        DTYPE_FP16: for (int l = 0; l < ArraySize; l++) begin
          packed_line[l*16 +: 16] = npu_fp_pkg::fp32_to_fp16(line_data_i[l*32 +: 32]);
        end
        DTYPE_BF16: for (int l = 0; l < ArraySize; l++) begin
          packed_line[l*16 +: 16] = npu_fp_pkg::fp32_to_bf16(line_data_i[l*32 +: 32]);
        end
        default: packed_line = line_data_i;
      endcase
      if (line_first_i != '0) begin
        packed_line = packed_line >> ({27'b0, line_first_i} << log2_bytes << 3);
      end
    end
  end

  assign wr_req_o.valid = line_valid_i && room;
  assign wr_req_o.range = '{addr: line_addr_i, bytes: REQ_BYTES_WIDTH'(bytes)};
  assign line_ready_o   = wr_req_o.valid && wr_rsp_i.ready;

  npu_fifo #(.Width($bits(packed_line_t)), .Depth(MaxAhead)) u_lines (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(line_ready_o), .in_ready_o(room),
    .in_data_i({bytes, line_addr_i[BeatW-1:0], packed_line}),
    .out_valid_o(line_valid), .out_ready_i(step && last_beat), .out_data_o(line),
    .count_o()
  );

  // Idle, the beat is zero. Selected in a loop: an expression would be evaluated with the data of
  // all writers, in every cycle in which one of them works.
  always_comb begin
    window      = '0;
    window_strb = '0;
    wr_data_o   = '0;
    wr_strb_o   = '0;
    if (line_valid) begin
      window      = WindowBits'(line.data) << {line.offset, 3'b000};
      window_strb = ((WindowBytes'(1) << line.bytes) - WindowBytes'(1)) << line.offset;
      for (int b = 0; b < Beats; b++) begin
        if (beat_q == CountW'(b)) begin
          wr_data_o = window[b*BusBits +: BusBits];
          wr_strb_o = window_strb[b*BusBytes +: BusBytes];
        end
      end
    end
  end

  assign wr_req_o.data_valid = line_valid;
  assign step                = line_valid && wr_rsp_i.data_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)   beat_q <= '0;
    else if (step) beat_q <= last_beat ? '0 : beat_q + CountW'(1);
  end
endmodule
