# SPDX-License-Identifier: Apache-2.0
"""Mistakes in a file of custom ops: one line with the file, its line, and what was expected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from judged_call import open_pair, passes

from driver.custom_ops import CUSTOM_OPS, load_custom_ops, named_user_errors
from driver.errors import DeviceFault, InputError
from driver.isa import ErrorCode
from tb.ops.samples import with_custom_ops
from tb.ops.samples.variants import variants

pytestmark = pytest.mark.usefixtures("ops_forgotten")
OP = """import torch
from golden.bounds import own
from tb.ops.samples import T

def both(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    {reference}
    return x + y

@torch.npu.custom_op("mine::both", reference=both, bound={bound}, samples=[{samples}])
def rule(b, out, x, y):
    {rule}
"""
RIGHT = {
    **{"reference": "pass", "bound": "own.equal", "samples": "(T((4, 5)), T((4, 5)))"},
    "rule": 'b.vector("add", (x, y), out, 1.0)',
}


def written(folder: Path, **changed: str) -> Path:
    """A file of one op, right but for what is changed."""
    path = folder / "mine.py"
    path.write_text(OP.format(**RIGHT | changed), encoding="utf-8")
    return path


def judge_all(path: Path) -> None:
    """As TEST=ops does, on the cmodel."""
    load_custom_ops(path)
    with named_user_errors(path):
        for variant in variants(with_custom_ops()["mine.both.default"]):
            args, _ = variant.arguments(1)
            assert passes(open_pair(), variant.sample.op, *args)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "a Python file that is there"),
        ("x = 1", "a function under torch.npu.custom_op"),
        ("\n1 / 0", r"mine.py:2: file: got ZeroDivisionError: division by zero"),
        ("def (", r"mine.py:1: syntax: got invalid syntax, expected Python"),
        ("x = '\0'", "null bytes, expected one that loads"),
        ("from driver.errors import NpuError\nraise NpuError('mine')", "^mine$"),
        (
            "from driver.errors import *\nraise InputError(ENVIRONMENT, 'NPU_X', 1, '2')",
            "^environment: NPU_X: got 1, expected 2$",
        ),
    ],
)
def test_a_file_that_declares_no_op_is_refused(
    tmp_path: Path, text: str | None, expected: str
) -> None:
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Exception, match=expected) as caught:
        load_custom_ops(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"bound": "own.roundings(3, 1)"}, "own.roundings: terms: got 1, expected a function"),
        ({"bound": "own.roundings(0, abs)"}, "own.roundings: count: got 0, expected an int"),
        ({"bound": "own.ulps(-1)"}, "own.ulps: count: got -1, expected a number above 0"),
        ({"bound": "3"}, "mine::both: bound: got 3, expected a rule"),
        ({"samples": "(T(),)"}, "mine::both: samples: got 1 arguments, expected x, y"),
        ({"samples": "(T(), T(), T())"}, "mine::both: samples: got 3 arguments, expected x, y"),
        ({"samples": "(T(), 3)"}, "mine::both: samples, y: got 3, expected T()"),
        ({"samples": "(T((), 'odd'), T())"}, "T: values: got odd, expected one of any, positive"),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_line(
    tmp_path: Path, changed: dict[str, str], expected: str
) -> None:
    path = written(tmp_path, **changed)
    with pytest.raises(InputError) as caught:
        load_custom_ops(path)
    assert str(caught.value).startswith(f"{path}:9: {expected}")


@pytest.mark.parametrize(
    ("changed", "line", "expected"),
    [
        ({"reference": "x = x[7]"}, 6, "both: got IndexError: index 7 is out of bounds"),
        ({"samples": "(T((4, 3)), T((5, 5)))"}, 7, "both: got RuntimeError: The size of tensor"),
        ({"rule": "{}['k']"}, 11, "rule: got KeyError: 'k', expected code that runs"),
        (
            {"rule": "b.vector('odd', (x, y), out)"},
            11,
            "mine.both.default: vector program: got odd",
        ),
        (
            {"rule": "b.vector('add', (x,), out, 1.0)"},
            11,
            "mine.both.default: sources of add: got 1, expected 2",
        ),
        ({"rule": "raise b.unsupported('x', 3, '4')"}, 11, "mine.both.default: x: got 3, expect"),
    ],
)
def test_an_exception_in_the_file_is_told_with_its_line(
    tmp_path: Path, changed: dict[str, str], line: int, expected: str
) -> None:
    path = written(tmp_path, **changed)
    with pytest.raises(InputError) as caught:
        judge_all(path)
    assert str(caught.value).startswith(f"{path}:{line}: {expected}")
    assert "\n" not in str(caught.value)


def test_a_type_that_does_not_exist_is_told_when_the_file_is_read(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text().replace("def rule(b, out, x, y)", "def rule(b, out, x: N, y)"))
    path.write_text(f"from __future__ import annotations\n{path.read_text()}")
    with pytest.raises(InputError, match=r"mine.py:10: file: got NameError: name 'N' is not def"):
        load_custom_ops(path)


def test_a_bound_that_is_no_rule_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"got Subject, expected a number above 0, as own.ulps"):
        judge_all(written(tmp_path, bound="own.ulps"))
    with pytest.raises(InputError, match=r"mine.both.default: bound: got None, expected a rule"):
        judge_all(written(tmp_path, bound="lambda subject: None"))


@pytest.mark.parametrize("rule", ["pass", "b.unsupported('x', 3, '4')"])
def test_a_rule_that_adds_nothing_is_refused(tmp_path: Path, rule: str) -> None:
    with pytest.raises(InputError, match=r"^mine.both.default: packets: got none, expected a rul"):
        judge_all(written(tmp_path, rule=rule))


def test_the_right_file_passes_and_verdicts_stay_what_they_are(tmp_path: Path) -> None:
    path = written(tmp_path)
    judge_all(path)
    assert "mine.both.default" in CUSTOM_OPS
    fault = DeviceFault(ErrorCode.BAD_OPCODE, 3)
    with pytest.raises(DeviceFault), named_user_errors(path):
        raise fault
    with pytest.raises(ZeroDivisionError), named_user_errors(path):
        _ = 1 / 0  # not in the file


@pytest.mark.broad
def test_the_command_line_says_it_in_one_line(tmp_path: Path) -> None:
    path = written(tmp_path, rule="{}['k']")
    options = ("--custom-ops", path, "--filter", "mine", "--backend", "cmodel", "--config", "small")
    command = (sys.executable, "-m", "regress.cli", "run", "ops", *options, "--out", tmp_path / "o")
    done = subprocess.run(
        [str(word) for word in command], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert f"{path}:11: rule: got KeyError: 'k'" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
