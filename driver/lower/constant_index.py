# SPDX-License-Identifier: Apache-2.0
"""Positions of a dimension in any order, known when the op is lowered."""

from __future__ import annotations

from collections.abc import Sequence

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.positions import along
from driver.runtime.views import TensorView


def take_constant(
    b: ProgramBuilder,
    x: TensorView,
    dim: int,
    positions: Sequence[int],
    out: TensorView | None = None,
) -> TensorView:
    """x[.., positions, ..] along `dim`: into `out`, or into fresh memory.

    A run of ascending neighbours is a view of x where nothing has to be written.
    """
    at = dim % x.rank
    first = positions[0] if positions else 0
    if list(positions) == list(range(first, first + len(positions))):
        part = x.sliced(at, first, len(positions))
        if out is not None:
            b.copy(part, out)
        return part if out is None else out
    sizes = (*x.sizes[:at], len(positions), *x.sizes[at + 1 :])
    target = b.temp(x.dtype, sizes) if out is None else out
    index = along(b.table(DType.INT32, positions), x.rank, at)
    b.gather(x, b.expanded(index, sizes), target, at)
    return target
