# SPDX-License-Identifier: Apache-2.0
"""The largest error of any function's vector program, fp32, on a sample of its domain."""

from __future__ import annotations

from golden.accuracy import FP32
from golden.accuracy import measure as error_of
from golden.functions import FUNCTIONS
from tb.bench.measure import Measurement, Note

_POINTS = 1_000_000


def measure(rounds: int, note: Note) -> Measurement:
    """One round: the numbers are the same every time. `npu-cosim accuracy` has the whole table."""
    del rounds
    found = {function.name: error_of(function, FP32, _POINTS) for function in FUNCTIONS}
    name, worst = max(found.items(), key=lambda item: item[1].max_ulp)
    note(f"{name} at {worst.at}")
    return Measurement(worst.max_ulp, 0.0)
