# SPDX-License-Identifier: Apache-2.0
"""torch's own op samples on the cmodel: a reduced table, its page, its ratchet, its refusals."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from driver.config import load_config
from driver.errors import InputError
from driver.op_survey import Listing, OpTypeRow, SampleCounts, SurveyTask, TaskAnswer
from regress import op_survey_baseline as baseline
from regress.op_survey import OpSurveyRequest, measure, run_op_survey
from regress.op_survey_page import page, totals
from regress.progress import ProgressBar
from tb.op_survey.__main__ import answer
from tb.op_survey.database import calls
from tb.op_survey.judging import Judge, SampleResult

ROOT = Path(__file__).parents[1]
CONFIG = load_config(ROOT / "sim_config.yaml", "small")
OPS = (
    *("add", "sub", "mul", "div.no_rounding_mode", "neg", "abs", "sqrt", "exp", "log", "sin"),
    *("maximum", "minimum", "eq", "lt", "logical_not", "bitwise_and", "where", "clamp", "sum"),
    *("mean", "amax", "argmax", "all", "cumsum", "cat", "stack", "reshape", "transpose", "expand"),
    *("gather", "index_select", "tril", "full_like", "zeros_like", "arange", "softmax", "mm"),
    *("addmm", "repeat", "clone", "flatten"),
)


REFUSED = {"float32": set(), "int64": {"mm", "addmm"}}
"""By type, what the NPU has not."""


def task(op: str, dtype: str = "float32", samples: int = 3) -> SurveyTask:
    return SurveyTask(op=op, dtypes=(dtype,), samples=samples, seed=1, limit_s=20)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_every_sample_of_common_ops_passes(dtype: str) -> None:
    rows = [row for op in OPS for row in answer(task(op, dtype), CONFIG).rows]
    assert [row.failures for row in rows if row.count.failed] == []
    assert {row.op for row in rows if row.count.refused > row.count.passed} <= REFUSED[dtype]
    assert sum(row.count.passed for row in rows) > 80
    assert sum(row.core.passed for row in rows) > 60


def test_an_op_with_a_row_works_and_others_are_decomposed() -> None:
    (add,) = answer(task("add"), CONFIG).rows
    (conv,) = answer(task("nn.functional.conv2d"), CONFIG).rows
    assert (add.count.works, add.count.decomposed) == (3, 0)
    assert (conv.count.works, conv.count.decomposed) == (0, 3)
    assert conv.core == conv.count


def test_what_the_npu_has_not_is_refused_by_the_name_of_the_op() -> None:
    (row,) = answer(task("polygamma.polygamma_n_0"), CONFIG).rows
    assert row.count.refused == row.count.total > 0
    assert set(row.refusals) == {"aten.polygamma.default"}


@pytest.mark.parametrize("op", ["double", "complex"])
def test_a_sample_of_a_type_that_the_npu_does_not_hold_is_counted_apart(op: str) -> None:
    (row,) = answer(task(op), CONFIG).rows
    assert row.count.other_type > 0
    assert (row.count.total, row.refusals) == (0, {})
    assert "| other types |" in page("2", 3, [row])


def test_a_type_that_torch_has_not_is_no_row() -> None:
    assert answer(task("sqrt.", "float32").model_copy(update={"op": "nn.functional.gelu",
        "dtypes": ("int8",)}), CONFIG).rows == ()  # fmt: skip


def test_the_same_seed_gives_the_same_samples() -> None:
    def first(seed: int) -> torch.Tensor:
        return calls("add", torch.float32, 1, seed)[0]()  # type: ignore[no-any-return]

    assert torch.equal(first(1), first(1))
    assert not torch.equal(first(1), first(2))


def judged(call: object, own: str = "add", limit_s: float = 20) -> SampleResult | None:
    judge = Judge(CONFIG, 1, limit_s)
    try:
        return judge.outcome(call, frozenset({own}))  # type: ignore[arg-type]
    finally:
        judge.close()


def test_a_wrong_answer_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    ones = torch.ones(3)

    def call() -> torch.Tensor:
        return ones + 1

    assert judged(call) == SampleResult("works", core=True)
    monkeypatch.setattr("driver.lower.elementwise._times", lambda out, alpha, other: 1.5)
    found = judged(call)
    assert found is not None and found.status == "wrong" and "aten.add.Tensor" in found.text


def test_an_error_that_is_no_refusal_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> float:
        raise KeyError("row")

    monkeypatch.setattr("driver.lower.elementwise._times", broken)
    ones = torch.ones(3)
    found = judged(lambda: ones + 1)
    assert found is not None and found.status == "crash" and "KeyError" in found.text


def test_what_torch_refuses_itself_is_no_sample() -> None:
    assert judged(lambda: torch.ones(3) @ torch.ones(4)) is None


def test_a_sample_over_its_cpu_time_is_told_apart() -> None:
    def endless() -> torch.Tensor:
        while True:
            torch.ones(3)

    found = judged(endless, limit_s=0.05)
    assert found is not None and found.status == "timeout"


def test_a_limit_whose_exception_is_dropped_strikes_again() -> None:
    def deaf() -> torch.Tensor:
        with contextlib.suppress(Exception):
            while True:
                torch.ones(3)
        while True:
            torch.ones(3)

    found = judged(deaf, limit_s=0.05)
    assert found is not None and found.status == "timeout"


# ---------------------------------------------------------------------- page and ratchet
def row(passed: int, refused: int = 0, wrong: int = 0, op: str = "add") -> OpTypeRow:
    count = SampleCounts(works=passed, refused=refused, wrong=wrong)
    refusals = {"aten.add.Tensor": refused} if refused else {}
    return OpTypeRow(op=op, dtype="float32", count=count, core=count, refusals=refusals,
               core_refusals=refusals)  # fmt: skip


def test_the_page_has_totals_refusals_and_a_line_per_op() -> None:
    text = page("2.13.0+cpu", 10, [row(7, refused=3), row(10, op="sub"), row(9, wrong=1, op="mul")])
    assert "| core ATen | 30 | 26 (86.6 %) | 3 | 1 | 0 | 0 | 0 |" in text
    assert "| `aten.add.Tensor` | core | 3 |" in text
    assert "| `add` | works 7/10 | – | – |" in text
    assert "| `sub` | works | – |" in text
    assert "| `mul` | **wrong 1/10** | – |" in text
    assert totals([row(1)])[0].startswith("core ATen: 1 samples, 1 (100.0 %) pass")


def test_the_ratchet_names_what_passed_before(tmp_path: Path) -> None:
    file = tmp_path / "op_survey.json"
    baseline.record("2.13.0", 10, 1, [row(7, refused=3), row(10, op="sub")], file)
    former = baseline.recorded(file)
    worse = [row(6, refused=4), row(10, op="sub")]
    assert baseline.lost(former, "2.13.0", 10, 1, worse) == [
        "add float32: 6, before 7: aten.add.Tensor"
    ]
    assert baseline.lost(former, "2.13.0", 10, 1, [row(10)]) == []
    assert baseline.lost(former, "2.13.0", 10, 2, worse) == []
    assert baseline.not_compared(former, "2.13.0", 10, 1) == ""
    assert "baseline is of torch 2.13.0, 10 samples" in baseline.not_compared(
        former, "2.13.0", 10, 2
    )
    assert baseline.gone(former, worse) == []
    assert baseline.gone(former, worse[:1]) == ["sub float32: no longer tried"]
    assert baseline.recorded(tmp_path / "none.json") is None


def test_the_committed_page_and_baseline_belong_together() -> None:
    former = baseline.recorded()
    assert former is not None
    assert (former.samples, former.seed) == (OpSurveyRequest().samples, OpSurveyRequest().seed)
    text = (ROOT / "docs" / "ops.md").read_text(encoding="utf-8")
    passed = sum(sum(types.values()) for types in former.passed.values())
    assert f" {passed} (" in next(line for line in text.splitlines() if line.startswith("| all"))


# ---------------------------------------------------------------------- the processes
def test_the_command_runs_workers_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regress.op_survey.OUT", tmp_path)
    console = Console(file=(tmp_path / "text").open("w"), width=120)
    asked = OpSurveyRequest(ops=("add", "sub"), dtypes=("float32", "bool"), samples=2, jobs=1)
    assert run_op_survey(console, asked) == 0
    console.file.flush()
    assert "all: 6 samples, 6 (100.0 %) pass" in (tmp_path / "text").read_text()
    with pytest.raises(InputError, match="no_such_op"):
        measure(OpSurveyRequest(ops=("no_such_op",)), ProgressBar(console, "op-survey"))


def test_a_worker_that_dies_is_a_crash_of_the_type_that_ended_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Worker:
        """In this process; every task with fp16 ends it."""

        listing = Listing(torch="2", ops=("add",))

        def __init__(self, log: Path) -> None: ...

        def ask(self, given: SurveyTask) -> TaskAnswer | None:
            if "float16" in given.dtypes:
                return None
            count = SampleCounts(works=2)
            made = [
                OpTypeRow(
                    op=given.op, dtype=d, count=count, core=count, refusals={}, core_refusals={}
                )
                for d in given.dtypes
            ]
            return TaskAnswer(rows=tuple(made))

        def end(self) -> int:
            return 0

    monkeypatch.setattr("regress.op_survey.OUT", tmp_path)
    monkeypatch.setattr("regress.op_survey._Worker", Worker)
    console = Console(file=(tmp_path / "text").open("w"))
    asked = OpSurveyRequest(ops=("add",), dtypes=("float32", "float16"), samples=2, jobs=1)
    rows = measure(asked, ProgressBar(console, "op-survey")).rows
    assert [(row.dtype, row.count.passed, row.count.crash) for row in rows] == [
        ("float32", 2, 0),
        ("float16", 0, 1),
    ]


def test_an_error_in_a_worker_thread_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(self: object, given: SurveyTask) -> TaskAnswer:
        raise ValueError("not JSON")

    monkeypatch.setattr("regress.op_survey.OUT", tmp_path)
    monkeypatch.setattr("regress.op_survey._Worker.__init__", _no_process)
    monkeypatch.setattr("regress.op_survey._Worker.ask", ask)
    monkeypatch.setattr("regress.op_survey._Worker.end", lambda self: 0)
    with pytest.raises(ValueError, match="not JSON"):
        measure(OpSurveyRequest(ops=("add",)), ProgressBar(Console(), "op-survey"))


def _no_process(self: Any, log: Path) -> None:
    self.listing = Listing(torch="2", ops=("add",))


def test_an_unknown_type_is_one_line() -> None:
    with pytest.raises(InputError, match="float64"):
        run_op_survey(Console(), OpSurveyRequest(dtypes=("float64",)))
