# SPDX-License-Identifier: Apache-2.0
"""A bound gets wider only on purpose: how far the NPU's results of each op's samples may be from
the truth.

`python tests/test_bound_widths.py` writes bound_widths.json anew. A result within its bound says
nothing of a bound that is a thousand times too wide; this test does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from golden.bounds.expectation import Expectation
from golden.calls import OpCall, answers
from golden.judge import expectations
from tb.ops.samples import SAMPLES
from tb.ops.samples.model import Sample
from tb.ops.samples.variants import variants

WIDTHS = Path(__file__).with_name("bound_widths.json")
SEED = 7
TOLERANCE = 0.05
"""Of a recorded width. torch's own results, which a few bounds look at, are not the same on every
processor."""


def width(expectation: Expectation) -> float:
    """The middle one of the elements that are compared, in units in the last place of fp32."""
    interval, true = expectation.npu, np.asarray(expectation.true)
    if true.dtype != np.float64:
        return float(np.median(interval.high - interval.low)) if true.size else 0.0
    counted = ~interval.not_compared & ~interval.nan & np.isfinite(true)
    counted &= np.isfinite(interval.high) & np.isfinite(interval.low)
    unit = np.spacing(np.maximum(np.abs(true[counted]), 2.0**-126).astype(np.float32))
    found = (interval.high[counted] - interval.low[counted]) / unit
    return float(np.median(found)) if found.size else 0.0


def calls_of(sample: Sample) -> Iterator[OpCall]:
    for call in variants([sample]):
        if call.name == "dense" and call.dtype is sample.dtypes[0]:
            args, kwargs = call.arguments(SEED)
            yield OpCall(sample.op, args, kwargs)


def widths(op: str) -> list[float]:
    """Of each output of each sample, in its first type."""
    found = []
    for sample in SAMPLES[op]:
        for call in calls_of(sample):
            expected = [one for one in expectations(call, answers(call)) if one is not None]
            found += [float(f"{width(one):.3g}") for one in expected]
    return found


@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
def test_no_bound_is_wider_or_narrower_than_recorded() -> None:
    recorded = json.loads(WIDTHS.read_text(encoding="utf-8"))
    assert sorted(recorded) == sorted(SAMPLES)
    changed = {}
    for op in sorted(SAMPLES):
        now = widths(op)
        same = len(now) == len(recorded[op]) and all(
            math.isclose(a, b, rel_tol=TOLERANCE) for a, b in zip(now, recorded[op], strict=True)
        )
        if not same:
            changed[op] = (recorded[op], now)
    assert changed == {}, "if on purpose: python tests/test_bound_widths.py"


if __name__ == "__main__":
    made = {op: widths(op) for op in sorted(SAMPLES)}
    lines = ",\n".join(f' "{op}": {json.dumps(found)}' for op, found in made.items())
    WIDTHS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
