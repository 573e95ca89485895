// SPDX-License-Identifier: Apache-2.0
/// Order of the command processor's own writes, completion records and SYNC's word, against the
/// writes of the engines on m_axi (simulation only). Ids are {client, host id}.
///
/// An engine is done only when every burst that it wrote is acknowledged. A record is written only
/// when the engine of its command, and those of all commands of its queue that started before it,
/// are done; records of a queue name the commands in the order in which engines were offered them.
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

  input engine_req_t       engine_req_i [NUM_CHANNELS],
  input engine_rsp_t       engine_rsp_i [NUM_CHANNELS],

  // Writes of the command processor, as it hands them over
  input logic              write_valid,
  input logic              write_ready,
  input line_write_t       write_i,
  input queue_t            write_queue_i,
  input queue_t            start_queue_i,  // of the command that is offered in the next cycle
  input logic              dropped_i  // commands behind one that failed will have no records
);
  localparam int unsigned CountW = 32;
  localparam int unsigned PtrW   = $clog2(Depth);

  // Whether a client is the channel's, as npu_core numbers them.
  function automatic logic writes(int unsigned engine, logic [IdBits-1:0] id);
    logic [3:0] first;
    first = 4'(1 + engine + (engine > ENGINE_VECTOR ? MAX_RESULTS - 1 : 0));
    return id[IdBits-1-:4] >= first &&
           id[IdBits-1-:4] < first + 4'(engine == ENGINE_VECTOR ? MAX_RESULTS : 1);
  endfunction

  // Bursts of each channel without a response
  logic [NUM_CHANNELS-1:0][CountW-1:0] open_q;
  logic [NUM_CHANNELS-1:0]             offered_q, taken, done;

  for (genvar e = 0; e < NUM_CHANNELS; e++) begin : gen_engine
    logic opened, closed;
    assign opened   = awvalid && awready && writes(e, awid);
    assign closed   = bvalid && bready && writes(e, bid);
    assign taken[e] = engine_req_i[e].valid && !offered_q[e];
    assign done[e]  = engine_rsp_i[e].done;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) open_q[e] <= '0;
      else         open_q[e] <= open_q[e] + CountW'(opened) - CountW'(closed);
      offered_q[e] <= rst_ni && engine_req_i[e].valid;
    end

    always_ff @(posedge clk_i) begin
      if (rst_ni && done[e]) begin
        DoneWhenAnswered: assert (open_q[e] == '0)
          else $error("m_axi: channel %0d is done with %0d writes open", e, open_q[e]);
      end
    end
  end

  // The commands that engines were offered, oldest first, until their records are written
  logic [QUEUES-1:0][Depth-1:0][31:0] opcode_q;
  logic [QUEUES-1:0][Depth-1:0]       done_q;
  logic [NUM_CHANNELS-1:0][PtrW-1:0]   current_q;  // of each channel
  queue_t [NUM_CHANNELS-1:0]           current_queue_q;
  logic [QUEUES-1:0][PtrW-1:0]        head_q, tail_q;
  queue_t                             queue_q, written;
  completion_t                        record;
  logic                               record_now, of_engine, unused;

  assign record     = write_i.data;
  assign record_now = write_valid && write_ready && !write_i.word;
  assign of_engine  = opcode_engine(record.opcode) != ENGINE_NONE;
  assign unused     = ^{record, write_i.addr};
  assign written    = write_queue_i;

  always_ff @(posedge clk_i) queue_q <= start_queue_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q <= '0;
      tail_q <= '0;
      done_q <= '0;
    end else begin
      for (int unsigned e = 0; e < NUM_CHANNELS; e++) begin
        if (taken[e]) begin
          opcode_q[queue_q][tail_q[queue_q]] <= engine_req_i[e].cmd.opcode;
          done_q[queue_q][tail_q[queue_q]]   <= 1'b0;
          current_q[e]                       <= tail_q[queue_q];
          current_queue_q[e]                 <= queue_q;
          tail_q[queue_q]                    <= tail_q[queue_q] + PtrW'(1);
        end
        if (done[e]) done_q[current_queue_q[e]][current_q[e]] <= 1'b1;
      end
      // A command that failed its checks never reached an engine.
      if (dropped_i) begin
        head_q <= tail_q;
      end else if (record_now && of_engine && record.status == '0) begin
        head_q[written] <= head_q[written] + PtrW'(1);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      OneOfferAtATime: assert ($onehot0(taken))
        else $error("channels %05b are offered commands in one cycle", taken);
    end
    if (rst_ni && record_now && of_engine && record.status == '0) begin
      RecordAfterWrites: assert (head_q[written] != tail_q[written] &&
                                 done_q[written][head_q[written]] &&
                                 opcode_q[written][head_q[written]] == record.opcode)
        else $error("record of command %0d written before its writes, or out of order", record.seq);
    end
    if (rst_ni && write_valid && write_ready && write_i.word) begin
      SyncAfterAll: assert (head_q[written] == tail_q[written] &&
                            (open_q == '0 || head_q != tail_q))
        else $error("SYNC writes its word with commands under way");
    end
  end
endmodule
