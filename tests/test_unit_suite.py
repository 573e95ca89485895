# SPDX-License-Identifier: Apache-2.0
"""The unit benches as a test of the nightly tiers: none is left out, a failure has its own line."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from driver.config import HwConfig
from driver.errors import InputError
from driver.results import OpEvent, RunSpec, Shard
from regress.nightly.settings import load_nightly
from regress.paths import CONFIG_FILE
from regress.units import known_units
from tb.checks import picked
from tb.mutants.sampled import sample
from tb.ops.runner import RunObserver
from tb.unit import suite
from tb.unit.benches import BLOCKS, BUS_WIDTHS, block_program
from tb.unit.block import BlockResult

NAMES = [check.name for check in suite.CHECKS]
DIVIDER = next(n for n, site in sample(1).items() if site.file.name == "npu_fp_div_pkg.sv")


def spec(out: Path, op: int | None = None, seed: int = 1, mutant: str | None = None) -> RunSpec:
    return RunSpec(
        test="units",
        config="default",
        config_file=CONFIG_FILE,
        seed=seed,
        backend="rtl",
        waves="none",
        out=out,
        capsules={},
        op_filter=op,
        timeout_s=600,
        mutant=mutant,
    )


class Heard(RunObserver):
    def __init__(self) -> None:
        self.planned = 0
        self.events: list[OpEvent] = []

    def plan(self, ops: int) -> None:
        self.planned = ops

    def op(self, event: OpEvent) -> None:
        self.events.append(event)


SHAPES = {name: len(bench.shapes()) for name, bench in BLOCKS.items()}


def test_every_bench_is_a_check_and_every_block_at_all_widths() -> None:
    assert set(NAMES) == set(known_units())
    assert {name: NAMES.count(name) for name in BLOCKS} == SHAPES
    for bench in BLOCKS.values():
        assert {bus_bits for bus_bits, _ in bench.shapes()} == set(BUS_WIDTHS)


def test_every_size_that_is_offered_is_in_a_bench() -> None:
    sizes = {name: {size for _, size in BLOCKS[name].shapes()} for name in ("matrix", "vector")}
    offered = (HwConfig.model_fields[name].annotation for name in ("array_size", "vector_lanes"))
    assert list(sizes.values()) == [set(get_args(one)) for one in offered]


@pytest.mark.parametrize(
    ("name", "size", "expected"), [("matrix", 4, "one of 8, 16, 32"), ("mem", 8, "none for this")]
)
def test_a_size_that_a_bench_does_not_have_is_refused(name: str, size: int, expected: str) -> None:
    with pytest.raises(InputError, match=f"size: got {size}, expected {expected}"):
        block_program(name, 128, size=size)


def test_the_tiers_run_them() -> None:
    tiers = load_nightly(CONFIG_FILE).tiers
    assert {tier for tier, tests in tiers.items() if "units" in tests} == {
        "ci",
        "nightly",
        "weekly",
    }


def test_a_check_by_its_number(tmp_path: Path) -> None:
    heard = Heard()
    result = suite.run_suite(spec(tmp_path, NAMES.index("int8_mac")), heard)
    assert (result.status, len(result.ops), heard.planned) == ("pass", 1, 1)
    assert result.ops[0].elements_compared >= 10 * (1 << 16)
    assert [event.op for event in heard.events] == ["int8_mac"]


def test_a_failing_check_is_a_red_row_with_its_own_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seeds = []

    def wrong(seed: int, mutant: str | None) -> suite.UnitFindings:
        seeds.append(seed)
        return suite.UnitFindings(7, "expected 0x1, actual 0x2", "speed 5\nFAILED 0x2\n")

    fine = suite.UnitFindings(5, "", "fine\n")
    right = suite.UnitCheck("mem", "bus of 128 bits", lambda *_: fine)
    checks = (right, suite.UnitCheck("ctrl", "bus of 256 bits", wrong))
    monkeypatch.setattr(suite, "CHECKS", checks)
    result = suite.run_suite(spec(tmp_path, seed=12), Heard())
    assert seeds == [12]
    assert [row.status for row in result.ops] == ["pass", "fail"]
    assert result.status == "fail"
    assert result.ops[1].failure is not None
    assert result.ops[1].failure.detail == "expected 0x1, actual 0x2"
    assert result.reproduce.endswith("run units --config default --seed 12 --op 1")
    # Standard error becomes the log of the run.
    assert capfd.readouterr().err == "ctrl, bus of 256 bits, seed 12\nspeed 5\nFAILED 0x2\n"


def test_shards_hold_each_check_once(tmp_path: Path) -> None:
    whole = spec(tmp_path)
    parts = [whole.model_copy(update={"shard": Shard(index=at, count=4)}) for at in range(4)]
    found = [number for part in parts for number in picked(part, len(NAMES))]
    assert sorted(found) == list(range(len(NAMES)))


def test_a_check_that_does_not_exist_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"0 to {len(NAMES) - 1}"):
        suite.run_suite(spec(tmp_path, len(NAMES)), Heard())


@pytest.mark.parametrize(
    ("mutant", "benches"),
    [
        ("request-dropped", ["gather"]),  # npu_gather.sv
        (
            "host-read-room",
            ["mem", "gather", "matrix", "vector", "single_port"],
        ),  # npu_host_read.sv
    ],
)
def test_a_mutant_of_the_npu_is_in_the_benches_that_have_its_file(
    mutant: str, benches: list[str]
) -> None:
    found = [NAMES[number] for number in suite.checks_with(mutant)]
    assert sorted(found) == sorted(name for name in benches for _ in range(SHAPES[name]))


def test_with_a_mutant_only_its_benches_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str | None]] = []

    def block(
        name: str, bus_bits: int, seed: int, mutant: str | None, size: int | None
    ) -> BlockResult:
        asked.append((name, mutant))
        return BlockResult(bus_bits, seed, 5, "expected 0x1", {})

    monkeypatch.setattr(suite, "run_block", block)
    result = suite.run_suite(spec(tmp_path, mutant="request-dropped"), Heard())
    assert asked == [("gather", "request-dropped")] * SHAPES["gather"]
    assert result.status == "fail"
    first = NAMES.index("gather")
    assert f"--mutant request-dropped --op {first}" in result.reproduce


def test_a_mutant_that_no_chosen_bench_has_is_bad_input(tmp_path: Path) -> None:
    mutant = "request-dropped"
    shard = Shard(index=NAMES.index("fp_fma"), count=len(NAMES))
    chosen = spec(tmp_path, mutant=mutant).model_copy(update={"shard": shard})
    with pytest.raises(InputError, match=f"mutant: got {mutant}, expected one in the RTL of"):
        suite.run_suite(chosen, Heard())
    with pytest.raises(InputError, match=f"mutant: got {mutant}, expected one in the RTL of"):
        suite.run_suite(spec(tmp_path, NAMES.index("fp_fma"), mutant=mutant), Heard())


@pytest.mark.parametrize(
    ("bench", "mutant", "seen"),
    [("fp_div", DIVIDER, "expected"), ("ctrl", "order-both-failed", "error of the first queue")],
)
def test_a_mutant_of_the_npu_is_active_in_a_bench(
    tmp_path: Path, bench: str, mutant: str, seen: str
) -> None:
    found = suite.run_suite(spec(tmp_path, NAMES.index(bench), mutant=mutant), Heard())
    assert found.status == "fail"
    assert found.ops[0].failure is not None
    assert seen in found.ops[0].failure.detail
