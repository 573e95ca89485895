# SPDX-License-Identifier: Apache-2.0
"""Wrong lines in clock gates: a clock stops too early."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tb.mutants.expression import Mutant
from tb.mutants.planted import PlantedMutant
from tb.mutants.runs import INT4, OPERANDS, PRODUCTS, RANDOM, RINGS, STREAMS

_CLOCK: Final = "clock gates"

CLOCKS: Final[Mapping[str, PlantedMutant]] = {
    "clock-weights": PlantedMutant(
        _CLOCK,
        INT4,
        Mutant("npu_matrix.sv", "u_int4_gate (.clk_i, .en_i(!rst_ni || «int4»)", "buffered_q"),
    ),
    "clock-table": PlantedMutant(
        _CLOCK, OPERANDS, Mutant("npu_vector_table.sv", "segment || reads || «found_q»", "1'b0")
    ),
    "clock-engine": PlantedMutant(
        _CLOCK,
        STREAMS,
        Mutant(
            "npu_cmd_engines.sv", "= start | «~free»;", "~free & ~end_valid", "ReadyWithoutClock"
        ),
    ),
    "clock-control": PlantedMutant(
        _CLOCK, STREAMS, Mutant("npu_ctrl.sv", "|| «!reader_idle» ||", "1'b0")
    ),
    "clock-queue": PlantedMutant(
        _CLOCK,
        RINGS,
        Mutant("npu_ctrl.sv", "ring[1].enable || «queue_pending[1]» ||", "1'b0"),
    ),
    "clock-buffer": PlantedMutant(
        _CLOCK,
        PRODUCTS,
        Mutant(
            "npu_matrix.sv",
            "buffered_q <= «reads_again(cmd.a) || reads_again(cmd.b)»",
            "reads_again(cmd.b)",
        ),
    ),
    "clock-column": PlantedMutant(
        _CLOCK,
        OPERANDS,
        Mutant("npu_matrix.sv", "(cmd.accumulate && «run_of(cmd.init.col) == RUN_REPEAT»)", "1'b0"),
    ),
    "clock-source": PlantedMutant(
        _CLOCK, RANDOM, Mutant("npu_vector.sv", "!rst_ni || «used»", "s == 0")
    ),
}
