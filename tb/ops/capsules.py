# SPDX-License-Identifier: Apache-2.0
"""The ops of capsules as entries of a test. What costs nothing is counted, not run: views, which
move no data, and ops that only make room, whose bytes are undefined."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

from driver.capture import Capsule, Op, load_capsule
from driver.capture.decompose import ROOM
from driver.config import load_config
from driver.results import RunSpec
from tb.ops.case import Case, Entry, recorded_case
from tb.ops.chained import ChainedOp
from tb.ops.recorded import prove, prove_room, prove_view
from tb.ops.refusals import check_all


def is_free(op: Op) -> bool:
    """Whether the op costs nothing."""
    return op.view or op.op in ROOM


def everything(op: Op) -> bool:
    """The choice of all ops."""
    return True


def capsule_cases(
    capsule: Capsule, numbers: Iterator[int], wanted: Callable[[Op], bool] = everything
) -> Iterator[Entry]:
    """Each wanted op in program order, with the operands that torch had."""
    for op in capsule.ops:
        if not is_free(op) and wanted(op):
            index = next(numbers)
            yield Entry(index, partial(_proven_case, capsule, op, index), capsule)


def _proven_case(capsule: Capsule, op: Op, index: int) -> Case:
    prove(capsule, op)
    return recorded_case(capsule, op, index)


def capsule_steps(capsule: Capsule, numbers: Iterator[int]) -> Iterator[ChainedOp]:
    """Each op in program order, on the NPU's own earlier results."""
    for op in capsule.ops:
        if not is_free(op):
            yield ChainedOp(next(numbers), capsule, op)


def model_entries(spec: RunSpec) -> Iterator[Entry | ChainedOp]:
    """The ops of the spec's capsules, one capsule after the other: isolated, then chained.

    An op has the same number whichever modes are asked for.
    """
    numbers, hw = count(), load_config(spec.config_file, spec.config)
    for folder in spec.capsules.values():
        capsule = load_capsule(folder)
        for op in capsule.ops:
            if op.view:
                prove_view(capsule, op)
            elif op.op in ROOM:
                prove_room(capsule, op)
        if not spec.allow_cpu and spec.op_filter is None:
            check_all(capsule, (op for op in capsule.ops if not is_free(op)), hw)
        isolated = list(capsule_cases(capsule, numbers))
        chained = list(capsule_steps(capsule, numbers))
        yield from isolated if "isolated" in spec.modes else ()
        yield from chained if "chained" in spec.modes else ()
