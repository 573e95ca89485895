# SPDX-License-Identifier: Apache-2.0
"""Padding with the input's own elements: mirrored, or those at the edge repeated."""

from __future__ import annotations

from collections.abc import Callable

from driver.lower.builder import ProgramBuilder
from driver.lower.constant_index import take_constant
from driver.lower.registry import LoweringTable, RuleFunction
from driver.runtime.views import TensorView

TABLE = LoweringTable()
Position = Callable[[int, int], int]
"""(position beside or in a line, the line's length) → the position whose element is there."""


def _mirrored(at: int, length: int) -> int:
    last = length - 1
    return last - abs(last - abs(at))


def _repeated(at: int, length: int) -> int:
    return min(max(at, 0), length - 1)


def _padding(position: Position, dims: int) -> RuleFunction:
    def rule(
        b: ProgramBuilder, out: TensorView, self: TensorView, padding: tuple[int, ...]
    ) -> None:
        x = self
        for number in range(dims):
            dim = x.rank - 1 - number
            before, after = padding[2 * number : 2 * number + 2]
            length = x.sizes[dim]
            line = [position(at, length) for at in range(-before, length + after)]
            x = take_constant(b, x, dim, line, out if number == dims - 1 else None)

    return rule


for _dims in (1, 2, 3):
    TABLE.op(f"reflection_pad{_dims}d")(_padding(_mirrored, _dims))
    TABLE.op(f"replication_pad{_dims}d")(_padding(_repeated, _dims))
