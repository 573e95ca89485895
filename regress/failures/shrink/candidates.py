# SPDX-License-Identifier: Apache-2.0
"""Smaller versions of a failing op: shorter axes, plainer numbers. Proposes; runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regress.failures.shrink.axes import OperandAxis, axes

Array = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]
_SINGLES = 32
"""Up to so many entries are tried one by one."""
_BFLOAT16_ONE = 0x3F80


@dataclass(frozen=True)
class OpCandidate:
    """The tensors of an op by field, as numpy holds them (bfloat16 as uint16 bits)."""

    op: str
    arrays: Mapping[str, Array]
    types: Mapping[str, str]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of each tensor."""
        return {name: array.shape for name, array in self.arrays.items()}

    @property
    def size(self) -> tuple[int, int, int]:
        """What the search makes smaller: elements, then elements other than 0, then set bits."""
        arrays = list(self.arrays.values())
        return (
            sum(array.size for array in arrays),
            sum(int(np.count_nonzero(array)) for array in arrays),
            sum(int(np.bitwise_count(_bytes(array)).sum(dtype=np.int64)) for array in arrays),
        )

    def with_array(self, name: str, array: Array) -> OpCandidate:
        """With one tensor replaced."""
        return OpCandidate(self.op, {**self.arrays, name: array}, self.types)

    def __str__(self) -> str:
        shapes = " ".join("×".join(map(str, shape)) or "()" for shape in self.shapes().values())
        return f"{self.op} {shapes} ({self.size[1]} of {self.size[0]} elements not 0)"


def _bytes(array: Array) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def shorter(operands: OpCandidate, element: tuple[int, ...]) -> Iterator[OpCandidate]:
    """Each axis cut to a window, shortest first; short ones also without one of their entries.

    `element` is the failing element of the result: windows around it are tried as well, and first
    of all such windows on every axis at once.
    """
    found = axes(operands.op, operands.shapes())
    length = 1
    while any(length < axis.size for axis in found):
        cut = operands
        for axis in found:
            cut = _cut(cut, axis, _around(axis, element, min(length, axis.size)))
        yield cut
        length *= 2
    for axis in found:
        for kept in (*_windows(axis, element), *_gaps(axis)):
            yield _cut(operands, axis, kept)


def _around(axis: OperandAxis, element: tuple[int, ...], length: int) -> Indices:
    """So many entries with the failing element's among them; the first where it has none."""
    at = 0
    if axis.result is not None and -axis.result <= len(element):
        at = min(element[axis.result], axis.size - 1)
    start = min(max(at - length // 2, 0), axis.size - length)
    return np.arange(start, start + length)


def _windows(axis: OperandAxis, element: tuple[int, ...]) -> Iterator[Indices]:
    length = 1
    while length < axis.size:
        last = axis.size - length
        around = int(_around(axis, element, length)[0])
        for start in dict.fromkeys((around, 0, last)):
            yield np.arange(start, start + length)
        length *= 2


def _gaps(axis: OperandAxis) -> Iterator[Indices]:
    for left_out in range(axis.size if 2 < axis.size <= _SINGLES else 0):
        yield np.delete(np.arange(axis.size), left_out)


def _cut(operands: OpCandidate, axis: OperandAxis, kept: Indices) -> OpCandidate:
    arrays = dict(operands.arrays)
    for name, dimension in axis.places:
        array = arrays[name]
        order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
        taken = np.take(array, kept, axis=dimension)
        # take() gives rows first; the order of dimensions in memory may be what fails.
        dense = np.ascontiguousarray(taken.transpose(order))
        arrays[name] = dense.transpose(np.argsort(order))
    return OpCandidate(operands.op, arrays, operands.types)


def plainer(operands: OpCandidate) -> Iterator[OpCandidate]:
    """All tensors 1, or each; or part of its numbers 0, or all but one; or one of them 1."""
    ones = {name: np.full_like(a, _one(operands, name)) for name, a in operands.arrays.items()}
    yield OpCandidate(operands.op, ones, operands.types)
    for name, array in operands.arrays.items():
        yield operands.with_array(name, ones[name])
        places = np.argwhere(array != 0)
        for chosen in _parts(places):
            yield operands.with_array(name, _set(array, chosen, np.zeros((), array.dtype)))
        for place in places if len(places) <= _SINGLES else ():
            alone = _set(np.zeros_like(array), place[None], array[tuple(place)])
            yield operands.with_array(name, alone)
            yield operands.with_array(name, _set(array, place[None], _one(operands, name)))
            yield operands.with_array(name, _set(alone, place[None], _one(operands, name)))


def _one(operands: OpCandidate, name: str) -> Array:
    bits = _BFLOAT16_ONE if operands.types[name] == "bfloat16" else 1
    return np.array(bits, operands.arrays[name].dtype)


def _parts(places: Indices) -> Iterator[Indices]:
    """All, halves, quarters, … and, of few, each."""
    count = 1
    while count <= min(len(places), _SINGLES):
        yield from np.array_split(places, count)
        count *= 2
    if 1 < len(places) <= _SINGLES and count // 2 != len(places):
        yield from np.array_split(places, len(places))


def _set(array: Array, places: Indices, value: Array) -> Array:
    changed = array.copy(order="K")
    changed[tuple(places.T)] = value
    return changed
