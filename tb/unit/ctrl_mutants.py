# SPDX-License-Identifier: Apache-2.0
"""Wrong lines of the control unit that its bench must catch."""

from __future__ import annotations

from tb.mutants.expression import Mutant

CTRL: tuple[Mutant, ...] = (
    Mutant("npu_cmd_decode.sv", " || «prog_i.reduce != REDUCE_NONE»", "1'b0", "expected 4"),
    Mutant("npu_cmd_decode.sv", "is_vector && «!prog_i.loaded»", "1'b0", "error code"),
    Mutant("npu_cmd_decode.sv", "|| «prog_i.results > 2'd1»;", "1'b0", "error code"),
    Mutant("npu_cmd_decode.sv", "«packet_i.param[LOAD_LINES] > 32'(PROGRAM_MAX_LINES)»", "1'b0"),
    Mutant("npu_cmd_decode.sv", "+ «packet_i.param[LOAD_LINES]»", "32'd0", "expected 4"),
    Mutant("npu_operand_select.sv", "3'(step_i - CMD_DST) + «prog_i.sources»", "3'd3"),
    Mutant("npu_desc_check.sv", "«desc_i.dtype[31:4] == '0»", "1'b1", "expected 5 at command 0"),
    Mutant("npu_operand_resolve.sv", "dtype_log2_bytes(«window.dtype[3:0]»)", "operand.dtype"),
    Mutant("npu_operand_resolve.sv", "operand.is_line && «operand.addr[5:0] != '0»", "1'b0"),
    Mutant("npu_desc_check.sv", "«dim_i >= rank_o»", "dim_i > rank_o", "error code"),
    Mutant("npu_operand_select.sv", "operand_o.shape[MAX_RANK-1] = «One»;", "'0", "error code"),
    Mutant("npu_operand_resolve.sv", "«tensor_dim(operand.dim, ref_rank_q)»", "operand.dim", "dim"),
    Mutant("npu_operand_resolve.sv", "DRAIN: if («!awaited») state_d", "1'b1"),
    Mutant("npu_operand_resolve.sv", "else if («next_step») begin", "1'b1"),
    Mutant("npu_operand_views.sv", "'{inner: «size», middle", "size & ~32'd1", "no elements"),
    Mutant(
        "npu_cmd_retire.sv",
        "record.operand_stall = «ended.counts.operand_stall»",
        "ended.counts.result_stall",
        "counts",
    ),
    # commands that overlap
    Mutant("npu_hazard.sv", "|| «held.write») &&", "1'b0", "uses its memory"),
    Mutant("npu_hazard.sv", "used_q[i] && («spans_q[i].write» ||", "1'b0", "uses its memory"),
    Mutant(
        "npu_hazard.sv",
        "«spans_q[i].first <= held.last»",
        "spans_q[i].first < held.last",
        "uses its memory",
    ),
    Mutant(
        "npu_hazard.sv",
        "«held.first <= spans_q[i].last»",
        "held.first < spans_q[i].last",
        "uses its memory",
    ),
    Mutant("npu_hazard.sv", "«spans_q[i].first <= line_last»", "1'b0", "while a command writes it"),
    Mutant(
        "npu_hazard.sv",
        "used_q[i] && «spans_q[i].write» && spans_q[i].first",
        "1'b1",
        "only reads a descriptor",
    ),
    Mutant("npu_cmd_awaited.sv", "|= «may_fail_i[queue_i]»", "'0", "unfinished GATHER"),
    Mutant("npu_cmd_table.sv", "used_q[head_q] && «!unfinished_q[head_q]»", "1'b1"),
    Mutant("npu_cmd_retire.sv", "= «drained_i» && (", "1'b1"),
    Mutant("npu_cmd_issue.sv", "= hold_i || «stop_i»", "1'b0"),
    Mutant("npu_cmd_engines.sv", "(«end_valid[e]» && !hold", "end_valid[e] && e != 2"),
    Mutant(
        "npu_perf_counters.sv",
        "|| clear_i)     counts_d                = «'0»",
        "rst_ni ? 512'(counts_q.result_stall) << 192 : 512'd0",
        "clear leaves",
    ),
    # numbers that no run reaches
    Mutant(
        "npu_perf_counters.sv",
        "rst_ni ? «counts_q.cycle + 64'd1» :",
        "64'(32'(counts_q.cycle + 64'd1))",
        "started in cycle",
    ),
    Mutant(
        "npu_perf_counters.sv",
        "counts_d.read_beats    += «64'd1»;",
        "64'd1 - (64'(counts_q.read_beats[23:0] == '1) << 24)",
        "counters of events",
    ),
    Mutant(
        "npu_cmd_table.sv", "next_seq_q <= «next_seq_q + 32'd1»;", "32'(16'(next_seq_q + 32'd1))"
    ),
    Mutant(
        "npu_cmd_retire.sv",
        "completed_q[queue_q] <= «completed_q[queue_q] + 32'd1»;",
        "32'(24'(completed_q[queue_q] + 32'd1))",
        "completed",
    ),
    # counters per engine
    Mutant(
        "npu_cmd_front.sv",
        "wait_pair(opcode[p], «awaited_opcode[p]»)",
        "opcode[p]",
        "COMMAND_WAIT",
    ),
    Mutant("npu_cmd_start.sv", "waiting_o && «!blocked_i» && !free", "1'b1", "ENGINE_WAIT"),
    Mutant("npu_cmd_start.sv", "waiting_o && !blocked_i && «!free»", "1'b1", "ENGINE_WAIT"),
    Mutant("npu_cmd_start.sv", "waiting_o && !blocked_i && «!free»", "!go_o", "its engine is free"),
    Mutant(
        "npu_cmd_start.sv",
        "waiting_o && !blocked_i && «!free»",
        "(engine & engine_free_i) == '0",
        "without an engine",
    ),
    Mutant("npu_cmd_engines.sv", "busy_o               = «~free[NUM_ENGINES-1:0]»", "start_i"),
    # what the other queue may write, and what waits for its own queue alone, or for nothing
    Mutant(
        "npu_cmd_order.sv", "= «line_blocked != '0»;", "line_blocked[queue_i] != '0", "descript"
    ),
    Mutant(
        "npu_cmd_awaited.sv",
        "«opcode_i == OPCODE_LOAD»",
        "opcode_i == OPCODE_LOAD || opcode_i == OPCODE_SYNC",
        "waited for the other queue",
    ),
    Mutant(
        "npu_ctrl_pkg.sv",
        "return «opcode == OPCODE_FENCE» ||",
        "opcode == OPCODE_FENCE || opcode == OPCODE_NOP",
        "a NOP waited",
    ),
    # a ring that became smaller
    Mutant("npu_ring_fetch.sv", "= «head_q & mask»;", "head_q", "is not empty"),
    Mutant("npu_ring_fetch.sv", "= «fetch_q & mask»;", "fetch_q", "is not empty"),
    # two channels of an engine
    Mutant("npu_cmd_engines.sv", "= !free[ENGINE_COPY] || «!free[CHANNEL_COPY1]»", "1'b0", "BUSY"),
    Mutant("npu_cmd_engines.sv", "= free[ENGINE_COPY] || «free[CHANNEL_COPY1]»", "1'b0", "waits"),
    Mutant(
        "npu_cmd_engines.sv",
        "start[CHANNEL_COPY1] = «start_i[ENGINE_COPY] && !free[ENGINE_COPY]»",
        "1'b0",
    ),
    # two queues
    Mutant("npu_cmd_front.sv", "(can_take == '1) ? «!last_taken_q» :", "1'b0", "has started"),
    Mutant("npu_line_reader.sv", "last_ring_q <= «ring»;", "1'b0", "of one ring"),
    Mutant(
        "npu_cmd_front.sv",
        "park_ready = !here[Park] && «can_take[!owner[Check]]»",
        "1'b0",
        "waits for what",
    ),
    Mutant(
        "npu_cmd_front.sv",
        "unfinished[owner[Park]] |= «parked_slot»",
        "'0",
        "uses its memory",
    ),
    Mutant("npu_cmd_park.sv", "blocked_q <= «blocked_q» & unfinished_i", "'0", "its memory"),
    Mutant("npu_cmd_front.sv", ".grant_i        («start[Park] == '0»)", "1'b1"),
    Mutant(
        "npu_cmd_awaited.sv",
        "else if («opcode_i == OPCODE_LOAD»)",
        "1'b0",
        "a LOAD runs beside",
    ),
    Mutant("npu_cmd_retire.sv", "(«!any_i[1-q]» || (failing", "1'b1", "completed"),
    Mutant("npu_cmd_retire.sv", "&& «q == 0»)", "1'b1", "first queue"),
    Mutant("npu_cmd_table.sv", "+ 32'(«pop_i»)", "1'b1"),
    # windows
    Mutant(
        "npu_window_check.sv",
        "wide_q <= «product_q[63:32] != '0»;",
        "1'b0",
        "expected 5 at command 0",
    ),
    Mutant("npu_window_check.sv", "|| «transposed_i» ||", "1'b0"),
    Mutant("npu_range_check.sv", "group_q        <= «group_end» ?", "1'b0", "window"),
    Mutant(
        "npu_operand_resolve.sv",
        "if («!line_inside(line_behind(operand.addr[63:6]), MemBase, MemLimit)») begin",
        "1'b0",
    ),
    Mutant("npu_desc_lines.sv", "(asked_i || «asked_second») -", "1'b0"),
    Mutant("npu_desc_lines.sv", "second_req_valid && «ask_i» &&", "1'b1"),
    Mutant("npu_desc_lines.sv", ".flush_i(«drop_i»),", "1'b0"),
    Mutant("npu_cmd_decode.sv", "«!flags.accumulate» :", "1'b0"),
    # clocks that stop too early
    Mutant("npu_ctrl.sv", "|| «!reader_idle» ||", "1'b0"),
    Mutant("npu_ctrl.sv", ".en_i(active || «active_q»)", "1'b0"),
    Mutant("npu_cmd_inflight.sv", "retire_settled && «!engine_ending»", "1'b1"),
    Mutant("npu_ctrl.sv", "fetch_valid != '0 || «push»;", "1'b0"),
    Mutant("npu_cmd_engines.sv", "= start | «~free»;", "'0"),
    Mutant("npu_csr_wrap.sv", "|| «bus_was_active_q != '0»", "1'b0"),
    Mutant("npu_csr_wrap.sv", "|| «irq_events_i != '0»", "1'b0"),
    Mutant("npu_csr_wrap.sv", "{«hwif_out.RING_BASE_HI.addr.value»", "32'd0", "line outside"),
    Mutant("npu_csr_wrap.sv", "{«hwif_out.CPL_BASE_HI.addr.value»", "32'd0", "seventh push"),
    Mutant(
        "npu_csr_wrap.sv",
        "«hwif_out.CMD_WORD[i].word.value»",
        "hwif_out.CMD_WORD[i].word.value & 32'h7FFF_FFFF",
    ),
    Mutant(
        "npu_hazard.sv",
        "&& «line_first <= spans_q[i].last») line_blocked_o",
        "line_first < spans_q[i].last",
    ),
    Mutant("npu_hazard.sv", "«spans_q[i].first <= line_last»", "spans_q[i].first < line_last"),
    Mutant("npu_range_check.sv", "+ «EndW'(byte_mask)»;", "EndW'(byte_mask & 3'd3)"),
    Mutant("npu_cmd_start.sv", "if («!rst_ni») state_q <= WAIT", "1'b0"),
    Mutant("npu_cmd_issue.sv", "if («!rst_ni») begin", "1'b0"),
    Mutant("npu_cmd_start.sv", "= «state_q == SYNC_WAIT && write_err_i» ? ERROR_BUS_WRITE", "1'b0"),
    Mutant("npu_cmd_start.sv", "start_cycle_o = «state_q == SYNC_WAIT» ?", "1'b0"),
    Mutant("npu_cmd_start.sv", "? sync_cycle_q : «cycle_i»;", "cycle_i + 64'd1", "started in"),
    Mutant("npu_csr_wrap.sv", "«axil_req_i.w_strb»", "4'hF", "alone"),
    Mutant("npu_csr_wrap.sv", "«axil_rsp_o.b_valid || axil_rsp_o.r_valid»;", "1'b0"),
    Mutant("npu_cmd_park.sv", "from_ring_o = «from_ring_q»;", "1'b1"),
    Mutant(
        "npu_cmd_front.sv",
        "&& opcode_engine(opcode[p]) == engine_e'(e)) engine_wait_o[e] = «1'b1»;",
        "p == 0",
    ),
    Mutant(
        "npu_cmd_front.sv",
        "if («wait_now[p].operand») command_wait_o",
        "wait_now[p].operand && p == 0",
    ),
    Mutant("npu_cmd_front.sv", "wait_now[p].seq     = «parked» ? next_seq_i", "1'b0"),
    Mutant(
        "npu_cmd_awaited.sv",
        "slot = «next_slot_i[queue_i] + cmd_slot_t'(i)»;",
        "next_slot_i[queue_i] - cmd_slot_t'(i)",
        "COMMAND_WAIT",
    ),
    Mutant("npu_cmd_retire.sv", "(ready == '1) ? «!queue_q»", "queue_q"),
    Mutant("npu_cmd_retire.sv", "record_bad_q[«queue_q»] <= 1'b1;", "1'b0"),
    Mutant("npu_cmd_retire.sv", "(write_err_i && «error_q == ERROR_NONE»)", "1'b1", "error"),
    # registers that are written in the cycle of an event
    Mutant(
        "npu_csr_wrap.sv",
        "complete.hwset  = «irq_events_i.complete[0]»;",
        "irq_events_i.complete[0] && !u_csr.decoded_reg_strb.IRQ_STATUS",
        "cause 0",
    ),
    Mutant(
        "npu_csr_wrap.sv",
        "error.hwset     = «irq_events_i.error»;",
        "irq_events_i.error && !u_csr.decoded_reg_strb.IRQ_STATUS",
        "cause 2",
    ),
    Mutant(
        "npu_perf_counters.sv",
        "|| «clear_i»)     counts_d ",
        "(clear_i && !events_i.read_beat)",
        "ACTIVE_CYCLES",
    ),
    Mutant("npu_cmd_inflight.sv", "push_error_i[q], end_cycle: «cycle_i»,", "cycle_i + 64'd1"),
    Mutant("npu_engine_slot.sv", "end_cycle_q <= «cycle_i»", "cycle_i + 64'd1"),
    Mutant("npu_engine_slot.sv", "end_cycle_o = finish ? cycle_i : «end_cycle_q»", "cycle_i"),
    Mutant("npu_ring_fetch.sv", "|| «head != fetched»;", "1'b0"),
    Mutant("npu_window_check.sv", "«window_i.size[i] > 32'd1»", "window_i.size[i] > 32'd2"),
    Mutant("npu_recovery.sv", "(flush_o || «!in_error_i»)", "1'b0"),
    Mutant(
        "npu_recovery.sv", "error_ack_i && («flush_o || !in_error_i»)", "1'b1", "error_ack does not"
    ),
    Mutant("npu_ctrl.sv", "|| «flush» || ring[1].enable", "1'b0"),
    Mutant("npu_engine_counters.sv", "clear || «events_i != '0»", "events_i.busy != '0"),
    Mutant("npu_ctrl_status.sv", "& ~queue_pending_i & «~queue_busy_i»", "'1"),
    # numbers beyond what short streams reach, and a reset out of ERROR
    Mutant(
        "npu_ctrl_pkg.sv",
        "(«17'd1 << log2_entries»)",
        "17'd1 << (log2_entries > 5'd12 ? 5'd12 : log2_entries)",
        "outside the memory",
    ),
    Mutant(
        "npu_cmd_retire.sv",
        "= «command.seq[RING_INDEX_WIDTH-1:0]» &",
        "RING_INDEX_WIDTH'(command.seq[11:0])",
        "in the slot of",
    ),
    Mutant(
        "npu_ctrl_status.sv", "if («soft_reset_i»)  ", "soft_reset_i && !in_error_i", "not busy"
    ),
    # the upper words of addresses, and what a reset drops
    *(
        Mutant(
            "npu_csr_wrap.sv",
            "records_o[1].base         = {«hwif_out.CPL1_BASE_HI.addr.value»",
            f"hwif_out.{other}_BASE_HI.addr.value",
            "the ring is empty",
        )
        for other in ("RING1", "CPL")
    ),
    Mutant(
        "npu_cmd_issue.sv",
        "pushed || (state_q == FAILED && «!drop»)",
        "1'b1",
        "did not start before the reset",
    ),
)
