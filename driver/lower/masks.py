# SPDX-License-Identifier: Apache-2.0
"""Elements that a mask chooses. Their number depends on the data.

Each chosen element's number is a running count of the mask, and a SCATTER puts it there. Place 0 of
the target takes all elements that are not chosen. The number of results is that of the recorded op.
One result too many is a BAD_INDEX of the SCATTER; one too few leaves old bytes in the result. So
the number is checked as well.
"""

from __future__ import annotations

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.compare import where
from driver.lower.convert import as_truth, as_type, convert
from driver.lower.index import in_line
from driver.lower.positions import along, positions
from driver.lower.prefix import PrefixSums
from driver.lower.registry import LoweringTable
from driver.runtime.views import TensorView, broadcast

TABLE = LoweringTable()


def numbered(b: ProgramBuilder, mask: TensorView) -> TensorView:
    """1, 2, 3, … for the set elements in row-major order, 0 for others; one dimension of int32."""
    truth = in_line(b, as_truth(b, mask))
    numbers = b.temp(DType.INT32, truth.sizes)
    b.vector("place_where", (truth, counted(b, truth)), numbers)
    return numbers


def counted(b: ProgramBuilder, truth: TensorView) -> TensorView:
    """How many of a line of truth values hold up to each; whole numbers in fp32."""
    flags = b.temp(DType.FP32, truth.sizes)
    b.vector("truth_to_float", (truth,), flags)
    return PrefixSums(b).inclusive(flags.inserted(0)).selected(0, 0)


def compacted(b: ProgramBuilder, line: TensorView, numbers: TensorView, count: int) -> TensorView:
    """The `count` elements of a line that have a number, in this order."""
    made = b.temp(line.dtype, (count + 1,))
    b.scatter(line, numbers, made, 0)
    return made.sliced(0, 1, count)


def coordinates(b: ProgramBuilder, sizes: tuple[int, ...], dim: int) -> TensorView:
    """Each element's position along `dim`, elements in row-major order; int32."""
    places, made = positions(b, sizes[dim]), b.temp(DType.INT32, sizes)
    b.copy(b.expanded(along(places, len(sizes), dim), sizes), made)
    return in_line(b, made)


def chosen_places(b: ProgramBuilder, mask: TensorView, count: int) -> list[TensorView]:
    """Along each of the mask's dimensions, where its `count` set elements are; int32."""
    numbers = numbered(b, mask)
    return [
        compacted(b, coordinates(b, mask.sizes, dim), numbers, count) for dim in range(mask.rank)
    ]


@TABLE.op("nonzero")
def nonzero(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """The positions of the elements that are not 0, a row for each"""
    for dim, places in enumerate(chosen_places(b, self, out.sizes[0])):
        convert(b, places, out.selected(1, dim))


@TABLE.op("masked_select")
def masked_select(b: ProgramBuilder, out: TensorView, self: TensorView, mask: TensorView) -> None:
    """The elements where the mask holds, in row-major order"""
    sizes = broadcast(self.sizes, mask.sizes)
    if sizes is None:
        raise b.unsupported("shapes", (self.sizes, mask.sizes), "shapes that broadcast")
    line = in_line(b, b.expanded(self, sizes))
    numbers = numbered(b, b.expanded(mask, sizes))
    b.copy(compacted(b, line, numbers, out.count), out)


@TABLE.op("masked_scatter", "masked_scatter_")
def masked_scatter(
    b: ProgramBuilder, out: TensorView, self: TensorView, mask: TensorView, source: TensorView
) -> None:
    """The elements of source, one after the other, where the mask holds, else self"""
    if self.sizes != out.sizes:
        self = b.expanded(self, out.sizes)
    wide = b.expanded(mask, out.sizes)
    table = b.temp(out.dtype, (source.count + 1,))
    b.fill(table.sliced(0, 0, 1), 0)
    b.copy(in_line(b, as_type(b, source, out.dtype)), table.sliced(0, 1, source.count))
    taken = b.temp(out.dtype, (out.count,))
    b.gather(table, numbered(b, wide), taken, 0)
    found = taken.split(0, out.sizes) if out.rank else taken.reshaped((), ())
    where(b, out, as_truth(b, wide), found, self)
