// SPDX-License-Identifier: Apache-2.0
/// Program memory: words of 64 bits, the boot image in a ROM from line 0 on and the loadable lines
/// from line PROGRAM_RAM on.
///
/// One read and one write port. A word that is asked for with `read_i` is at the output in the next
/// cycle and stays until the next read. Read addresses count words from line 0, write addresses
/// from line PROGRAM_RAM.
module npu_program_mem
  import npu_vector_pkg::*;
  import npu_vector_types_pkg::*;
(
  input  logic          clk_i,

  input  logic          read_i,
  input  program_addr_t read_addr_i,
  output logic [63:0]   read_data_o,

  input  logic          write_i,
  input  ram_addr_t     write_addr_i,
  input  logic [63:0]   write_data_i
);
  localparam int unsigned BootWords = BOOT_LINES * LINE_WORDS;
  localparam int unsigned RamWords = PROGRAM_RAM_LINES * LINE_WORDS;
  localparam int unsigned BootW = $clog2(BootWords);

  logic [63:0] ram_q [RamWords];
  logic [63:0] ram_read_q, boot_read_q;
  logic        from_ram, from_ram_q;

  // PROGRAM_RAM is a power of two of lines, and the RAM is not larger than that.
  assign from_ram = read_addr_i[$bits(program_addr_t)-1];

  always_ff @(posedge clk_i) begin
    if (read_i) from_ram_q <= from_ram;
  end
  always_ff @(posedge clk_i) begin
    if (read_i && !from_ram) boot_read_q <= BOOT_IMAGE[read_addr_i[BootW-1:0]];
  end
  always_ff @(posedge clk_i) begin
    if (write_i)            ram_q[write_addr_i] <= write_data_i;
    if (read_i && from_ram) ram_read_q <= ram_q[read_addr_i[$bits(ram_addr_t)-1:0]];
  end

  assign read_data_o = from_ram_q ? ram_read_q : boot_read_q;
endmodule
