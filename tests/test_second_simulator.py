# SPDX-License-Identifier: Apache-2.0
"""CXXRTL and Verilator agree on the RTL, in every bit and in every cycle.

An hour of processor time on a busy machine: for the nightly tier, which has a test of this name.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from driver.config import CONFIG_FILE
from driver.results import RunResult, RunSpec, SimulatorName
from tb.run import run

pytestmark = pytest.mark.second_simulator


def result(test: str, simulator: SimulatorName, folder: Path, seed: int) -> RunResult:
    out = folder / f"{test}-{simulator}"
    out.mkdir()
    return run(
        RunSpec(
            test=test,
            config="small",
            config_file=CONFIG_FILE,
            seed=seed,
            backend="rtl",
            waves="none",
            out=out,
            capsules={},
            op_filter=None,
            timeout_s=3600.0,
            simulator=simulator,
        )
    )


@pytest.mark.parametrize("test", ["smoke", "ops"])
def test_same_bits_in_the_same_cycles(test: str, tmp_path: Path, run_seed: int) -> None:
    first, second = (result(test, name, tmp_path, run_seed) for name in ("verilator", "cxxrtl"))
    assert first.status == second.status == "pass"
    assert first.digest == second.digest
    assert len(second.ops) > 100
    cycles = [[(op.index, op.cycles) for op in one.ops] for one in (first, second)]
    assert cycles[0] == cycles[1]


@pytest.mark.parametrize(("test", "rows"), [("bus", 7), ("overlap", 3)])
def test_bench_without_pins(test: str, rows: int, tmp_path: Path, run_seed: int) -> None:
    found = result(test, "cxxrtl", tmp_path, run_seed)
    assert found.status == "pass", found.ops
    assert len(found.ops) >= rows
    assert all(op.elements_compared for op in found.ops)
