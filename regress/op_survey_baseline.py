# SPDX-License-Identifier: Apache-2.0
"""The ratchet of `npu-cosim op-survey`: how many samples of each op passed; fewer is an error.

Owns regress/op_survey_baseline.json, one line per op, so that a change shows in a review.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driver.files import read_json, write_text
from driver.frozen import Frozen
from driver.op_survey import OpTypeRow
from regress.paths import ROOT

FILE = ROOT / "regress" / "op_survey_baseline.json"


class OpSurveyBaseline(Frozen):
    """Passed samples of each op and type, for this torch, this many samples and this seed."""

    torch: str
    samples: int
    seed: int
    passed: dict[str, dict[str, int]]


def recorded(file: Path = FILE) -> OpSurveyBaseline | None:
    """The baseline on file; None without one. InputError when the file is no baseline."""
    return read_json(file, OpSurveyBaseline) if file.exists() else None


def lost(
    former: OpSurveyBaseline | None, torch: str, samples: int, seed: int, rows: Sequence[OpTypeRow]
) -> list[str]:
    """A line for each op and type of `rows` of which fewer samples pass than before.

    Samples of another torch, number or seed are other samples: nothing is compared then, which
    `not_compared` tells.
    """
    if former is None or not_compared(former, torch, samples, seed):
        return []
    lines = []
    for row in rows:
        before = former.passed.get(row.op, {}).get(row.dtype, 0)
        if row.count.passed < before:
            why = ", ".join([*row.refusals, *row.failures]) or "fewer samples"
            lines.append(f"{row.op} {row.dtype}: {row.count.passed}, before {before}: {why}")
    return lines


def not_compared(former: OpSurveyBaseline | None, torch: str, samples: int, seed: int) -> str:
    """Why nothing can be compared with what was recorded; "" where it can."""
    if former is None:
        return "not compared: no baseline is recorded"
    if (former.torch, former.samples, former.seed) == (torch, samples, seed):
        return ""
    return (
        f"not compared: the baseline is of torch {former.torch}, "
        f"{former.samples} samples, seed {former.seed}"
    )


def gone(former: OpSurveyBaseline | None, rows: Sequence[OpTypeRow]) -> list[str]:
    """A line for each op and type that passed before and is not among all the `rows` now."""
    present = {(row.op, row.dtype) for row in rows}
    before = {} if former is None else former.passed
    pairs = ((op, dtype) for op, dtypes in before.items() for dtype in dtypes)
    return [f"{op} {dtype}: no longer tried" for op, dtype in pairs if (op, dtype) not in present]


def record(
    torch: str, samples: int, seed: int, rows: Sequence[OpTypeRow], file: Path = FILE
) -> None:
    """Write the baseline: one line per op."""
    passed: dict[str, dict[str, int]] = {}
    for row in rows:
        if row.count.passed:
            passed.setdefault(row.op, {})[row.dtype] = row.count.passed
    head: dict[str, Any] = {"torch": torch, "samples": samples, "seed": seed}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    ops = [f"  {json.dumps(op)}: {json.dumps(counts)}" for op, counts in passed.items()]
    text = "\n".join(["{", *lines, ' "passed": {', ",\n".join(ops), " }", "}"])
    write_text(file, text + "\n")
