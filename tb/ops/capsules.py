# SPDX-License-Identifier: Apache-2.0
"""The ops of a capsule as entries of a test. Views move no data: they are counted, not run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from driver.capture import Op, load_capsule
from tb.ops.case import Entry, recorded_case


def everything(op: Op) -> bool:
    """The choice of all ops."""
    return True


def capsule_cases(
    folder: Path, numbers: Iterator[int], wanted: Callable[[Op], bool] = everything
) -> Iterator[Entry]:
    """Each wanted op in program order, with the operands that torch had."""
    capsule = load_capsule(folder)
    for op in capsule.ops:
        if not op.view and wanted(op):
            index = next(numbers)
            yield Entry(index, partial(recorded_case, capsule, op, index))
