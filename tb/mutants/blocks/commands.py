# SPDX-License-Identifier: Apache-2.0
"""Wrong lines in what takes, orders and starts commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tb.mutants.expression import Mutant
from tb.mutants.planted import PlantedMutant
from tb.mutants.runs import (
    BOTH_FAIL,
    BOTH_RESET,
    LOADS,
    MEETINGS,
    RANDOM_STALLS,
    REFUSED_RECORDS,
    STREAM_BUS_ERRORS,
    STREAMS,
    SYNC_AND_ERROR,
    SYNCS,
    TURNS,
)

_HAZARD: Final = "hazard checker"
_ORDER: Final = "order of commands"
_TURNS: Final = "turns of the queues"
_WAITED: Final = "three commands of one queue"
_CHANNELS: Final = "channels of COPY and FILL"

COMMANDS: Final[Mapping[str, PlantedMutant]] = {
    # a command does not see that it uses the memory of an earlier one
    "hazard-write": PlantedMutant(
        _HAZARD,
        STREAMS,
        Mutant("npu_hazard.sv", "|| «held.write») &&", "1'b0"),
    ),
    "hazard-read": PlantedMutant(
        _HAZARD,
        STREAMS,
        Mutant(
            "npu_hazard.sv", "used_q[i] && («spans_q[i].write» ||", "1'b0", "StartsWithoutConflict"
        ),
    ),
    "hazard-first-byte": PlantedMutant(
        _HAZARD,
        STREAMS,
        Mutant("npu_hazard.sv", "held.first <= «spans_q[i].last»", "spans_q[i].first"),
    ),
    "hazard-last-operand": PlantedMutant(
        _HAZARD,
        STREAMS,
        Mutant("npu_hazard.sv", "blocked_q <= («blocked_q | clash») & unfinished_i;", "clash"),
    ),
    "hazard-descriptor": PlantedMutant(
        _HAZARD, STREAMS, Mutant("npu_hazard.sv", "«spans_q[i].first <= line_last»", "1'b0")
    ),
    "hazard-last-byte": PlantedMutant(
        _HAZARD,
        MEETINGS,
        Mutant("npu_range_check.sv", "<< log2_bytes_q) + «EndW'(byte_mask)»;", "EndW'(0)"),
    ),
    # a command's third or fourth source, or its second result, is not kept or not compared
    "hazard-third-kept": PlantedMutant(
        _HAZARD,
        MEETINGS,
        Mutant(
            "npu_hazard.sv",
            "else if («span_valid_i && own_i») used_q",
            "span_valid_i && own_i && (count_q != 2 || held.write)",
        ),
    ),
    "hazard-third-asked": PlantedMutant(
        _HAZARD,
        MEETINGS,
        Mutant(
            "npu_hazard.sv",
            "if («span_valid_i && unfinished_i[s]») begin",
            "span_valid_i && unfinished_i[s] && (count_q != 2 || held.write)",
        ),
    ),
    "hazard-list": PlantedMutant(
        _HAZARD,
        MEETINGS,
        Mutant(
            "npu_operand_resolve.sv",
            "span_valid_o = «range_done && range_error == ERROR_NONE»;",
            "range_done && range_error == ERROR_NONE && which != CMD_SRC4 && which != CMD_DST2",
        ),
    ),
    "hazard-last-line": PlantedMutant(
        _HAZARD,
        MEETINGS,
        Mutant(
            "npu_hazard.sv",
            "used_q[i] && «spans_q[i].write» && spans_q[i].first <= line_last",
            "spans_q[i].write && i < 6",
        ),
    ),
    "hazard-last-span": PlantedMutant(
        _HAZARD,
        MEETINGS,
        Mutant(
            "npu_hazard.sv",
            "if (used_q[i] && «(spans_q[i].write || held.write)»",
            "(spans_q[i].write || held.write) && i < 6",
        ),
    ),
    "hazard-second-line": PlantedMutant(
        _HAZARD,
        MEETINGS,
        Mutant(
            "npu_hazard.sv",
            "if («line_valid_i && unfinished_i[s]») begin",
            "line_valid_i && unfinished_i[s] && !line_addr_i[0]",
        ),
    ),
    "hazard-line-end": PlantedMutant(
        _HAZARD,
        MEETINGS,
        Mutant(
            "npu_hazard.sv",
            "line_last  = «line_first | OffsetW'(LINE_BYTES - 1)»;",
            "line_first",
        ),
    ),
    # commands begin or end out of order
    "order-record-queue": PlantedMutant(
        _ORDER,
        REFUSED_RECORDS,
        Mutant("npu_cmd_retire.sv", "error_d = «record_bad_q[queue_d]» ?", "record_bad_q != '0"),
    ),
    "order-record-missing": PlantedMutant(
        _ORDER,
        REFUSED_RECORDS,
        Mutant(
            "npu_cmd_retire.sv", "records.enable && «!record_bad_q[queue_d]»;", "record_bad_q == '0"
        ),
    ),
    "order-record-stale": PlantedMutant(
        _ORDER,
        REFUSED_RECORDS,
        Mutant(
            "npu_cmd_retire.sv",
            "if («!rst_ni || flush_o») begin\n      record_bad_q",
            "!rst_ni",
        ),
    ),
    "order-both-failed": PlantedMutant(
        _ORDER,
        BOTH_FAIL,
        Mutant("npu_cmd_retire.sv", "(failing[1-q] && «q == 0»)", "q == 1"),
    ),
    "order-load-behind": PlantedMutant(
        _ORDER,
        LOADS,
        Mutant("npu_cmd_front.sv", "used[owner[Park]]       |= «parked_slot»;", "'0"),
    ),
    "order-load-aside": PlantedMutant(
        _ORDER,
        LOADS,
        Mutant(
            "npu_cmd_issue.sv",
            "&&\n                        «packet_q.opcode != OPCODE_LOAD»;",
            "1'b1",
        ),
    ),
    "order-error-early": PlantedMutant(
        _ORDER,
        SYNC_AND_ERROR,
        Mutant("npu_cmd_inflight.sv", "drained = unfinished_o == '0 && «front_idle_i»;", "1'b1"),
    ),
    "order-aside-reset": PlantedMutant(
        _ORDER,
        BOTH_RESET,
        Mutant(
            "npu_cmd_front.sv", ".drop_i           («hold_i || stop_i»),\n    .park_i", "stop_i"
        ),
    ),
    "order-gather": PlantedMutant(
        _ORDER,
        STREAM_BUS_ERRORS,
        Mutant("npu_cmd_awaited.sv", "|= «may_fail_i[queue_i]»", "'0"),
    ),
    "order-fence": PlantedMutant(
        _ORDER,
        STREAMS,
        Mutant(
            "npu_cmd_awaited.sv", "awaited_o[queue_i] = «used_i[queue_i]»;", "'0", "SyncAfterAll"
        ),
    ),
    "order-record": PlantedMutant(
        _ORDER,
        STREAMS,
        Mutant(
            "npu_cmd_table.sv",
            "used_q[head_q] && «!unfinished_q[head_q]»",
            "1'b1",
            "RecordAfterWrites",
        ),
    ),
    "order-unanswered": PlantedMutant(
        _ORDER,
        RANDOM_STALLS,
        Mutant("npu_copy.sv", "&& «all_answered»", "1'b1", "DoneWhenAnswered"),
    ),
    "order-number": PlantedMutant(
        _ORDER,
        STREAM_BUS_ERRORS,
        Mutant("npu_cmd_table.sv", "«started_q[head_q].seq + 32'(pop_i)»;", "next_seq_q"),
    ),
    "order-after-failure": PlantedMutant(
        _ORDER, STREAM_BUS_ERRORS, Mutant("npu_cmd_issue.sv", "= hold_i || «stop_i»", "1'b0")
    ),
    "order-after-bus-error": PlantedMutant(
        _ORDER,
        STREAM_BUS_ERRORS,
        Mutant("npu_cmd_table.sv", "if (ended_i.error != ERROR_NONE) failed_q <= «1'b1»;", "1'b0"),
    ),
    "order-drain": PlantedMutant(
        _ORDER,
        STREAM_BUS_ERRORS,
        Mutant("npu_cmd_retire.sv", "= «drained_i» && (", "1'b1"),
    ),
    # two commands of one engine
    "channel-end": PlantedMutant(
        _CHANNELS,
        STREAMS,
        Mutant("npu_cmd_engines.sv", "end_place_o  = «place_ended[e]»;", "place_ended[e & 3]"),
    ),
    "channel-free": PlantedMutant(
        _CHANNELS,
        STREAMS,
        Mutant(
            "npu_cmd_engines.sv",
            "free_o[ENGINE_COPY]  = «free[ENGINE_COPY] || free[CHANNEL_COPY1]»;",
            "1'b1",
        ),
    ),
    "channel-twice": PlantedMutant(
        _CHANNELS,
        STREAMS,
        Mutant(
            "npu_cmd_engines.sv",
            "start[CHANNEL_COPY1] = «start_i[ENGINE_COPY] && !free[ENGINE_COPY]»;",
            "start_i[ENGINE_COPY]",
        ),
    ),
    "order-syncs": PlantedMutant(
        _ORDER,
        SYNCS,
        Mutant(
            "npu_cmd_front.sv",
            "sync_write[«sync_valid[Park] ? Park : Check»]",
            "sync_valid[Check] ? Check : Park",
        ),
    ),
    # one queue waits as long as the other one has packets
    "turn-first": PlantedMutant(
        _TURNS, TURNS, Mutant("npu_cmd_front.sv", "else if («take») last_taken_q", "1'b0", _WAITED)
    ),
    "turn-second": PlantedMutant(
        _TURNS, TURNS, Mutant("npu_cmd_front.sv", "'1) ? «!last_taken_q»", "1'b1", _WAITED)
    ),
    "turn-same": PlantedMutant(
        _TURNS, TURNS, Mutant("npu_cmd_front.sv", "'1) ? «!last_taken_q»", "last_taken_q", _WAITED)
    ),
    # of a command that was put aside for one of the other queue: its error, its interrupt
    "order-aside-error": PlantedMutant(
        _ORDER,
        SYNCS,
        Mutant("npu_cmd_start.sv", "= «state_q == SYNC_WAIT && write_err_i» ?", "1'b0"),
    ),
    "order-aside-interrupt": PlantedMutant(
        _ORDER, SYNCS, Mutant("npu_cmd_park.sv", "irq_o       = «flags.irq»;", "1'b0")
    ),
}
