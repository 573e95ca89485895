// SPDX-License-Identifier: Apache-2.0
/// What the engines read and write, against the operands that their commands were checked with
/// (simulation only).
///
/// A command claims the bytes from the first to the last one of each operand; npu_hazard lets it
/// start when no running command writes what it claims, or claims what it writes. That is enough
/// only if the engines touch nothing else: a byte that was read too much differs in no result until
/// another command writes it, or the memory ends before it.
module npu_span_checker
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
  import npu_vector_pkg::*;
#(
  parameter int unsigned Readers = 1,
  parameter int unsigned Writers = 1,
  parameter int unsigned BusBits = 256,
  parameter logic [63:0] MemBase = 64'h0
) (
  input logic                    clk_i,
  input logic                    rst_ni,

  // Commands while they are checked
  input logic                   take_i,        // one of take_queue_i is taken
  input queue_t                 take_queue_i,
  input cmd_slot_t [QUEUES-1:0] next_slot_i,   // that of the next command of each queue
  input logic                   span_valid_i,  // the one of span_queue_i claims span_i
  input span_t                  span_i,
  input queue_t                 span_queue_i,

  // Their start and their end
  input logic [NUM_CHANNELS-1:0] start_i,
  input cmd_slot_id_t            place_i,
  input logic [NUM_CHANNELS-1:0] done_i,

  // Requests to the memory controller, as npu_core numbers clients
  input logic [Readers-1:0]      read_valid_i,
  input logic [Readers-1:0]      read_ready_i,
  input mem_range_t              read_range_i [Readers],
  input logic [Writers-1:0]      write_valid_i,
  input logic [Writers-1:0]      write_ready_i,
  input mem_range_t              write_range_i [Writers]
);
  localparam int unsigned BeatW = $clog2(BusBits / 8);

  typedef int unsigned channel_t;

  // Vector has a client per source and result, gather two readers.
  function automatic channel_t channel_of(channel_t client, channel_t vectors, channel_t gathers);
    if (client <= ENGINE_VECTOR)                    return client - 1;
    if (client < 1 + ENGINE_VECTOR + vectors)       return ENGINE_VECTOR;
    if (client < 1 + ENGINE_VECTOR + vectors + gathers) return ENGINE_GATHER;
    return CHANNEL_COPY1;
  endfunction

  // The operands of a command
  typedef struct {
    int unsigned count;
    span_t       span [CMD_SPANS];
  } claim_t;

  claim_t                  claim_q [QUEUES][CMD_SLOTS];
  claim_t                  running_q [NUM_CHANNELS];
  logic [NUM_CHANNELS-1:0] runs_q;
  logic [Readers-1:0]      reads;
  logic [Writers-1:0]      writes;

  // Neither function is inlined: the simulator would clear its arguments in every cycle.

  // The operand buffer reads whole beats, of which it uses the operand's bytes.
  function automatic logic claimed(claim_t claim, mem_range_t range, logic write);
    // verilator no_inline_task
    logic [63:0] first, last;
    logic        beats;
    int unsigned shift;
    first   = 64'(range.addr) - MemBase;
    last    = first + 64'(range.bytes) - 64'd1;
    beats   = first[BeatW-1:0] == '0 && last[BeatW-1:0] == '1;
    shift   = (beats && !write) ? BeatW : 0;
    claimed = 1'b0;
    for (int unsigned i = 0; i < claim.count; i++) begin
      if (first >> shift >= claim.span[i].first >> shift &&
          last >> shift <= claim.span[i].last >> shift && (claim.span[i].write || !write)) begin
        claimed = 1'b1;
      end
    end
  endfunction

  function automatic logic conflict(claim_t one, claim_t other);
    // verilator no_inline_task
    conflict = 1'b0;
    for (int unsigned i = 0; i < one.count; i++) begin
      for (int unsigned k = 0; k < other.count; k++) begin
        if ((one.span[i].write || other.span[k].write) && one.span[i].first <= other.span[k].last
            && other.span[k].first <= one.span[i].last) conflict = 1'b1;
      end
    end
  endfunction

  // One process: first the rules, then the new state, with blocking assignments, as nothing else
  // reads it.
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      runs_q = '0;
    end else begin
      reads  = read_valid_i & read_ready_i;
      writes = write_valid_i & write_ready_i;
      if (reads[Readers-1:1] != '0) begin
        for (int unsigned c = 1; c < Readers; c++) begin
          if (reads[c]) begin
            ReadsItsOperands: assert (claimed(running_q[channel_of(c, MAX_SOURCES, 2)],
                                              read_range_i[c], 1'b0))
              else $error("memory reader %0d: %0d bytes at %h are no operand of its command",
                          c, read_range_i[c].bytes, read_range_i[c].addr);
          end
        end
      end
      if (writes[Writers-1:1] != '0) begin
        for (int unsigned c = 1; c < Writers; c++) begin
          if (writes[c]) begin
            WritesItsResults: assert (claimed(running_q[channel_of(c, MAX_RESULTS, 1)],
                                              write_range_i[c], 1'b1))
              else $error("memory writer %0d: %0d bytes at %h are no result of its command",
                          c, write_range_i[c].bytes, write_range_i[c].addr);
          end
        end
      end

      runs_q &= ~done_i;
      if (start_i != '0) begin
        for (int unsigned e = 0; e < NUM_CHANNELS; e++) begin
          if (runs_q[e]) begin
            StartsWithoutConflict: assert (!conflict(running_q[e],
                                                     claim_q[place_i.qid][place_i.slot]))
              else $error("a command starts that has an operand in common with that of channel %0d",
                          e);
          end
        end
        for (int unsigned e = 0; e < NUM_CHANNELS; e++) begin
          if (start_i[e]) running_q[e] = claim_q[place_i.qid][place_i.slot];
        end
        runs_q |= start_i;
      end
      if (span_valid_i) begin
        claim_q[span_queue_i][next_slot_i[span_queue_i]]
            .span[claim_q[span_queue_i][next_slot_i[span_queue_i]].count] = span_i;
        claim_q[span_queue_i][next_slot_i[span_queue_i]].count += 1;
      end
      if (take_i) claim_q[take_queue_i][next_slot_i[take_queue_i]].count = 0;
    end
  end
endmodule
