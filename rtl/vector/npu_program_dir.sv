// SPDX-License-Identifier: Apache-2.0
/// Directory of the programs: which lines begin a program that is loaded, and what its header says.
///
/// The lookup is combinational: `info_o.loaded` is low for a line at which no program begins. Boot
/// programs are always there. `invalidate_i` removes the programs with a line in
/// invalidate_line_i and the invalidate_lines_i - 1 after it: one line per cycle from the farthest
/// one at which such a program may begin; `busy_o` meanwhile. `insert_i` adds a program. Lines of
/// the loadable part count from its first. Reset removes all loaded programs.
module npu_program_dir
  import npu_pkg::*;
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,

  input  logic [31:0]   line_i,
  output program_info_t info_o,

  input  logic          invalidate_i,
  input  ram_line_t     invalidate_line_i,   // stable while busy_o
  input  image_lines_t  invalidate_lines_i,
  output logic          busy_o,

  input  logic          insert_i,
  input  ram_line_t     insert_line_i,
  input  program_info_t insert_info_i
);
  // One line more than there are, for the end of a range.
  localparam int unsigned RangeW = $clog2(PROGRAM_RAM_LINES + 1);
  localparam int unsigned BootLineW = $clog2(BOOT_LINES);
  localparam logic [RangeW-1:0] FarthestStart = RangeW'(PROGRAM_MAX_LINES - 1);

  logic [PROGRAM_RAM_LINES-1:0] loaded_q;
  program_info_t                info_q [PROGRAM_RAM_LINES];
  program_info_t                ram_info, boot_info;
  logic [31:0]                  ram_line;
  logic                         busy_q, overlaps;
  logic [RangeW-1:0]            walk_q, first, range_end, walk_end;

  // ---- lookup ----
  assign ram_line = line_i - 32'(PROGRAM_RAM);

  always_comb begin
    boot_info       = info_of(BOOT_IMAGE[{line_i[BootLineW-1:0], 3'd0}]);
    ram_info        = info_q[ram_line_t'(ram_line)];
    ram_info.loaded = loaded_q[ram_line_t'(ram_line)];
    if (line_i < 32'(BOOT_LINES))
      info_o = BOOT_STARTS[line_i[BootLineW-1:0]] ? boot_info : '0;
    else
      info_o = (ram_line < 32'(PROGRAM_RAM_LINES) && ram_info.loaded) ? ram_info : '0;
  end

  // ---- invalidate and insert ----
  assign first     = RangeW'(invalidate_line_i);
  assign range_end = first + RangeW'(invalidate_lines_i);
  assign walk_end  = walk_q + RangeW'(program_lines(info_q[walk_q[RangeW-2:0]]));
  assign overlaps  = walk_end > first;

  assign busy_o = busy_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)       busy_q <= 1'b0;
    else if (invalidate_i) busy_q <= 1'b1;
    else if (walk_q + RangeW'(1) == range_end) busy_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (invalidate_i)    walk_q <= (first > FarthestStart) ? first - FarthestStart : '0;
    else if (busy_q) walk_q <= walk_q + RangeW'(1);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni)                 loaded_q <= '0;
    else if (insert_i)            loaded_q[insert_line_i] <= 1'b1;
    else if (busy_q && overlaps) loaded_q[walk_q[RangeW-2:0]] <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (insert_i) info_q[insert_line_i] <= insert_info_i;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && busy_q) begin
      OneAtATime: assert (!insert_i && !invalidate_i && range_end <= RangeW'(PROGRAM_RAM_LINES))
        else $error("npu_program_dir: a walk over [%0d, %0d) is disturbed", first, range_end);
    end
  end
endmodule
