# SPDX-License-Identifier: Apache-2.0
"""The ops of a capsule as cases: products for the NPU, everything else accounted for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from driver.capture import Op, load_capsule
from driver.lower import LOWERINGS
from tb.ops.case import CpuOp, Entry, module_path, recorded_case


def capsule_cases(folder: Path, numbers: Iterator[int]) -> Iterator[Entry]:
    """Each op in program order. Views move no data and run nowhere: they are left out."""
    capsule = load_capsule(folder)
    for op in capsule.ops:
        if op.view:
            continue
        index = next(numbers)
        if op.op in LOWERINGS:
            yield Entry(index, partial(recorded_case, capsule, op, index))
        else:
            yield Entry(index, partial(_cpu_op, op, capsule.name, index))


def _cpu_op(op: Op, name: str, index: int) -> CpuOp:
    refs = [ref for _, ref in op.refs()]
    sources = refs[: len(refs) - len([output for output in op.outputs if output is not None])]
    return CpuOp(
        index=index,
        op=op.op,
        module=module_path(name, op.module),
        source=op.source,
        dtype=refs[0].dtype if refs else "",
        shapes=tuple(ref.sizes for ref in sources),
        reason="not an op of the NPU",
    )
