# SPDX-License-Identifier: Apache-2.0
"""The checks of TEST=qwen_lora on a narrow model: they pass, and each finds what it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from driver.errors import AssertionFailed, BackendDied, InputError
from driver.results import OpRow, RunResult, RunSpec, Shard
from tb.ops.runner import RunObserver
from tb.ops.stopped import RunBroken
from tb.programs import lora_checks
from tb.programs.lora_checks import LoraProgram
from tb.programs.lora_training import LoraTraining, StepMode, StepResult, relative_distance
from tb.programs.runner import check_of, device_behind, run_program
from workloads._lora import LoraSize

NARROW = LoraSize(layers=1, vocabulary=256, tokens=12, narrow=True)
MODES = tuple(StepMode)
"""A step of each."""


class Quiet:
    def plan(self, ops: int) -> None: ...

    def op(self, event: Any) -> None: ...

    def note(self, text: str) -> None: ...


OBSERVER: RunObserver = Quiet()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lora_checks, "STEPS", MODES)
    monkeypatch.setattr(lora_checks, "_FALL", 1)
    torch.set_num_threads(1)


def spec(out: Path, backend: str = "cmodel") -> RunSpec:
    return RunSpec(
        test="qwen_lora", config="default", config_file=Path("sim_config.yaml").absolute(), seed=1,
        backend=backend, waves="none", out=out, capsules={}, op_filter=None, timeout_s=60.0,
    )  # fmt: skip


class Module:
    @staticmethod
    def program(spec: RunSpec, _config: object) -> LoraProgram:
        return LoraProgram(spec, NARROW)


def run(out: Path) -> RunResult:
    return run_program(spec(out), None, Module, OBSERVER)  # type: ignore[arg-type]


def failed(result: RunResult) -> list[str]:
    return [row.op for row in result.ops if row.status == "fail"]


@pytest.mark.broad
def test_every_way_of_training_follows_torch(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert set(failed(result)) <= {"loss falls, all ops on the NPU"}  # four passages tell nothing
    assert [row.op for row in result.ops][: len(MODES)] == [
        f"step {n}, {mode.value}" for n, mode in enumerate(MODES, 1)
    ]
    assert all(row.elements_compared > 100 for row in result.ops[: len(MODES)])
    assert {row.where for row in result.ledger} == {"cmodel", "view", "host"}
    assert sum(row.count for row in result.ledger if row.where == "cmodel") > 200
    (curve,) = result.curves
    assert len(curve.npu) == len(MODES)


Broken = Callable[[LoraTraining, StepResult], StepResult]


def off_by_one_bit(name: str) -> Any:
    """A LoraTraining whose NPU side has another last bit in the first element of `name`."""
    original = LoraTraining.step

    def step(self: LoraTraining, passages: torch.Tensor, mode: StepMode) -> StepResult:
        found = original(self, passages, mode)
        tensors = getattr(found, name)
        next(iter(tensors.values())).view(torch.int32)[0, 0] ^= 1
        return found

    return step


@pytest.mark.parametrize("name", ["gradients", "weights"])
def test_one_wrong_bit_is_found_and_blamed_on_the_rtl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    program = LoraProgram(spec(tmp_path), NARROW)
    training = LoraTraining(program._model(), "cpu")  # any device: bits are compared
    wanted = [training.step(program._passages(n), mode) for n, mode in enumerate(MODES)]
    rows = _against_rtl(program, wanted, monkeypatch)
    assert [row.status for row in rows] == ["pass"] * len(MODES)
    assert all(row.rtl_vs_cmodel_mismatches == 0 for row in rows)
    monkeypatch.setattr(LoraTraining, "step", off_by_one_bit(name))
    rows = _against_rtl(program, wanted, monkeypatch)
    assert [row.status for row in rows] == ["fail"] * len(MODES)
    assert {row.rtl_vs_cmodel_mismatches for row in rows} == {1}
    assert {row.blame for row in rows} == {"rtl"}
    assert "lora_A" in (rows[0].failure.detail if rows[0].failure else "")


def _against_rtl(
    program: LoraProgram, wanted: list[StepResult], monkeypatch: pytest.MonkeyPatch
) -> list[OpRow]:
    made = LoraTraining(program._model(), "cpu")
    monkeypatch.setattr(lora_checks, "LoraTraining", lambda _model, _device: made)
    found: Iterator[OpRow] = program._on_rtl(wanted)
    return list(found)


def test_a_distance_that_is_no_number_is_infinite() -> None:
    one = {"x": torch.ones(3)}
    assert relative_distance(one, {"x": torch.full((3,), 1.5)}) == 0.5
    assert relative_distance(one, {"x": torch.tensor([1.0, float("nan"), 1.0])}) == float("inf")
    assert relative_distance({"x": torch.zeros(3)}, one) == float("inf")


def test_what_torch_raises_is_one_line_after_the_checks_that_were_done(tmp_path: Path) -> None:
    class Raises:
        planned = 2
        ledger, curves, notes = None, (), ()

        def checks(self) -> Iterator[OpRow]:
            yield check_of(0, "first", spec(tmp_path), compared=3)
            raise RuntimeError("no room\nand a stack")

    class Test:
        @staticmethod
        def program(spec: RunSpec, _config: object) -> Raises:
            return Raises()

    with pytest.raises(RunBroken, match=r"check 1: RuntimeError: no room$") as caught:
        run_program(spec(tmp_path), None, Test, OBSERVER)  # type: ignore[arg-type]
    result = caught.value.result
    assert (result.status, len(result.ops)) == ("error", 1)
    assert "--op" not in result.reproduce


@pytest.mark.parametrize("part", [{"op_filter": 3}, {"shard": Shard(index=0, count=2)}])
def test_a_part_of_a_training_is_refused(tmp_path: Path, part: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="is one program"):
        run_program(spec(tmp_path).model_copy(update=part), None, Module, OBSERVER)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "status", "blame"),
    [
        (AssertionFailed(("x.sv", 3), "u_x", "stuck", 17, "sim.log"), "fail", "rtl"),
        (BackendDied("gone"), "error", None),
    ],
)
def test_a_device_that_stops_fails_its_check_and_keeps_the_others(
    tmp_path: Path, error: Exception, status: str, blame: str | None
) -> None:
    class Stops:
        planned = 3

        def checks(self) -> Iterator[OpRow]:
            yield check_of(0, "first", spec(tmp_path), compared=1)
            with device_behind("rtl", spec(tmp_path)):
                raise error

    class Program:
        @staticmethod
        def program(_spec: RunSpec, _config: object) -> Stops:
            return Stops()

    try:
        found = run_program(spec(tmp_path), None, Program, OBSERVER)  # type: ignore[arg-type]
    except RunBroken as broken:
        found = broken.result
    assert (found.status, found.ops[0].status) == (status, "pass")
    assert [row.blame for row in found.ops[1:]] == ([blame] if blame else [])
