# SPDX-License-Identifier: Apache-2.0
"""Running sums, by doubling steps."""

from __future__ import annotations

from driver.lower import long
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import convert, is_float, require_numbers, word_type
from driver.lower.long_views import is_long
from driver.lower.registry import LoweringTable
from driver.runtime.views import TensorView

TABLE = LoweringTable()


@TABLE.op("cumsum", "cumsum_")
def cumsum(
    b: ProgramBuilder, out: TensorView, self: TensorView, dim: int, *, dtype: str | None = None
) -> None:
    """out[i] = Σ self[0…i]: log₂ n passes, each adding what lies 1, 2, 4, … before.

    Before the first element lie zeros (−0, which changes no sum), as many as the last step needs.
    """
    require_numbers(b, out)
    count = self.sizes[dim] if self.rank else 1
    if count == 1:
        convert(b, self, out)
        return
    at = dim % self.rank
    steps = [1 << power for power in range((count - 1).bit_length())]
    pad = steps[-1]
    wide = word_type(out)
    x, target = self.with_last([at]), out.with_last([at])
    buffers = b.temp(wide, (2, *x.sizes[:-1], pad + count))
    b.fill(buffers.sliced(-1, 0, pad), -0.0 if is_float(out) else 0)
    rows = [buffers.selected(0, number) for number in range(2)]
    convert(b, x, rows[0].sliced(-1, pad, count))
    for number, step in enumerate(steps):
        source, result = rows[number % 2], rows[1 - number % 2].sliced(-1, pad, count)
        if step == steps[-1]:
            result = target
        pair = (source.sliced(-1, pad, count), source.sliced(-1, pad - step, count))
        if is_float(out):
            b.vector("add", pair, result, 1.0)
        elif is_long(out):
            long.add(b, result, *pair)
        else:
            b.vector("int_add", pair, result, 1)
