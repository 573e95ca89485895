# SPDX-License-Identifier: Apache-2.0
"""Wrong lines in the loading and the memory of vector programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tb.mutants.expression import Mutant
from tb.mutants.planted import PlantedMutant
from tb.mutants.runs import BUS_ERRORS, IMAGES, LOADS, RANDOM, REFUSED_LOADS, RELOADS

_LOAD: Final = "program load"
_PROGRAMS: Final = "program memory"

PROGRAMS: Final[Mapping[str, PlantedMutant]] = {
    # programs: loading
    "load-image": PlantedMutant(
        _LOAD, IMAGES, Mutant("npu_program_check.sv", "&& «word_i[63:32] != '0»", "1'b0")
    ),
    "load-no-source": PlantedMutant(
        _LOAD, IMAGES, Mutant("npu_program_check.sv", "|| «header.sources == '0»));", "1'b0")
    ),
    "load-register": PlantedMutant(
        _LOAD, IMAGES, Mutant("npu_program_check.sv", "return «!written_q[code[3:0]]»", "1'b0")
    ),
    "load-reduction": PlantedMutant(
        _LOAD,
        IMAGES,
        Mutant(
            "npu_program_check.sv",
            "|| «header.reduce >= 8'(REDUCTIONS)»",
            "header.reduce > 8'(REDUCTIONS)",
        ),
    ),
    "load-error": PlantedMutant(
        _LOAD, BUS_ERRORS, Mutant("npu_program_load.sv", "if («read_err_q»)", "1'b0")
    ),
    "load-first-reading": PlantedMutant(
        _LOAD, REFUSED_LOADS, Mutant("npu_program_load.sv", "word_o && «state_q == STORE»", "1'b1")
    ),
    "load-second-reading": PlantedMutant(
        _LOAD,
        REFUSED_LOADS,
        Mutant("npu_program_load.sv", "done_o && «verdict == ERROR_NONE»;", "1'b1"),
    ),
    "load-waits": PlantedMutant(
        _LOAD,
        LOADS,
        Mutant(
            "npu_cmd_awaited.sv",
            "OPCODE_LOAD)        awaited_o = «used_i»;",
            "queue_i ? {used_i[1], cmd_slots_t'(0)} : {cmd_slots_t'(0), used_i[0]}",
            "a LOAD runs from",
        ),
    ),
    "load-alone": PlantedMutant(
        _LOAD,
        LOADS,
        Mutant(
            "npu_cmd_inflight.sv",
            "table_full | «{QUEUES{loading != '0}}»;",
            "loading",
            "a LOAD runs from",
        ),
    ),
    "load-forgets": PlantedMutant(
        _LOAD,
        REFUSED_LOADS,
        Mutant("npu_program_load.sv", "= «state_q == CHECK_VERDICT && state_d == STORE»;", "1'b0"),
    ),
    # programs: which are loaded, and what is fetched
    "program-overwritten": PlantedMutant(
        _PROGRAMS, RELOADS, Mutant("npu_program_dir.sv", "= «walk_end > first»", "walk_q >= first")
    ),
    "program-longest": PlantedMutant(
        _PROGRAMS,
        RELOADS,
        Mutant("npu_program_dir.sv", "? «first - FarthestStart»", "first - FarthestStart + 1"),
    ),
    "program-stale": PlantedMutant(
        _PROGRAMS, RELOADS, Mutant("npu_vector_fetch.sv", "!(«held_q» &&", "1'b1")
    ),
    "program-alias": PlantedMutant(
        _PROGRAMS,
        RELOADS,
        Mutant("npu_program_dir.sv", "(«ram_line < 32'(PROGRAM_RAM_LINES)» && ram_info", "1'b1"),
    ),
    "program-address": PlantedMutant(
        _PROGRAMS,
        RELOADS,
        Mutant("npu_program_mem.sv", "ram_q[«write_addr_i»]", "write_addr_i & 12'hfbf"),
    ),
    "program-constant": PlantedMutant(
        _PROGRAMS, RANDOM, Mutant("npu_vector_fetch.sv", "(info_i.constants + «7'd1»)", "7'd0")
    ),
}
