# SPDX-License-Identifier: Apache-2.0
"""Wrong lines of RTL that the unit benches must catch: the table, by bench."""

from __future__ import annotations

from tb.mutants.expression import Mutant
from tb.unit.ctrl_mutants import CTRL

_TIES_AWAY = ("«(high >> 7 & 1)»", "32'd1")

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "fp_fma": (
        Mutant("npu_fp_pkg.sv", *_TIES_AWAY),
        Mutant("npu_fp_pkg.sv", "«(shifted << amount) != value»", "1'b0"),  # no sticky bit
        Mutant("npu_fp_pkg.sv", "«zeros > scale ? scale : zeros»", "zeros"),  # no subnormals
        Mutant("npu_fp_pkg.sv", "«rounded > FP32_INF ? FP32_INF : rounded»", "rounded"),
        Mutant("npu_fma_pkg.sv", "? «sign_sum & ~subtract» :", "sign_sum"),  # x − x
        Mutant("npu_fma_pkg.sv", "«(inf_p & zero_p)» | ", "'0"),
        Mutant("npu_fma_pkg.sv", "{{23{«value[30:0] == 0»}}", "1'b0"),  # a zero's scale
        Mutant("npu_fma_pkg.sv", "rounded = «magnitude_c == FP32_INF» ?", "1'b0"),
    ),
    "fp_cast": (
        Mutant("npu_fp_pkg.sv", "«shift >= 8'd11»", "shift >= 8'd10"),
        Mutant("npu_fp_pkg.sv", "«value[15] && (value[16] || value[14:0] != 0)»", "value[15]"),
        Mutant("npu_fp_pkg.sv", "exponent -= «8'd4»", "8'd3"),
    ),
    "int8_mac": (Mutant("npu_fp_pkg.sv", "«{{24{b[7]}}, b}»", "{24'b0, b}"),),
    "fp_div": (
        Mutant("npu_fp_div_pkg.sv", "step < «27»", "25"),
        Mutant("npu_fp_div_pkg.sv", "«{63'b0, remainder != 0}»", "64'b0"),
        Mutant("npu_fp_div_pkg.sv", "| «(is_zero(a) & is_zero(b))»", "'0"),
        Mutant("npu_fp_div_pkg.sv", "«low > 63 ? 32'd63 : low»", "low"),
        Mutant("npu_fp_div_pkg.sv", "«(exponent & 1) != 0» ? norm", "(exponent & 1) == 0"),
        Mutant("npu_fp_div_pkg.sv", "«(remainder != 0 ? 32'd1 : 32'd0)»", "32'd0"),
        Mutant("npu_fp_div_pkg.sv", "& «(is_zero(value) ^ 1)»", "'1"),
    ),
    "fp_alu": (
        Mutant(
            "npu_fp_alu_pkg.sv", "«order_of(a) > order_of(b)» ? a : b", "$signed(a) > $signed(b)"
        ),
        Mutant("npu_fp_alu_pkg.sv", "«$signed(value_of(a))» < $", "$signed(order_of(a))"),
        Mutant("npu_fp_alu_pkg.sv", "(«value_of(a) == value_of(b)»", "a == b"),
        Mutant("npu_fp_alu_pkg.sv", "«32'd158»", "32'd157"),
        Mutant("npu_fp_alu_pkg.sv", "«shift > 63 ? 32'd63 : shift»", "shift"),
        Mutant("npu_fp_alu_pkg.sv", "«(fraction << 1) != 0»", "1'b0"),
    ),
    "mem": (
        Mutant("npu_burst_split.sv", "left <= «room»;", "room + BeatsW'(1)", "page"),
        Mutant("npu_rr_arb.sv", "«(behind != '0) ? behind : req_i»", "req_i", "behind"),
        Mutant("npu_addr_channel.sv", "valid & «may_issue_i»", "'1", "outstanding"),
        Mutant("npu_addr_channel.sv", "{HOST_CLIENT, «host_i.id»}", "HOST_ID_WIDTH'(0)"),
        Mutant("npu_addr_channel.sv", "take          = ready && «burst_ready_i»", "1'b1"),
        Mutant("npu_read_path.sv", "'0 || «others_q < FlightW'(OtherBeats)»", "1'b1", "critical"),
        Mutant("npu_host_check.sv", "«len_i < 8'd16»", "len_i < 8'd17", "resp"),
        Mutant("npu_host_check.sv", "(«burst_i == BURST_FIXED») ? beat", "1'b0", "rresp 3"),
        Mutant(
            "npu_host_read.sv",
            "!head_ok && «room_q == CountW'(ReturnBeats)»;\n  assign refuse_last",
            "1'b1",
            "host:",
        ),
        Mutant("npu_host_write.sv", "&& «whole_q != '0» && room_q", "1'b1", "stuck host"),
        Mutant("npu_host_read.sv", "head_ok && «room_q >= need»", "1'b1", "host: wrong byte"),
        Mutant("npu_host_check.sv", "&& «last < SpanW'(PAGE_BYTES)»", "last <= SpanW'(PAGE_BYTES)"),
        Mutant("npu_wr_resp_merge.sv", "rsp_err_q          <= «err_q[b_client_i]»", "err_q != '0"),
        # clocks that stop too early
        Mutant("npu_host_read.sv", "head_valid || «room_q != CountW'(ReturnBeats)»", "1'b0"),
        Mutant("npu_host_write.sv", "«room_q != BurstCountW'(MaxBursts)»;\n  npu_clock", "1'b0"),
        Mutant("npu_wr_resp_merge.sv", "if («!same») full_q[issue", "same", "without a burst"),
        Mutant(
            "npu_wr_resp_merge.sv", "<= «wr + PtrW'(1) == rd_q[issue_client_i]»", "1'b0", "without"
        ),
        Mutant("npu_wr_resp_merge.sv", "<= «!last» && (err_q", "1'b1", "write client: err"),
        Mutant("npu_write_path.sv", ".b_err_i(«b_resp_i[1]»)", "b_resp_i == 2'b10", "err"),
        Mutant(
            "npu_read_path.sv", "data_err   = «beat.resp[1]»", "beat.resp == RESP_SLVERR", "err"
        ),
        Mutant("npu_copy_walk.sv", "«size == 32'd1»\n", "1'b0", "contiguous"),
        Mutant("npu_copy_align.sv", "«emit» ? turned : joined", "1'b0", "expected"),
        Mutant("npu_copy.sv", "&& «all_answered»", "1'b1", "unanswered"),
        Mutant("npu_copy.sv", "!dst_busy && «src_empty» &&", "1'b1", "unanswered"),
        Mutant("npu_copy.sv", "(state_q == BUSY && «!flowing_q»)", "1'b0", "long latency"),
        Mutant("npu_copy_align.sv", "active        = step || «(flush && out_ready_i)»", "1'b0"),
    ),
    "single_port": (
        Mutant("npu_write_buffer.sv", "addr_valid && «whole_q != '0»", "1'b1", "is not here"),
        Mutant("npu_write_buffer.sv", "w_ready_o && «w_last_i»", "1'b1", "valid fell"),
        Mutant("npu_write_buffer.sv", "w_ready_i && «w_last_o»", "1'b1", "no transfer"),
        Mutant(
            "npu_write_buffer.sv",
            "«stored ? whole_q + CountW'(1) : whole_q - CountW'(1)»",
            "CountW'(1)",
        ),
    ),
    "ctrl": CTRL,
    "gather": (
        Mutant("npu_gather_hazard.sv", "conflict_o = «1'b1»", "1'b0", "expected"),
        Mutant(
            "npu_gather_index.sv", "«value >= 64'(limit_i)»", "value > 64'(limit_i)", "expected 10"
        ),
        Mutant("npu_gather_index.sv", "= wide ? «word» :", "64'(word[31:0])", "expected 10"),
        Mutant("npu_gather_add.sv", "«fp32_fma(was, One, more)»", "more", "expected"),
        Mutant("npu_read_buffer.sv", "&& «room_q >= req_beats_o»", "1'b1", "without room"),
        Mutant("npu_gather.sv", "«(gather ? src_empty : dst_empty)»", "1'b1", "error"),
        Mutant("npu_gather.sv", "&& «old_idle» && src_empty;", "1'b1", "unanswered"),
        Mutant("npu_gather.sv", "«cmd.src2.stride[i] == '0» ||", "1'b1", "expected"),
        Mutant("npu_gather.sv", "(«state_q == BUSY» && !all_moved", "1'b0", "waits for"),
        Mutant("npu_gather.sv", "BUSY && «!all_moved» && !dst_run", "1'b1", "waits for"),
        Mutant("npu_gather.sv", "result_stall  = «align_stats.result_stall»", "1'b0", "waits for"),
    ),
    "matrix": (
        Mutant("npu_matrix_seq.sv", "= «running_q && guard_q == '0 && !operands»", "1'b0", "waits"),
        Mutant(
            "npu_matrix_seq.sv", "= «!running_q && held_i»", "running_q && guard_q != '0", "waits"
        ),
        Mutant("npu_matrix_seq.sv", "= !running_q && «held_i»", "1'b0", "waits for"),
        Mutant(
            "npu_matrix_seq.sv",
            "&& «issued_q < GuardW'(SumLatency - 1)»",
            "issued_q < GuardW'(SumLatency - 2)",
            "passes",
        ),
        # a place in mixed radix
        Mutant("npu_matrix_walk.sv", "«here_i.middle == 32'd1»;", "1'b0", "expected"),
        Mutant("npu_matrix_walk.sv", "next_o.inner  = «wraps» ?", "1'b0"),
        Mutant("npu_matrix_walk.sv", "+ «passed» + step", "64'd0", "expected"),
        # where the next tile, and the next block, begin
        Mutant("npu_matrix_tiles.sv", "a_k_q    <= «a_k_next_q»;", "a_k_q", "expected"),
        Mutant(
            "npu_matrix_tiles.sv", "restart ? origin(axis) : «stepped.outer»;", "here.outer_block"
        ),
        Mutant(
            "npu_matrix_tiles.sv",
            "<= «block_i.last_col» ? origin(cmd_i.init.col)",
            "1'b1",
            "expected",
        ),
        Mutant("npu_matrix_drain.sv", "_block && «block_i.last_col») begin", "1'b1", "expected"),
        Mutant("npu_matrix_drain.sv", "<= («last_elem && !last_row») ?", "1'b0", "expected"),
        Mutant("npu_matrix_drain.sv", "_q      <= «next_tile»;", "entry_q + 16'd1", "expected"),
        # a half that array and drain share, and lines ahead of their data
        Mutant("npu_matrix_drain.sv", "(elem_q != '0 || «acc_ready_i»)", "1'b1"),
        Mutant("npu_matrix_acc.sv", "= «drained_q» ? drained", "1'b1", "expected"),
        Mutant("npu_matrix_pack.sv", "line_valid_i && «room»;", "1'b1"),
        # infinite elements; where the sums of a token go
        Mutant("npu_matrix_row.sv", "«special_q» ||", "1'b0", "expected"),
        Mutant("npu_matrix_row.sv", "|| «a_q[30:23] == '1»)", "1'b0", "expected"),
        Mutant("npu_matrix_array.sv", "place_q[now_q - «PlaceW'(Delay)»]", "PlaceW'(Delay - 1)"),
        # lines that cross the end of a digit
        Mutant("npu_matrix_lines.sv", "(«elem_pos.inner < 32'(left)») ?", "1'b0"),
        Mutant("npu_matrix_drain.sv", "(«col_pos_q.inner < 32'(left)») ?", "1'b0"),
        Mutant("npu_matrix_unpack.sv", "widened(dtype, line_data_i[(«line_i.same» ?", "1'b0"),
        Mutant("npu_matrix_pack.sv", "if («line_first_i != '0») begin", "1'b0", "expected"),
        # the operand buffer
        Mutant("npu_matrix_tags.sv", "|| «start_i») valid_q", "1'b0", "expected"),
        Mutant("npu_matrix_tags.sv", "&& «tag_q[set] == row[LineW-1:REUSE_WIDTH]»", "1'b1"),
        Mutant("npu_matrix_tags.sv", "&& «place <= last_miss»;", "1'b1", "expected"),
        Mutant("npu_matrix_banks.sv", "= «fresh_q[b]» ?", "1'b0", "expected"),
        Mutant("npu_matrix_banks.sv", "SetW'(«3'(pending_i.first[1:0]) > 3'(b)»)", "1'b0"),
        Mutant("npu_matrix_banks.sv", "beat_ready_o    = «needs»;", "1'b1"),
        # several runs in one request
        Mutant("npu_matrix_lines.sv", "join2 && «first + size < 9'(left)»", "1'b1"),
        Mutant("npu_matrix_lines.sv", "&& «elem_pos.middle > 32'd2» &&", "1'b1"),
        Mutant("npu_matrix_lines.sv", "«gap < 64'(BusBits / 8) >> log2_bytes»", "1'b1"),
        Mutant("npu_matrix_banks.sv", "turned(window, «gap << 1»)", "gap", "expected"),
        # weights of four bits: ties, the zero of the nibbles, which scales, whose clock
        Mutant("npu_matrix_dequant.sv", "&& «product[0]»);", "1'b1", "expected"),
        Mutant("npu_matrix_dequant.sv", "if («number == '0») scaled", "1'b0", "expected"),
        Mutant("npu_matrix_dequant.sv", "= EntryW'(«wr_place_i.place[15:8]»)", "8'd0", "expected"),
        Mutant("npu_matrix_tiles.sv", "s_k_q        <= «s_k_next_q»;", "s_k_q", "expected"),
        Mutant("npu_matrix_tiles.sv", "take_s ? outer_next : «s_end_q»,", "s_q.outer", "expected"),
        # clocks that stop too early
        Mutant(
            "npu_matrix.sv",
            "buffered_q <= «reads_again(cmd.a) || reads_again(cmd.b)»",
            "reads_again(cmd.b)",
        ),
        Mutant("npu_matrix.sv", "u_int4_gate (.clk_i, .en_i(!rst_ni || «int4»)", "buffered_q"),
        Mutant("npu_matrix_lines.sv", "«span3 <= room»;", "span2 <= room"),
        Mutant(
            "npu_matrix_tags.sv", "«4'(place) < request_q.beats»", "4'(place) <= request_q.beats"
        ),
        Mutant("npu_matrix_dequant.sv", "? «9'd143» :", "9'd144"),
        # counts beyond 16 bits, and the longest groups
        Mutant(
            "npu_matrix_blocks.sv",
            "rows_d = «rows_q - 32'(BlockRows)»;",
            "32'(rows_q[15:0]) - 32'(BlockRows)",
        ),
        Mutant(
            "npu_matrix_tiles.sv",
            "13'(«(14'd1 << (cmd_i.int4_group - 4'(LaneW))) - 14'd1»)",
            "((14'd1 << (cmd_i.int4_group - 4'(LaneW))) - 14'd1) & 14'h7FF",
            "expected",
        ),
        Mutant("npu_matrix_dequant.sv", "|| «number == '0») ?", "1'b0"),
    ),
    "vector": (
        Mutant("npu_vector.sv", "result_stall  = «waits_room»", "1'b0", "waits for"),
        Mutant("npu_read_buffer.sv", "&& «room_q >= req_beats_o»", "1'b1", "without room"),
        Mutant("npu_vector_results.sv", "= «room_q != '0»;", "1'b1", "without room"),
        Mutant(
            "npu_outstanding.sv", "if («sent_i != answered_i»)", "answered_i", "without a request"
        ),
        Mutant("npu_vector_unpack.sv", "words8(part, «1'b1»)", "1'b0", "expected"),
        # elements at a distance
        Mutant(
            "npu_vector_load.sv",
            "if («view_i.stride[MAX_RANK-1] == 32'd2»)",
            "view_i.stride[MAX_RANK-1][31:1] == 31'd1",
            "expected",
        ),
        Mutant("npu_vector_load.sv", "(view_i.size[MAX_RANK-1] - «32'd1») <<", "32'd0"),
        Mutant("npu_vector_unpack.sv", "take && «gap_log2_i == 2'd2») own", "1'b0", "expected"),
        # program images
        Mutant("npu_program_check.sv", "return «!written_q[code[3:0]]»", "1'b0", "expected 12"),
        Mutant("npu_program_check.sv", "if («results_q[result]»)", "1'b0", "expected 12"),
        Mutant("npu_program_check.sv", "&& «word_i[63:32] != '0»", "1'b0", "expected 12"),
        Mutant("npu_program_check.sv", "= «word_i != '0»", "1'b0", "expected 12"),
        Mutant("npu_program_check.sv", "!bad_q && «results_q == all_results»", "1'b1"),
        Mutant("npu_program_check.sv", "«instr.b >= 8'(TABLES)»", "1'b0", "expected 12"),
        Mutant("npu_program_check.sv", ">= «columns_q»", "columns_q + 4'd1", "expected 12"),
        Mutant("npu_program_check.sv", "columns_q <= «'0»", "4'd8", "expected 12"),
        Mutant("npu_program_check.sv", "(«columns > 2'd1»)", "1'b0", "expected 12"),
        # which programs are loaded
        Mutant("npu_program_dir.sv", "= «walk_end > first»", "walk_q >= first", "program at line"),
        Mutant(
            "npu_program_dir.sv",
            "== «range_end») busy_q",
            "range_end - RangeW'(invalidate_lines_i > image_lines_t'(1))",
            "program at line",
        ),
        Mutant("npu_program_dir.sv", "first - «FarthestStart»", "(FarthestStart - RangeW'(1))"),
        Mutant("npu_program_dir.sv", "«BOOT_STARTS[line_i[BootLineW-1:0]]» ?", "1'b1", "at line"),
        Mutant("npu_program_dir.sv", "(«ram_line < 32'(PROGRAM_RAM_LINES)» &&", "1'b1", "at line"),
        Mutant("npu_program_load.sv", "if («read_err_q»)", "1'b0", "expected 8"),
        Mutant("npu_program_load.sv", "STORE_VERDICT: if («!dir_busy_i»)", "1'b1"),
        Mutant("npu_program_load.sv", "done_o && «verdict == ERROR_NONE»", "1'b1", "at line"),
        Mutant("npu_program_load.sv", "word_o && «state_q == STORE»", "1'b1"),
        # what is fetched of them
        Mutant("npu_program_mem.sv", "ram_q[«write_addr_i»]", "write_addr_i & 12'h7ff"),
        Mutant("npu_vector_fetch.sv", "!(«held_q» &&", "1'b1"),
        Mutant("npu_vector_fetch.sv", "(info_i.constants + «7'd1»)", "7'd0"),
        Mutant("npu_vector_fetch.sv", "following(«next_q», info_i", "pc_q"),
        # tables
        Mutant("npu_vector_lanes.sv", "&& «magnitude <= npu_fp_pkg::FP32_INF»", "1'b1"),
        Mutant("npu_vector_lanes.sv", "«magnitude > limit» &&", "1'b0"),
        Mutant("npu_vector_table.sv", "index = «magnitude < TABLE_FIRST[number]»", "1'b0"),
        Mutant("npu_vector_table.sv", "if («index > 32'(TABLE_LAST[number])»)", "1'b0"),
        Mutant("npu_vector_table.sv", "{negative: «word[31]»,", "1'b0"),
        Mutant("npu_vector_table.sv", "«segments[l].negative» &&", "a_i[l*32 + 31]"),
        Mutant("npu_vector_table.sv", "&& «TABLE_ODD[table_q][column]»", "1'b1"),
        Mutant("npu_vector_table.sv", "if («segment && advance_i») table_q", "segment"),
        Mutant("npu_vector_table.sv", "= segment_q[«slot_i»]", "found_slot_q"),
        Mutant("npu_vector_table.sv", "segment_of(a_i[l*32 +: 32], «found_table_q»)", "table_q"),
        Mutant(
            "npu_vector_types_pkg.sv",
            "return is_table(instruction.b) ? «instruction.b[2:0]»",
            "instruction.c[2:0]",
        ),
        Mutant("npu_vector_operands.sv", "b_o = «b_table_q» ?", "1'b0"),
        # results
        Mutant("npu_vector_results.sv", "(«results_i > 2'd1»)", "1'b0", "no transfer"),
        Mutant("npu_vector_results.sv", "push_no_i == «result_no_t'(n)»", "2'd0"),
        Mutant("npu_vector_seq.sv", "|| «room_i[result_o]»", "room_i[0]"),
        # clocks that stop too early
        Mutant("npu_vector.sv", "!rst_ni || «used»", "s == 0"),
        Mutant("npu_vector_results.sv", "!rst_ni || «reduces»", "reduce_i == REDUCE_FADD"),
        Mutant("npu_vector_results.sv", "!rst_ni || «used»", "n == 0"),
        Mutant("npu_vector.sv", "!rst_ni || «loads»", "start"),
        Mutant("npu_vector_lanes.sv", "|| «slow_left_q != '0»", "slow_left_q > 1"),
        Mutant("npu_vector_table.sv", "segment || reads || «found_q»", "1'b0"),
        Mutant("npu_vector_table.sv", "segment || «reads» ||", "1'b0"),
        Mutant(
            "npu_program_check.sv",
            "return «code - 8'(OPERAND_CONST) >= 8'(info_q.constants)»",
            "code - 8'(OPERAND_CONST) > 8'(info_q.constants)",
        ),
        Mutant(
            "npu_program_check.sv",
            "«header.constants > 8'(MAX_CONSTANTS)»",
            "header.constants > 8'(MAX_CONSTANTS + 1)",
        ),
    ),
}
"""Per bench; a mutant's number is its place, from 1."""
