// SPDX-License-Identifier: Apache-2.0
/// Order of the command processor's own writes, completion records and SYNC's word, against the
/// writes of the engines on m_axi (simulation only). Ids are {client, host id}.
///
/// An engine is done only when every burst that it wrote is acknowledged. A record is written only
/// when the engine of its command, and those of all commands of its queue that started before it,
/// are done; records of a queue name the commands in the order in which engines were offered them.
/// The same holds for their completion, also where a queue has no records.
/// SYNC's word is written only when nothing of its queue runs. A DRAM that answers in order would
/// hide a violation of the first rule.
module npu_order_checker
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_vector_pkg::MAX_RESULTS;
  import npu_ctrl_pkg::*;
#(
  parameter int unsigned IdBits = 8,
  parameter int unsigned Depth  = 16
) (
  input logic              clk_i,
  input logic              rst_ni,

  input logic              awvalid,
  input logic              awready,
  input logic [IdBits-1:0] awid,
  input logic              bvalid,
  input logic              bready,
  input logic [IdBits-1:0] bid,

  // Of each channel: a command is offered, its opcode; it is done
  input logic [NUM_CHANNELS-1:0]       offered_i,
  input logic [NUM_CHANNELS-1:0][31:0] opcode_i,
  input logic [NUM_CHANNELS-1:0]       done_i,

  // Writes of the command processor, as it hands them over
  input logic              write_valid,
  input logic              write_ready,
  input line_write_t       write_i,
  input queue_t            write_queue_i,
  input queue_t            start_queue_i,  // of the command that is offered in the next cycle
  input logic              dropped_i,  // commands behind one that failed will have no records

  // A command is completed, with or without a record; its opcode
  input queues_t           retire_i,
  input logic [31:0]       retire_opcode_i
);
  localparam int unsigned PtrW = $clog2(Depth);
  localparam logic [3:0] FirstResult = 4'(1 + ENGINE_VECTOR);
  localparam logic [3:0] LastResult  = FirstResult + 4'(MAX_RESULTS - 1);

  typedef logic [3:0] channel_t;

  // The channel that the client of an id belongs to, as npu_core numbers clients; NUM_CHANNELS or
  // more for the command processor and the host.
  function automatic channel_t channel_of(logic [3:0] client);
    if (client <= FirstResult) return client - 4'd1;
    if (client <= LastResult)  return channel_t'(ENGINE_VECTOR);
    return client - 4'(MAX_RESULTS);
  endfunction

  // One process: first the rules, then the new state, with blocking assignments, as nothing else
  // reads it.
  logic [31:0]             open_q [NUM_CHANNELS];  // bursts of each channel without a response
  logic [31:0]             all_open_q;
  logic [NUM_CHANNELS-1:0] offered_q, taken;
  channel_t                opened, closed;

  // The commands that engines were offered, oldest first, until they are completed
  logic [31:0]                 opcode_q [QUEUES][Depth];
  logic [QUEUES-1:0][Depth-1:0] done_q;
  logic [QUEUES-1:0][PtrW-1:0] head_q, tail_q;
  logic [PtrW-1:0]             current_q [NUM_CHANNELS];  // of each channel
  queue_t                      current_queue_q [NUM_CHANNELS];
  queue_t                      queue_q;
  completion_t                 record;

  always @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int unsigned e = 0; e < NUM_CHANNELS; e++) open_q[e] = '0;
      all_open_q = '0;
      offered_q  = '0;
      head_q     = '0;
      tail_q     = '0;
      done_q     = '0;
    end else begin
      if (done_i != '0) begin
        for (int unsigned e = 0; e < NUM_CHANNELS; e++) begin
          if (done_i[e]) begin
            DoneWhenAnswered: assert (open_q[e] == '0)
              else $error("m_axi: channel %0d is done with %0d writes open", e, open_q[e]);
          end
        end
      end
      if (write_valid && write_ready) begin
        record = write_i.data;
        if (!write_i.word && opcode_engine(record.opcode) != ENGINE_NONE &&
            record.status == '0) begin
          RecordAfterWrites: assert (head_q[write_queue_i] != tail_q[write_queue_i] &&
                                     done_q[write_queue_i][head_q[write_queue_i]] &&
                                     opcode_q[write_queue_i][head_q[write_queue_i]] ==
                                     record.opcode)
            else $error("record of command %0d written before its writes, or out of order",
                        record.seq);
        end
        if (write_i.word) begin
          SyncAfterAll: assert (head_q[write_queue_i] == tail_q[write_queue_i] &&
                                (all_open_q == '0 || head_q != tail_q))
            else $error("SYNC writes its word with commands under way");
        end
      end

      // A command that failed its checks never reached an engine.
      if (dropped_i) begin
        head_q = tail_q;
      end else if (retire_i != '0 && opcode_engine(retire_opcode_i) != ENGINE_NONE) begin
        for (int unsigned q = 0; q < QUEUES; q++) begin
          if (retire_i[q]) begin
            CompletedAfterWrites: assert (head_q[q] != tail_q[q] && done_q[q][head_q[q]] &&
                                          opcode_q[q][head_q[q]] == retire_opcode_i)
              else $error("command completed before its writes, or out of order");
            head_q[q] = head_q[q] + PtrW'(1);
          end
        end
      end

      if (done_i != '0) begin
        for (int unsigned e = 0; e < NUM_CHANNELS; e++) begin
          if (done_i[e]) done_q[current_queue_q[e]][current_q[e]] = 1'b1;
        end
      end

      taken     = offered_i & ~offered_q;
      offered_q = offered_i;
      if (taken != '0) begin
        OneOfferAtATime: assert ($onehot(taken))
          else $error("channels %05b are offered commands in one cycle", taken);
        for (int unsigned e = 0; e < NUM_CHANNELS; e++) begin
          if (taken[e]) begin
            opcode_q[queue_q][tail_q[queue_q]] = opcode_i[e];
            done_q[queue_q][tail_q[queue_q]]   = 1'b0;
            current_q[e]                       = tail_q[queue_q];
            current_queue_q[e]                 = queue_q;
            tail_q[queue_q]                    = tail_q[queue_q] + PtrW'(1);
          end
        end
      end

      if (awvalid && awready) begin
        opened = channel_of(awid[IdBits-1-:4]);
        if (opened < channel_t'(NUM_CHANNELS)) begin
          open_q[opened] = open_q[opened] + 32'd1;
          all_open_q     = all_open_q + 32'd1;
        end
      end
      if (bvalid && bready) begin
        closed = channel_of(bid[IdBits-1-:4]);
        if (closed < channel_t'(NUM_CHANNELS)) begin
          open_q[closed] = open_q[closed] - 32'd1;
          all_open_q     = all_open_q - 32'd1;
        end
      end
    end
    queue_q = start_queue_i;
  end
endmodule
