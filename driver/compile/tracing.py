# SPDX-License-Identifier: Apache-2.0
"""What flows between passes that walk the same elements together: memory, followed by its places.

Run one after the other, a pass reads all that passes before it wrote. Run element by element as one
pass, every source is read before any result is written. Both give the same bits when each place
that is written and read again is read at the same index; the value then need not go through memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from driver.compile.passes import VectorPass
from driver.compile.places import Place, may_overlap, place, share_only_by_index
from driver.isa import DType
from driver.isa.micro import MAX_RESULTS, MAX_SOURCES, Reduce
from driver.runtime.views import TensorView

Part = Literal["word", "sign", "fp16", "bf16", "byte"]
"""How a place holds a result's 32 bits: as they are, as 32 times the uppermost bit, rounded, or the
lowest 8 of them."""
_WORD_BYTES = 4
_HELD: dict[DType, Part] = {
    DType.FP32: "word",
    DType.INT32: "word",
    DType.INT64: "word",
    DType.FP16: "fp16",
    DType.BF16: "bf16",
    DType.INT8: "byte",
    DType.UINT8: "byte",
}


class NotFusable(Exception):
    """Passes that cannot be one, and why."""


@dataclass(frozen=True)
class ResultOf:
    """A result of a pass, by their numbers."""

    at: int
    result: int


@dataclass(frozen=True)
class Forwarded:
    """A source whose element an earlier pass has just computed: stored, then loaded."""

    origin: ResultOf
    part: Part
    dtype: DType
    """What it is loaded as."""


@dataclass(frozen=True)
class External:
    """A source that comes from memory: its number among the sources of the fused pass."""

    number: int


@dataclass(frozen=True)
class Patched:
    """A source that is one word for all elements: its number among the patched constants."""

    number: int


Origin = External | Forwarded | Patched


@dataclass
class DataFlow:
    """Where each source of each pass comes from, and what has to be stored."""

    sources: list[TensorView] = field(default_factory=list)
    """Of the fused pass."""
    words: list[TensorView] = field(default_factory=list)
    """Sources that become constants of the fused program, since there are too many sources."""
    operands: list[tuple[Origin, ...]] = field(default_factory=list)
    """Of each pass."""
    stored: list[tuple[ResultOf, TensorView]] = field(default_factory=list)
    """Results of the fused pass."""


def trace(
    passes: Sequence[VectorPass], sizes: Sequence[int], is_read_later: Callable[[TensorView], bool]
) -> DataFlow:
    """The flow through passes on equal sizes, in their order. NotFusable when one pass would not
    give the same bits, or has no room for the operands."""
    memory = _Memory(sizes)
    for number, one in enumerate(passes):
        if number and passes[number - 1].program.reduce is not Reduce.NONE:
            raise NotFusable("only the last pass can reduce")
        memory.flow.operands.append(tuple(memory.read(view) for view in one.sources))
        reduces = one.program.reduce is not Reduce.NONE
        for result, view in enumerate(one.results):
            memory.write(ResultOf(number, result), view, reduces=reduces)
    flow = memory.flow
    flow.stored = [
        (origin, view) for origin, (view, _) in memory.written.items() if is_read_later(view)
    ]
    if not 1 <= len(flow.stored) <= MAX_RESULTS:
        raise NotFusable(f"{len(flow.stored)} results")
    _patch(flow)
    last = len(passes) - 1
    if passes[-1].program.reduce is not Reduce.NONE and [
        origin.at for origin, _ in flow.stored
    ] != [last]:
        raise NotFusable("a reduction is the only result")
    for origin, view in flow.stored:
        if passes[origin.at].program.reduce is Reduce.NONE and view.repeats:
            raise NotFusable("a result would be stored several times")
    return flow


def _patch(flow: DataFlow) -> None:
    """Make as many sources constants as there are too many; those that are one word can be."""
    single = [at for at, view in enumerate(flow.sources) if _is_word(view)]
    patched = single[: max(len(flow.sources) - MAX_SOURCES, 0)]
    if len(flow.sources) - len(patched) > MAX_SOURCES:
        raise NotFusable(f"{len(flow.sources)} sources")
    kept = [at for at in range(len(flow.sources)) if at not in patched]
    new: dict[Origin, Origin] = {External(at): External(kept.index(at)) for at in kept}
    new |= {External(at): Patched(patched.index(at)) for at in patched}
    flow.operands = [tuple(new.get(one, one) for one in operands) for operands in flow.operands]
    flow.words = [flow.sources[at] for at in patched]
    flow.sources = [flow.sources[at] for at in kept]


def _is_word(view: TensorView) -> bool:
    """Whether all elements are one word of 32 bits."""
    single = all(size == 1 or not step for size, step in zip(view.sizes, view.strides, strict=True))
    return single and view.dtype in (DType.FP32, DType.INT32)


class _Memory:
    """Places read and written so far."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.flow = DataFlow()
        self.written: dict[ResultOf, tuple[TensorView, dict[Place, Part]]] = {}
        self._sizes = sizes
        self._known: dict[tuple[Place, DType], External] = {}

    def read(self, view: TensorView) -> External | Forwarded:
        """Where the elements of a source come from."""
        where = _read_place(view, self._sizes)
        for origin, (_, parts) in self.written.items():
            if where in parts:
                return _forwarded(origin, parts[where], view.dtype)
            if any(may_overlap(where, other, self._sizes) for other in parts):
                raise NotFusable("a source is read elsewhere than it was written")
        key = (where, view.dtype)
        if key not in self._known:
            self._known[key] = External(len(self.flow.sources))
            self.flow.sources.append(view)
        return self._known[key]

    def write(self, origin: ResultOf, view: TensorView, *, reduces: bool) -> None:
        """Note a result; an earlier one at the same place is gone."""
        parts = _written_parts(view, self._sizes)
        for where in parts:
            for read, _ in self._known:
                if not may_overlap(where, read, self._sizes):
                    continue
                if reduces or not share_only_by_index(where, read, self._sizes):
                    raise NotFusable("a source is overwritten before it is read")
        for other, (_, before) in list(self.written.items()):
            if before.keys() <= parts.keys() and not reduces:
                del self.written[other]
            elif any(may_overlap(a, b, self._sizes) for a in parts for b in before):
                raise NotFusable("results overlap")
        self.written[origin] = (view, parts)


def _read_place(view: TensorView, sizes: Sequence[int]) -> Place:
    whole = place(view, sizes)
    return whole.part(0, _WORD_BYTES) if view.dtype is DType.INT64 else whole


def _written_parts(view: TensorView, sizes: Sequence[int]) -> dict[Place, Part]:
    whole = place(view, sizes)
    if view.dtype is not DType.INT64:
        return {whole: _HELD[view.dtype]}
    return {
        whole.part(0, _WORD_BYTES): "word",
        whole.part(_WORD_BYTES, _WORD_BYTES): "sign",
    }


def _forwarded(origin: ResultOf, part: Part, dtype: DType) -> Forwarded:
    held = "word" if part == "sign" else part
    if _HELD[dtype] != held:
        raise NotFusable(f"{part} is read as {dtype.name}")
    return Forwarded(origin, part, dtype)
