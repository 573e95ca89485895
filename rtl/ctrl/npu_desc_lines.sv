// SPDX-License-Identifier: Apache-2.0
/// Keeps the lines of descriptors that arrive until they are looked at, and requests the second
/// lines of windows.
///
/// `asked_i` notes the request of a first line. When a first line that says that it is a window
/// arrives, its second line is requested, once `ask_i` allows it: no earlier than all first lines
/// have been, so that these arrive first. First and second lines leave in the order of their
/// operands, each through a port of its own. `drop_i` asks for nothing more; what is on its way is
/// awaited (`awaited_o`).
module npu_desc_lines
  import npu_isa_pkg::*;
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned MaxDescs = 4,
  parameter logic [63:0] MemBase,
  parameter logic [63:0] MemLimit
) (
  input  logic       clk_i,
  input  logic       rst_ni,

  input  logic       asked_i,
  input  line_addr_t asked_addr_i,
  input  logic       windows_i,       // the opcode's operands may be windows
  input  logic       ask_i,
  input  logic       drop_i,

  output logic       req_valid_o,     // a second line
  input  logic       req_ready_i,
  output line_addr_t req_addr_o,

  input  logic       line_valid_i,
  input  line_t      line_i,
  input  logic       line_err_i,

  output logic       first_valid_o,
  input  logic       first_ready_i,
  output line_t      first_o,
  output logic       first_err_o,
  output logic       second_valid_o,
  input  logic       second_ready_i,
  output line_t      second_o,
  output logic       second_err_o,
  output logic       awaited_o        // lines are requested and have not left
);
  localparam int unsigned CountW = $clog2(2 * MaxDescs + 1);

  logic              is_first, extend, asked_second, left;
  logic              second_req_valid;
  line_addr_t        first_addr;
  logic [CountW-1:0] awaited_q;

  // Where the first lines on their way lie; when none is left, all that arrive are second lines.
  npu_fifo #(.Width(LINE_ADDR_WIDTH), .Depth(MaxDescs), .NeverFull(1'b1)) u_first_addrs (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(asked_i), .in_ready_o(), .in_data_i(asked_addr_i),
    .out_valid_o(is_first), .out_ready_i(line_valid_i), .out_data_o(first_addr),
    .count_o()
  );

  assign extend = line_valid_i && is_first && !line_err_i && windows_i && line_is_window(line_i) &&
                  line_inside(line_behind(first_addr), MemBase, MemLimit);

  npu_fifo #(.Width(LINE_ADDR_WIDTH), .Depth(MaxDescs), .NeverFull(1'b1)) u_second_addrs (
    .clk_i, .rst_ni, .flush_i(drop_i),
    .in_valid_i(extend), .in_ready_o(), .in_data_i(line_behind(first_addr)),
    .out_valid_o(second_req_valid), .out_ready_i(asked_second), .out_data_o(req_addr_o),
    .count_o()
  );

  npu_fifo #(.Width(LINE_BITS + 1), .Depth(MaxDescs), .NeverFull(1'b1)) u_first_lines (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(line_valid_i && is_first), .in_ready_o(),
    .in_data_i({line_err_i, line_i}),
    .out_valid_o(first_valid_o), .out_ready_i(first_ready_i), .out_data_o({first_err_o, first_o}),
    .count_o()
  );

  npu_fifo #(.Width(LINE_BITS + 1), .Depth(MaxDescs), .NeverFull(1'b1)) u_second_lines (
    .clk_i, .rst_ni, .flush_i(1'b0),
    .in_valid_i(line_valid_i && !is_first), .in_ready_o(),
    .in_data_i({line_err_i, line_i}),
    .out_valid_o(second_valid_o), .out_ready_i(second_ready_i),
    .out_data_o({second_err_o, second_o}),
    .count_o()
  );

  assign req_valid_o  = second_req_valid && ask_i && !drop_i;
  assign asked_second = req_valid_o && req_ready_i;
  assign left         = (first_valid_o && first_ready_i) || (second_valid_o && second_ready_i);
  assign awaited_o    = awaited_q != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) awaited_q <= '0;
    else         awaited_q <= awaited_q + CountW'(asked_i || asked_second) - CountW'(left);
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && line_valid_i) begin
      LineIsAwaited: assert (awaited_o)
        else $error("npu_desc_lines: a line that was not requested");
    end
  end
endmodule
