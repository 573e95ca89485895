# SPDX-License-Identifier: Apache-2.0
"""Widening passes left out: what reads their result reads their source instead.

A load of FP16 or BF16 widens exactly, so the words that arrive in the lanes are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from driver.compile.passes import Command, VectorPass
from driver.isa import DTYPE_BYTES, DType
from driver.isa.programs import PROGRAMS
from driver.runtime.buffer import Buffer
from driver.runtime.views import TensorView

_NARROW = (DType.FP16, DType.BF16)


def forwarded(commands: Sequence[Command], temporaries: frozenset[Buffer]) -> list[Command]:
    """Commands that leave the same bits in every buffer but the temporaries."""
    left: list[Command | None] = list(commands)
    for number, command in enumerate(commands):
        if isinstance(command, VectorPass) and _widens(command, temporaries):
            _forward(left, number)
    return [command for command in left if command is not None]


def _widens(one: VectorPass, temporaries: frozenset[Buffer]) -> bool:
    """Whether a pass only widens a narrow view into all of a temporary, element by element."""
    if one.program != PROGRAMS["move"] or one.words:
        return False
    (source,), (result,) = one.sources, one.results
    walk = zip(result.sizes, source.strides, result.strides, strict=True)
    return (
        source.dtype in _NARROW
        and result.dtype is DType.FP32
        and result.buffer in temporaries
        and not result.offset_bytes
        and result.count * DTYPE_BYTES[DType.FP32] == result.buffer.size_bytes
        and result.extent_bytes == result.buffer.size_bytes
        and all(size == 1 or given == taken for size, given, taken in walk)
    )


def _forward(commands: list[Command | None], number: int) -> None:
    """Let every reader of a widening pass's result read its source; None where it stood.

    Nothing changes where a reader is no pass, or where the source is written before the last one.
    """
    one = commands[number]
    assert isinstance(one, VectorPass)
    (source,), (result,) = one.sources, one.results
    users = {
        at: other
        for at, other in enumerate(commands)
        if at != number and other is not None and result.buffer in other.buffers
    }
    changed = {
        at: _reading(other, source, result) if at > number else None for at, other in users.items()
    }
    behind = commands[number + 1 : max(users, default=number) + 1]
    if None in changed.values() or any(o and source.buffer in o.writes for o in behind):
        return
    commands[number] = None
    for at, other in changed.items():
        commands[at] = other


def _reading(other: Command, source: TensorView, result: TensorView) -> VectorPass | None:
    """The command on `source` in place of `result`; None where it is no pass that only reads."""
    if not isinstance(other, VectorPass) or other.words or result.buffer in other.writes:
        return None
    views = [
        _narrow(view, source, result) if view.buffer is result.buffer else view
        for view in other.sources
    ]
    found = tuple(view for view in views if view is not None)
    return replace(other, sources=found) if len(found) == len(views) else None


def _narrow(view: TensorView, source: TensorView, result: TensorView) -> TensorView | None:
    """The elements of `source` in place of those of `result`; None where a word is no element."""
    elements, rest = divmod(view.offset_bytes, DTYPE_BYTES[result.dtype])
    if view.dtype is not result.dtype or rest:
        return None
    offset = source.offset_bytes + elements * DTYPE_BYTES[source.dtype]
    return replace(view, buffer=source.buffer, offset_bytes=offset, dtype=source.dtype)
