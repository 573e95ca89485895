# SPDX-License-Identifier: Apache-2.0
"""Products over several dimensions at once, in as few packets as windows allow.

result[b…, m…, n…] = Σ over k… of left[b…, m…, k…] · right[b…, k…, n…], with k in row-major order:
every element is one chain (docs/numerics.md). A packet has one batch dimension, and up to three of
rows and of columns per operand. A batch dimension along which a factor repeats becomes one of rows
or of columns, and what does not fit is looped over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from driver.isa import DTYPE_BYTES, WINDOW_GROUP, DType
from driver.lower.builder import ProgramBuilder
from driver.lower.operands import MatrixView
from driver.runtime.views import TensorView, collapse

_EXACT = (DType.FP32, DType.INT32)
"""Types in which a sum that is stored and continued has the bits of one chain."""
_Walk = tuple[tuple[int, int], ...]
"""Size and stride of each dimension of a group, outermost first."""


@dataclass(frozen=True)
class _Operand:
    """A view, and its dimensions by what they are to the product: b, m, k or n."""

    view: TensorView
    groups: dict[str, _Walk]

    def moved(self, source: str, at: int, target: str, size: int) -> _Operand:
        """Dimension `at` of a group as the outermost of another; stride 0 where it was absent."""
        groups = dict(self.groups)
        dim = (size, 0)
        if source in groups:
            dim = groups[source][at]
            groups[source] = groups[source][:at] + groups[source][at + 1 :]
        if target in groups:
            groups[target] = (dim, *groups[target])
        return replace(self, groups=groups)

    def selected(self, group: str, at: int, index: int) -> _Operand:
        """One position of a dimension, which vanishes."""
        if group not in self.groups:
            return self
        walk = self.groups[group]
        skip = index * walk[at][1] * DTYPE_BYTES[self.view.dtype]
        view = replace(self.view, offset_bytes=self.view.offset_bytes + skip)
        return _Operand(view, {**self.groups, group: walk[:at] + walk[at + 1 :]})

    def merged(self, group: str) -> _Walk:
        """The fewest dimensions that walk the group."""
        sizes, (strides,) = collapse(*_columns(self.groups[group]))
        return tuple(zip(sizes, strides, strict=True))

    def matrix(self, rows: str, columns: str) -> MatrixView:
        """The operand with these groups as its rows and columns; it has one batch dimension."""
        walk = (*self.groups["b"], *self.merged(rows), *self.merged(columns))
        return MatrixView(self.view.reshaped(*_columns(walk)), len(self.merged(rows)))


@dataclass(frozen=True)
class _Contraction:
    left: _Operand
    right: _Operand
    result: _Operand
    start: _Operand | None
    """What the sums start from; None: +0, or the result where it accumulates."""
    accumulate: bool

    @property
    def operands(self) -> tuple[_Operand, ...]:
        """Those that there are."""
        start = () if self.start is None else (self.start,)
        return (self.left, self.right, self.result, *start)

    def each(self, name: str, *arguments: object) -> _Contraction:
        """The contraction with a method called on every operand."""
        changed = [getattr(operand, name)(*arguments) for operand in self.operands]
        start = changed[3] if self.start is not None else None
        return replace(self, left=changed[0], right=changed[1], result=changed[2], start=start)

    def fits(self, *groups: str) -> bool:
        """Whether windows hold the groups of every operand that has them."""
        return all(
            len(operand.merged(group)) <= WINDOW_GROUP
            for operand in self.operands
            for group in groups
            if group in operand.groups
        )


def _columns(walk: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    dims = list(walk)
    return [size for size, _ in dims], [stride for _, stride in dims]


def _operand(view: TensorView, names: str, first: int, second: int) -> _Operand:
    """A view [batch…, first…, second…]; `names`: of its three groups."""
    walk = tuple(zip(view.sizes, view.strides, strict=True))
    split = view.rank - first - second
    parts = (walk[:split], walk[split : split + first], walk[split + first :])
    return _Operand(view, dict(zip(names, parts, strict=True)))


def contract(
    b: ProgramBuilder,
    left: TensorView,
    right: TensorView,
    result: TensorView,
    dims: tuple[int, int, int] = (1, 1, 1),
    *,
    start: TensorView | None = None,
    accumulate: bool = False,
) -> None:
    """result = left · right, plus `start`, or plus what it was with `accumulate`.

    `dims`: the numbers of dimensions m, k and n; all others are batch dimensions, alike in all.
    `start` has the result's sizes and type and shares no memory with it. UnsupportedOp when there
    are more than three dimensions of k, merged, and the result is narrower than 32 bits.
    """
    m, k, n = dims
    _check_sizes(b, left, right, result, dims)
    call = _Contraction(
        _operand(left, "bmk", m, k),
        _operand(right, "bkn", k, n),
        _operand(result, "bmn", m, n),
        None if start is None else _operand(b.expanded(start, result.sizes), "bmn", m, n),
        accumulate,
    )
    if result.count:
        _emit(b, _limited(_folded(call)))


def _check_sizes(
    b: ProgramBuilder,
    left: TensorView,
    right: TensorView,
    result: TensorView,
    dims: tuple[int, int, int],
) -> None:
    m, k, n = dims
    lead = left.sizes[: left.rank - m - k]
    rows, depth = left.sizes[len(lead) : left.rank - k], left.sizes[left.rank - k :]
    columns = right.sizes[right.rank - n :]
    if right.sizes != (*lead, *depth, *columns) or result.sizes != (*lead, *rows, *columns):
        shapes = f"{left.sizes} · {right.sizes} = {result.sizes}"
        raise b.unsupported("shapes", shapes, "batches, rows, depths and columns alike")


def _folded(call: _Contraction) -> _Contraction:
    """Batch dimensions along which a factor repeats as rows or columns of the others."""
    for at in reversed(range(len(call.left.groups["b"]))):
        size = call.left.groups["b"][at][0]
        for factor, group in ((call.right, "m"), (call.left, "n")):
            moved = call.each("moved", "b", at, group, size)
            if size > 1 and factor.groups["b"][at][1] == 0 and moved.fits(group):
                call = moved
                break
    return call


def _limited(call: _Contraction) -> _Contraction:
    """Rows and columns of no more dimensions than a window has; the outermost become batches."""
    for group in ("m", "n"):
        while not call.fits(group):
            walk = call.result.groups[group]
            call = call.each("moved", group, 0, "b", walk[0][0])
    return call


def _emit(b: ProgramBuilder, call: _Contraction) -> None:
    """One packet; or one for each index of a dimension that no packet holds."""
    if not call.fits("k"):
        _by_depth(b, call)
        return
    strides = [_columns(operand.groups["b"])[1] for operand in call.operands]
    sizes, walks = collapse(_columns(call.left.groups["b"])[0], *strides)
    if len(sizes) > 1:
        batches = [size for size, _ in call.left.groups["b"]]
        looped = min((size, at) for at, size in enumerate(batches) if size > 1)[1]
        for index in range(batches[looped]):
            _emit(b, call.each("selected", "b", looped, index))
        return
    merged = [
        replace(operand, groups={**operand.groups, "b": ((sizes[0], walk[0]),)})
        for operand, walk in zip(call.operands, walks, strict=True)
    ]
    left, right, result, *start = merged
    rows, columns = ("m", "n")
    if _is_transposed(result):  # fma(a, b, c) is fma(b, a, c)
        left, right, rows, columns = right, left, columns, rows
    b.matmul(
        left.matrix(rows, "k"),
        right.matrix("k", columns),
        result.matrix(rows, columns),
        start=start[0].matrix(rows, columns) if start else None,
        accumulate=call.accumulate,
    )


def _is_transposed(result: _Operand) -> bool:
    """Whether neighbours in memory are rows of the result and not columns."""
    (rows, row_step), (columns, column_step) = (result.merged(group)[-1] for group in "mn")
    return rows > 1 and row_step == 1 and not (columns > 1 and column_step == 1)


def _by_depth(b: ProgramBuilder, call: _Contraction) -> None:
    """The outermost dimension of k one index at a time, each product added to those before."""
    if call.result.view.dtype not in _EXACT:
        walk = call.left.groups["k"]
        raise b.unsupported("depth", walk, f"{WINDOW_GROUP} dimensions, or a result of 32 bits")
    for index in range(call.left.groups["k"][0][0]):
        part = call.each("selected", "k", 0, index)
        if index:
            part = replace(part, start=None, accumulate=True)
        _emit(b, part)
