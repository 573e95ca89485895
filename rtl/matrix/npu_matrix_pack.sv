// SPDX-License-Identifier: Apache-2.0
/// Converts a tile row to the destination type and writes it: one request per line, or one per
/// element where columns of the destination are not adjacent.
///
/// A line of b beats takes b cycles. Its first beat goes with or after its request. A line is
/// accepted with its last beat; the input must be stable until then.
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
  input  extent_t                 line_elems_i,
  input  logic [ArraySize*32-1:0] line_data_i,

  output mem_wr_req_t                wr_req_o,
  input  mem_wr_rsp_t                wr_rsp_i,
  output logic [BusBits-1:0]         wr_data_o,
  output logic [BusBits/8-1:0]       wr_strb_o
);
  localparam int unsigned BusBytes    = BusBits / 8;
  localparam int unsigned BeatW       = $clog2(BusBytes);
  localparam int unsigned LineBits    = ArraySize * 32;
  localparam int unsigned WindowBits  = LineBits + BusBits;
  localparam int unsigned WindowBytes = WindowBits / 8;
  localparam int unsigned Beats       = WindowBits / BusBits;
  localparam int unsigned CountW      = $clog2(Beats + 1);

  logic              req_sent_q;     // for the line or element at hand
  logic [CountW-1:0] beat_q;
  lane_t             elem_q;
  logic [63:0]       elem_addr_q;    // of element elem_q, when it is not the first

  logic                    single, last_elem, last_beat, step, finished;
  logic [1:0]              log2_bytes;
  logic [63:0]             addr, elem_step;
  logic [7:0]              bytes;
  logic [BeatW-1:0]        offset;
  logic [LineBits-1:0]     packed_line;
  logic [WindowBits-1:0]   window;
  logic [WindowBytes-1:0]  window_strb;

  assign log2_bytes = dtype_log2_bytes(cmd_i.dst_dtype);
  assign elem_step  = 64'(cmd_i.dst.stride[DIM_COL]) << log2_bytes;
  assign single     = cmd_i.dst.stride[DIM_COL] != 32'd1 && cmd_i.dst.size[DIM_COL] != 32'd1;
  assign addr       = (elem_q == '0) ? line_addr_i : elem_addr_q;
  assign offset     = addr[BeatW-1:0];
  assign bytes      = single ? (8'd1 << log2_bytes) : (8'(line_elems_i) << log2_bytes);
  assign last_elem  = !single || 6'(elem_q) + 6'd1 == line_elems_i;
  assign last_beat  = (9'(beat_q) + 9'd1) << BeatW >= 9'(offset) + 9'(bytes);

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
      if (single) packed_line = packed_line >> ({27'b0, elem_q} << log2_bytes << 3);
    end
  end

  always_comb begin
    window      = '0;
    window_strb = '0;
    if (line_valid_i) begin
      window      = WindowBits'(packed_line) << {offset, 3'b000};
      window_strb = ((WindowBytes'(1) << bytes) - WindowBytes'(1)) << offset;
    end
  end

  assign wr_req_o.valid      = line_valid_i && !req_sent_q;
  assign wr_req_o.range      = '{addr: addr, bytes: REQ_BYTES_WIDTH'(bytes)};
  assign wr_req_o.data_valid = line_valid_i && (req_sent_q || wr_rsp_i.ready);
  assign wr_data_o       = window[beat_q*BusBits +: BusBits];
  assign wr_strb_o       = window_strb[beat_q*BusBytes +: BusBytes];

  assign step         = wr_req_o.data_valid && wr_rsp_i.data_ready;
  assign finished     = step && last_beat;
  assign line_ready_o = finished && last_elem;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      req_sent_q <= 1'b0;
      beat_q     <= '0;
      elem_q     <= '0;
    end else begin
      if (finished)                              req_sent_q <= 1'b0;
      else if (wr_req_o.valid && wr_rsp_i.ready) req_sent_q <= 1'b1;
      if (step) beat_q <= last_beat ? '0 : beat_q + CountW'(1);
      if (finished) elem_q <= last_elem ? '0 : elem_q + lane_t'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    if (finished) elem_addr_q <= addr + elem_step;
  end
endmodule
