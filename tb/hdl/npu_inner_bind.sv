// SPDX-License-Identifier: Apache-2.0
// The checkers of what happens inside npu_core, in every build of it with assertions. A design
// without an npu_core is built without them.
bind npu_core npu_order_checker #(.IdBits(8)) u_order_checker (
  .clk_i, .rst_ni(engine_rst_n),
  .awvalid(axi_req_o.aw_valid), .awready(axi_rsp_i.aw_ready), .awid(axi_req_o.aw.id),
  .bvalid(axi_rsp_i.b_valid), .bready(axi_req_o.b_ready), .bid(axi_rsp_i.b_id),
  // Fields, not the structures: a command has 776 bytes, which the simulator would copy.
  .offered_i({engine_req[4].valid, engine_req[3].valid, engine_req[2].valid, engine_req[1].valid,
              engine_req[0].valid}),
  .opcode_i({engine_req[4].cmd.opcode, engine_req[3].cmd.opcode, engine_req[2].cmd.opcode,
             engine_req[1].cmd.opcode, engine_req[0].cmd.opcode}),
  .done_i({engine_rsp[4].done, engine_rsp[3].done, engine_rsp[2].done, engine_rsp[1].done,
           engine_rsp[0].done}),
  .write_valid(u_ctrl.write_valid), .write_ready(u_ctrl.write_ready), .write_i(u_ctrl.write),
  .write_queue_i(u_ctrl.sync_valid ? u_ctrl.u_cmd_front.owner[u_ctrl.u_cmd_front.sync_valid[1]]
                                   : u_ctrl.u_cmd_inflight.u_retire.queue_d),
  .start_queue_i(u_ctrl.start_queue),
  .dropped_i(u_ctrl.u_cmd_inflight.drop),
  .retire_i(u_ctrl.u_cmd_inflight.retire_o),
  .retire_opcode_i(u_ctrl.u_cmd_inflight.u_retire.command.opcode)
);

bind npu_burst_split npu_request_checker #(.NumClients(NumClients)) u_request_checker (
  .clk_i, .rst_ni, .valid_i, .ready_i(ready_o), .range_i
);

bind npu_core npu_span_checker #(
  .Readers(Readers), .Writers(Writers), .BusBits(BusBits), .MemBase(MemBase)
) u_span_checker (
  .clk_i, .rst_ni(engine_rst_n),
  .take_i(u_ctrl.u_cmd_front.take), .take_queue_i(u_ctrl.u_cmd_front.turn),
  .next_slot_i(u_ctrl.u_cmd_front.next_slot_i),
  .span_valid_i(u_ctrl.u_cmd_front.span_valid), .span_i(u_ctrl.u_cmd_front.span),
  .span_queue_i(u_ctrl.u_cmd_front.owner[0]),
  .start_i(u_ctrl.u_cmd_inflight.u_engines.start),
  .place_i(u_ctrl.u_cmd_inflight.u_engines.place_i),
  .done_i({engine_rsp[4].done, engine_rsp[3].done, engine_rsp[2].done, engine_rsp[1].done,
           engine_rsp[0].done}),
  .read_valid_i(u_mem_ctrl.u_read.u_ar.u_split.valid_i),
  .read_ready_i(u_mem_ctrl.u_read.u_ar.u_split.ready_o),
  .read_range_i(u_mem_ctrl.u_read.u_ar.u_split.range_i),
  .write_valid_i(u_mem_ctrl.u_write.u_aw.u_split.valid_i),
  .write_ready_i(u_mem_ctrl.u_write.u_aw.u_split.ready_o),
  .write_range_i(u_mem_ctrl.u_write.u_aw.u_split.range_i)
);
