# SPDX-License-Identifier: Apache-2.0
"""The ops of capsules as entries of a test. Views move no data: they are counted, not run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

from driver.capture import Capsule, Op, load_capsule
from driver.results import RunSpec
from tb.ops.case import Entry, recorded_case
from tb.ops.chained import Step


def everything(op: Op) -> bool:
    """The choice of all ops."""
    return True


def capsule_cases(
    capsule: Capsule, numbers: Iterator[int], wanted: Callable[[Op], bool] = everything
) -> Iterator[Entry]:
    """Each wanted op in program order, with the operands that torch had."""
    for op in capsule.ops:
        if not op.view and wanted(op):
            index = next(numbers)
            yield Entry(index, partial(recorded_case, capsule, op, index), capsule)


def capsule_steps(capsule: Capsule, numbers: Iterator[int]) -> Iterator[Step]:
    """Each op in program order, on the NPU's own earlier results."""
    for op in capsule.ops:
        if not op.view:
            yield Step(next(numbers), capsule, op)


def model_entries(spec: RunSpec) -> Iterator[Entry | Step]:
    """The ops of the spec's capsules, one capsule after the other: isolated, then chained.

    An op has the same number whichever modes are asked for.
    """
    numbers = count()
    for folder in spec.capsules.values():
        capsule = load_capsule(folder)
        isolated = list(capsule_cases(capsule, numbers))
        chained = list(capsule_steps(capsule, numbers))
        yield from isolated if "isolated" in spec.modes else ()
        yield from chained if "chained" in spec.modes else ()
