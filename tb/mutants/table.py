# SPDX-License-Identifier: Apache-2.0
"""Wrong lines in the RTL of the whole NPU: MUTANT=NAME activates one of them in a run.

Each names the run in which it must be caught. Some are lines that a unit bench catches as well
(tb.unit.mutant_table): here nothing but packets and the pins decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from driver.errors import InputError
from tb.mutants.expression import Mutant, write_sources
from tb.sim.spec import BUILD_ROOT, FILELIST, read_filelist

_STREAMS: Final = ("overlap", "--op", "0")
_STREAM_BUS_ERRORS: Final = ("overlap", "--op", "3")
_MEETINGS: Final = ("overlap", "--op", "9")
_RANDOM_STALLS: Final = ("bus", "--op", "3")
_RANDOM: Final = ("bus", "--op", "2")
_ERRORS: Final = ("bus", "--op", "4")
_BUS_ERRORS: Final = ("bus", "--op", "7")
_IMAGES: Final = ("bus", "--op", "8")
_RELOADS: Final = ("bus", "--op", "9")
_PRODUCTS: Final = ("ops", "--filter", "convolution")
"""Convolutions: products of windows, each judged on its own."""
_INT4: Final = ("ops", "--filter", "int4_mm")
_TABLES: Final = ("ops", "--filter", "aten.tanh.")
_GATES: Final = ("ops", "--filter", "gelu")
_POOLS: Final = ("ops", "--filter", "pool2d")
_OPERANDS: Final = ("bus", "--op", "10")


@dataclass(frozen=True)
class PlantedMutant:
    """A mutant of the whole NPU."""

    block: str
    """The part of the hardware that is wrong."""
    run: tuple[str, ...]
    """Arguments of `npu-cosim run` with which it must be caught."""
    mutant: Mutant


_HAZARD, _ORDER, _CHECK = "hazard checker", "order of commands", "operand checks"
_LOAD, _PROGRAMS = "program load", "program memory"
_WINDOW, _BUFFER, _CLOCK = "windows", "operand buffer", "clock gates"
_CHANNELS: Final = "channels of COPY and FILL"
_INT4_WEIGHTS, _TABLE, _STRIDES = "weights of four bits", "tables", "strided sources"

PLANTED: Final[Mapping[str, PlantedMutant]] = {
    # a command does not see that it uses the memory of an earlier one
    "hazard-write": PlantedMutant(
        _HAZARD, _STREAMS, Mutant("npu_hazard.sv", "|| «held.write») &&", "1'b0")
    ),
    "hazard-read": PlantedMutant(
        _HAZARD, _STREAMS, Mutant("npu_hazard.sv", "used_q[i] && («spans_q[i].write» ||", "1'b0")
    ),
    "hazard-first-byte": PlantedMutant(
        _HAZARD,
        _STREAMS,
        Mutant("npu_hazard.sv", "held.first <= «spans_q[i].last»", "spans_q[i].first"),
    ),
    "hazard-last-operand": PlantedMutant(
        _HAZARD,
        _STREAMS,
        Mutant("npu_hazard.sv", "blocked_q <= («blocked_q | clash») & unfinished_i;", "clash"),
    ),
    "hazard-descriptor": PlantedMutant(
        _HAZARD, _STREAMS, Mutant("npu_hazard.sv", "«spans_q[i].first <= line_last»", "1'b0")
    ),
    # a command's third or fourth source, or its second result, is not kept or not compared
    "hazard-third-kept": PlantedMutant(
        _HAZARD,
        _MEETINGS,
        Mutant(
            "npu_hazard.sv",
            "else if («span_valid_i && own_i») used_q",
            "span_valid_i && own_i && (count_q != 2 || held.write)",
        ),
    ),
    "hazard-third-asked": PlantedMutant(
        _HAZARD,
        _MEETINGS,
        Mutant(
            "npu_hazard.sv",
            "if («span_valid_i && unfinished_i[s]») begin",
            "span_valid_i && unfinished_i[s] && (count_q != 2 || held.write)",
        ),
    ),
    "hazard-list": PlantedMutant(
        _HAZARD,
        _MEETINGS,
        Mutant(
            "npu_operand_resolve.sv",
            "span_valid_o = «range_done && range_error == ERROR_NONE»;",
            "range_done && range_error == ERROR_NONE && which != OPERAND_SRC4 "
            "&& which != OPERAND_DST2",
        ),
    ),
    "hazard-second-line": PlantedMutant(
        _HAZARD,
        _MEETINGS,
        Mutant(
            "npu_hazard.sv",
            "if («line_valid_i && unfinished_i[s]») begin",
            "line_valid_i && unfinished_i[s] && !line_addr_i[0]",
        ),
    ),
    # commands begin or end out of order
    "order-gather": PlantedMutant(
        _ORDER,
        _STREAM_BUS_ERRORS,
        Mutant("npu_cmd_awaited.sv", "|= «may_fail_i[queue_i]»", "'0"),
    ),
    "order-fence": PlantedMutant(
        _ORDER,
        _STREAMS,
        Mutant(
            "npu_cmd_awaited.sv", "awaited_o[queue_i] = «used_i[queue_i]»;", "'0", "SyncAfterAll"
        ),
    ),
    "order-record": PlantedMutant(
        _ORDER,
        _STREAMS,
        Mutant(
            "npu_cmd_table.sv",
            "used_q[head_q] && «!unfinished_q[head_q]»",
            "1'b1",
            "RecordAfterWrites",
        ),
    ),
    "order-unanswered": PlantedMutant(
        _ORDER,
        _RANDOM_STALLS,
        Mutant("npu_move.sv", "&& «unacked_q == '0»", "1'b1", "DoneWhenAnswered"),
    ),
    "order-number": PlantedMutant(
        _ORDER,
        _STREAM_BUS_ERRORS,
        Mutant("npu_cmd_table.sv", "«started_q[head_q].seq + 32'(pop_i)»;", "next_seq_q"),
    ),
    "order-after-failure": PlantedMutant(
        _ORDER, _STREAM_BUS_ERRORS, Mutant("npu_cmd_issue.sv", "= hold_i || «stop_i»", "1'b0")
    ),
    "order-after-bus-error": PlantedMutant(
        _ORDER,
        _STREAM_BUS_ERRORS,
        Mutant("npu_cmd_table.sv", "if (ended_i.error != ERROR_NONE) failed_q <= «1'b1»;", "1'b0"),
    ),
    "order-drain": PlantedMutant(
        _ORDER,
        _STREAM_BUS_ERRORS,
        Mutant("npu_cmd_retire.sv", "= «drained_i» && (", "1'b1"),
    ),
    # two commands of one engine
    "channel-end": PlantedMutant(
        _CHANNELS,
        _STREAMS,
        Mutant("npu_cmd_engines.sv", "end_place_o  = «place_ended[e]»;", "place_ended[e & 3]"),
    ),
    "channel-free": PlantedMutant(
        _CHANNELS,
        _STREAMS,
        Mutant(
            "npu_cmd_engines.sv",
            "free_o[ENGINE_MOVE]  = «free[ENGINE_MOVE] || free[CHANNEL_MOVE1]»;",
            "1'b1",
        ),
    ),
    "channel-twice": PlantedMutant(
        _CHANNELS,
        _STREAMS,
        Mutant(
            "npu_cmd_engines.sv",
            "start[CHANNEL_MOVE1] = «start_i[ENGINE_MOVE] && !free[ENGINE_MOVE]»;",
            "start_i[ENGINE_MOVE]",
        ),
    ),
    # a wrong operand is accepted, or the bytes of one are counted wrong
    "check-dimension": PlantedMutant(
        _CHECK, _ERRORS, Mutant("npu_desc_check.sv", "«dim_i >= rank_o»", "dim_i > rank_o")
    ),
    "check-product": PlantedMutant(
        _CHECK,
        _ERRORS,
        Mutant("npu_window_check.sv", "wide_q <= «product_q[63:32] != '0»;", "1'b0"),
    ),
    "check-list": PlantedMutant(
        _CHECK,
        _RANDOM,
        Mutant("npu_operand_resolve.sv", "dtype_log2_bytes(«window.dtype[3:0]»)", "operand.dtype"),
    ),
    # programs: loading
    "load-image": PlantedMutant(
        _LOAD, _IMAGES, Mutant("npu_program_check.sv", "&& «word_i[63:32] != '0»", "1'b0")
    ),
    "load-register": PlantedMutant(
        _LOAD, _IMAGES, Mutant("npu_program_check.sv", "return «!written_q[code[3:0]]»", "1'b0")
    ),
    "load-error": PlantedMutant(
        _LOAD, _BUS_ERRORS, Mutant("npu_program_load.sv", "if («read_err_q»)", "1'b0")
    ),
    "load-first-reading": PlantedMutant(
        _LOAD, _IMAGES, Mutant("npu_program_load.sv", "word_o && «state_q == STORE»", "1'b1")
    ),
    # programs: which are loaded, and what is fetched
    "program-overwritten": PlantedMutant(
        _PROGRAMS, _RELOADS, Mutant("npu_program_dir.sv", "= «walk_end > first»", "walk_q >= first")
    ),
    "program-stale": PlantedMutant(
        _PROGRAMS, _RELOADS, Mutant("npu_vector_fetch.sv", "!(«held_q» &&", "1'b1")
    ),
    "program-address": PlantedMutant(
        _PROGRAMS,
        _RELOADS,
        Mutant("npu_program_mem.sv", "ram_q[«write_addr_i»]", "write_addr_i & 12'hfbf"),
    ),
    "program-constant": PlantedMutant(
        _PROGRAMS, _RANDOM, Mutant("npu_vector_fetch.sv", "(info_i.constants + «7'd1»)", "7'd0")
    ),
    # windows
    "window-digit": PlantedMutant(
        _WINDOW, _PRODUCTS, Mutant("npu_matrix_walk.sv", "«here_i.middle == 32'd1»;", "1'b0")
    ),
    "window-step": PlantedMutant(
        _WINDOW, _PRODUCTS, Mutant("npu_matrix_walk.sv", "+ «passed» + step", "64'd0")
    ),
    "window-line": PlantedMutant(
        _WINDOW,
        _PRODUCTS,
        Mutant("npu_matrix_lines.sv", "(«elem_pos.inner < 32'(left)») ?", "1'b0"),
    ),
    "window-result": PlantedMutant(
        _WINDOW,
        _PRODUCTS,
        Mutant("npu_matrix_drain.sv", "(«col_pos_q.inner < 32'(left)») ?", "1'b0"),
    ),
    # the operand buffer
    "buffer-stale": PlantedMutant(
        _BUFFER, _PRODUCTS, Mutant("npu_matrix_tags.sv", "|| «start_i») valid_q", "1'b0")
    ),
    "buffer-tag": PlantedMutant(
        _BUFFER,
        _PRODUCTS,
        Mutant("npu_matrix_tags.sv", "&& «tag_q[set] == row[LineW-1:REUSE_WIDTH]»", "1'b1"),
    ),
    "buffer-fresh": PlantedMutant(
        _BUFFER, _PRODUCTS, Mutant("npu_matrix_banks.sv", "= «fresh_q[b]» ?", "1'b0")
    ),
    "buffer-set": PlantedMutant(
        _BUFFER,
        _PRODUCTS,
        Mutant("npu_matrix_banks.sv", "SetW'(«3'(pending_i.first[1:0]) > 3'(b)»)", "1'b0"),
    ),
    # weights of four bits
    "int4-sign": PlantedMutant(
        _INT4_WEIGHTS, _INT4, Mutant("npu_matrix_dequant.sv", "scale[31] ^ «!nibble[3]»", "1'b0")
    ),
    "int4-tie": PlantedMutant(
        _INT4_WEIGHTS, _INT4, Mutant("npu_matrix_dequant.sv", "&& «product[0]»);", "1'b1")
    ),
    "int4-scale": PlantedMutant(
        _INT4_WEIGHTS,
        _INT4,
        Mutant("npu_matrix_dequant.sv", "= EntryW'(«wr_place_i.place[15:8]»)", "8'd0"),
    ),
    "int4-group": PlantedMutant(
        _INT4_WEIGHTS,
        _OPERANDS,
        Mutant("npu_matrix_tiles.sv", "s_k_q        <= «s_k_next_q»;", "s_k_q"),
    ),
    # tables
    "table-end": PlantedMutant(
        _TABLE,
        _OPERANDS,
        Mutant("npu_vector_table.sv", "if («index > 32'(TABLE_LAST[number])»)", "1'b0"),
    ),
    "table-sign": PlantedMutant(
        _TABLE, _TABLES, Mutant("npu_vector_table.sv", "{negative: «word[31]»,", "1'b0")
    ),
    "table-row": PlantedMutant(
        _TABLE, _TABLES, Mutant("npu_vector_table.sv", "= segment_q[«slot_i»]", "found_slot_q")
    ),
    "table-number": PlantedMutant(
        _TABLE,
        _GATES,
        Mutant("npu_vector_table.sv", "segment_of(a_i[l*32 +: 32], «found_table_q»)", "table_q"),
    ),
    # sources whose elements are at a distance
    "stride-three": PlantedMutant(
        _STRIDES,
        _OPERANDS,
        Mutant(
            "npu_vector_load.sv",
            "if («view_i.stride[MAX_RANK-1] == 32'd2»)",
            "view_i.stride[MAX_RANK-1][31:1] == 31'd1",
        ),
    ),
    "stride-four": PlantedMutant(
        _STRIDES,
        _OPERANDS,
        Mutant("npu_vector_unpack.sv", "take && «gap_log2_i == 2'd2») own", "1'b0"),
    ),
    "stride-elements": PlantedMutant(
        _STRIDES,
        _POOLS,
        Mutant("npu_vector_load.sv", "(view_i.size[MAX_RANK-1] - «32'd1») <<", "32'd0"),
    ),
    # clocks that stop too early
    "clock-weights": PlantedMutant(
        _CLOCK,
        _INT4,
        Mutant("npu_matrix.sv", "u_int4_gate (.clk_i, .en_i(!rst_ni || «int4»)", "buffered_q"),
    ),
    "clock-table": PlantedMutant(
        _CLOCK, _TABLES, Mutant("npu_vector_table.sv", "segment || reads || «found_q»", "1'b0")
    ),
    "clock-engine": PlantedMutant(
        _CLOCK,
        _STREAMS,
        Mutant(
            "npu_cmd_engines.sv", "= start | «~free»;", "~free & ~end_valid", "ReadyWithoutClock"
        ),
    ),
    "clock-control": PlantedMutant(
        _CLOCK, _STREAMS, Mutant("npu_ctrl.sv", "|| «!reader_idle» ||", "1'b0")
    ),
    "clock-buffer": PlantedMutant(
        _CLOCK,
        _PRODUCTS,
        Mutant(
            "npu_matrix.sv",
            "buffered_q <= «reads_again(cmd.a) || reads_again(cmd.b)»",
            "reads_again(cmd.b)",
        ),
    ),
    "clock-source": PlantedMutant(
        _CLOCK, _RANDOM, Mutant("npu_vector.sv", "!rst_ni || «used»", "s == 0")
    ),
}
"""By name, as MUTANT= takes it."""


def planted_argument(name: str) -> str:
    """The argument of a simulator with planted mutants that activates one. InputError: no such."""
    if name not in PLANTED:
        raise InputError("command line", "mutant", name, f"one of {', '.join(PLANTED)}")
    return f"+{_plusarg(name)}"


@cache
def planted_sources() -> Mapping[Path, Path]:
    """Source of the RTL → the same with every mutant of the table selectable."""
    mutants = {_plusarg(name): one.mutant for name, one in PLANTED.items()}
    written = write_sources(mutants, BUILD_ROOT.parent / "mutants")
    listed = {path.name: path for path in read_filelist(FILELIST)}
    return {listed[name]: path for name, path in written.items()}


def _plusarg(name: str) -> str:
    return f"mutant.{name}."  # the full stop: none is the beginning of another
