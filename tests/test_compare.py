# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim compare`: what changed between two runs of a test, and whether it is worse."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from night_host import row
from rich.console import Console

from driver.errors import InputError
from driver.results import Failure, OpRow, RunResult, write_json
from regress.compare import RunComparison, show

WRONG = Failure(
    element=(0, 0), tile=(0, 0), expected_bits="0x0", actual_bits="0x1", expected=0.0, actual=1e-45,
    cycle=7, detail="",
)  # fmt: skip
FAILED = {"status": "fail", "blame": "rtl", "failure": WRONG}


def run(*ops: OpRow, **fields: Any) -> RunResult:
    failed = any(op.status == "fail" for op in ops)
    result: dict[str, Any] = {
        "test": "lenet", "status": "fail" if failed else "pass", "config": "small", "seed": 1,
        "backend": "rtl", "cycles": sum(op.cycles or 0 for op in ops), "wall_seconds": 1.0,
        "reproduce": "line", "message": None, "ops": ops, "ledger": (), "digest": "a" * 64,
    }  # fmt: skip
    return RunResult(**{**result, **fields})


BEFORE = run(row(0, cycles=1000), row(1, cycles=100))


def worse(after: RunResult, before: RunResult = BEFORE, slower: float = 0.0) -> str:
    return ", ".join(RunComparison(before, after).worse(slower))


def printed(before: RunResult, after: RunResult) -> tuple[int, str]:
    console = Console(file=io.StringIO(), width=120)
    status = show(console, RunComparison(before, after), 0.0)
    assert isinstance(console.file, io.StringIO)
    return status, console.file.getvalue()


def test_the_same_run_is_not_worse() -> None:
    status, text = printed(BEFORE, BEFORE)
    assert status == 0
    assert text.splitlines()[-1] == "NOT WORSE lenet, seed 1, small"
    assert "the same in all results" in text
    assert "0 faster, 0 slower, 2 the same" in text
    assert "mm" not in text  # nothing changed: no table


def test_cycles_decide_to_the_last() -> None:
    assert worse(run(row(0, cycles=1000), row(1, cycles=101))) == "slower"
    assert not worse(run(row(0, cycles=1000), row(1, cycles=99)))
    assert not worse(run(row(0, cycles=900), row(1, cycles=200)))  # in all


def test_a_percentage_may_be_admitted() -> None:
    after = run(row(0, cycles=1000), row(1, cycles=111))  # 1 % more
    assert not worse(after, slower=1.0)
    assert worse(after, slower=0.99) == "slower"


def test_what_changed_most_comes_first() -> None:
    after = run(row(0, cycles=1010), row(1, cycles=50))
    status, text = printed(BEFORE, after)
    lines = text.splitlines()
    assert status == 0
    assert lines[1].split() == ["1", "mm", "lenet:fc1", "8×16×32", "100", "50", "-50.00%", "pass"]
    assert lines[2].split()[0] == "0"
    assert "1 100 → 1 060  -3.64%" in text
    assert "1 faster, 1 slower, 0 the same" in text


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (run(row(0, cycles=1000), row(1, **FAILED)), "fail instead of pass, op 1 failed"),
        (run(*BEFORE.ops, digest="b" * 64), "other bits"),
        (run(row(0, cycles=1000)), "op 1 is gone, 256 elements less compared"),
        (run(*BEFORE.ops, digest=None), "bits unknown"),
        (run(*BEFORE.ops, cycles=None), "cycles unknown"),
        (run(*BEFORE.ops, status="error", message="died"), "error instead of pass"),
    ],
)  # fmt: skip
def test_what_is_worse_is_said(after: RunResult, said: str) -> None:
    assert worse(after).startswith(said)
    status, text = printed(BEFORE, after)
    assert status == 1
    assert f"WORSE lenet, seed 1, small: {said}" in text


def test_less_compared_is_worse_on_any_configuration() -> None:
    assert worse(run(BEFORE.ops[0], config="default")).startswith("256 elements less compared")


def test_bits_that_a_repair_changes_are_not_worse() -> None:
    broken = run(row(0, **FAILED), digest="b" * 64)
    assert not worse(run(row(0)), before=broken)
    status, text = printed(broken, run(row(0)))
    assert status == 0
    assert "fail → pass" in text
    assert "other results" in text


def test_another_op_of_the_same_number_is_another_op() -> None:
    pairs = RunComparison(run(row(0)), run(row(0, shapes=((4, 4), (4, 4))))).pairs
    assert [(pair.before is None, pair.after is None) for pair in pairs] == [
        (True, False),
        (False, True),
    ]


def test_runs_without_cycles_are_compared_by_their_bits() -> None:
    model = run(row(0, cycles=None, where="cmodel"), backend="cmodel", cycles=None)
    status, text = printed(model, model)
    assert status == 0
    assert text.endswith("NOT WORSE lenet, seed 1, small; not compared: cycles\n")
    assert "faster" not in text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"test": "matmul"}, "test: got matmul, expected lenet, as in .*before/result.json"),
        ({"seed": 2}, "seed: got 2, expected 1"),
    ],
)
def test_runs_of_something_else_are_refused(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    for name, made in (("before", BEFORE), ("after", run(row(0), **fields))):
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / "result.json", made)
    with pytest.raises(InputError, match=message):
        RunComparison.read(tmp_path / "before", tmp_path / "after")
    with pytest.raises(InputError, match="a readable file"):
        RunComparison.read(tmp_path / "before", tmp_path / "none")
