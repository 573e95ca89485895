# SPDX-License-Identifier: Apache-2.0
"""A pass means that something was compared that could have differed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from driver.config import load_config
from driver.isa import ErrorCode
from driver.results import OpEvent, OpRow, RunResult, RunSpec
from golden.backend import CmodelBackend
from golden.calls import OpCall
from golden.judge import judge
from golden.tensors import tensor_bits
from tb.ops import session as sessions
from tb.ops.case import Case, Entry
from tb.ops.runner import run_ops
from tb.ops.session import Session

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
CONFIG = load_config(CONFIG_FILE, "small")
BIG = 3e38


class Quiet:
    def plan(self, ops: int) -> None: ...

    def op(self, event: OpEvent) -> None: ...

    def note(self, text: str) -> None: ...


def spec(out: Path, **changes: object) -> RunSpec:
    return RunSpec(
        test="smoke", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=out, capsules={}, op_filter=None, timeout_s=60.0,
    ).model_copy(update=changes)  # fmt: skip


def run(out: Path, *calls: tuple[str, tuple[object, ...]], **changes: object) -> RunResult:
    """A test of these calls on the cmodel."""

    class Test:
        @staticmethod
        def cases(spec: RunSpec, config: object) -> list[Entry]:
            def entry(index: int, op: str, args: tuple[object, ...]) -> Entry:
                return Entry(index, lambda: Case(index, op, args, "test"))

            return [entry(index, *call) for index, call in enumerate(calls)]

    return run_ops(spec(out, **changes), CONFIG, Test, Quiet())  # type: ignore[arg-type]


ZEROS = ("aten.mul.Tensor", (torch.zeros(3, 4), 2.0))
SUM = ("aten.add.Tensor", (torch.ones(3, 4), 2.0))
EMPTY = ("aten.add.Tensor", (torch.ones(0, 4), 2.0))
NO_BOUND = ("aten.mm.default", (torch.full((2, 8), BIG), torch.tensor([[1.0], [-1.0]] * 4)))
SOME_BOUND = (
    "aten.mm.default",
    (torch.full((2, 8), BIG), torch.tensor([[1.0, 0.0], [-1.0, 1e-9]] * 4)),
)


def test_elements_that_should_be_zero_are_counted_apart(tmp_path: Path) -> None:
    result = run(tmp_path, ZEROS, SUM)
    assert [(row.elements_compared, row.zeros) for row in result.ops] == [(12, 12), (12, 0)]
    assert result.status == "pass"


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ((ZEROS,), "nothing but zeros was compared: 12 elements"),
        ((ZEROS, EMPTY), "nothing but zeros was compared: 12 elements"),
        ((EMPTY,), "nothing was compared: 1 ops, none with an element"),
    ],
)
def test_a_test_of_nothing_or_of_zeros_alone_is_no_pass(
    tmp_path: Path, calls: tuple[tuple[str, tuple[object, ...]], ...], said: str
) -> None:
    result = run(tmp_path, *calls)
    assert result.status == "fail"
    assert result.message is not None and result.message.startswith(said)


def test_one_op_of_zeros_picked_from_a_test_passes_and_says_how_many(tmp_path: Path) -> None:
    result = run(tmp_path, ZEROS, SUM, op_filter=0)
    assert (result.status, result.ops[0].zeros) == ("pass", 12)


def test_an_element_without_a_bound_is_not_compared(tmp_path: Path) -> None:
    (row,) = run(tmp_path, SOME_BOUND).ops
    assert (row.elements_compared, row.unbounded, row.status) == (2, 2, "pass")


def test_an_op_of_which_nothing_is_bounded_is_no_pass(tmp_path: Path) -> None:
    result = run(tmp_path, SUM, NO_BOUND)
    assert result.status == "fail"
    row = result.ops[1]
    assert (row.elements_compared, row.unbounded, row.blame) == (0, 2, "precision")
    assert row.failure is not None
    assert row.failure.detail.startswith("nothing was compared: no bound is known for any of the 2")


def test_the_general_judge_claims_as_little() -> None:
    order = torch.tensor([1.0, 1.0, 1.0])
    call = OpCall("aten.argsort.default", (order,))
    verdict = judge(call, [np.array([2, 0, 1], np.uint64)], None, 4)
    if verdict.comparison.unbounded:
        assert (verdict.elements_compared, verdict.blame) == (0, "precision")
    big = torch.full((4, 6), BIG)
    call = OpCall("aten.sum.dim_IntList", (big * torch.tensor([1.0, -1.0] * 3), [1]))
    verdict = judge(call, [tensor_bits(torch.zeros(4))], None, 4)
    assert (verdict.comparison.unbounded, verdict.elements_compared) == (4, 0)
    assert not verdict.ok and verdict.blame == "precision"
    assert verdict.reaches[0] is not None and np.isinf(verdict.reaches[0]).all()


class Idle(CmodelBackend):
    """A device that says that it did everything, and did nothing."""

    cycle = 0

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        return ErrorCode.NONE

    def last_writer(self, address: int) -> int | None:
        return None


@pytest.mark.parametrize("backend", ["cmodel", "rtl"])
def test_memory_that_was_never_written_is_never_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """Result memory is random bytes before each op, also where a former op left zeros."""
    if backend == "cmodel":
        monkeypatch.setattr(sessions, "CmodelBackend", Idle)
    else:
        monkeypatch.setattr(Session, "_open_rtl", lambda *_: Idle(CONFIG))
    for op, args in (ZEROS, ("aten.zeros_like.default", (torch.ones(40),))):
        for _ in range(2):
            session = Session(spec(tmp_path, backend=backend), CONFIG)
            row = session.run(Case(0, op, args, "test"))
            session.close()
            assert isinstance(row, OpRow)
            assert row.status == "fail", op


def test_one_result_of_several_without_a_bound_is_no_pass() -> None:
    x = torch.full((4, 6), 1e-3 * BIG) * torch.tensor([1.0, -1.0] * 3)  # squares are too large
    call = OpCall("aten.var_mean.correction", (x, [1]))
    verdict = judge(call, [tensor_bits(y) for y in call.overload(x, [1])], None, 4)
    assert (verdict.comparison.unbounded, verdict.elements_compared) == (4, 4)
    assert verdict.undecided and not verdict.ok
