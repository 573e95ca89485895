# SPDX-License-Identifier: Apache-2.0
"""A product cut by columns, and what follows it cut alike.

While the matrix engine computes the second part, the others work on the first. Every element is
computed as before: the bits are the same by construction. The device keeps commands apart whose
ranges meet, and columns of one tensor do, so each part of the product gets memory of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

from driver.compile.footprints import Footprint, access_of, footprint
from driver.compile.passes import (
    AnyCommand,
    CutCommand,
    ElementCopy,
    MatrixProduct,
    OtherCommand,
    VectorPass,
)
from driver.isa import DTYPE_BYTES, MAX_RANK
from driver.isa.micro import Reduce
from driver.runtime.buffer import Buffer
from driver.runtime.views import TensorView


@dataclass(frozen=True)
class PartedQueue:
    """Commands, and of each which part it is of one that was cut; 0 where it is whole."""

    commands: tuple[AnyCommand, ...]
    parts: tuple[int, ...]
    temporaries: tuple[Buffer, ...] = ()
    """Memory for the parts of products."""


def uncut(commands: Sequence[AnyCommand]) -> PartedQueue:
    """All commands whole."""
    return PartedQueue(tuple(commands), (0,) * len(commands))


def cut(
    queue: PartedQueue, number: int, widths: Sequence[int], temporaries: frozenset[Buffer]
) -> PartedQueue | None:
    """The queue with the product `number` cut into parts of so many columns; None where what
    reads its result cannot be cut alike, or where the result is needed as a whole."""
    product = _work(queue.commands[number])
    if not isinstance(product, MatrixProduct) or not _is_temporary(product.result, temporaries):
        return None
    cutting = _Cutting(product, widths)
    pieces: dict[int, Sequence[CutCommand]] = {number: cutting.root}
    for at, command in enumerate(queue.commands):
        if at == number:
            continue
        found = cutting.follow(command) if at > number else None
        if found is not None:
            pieces[at] = found
        elif product.result.buffer in access_of(command).buffers:
            return None
    own = {at: [cutting.on_own(q, one) for q, one in enumerate(pieces[at])] for at in pieces}
    commands = [own.get(at, [command]) for at, command in enumerate(queue.commands)]
    parts = [range(len(widths)) if at in own else [part] for at, part in enumerate(queue.parts)]
    return PartedQueue(
        tuple(chain.from_iterable(commands)),
        tuple(chain.from_iterable(parts)),
        (*queue.temporaries, *cutting.buffers),
    )


def _work(command: AnyCommand) -> CutCommand | None:
    """The command as views, where it is known as such."""
    work = command.work if isinstance(command, OtherCommand) else command
    return None if isinstance(work, VectorPass) and work.words else work


def _is_temporary(result: TensorView, temporaries: frozenset[Buffer]) -> bool:
    """Whether one matrix is all that a temporary holds."""
    size_bytes = result.count * DTYPE_BYTES[result.dtype]
    whole = not result.offset_bytes and size_bytes == result.buffer.size_bytes
    return result.buffer in temporaries and result.sizes[0] == 1 and whole and result.is_dense


class _Cutting:
    """One product with the commands that follow it, as far as they can be cut."""

    def __init__(self, product: MatrixProduct, widths: Sequence[int]) -> None:
        self._result = product.result
        self._widths = widths
        self._firsts = [0, *accumulate(widths)][:-1]
        self._columns = product.result.sizes[2]
        assert sum(widths) == self._columns, "all columns, each once"
        self.root = [self._part(product, q) for q in range(len(widths))]
        element = DTYPE_BYTES[self._result.dtype]
        self.buffers = [Buffer(self._result.sizes[1] * width * element) for width in widths]
        self._written: dict[Buffer, list[list[Footprint]]] = {}
        """For each buffer that parts write, the bytes of each part."""
        self._note(self.root)

    def _part(self, product: MatrixProduct, q: int) -> MatrixProduct:
        at = (2, self._firsts[q], self._widths[q])
        start = None if product.start is None else product.start.sliced(*at)
        b, result = product.b.sliced(*at), product.result.sliced(*at)
        return replace(product, b=b, start=start, result=result)

    def _note(self, pieces: Sequence[CutCommand]) -> None:
        for q, piece in enumerate(pieces):
            for view in piece.results:
                empty: list[list[Footprint]] = [[] for _ in pieces]
                self._written.setdefault(view.buffer, empty)[q].append(footprint(view))

    def follow(self, command: AnyCommand) -> list[CutCommand] | None:
        """The parts of a later command, each of which reads of the parts before only its own; None
        where there are none, or where it reads nothing that is cut."""
        work = _work(command)
        if work is None or not any(view.buffer in self._written for view in work.sources):
            return None
        for dim, block in self._places(work):
            pieces = [self._sliced(work, dim, block, q) for q in range(len(self._widths))]
            found = [piece for piece in pieces if piece is not None]
            if len(found) == len(pieces) and self._is_apart(found) and self._have_own(found):
                self._note(found)
                return found
        return None

    def _places(self, work: CutCommand) -> Iterator[tuple[int, int]]:
        """Where a command may be cut: a dimension, and the size of the blocks of it that are."""
        if isinstance(work, MatrixProduct):
            yield 0, work.a.sizes[0]
            return
        views = (*work.sources, *work.results)
        sizes = work.sizes if isinstance(work, VectorPass) else work.source.sizes
        has_row = isinstance(work, VectorPass) and (
            work.program.positional or work.program.reduce is not Reduce.NONE
        )
        for dim, size in enumerate(sizes[:-1] if has_row else sizes):
            steps = {view.strides[dim] for view in views} - {0}
            blocks = {self._columns // step for step in steps if self._columns % step == 0}
            for block in sorted({size, *blocks}, reverse=True):
                if size % block == 0:
                    yield dim, block

    def _sliced(self, work: CutCommand, dim: int, block: int, q: int) -> CutCommand | None:
        """Part q of every block of a dimension; None where it is not a whole number."""
        first, rest = divmod(self._firsts[q] * block, self._columns)
        count, more = divmod(self._widths[q] * block, self._columns)
        if rest or more or not count:
            return None

        def part(view: TensorView) -> TensorView:
            size = view.sizes[dim]
            if size == block:
                return view.sliced(dim, first, count)
            return view.split(dim, (size // block, block)).sliced(dim + 1, first, count)

        match work:
            case MatrixProduct():
                start = None if work.start is None else part(work.start)
                return MatrixProduct(
                    part(work.a), part(work.b), start, part(work.result), work.accumulates
                )
            case ElementCopy():
                found: CutCommand = ElementCopy(part(work.source), part(work.result))
            case VectorPass():
                sources, results = (tuple(map(part, v)) for v in (work.sources, work.results))
                found = replace(work, sources=sources, results=results)
        return found if found.results[0].rank <= MAX_RANK else None

    def _is_apart(self, pieces: Sequence[CutCommand]) -> bool:
        """Whether no part reads what another one, of this command or one before, writes."""
        for q, piece in enumerate(pieces):
            reads = [footprint(view) for view in piece.sources]
            others = [one for at, one in enumerate(pieces) if at != q]
            writes = [footprint(view) for other in others for view in other.results]
            for read in reads:
                for at, parts in enumerate(self._written.get(read.buffer, ())):
                    writes += parts if at != q else []
            if any(read.overlaps(written) for read in reads for written in writes):
                return False
        return True

    def _have_own(self, pieces: Sequence[CutCommand]) -> bool:
        """Whether the product's result is seen by rows and columns, and by no part across its
        own columns."""
        for q, piece in enumerate(pieces):
            for view in (*piece.sources, *piece.results):
                if view.buffer is not self._result.buffer:
                    continue
                walk = [pair for pair in zip(view.sizes, view.strides, strict=True) if pair[0] > 1]
                first = view.offset_bytes // DTYPE_BYTES[view.dtype] % self._columns
                last = first + sum((size - 1) * step for size, step in walk if step < self._columns)
                rows = all(step % self._columns == 0 for _, step in walk if step >= self._columns)
                end = self._firsts[q] + self._widths[q]
                inside = self._firsts[q] <= first and last < end
                if view.dtype is not self._result.dtype or not rows or not inside:
                    return False
        return True

    def on_own(self, q: int, piece: CutCommand) -> CutCommand:
        """A part of a command with the memory of part q in place of the product's result."""
        match piece:
            case MatrixProduct():
                start = None if piece.start is None else self._own(q, piece.start)
                a, b, result = (self._own(q, v) for v in (piece.a, piece.b, piece.result))
                return MatrixProduct(a, b, start, result, piece.accumulates)
            case ElementCopy():
                return ElementCopy(self._own(q, piece.source), self._own(q, piece.result))
            case VectorPass():
                sources = tuple(self._own(q, view) for view in piece.sources)
                results = tuple(self._own(q, view) for view in piece.results)
                return replace(piece, sources=sources, results=results)

    def _own(self, q: int, view: TensorView) -> TensorView:
        """The same elements in the memory of part q. The view has none but its columns."""
        if view.buffer is not self._result.buffer:
            return view
        width = DTYPE_BYTES[view.dtype]
        row, column = divmod(view.offset_bytes // width, self._columns)
        rows = [stride // self._columns for stride in view.strides]
        own = self._widths[q]
        strides = [
            stride if size == 1 or stride < self._columns else at * own
            for size, stride, at in zip(view.sizes, view.strides, rows, strict=True)
        ]
        offset = (row * own + column - self._firsts[q]) * width
        return TensorView(
            self.buffers[q], offset, view.dtype, view.sizes, tuple(strides), view.boolean
        )
