# SPDX-License-Identifier: Apache-2.0
"""Where the tensors of a case lie in device memory, and how its arguments look to the lowering.

Owns allocation and initial bytes: results and temporaries start as noise, so that an element that
nobody writes, or that is read before it is written, does not look right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from driver.capture.tensors import storage_view
from driver.errors import UnsupportedOp
from driver.isa import DTYPE_BYTES
from driver.lower import Arg, Program, TensorView, lower
from golden.reference import NPU_TYPES
from tb.ops.case import Case
from tb.ops.cost import compulsory_bytes
from tb.ops.outputs import Output, Place

_AT_LEAST = 1
"""Bytes: an empty tensor has an address like any other."""
_WORDS = (torch.dtype, torch.layout, torch.device, torch.memory_format)


class Memory(Protocol):
    """The devices' memories, alike."""

    def alloc(self, size_bytes: int, region: str) -> int:
        """Fresh bytes, at the same address on every device."""
        ...

    def free(self, address: int) -> None:
        """Give them back."""
        ...

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Put bytes into every memory."""
        ...


@dataclass(frozen=True)
class Placed:
    """A case in device memory: its packets, and where its results are to be found."""

    program: Program
    results: tuple[TensorView | None, ...]
    compulsory_bytes: int


@contextmanager
def placed(memory: Memory, case: Case, seed: int) -> Iterator[Placed]:
    """Operands, results, temporaries and descriptors in memory; freed afterwards.

    UnsupportedOp when the op has no packets, OutOfMemory when something does not fit.
    """
    held: list[int] = []
    noise = np.random.default_rng([seed, case.index])

    def place(size_bytes: int, region: str = "activations") -> int:
        held.append(memory.alloc(max(size_bytes, _AT_LEAST), region))
        return held[-1]

    def fresh(size_bytes: int) -> int:
        address = place(size_bytes)
        memory.write(address, noise.integers(0, 256, size_bytes, np.uint8))
        return address

    try:
        views = _Operands(memory, case, place)
        args = tuple(views.argument(position, value) for position, value in enumerate(case.args))
        kwargs = {name: views.argument(name, value) for name, value in case.kwargs.items()}
        found: dict[Place, Arg] = {**dict(enumerate(args)), **kwargs}
        results = tuple(_result(output, found, fresh) for output in case.outputs)
        returned = tuple(
            view
            for view, output in zip(results, case.outputs, strict=True)
            if output is None or output.returned
        )
        program = lower(case.op, args, kwargs, returned, fresh, case.stream)
        for address, data in program.descriptors:
            memory.write(address, np.frombuffer(data, np.uint8))
        yield Placed(program, results, compulsory_bytes(case.op, args, kwargs, results))
    finally:
        for address in held:
            memory.free(address)


class _Operands:
    """Puts each storage into memory once: tensors that share one share it there too."""

    def __init__(self, memory: Memory, case: Case, place: Callable[[int, str], int]) -> None:
        self._memory, self._case, self._place = memory, case, place
        self._placed: dict[int, int] = {}

    def argument(self, place: Place, value: Any) -> Arg:
        """A value as the lowering takes it."""
        return argument(value, lambda tensor: self._view(place, tensor))

    def _view(self, place: Place, tensor: torch.Tensor) -> TensorView:
        dtype = NPU_TYPES.get(tensor.dtype)
        if dtype is None:
            raise UnsupportedOp(self._case.op, "dtype", tensor.dtype, "a type that the NPU holds")
        storage = storage_view(tensor)
        key = int(tensor.untyped_storage()._cdata)
        if key not in self._placed:
            region = "weights" if place in self._case.weights else "activations"
            self._placed[key] = self._place(storage.size, region)
            self._memory.write(self._placed[key], storage)
        address = self._placed[key] + tensor.storage_offset() * tensor.element_size()
        truth = tensor.dtype == torch.bool
        return TensorView(address, dtype, tuple(tensor.shape), tuple(tensor.stride()), truth)


def argument(value: Any, view: Callable[[torch.Tensor], TensorView]) -> Arg:
    """A torch value as the lowering takes it: views for tensors, words for types and the like."""
    if isinstance(value, torch.Tensor):
        return view(value)
    if isinstance(value, list | tuple):
        return tuple(argument(item, view) for item in value)
    if isinstance(value, _WORDS):
        return str(value).removeprefix("torch.")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"an argument of type {type(value).__name__}")


def _result(
    output: Output | None, arguments: dict[Place, Arg], fresh: Callable[[int], int]
) -> TensorView | None:
    if output is None:
        return None
    if output.overwrites is not None:
        given = arguments[output.overwrites]
        assert isinstance(given, TensorView)
        return given
    view = TensorView(0, output.dtype, output.sizes, output.strides, output.boolean)
    return replace(view, address=fresh(extent_bytes(view)))


def extent_bytes(view: TensorView) -> int:
    """From the first to the last byte of the view's elements; at least 1."""
    last = sum((size - 1) * step for size, step in zip(view.sizes, view.strides, strict=True))
    return max((last + 1) * DTYPE_BYTES[view.dtype], _AT_LEAST) if view.count else _AT_LEAST


def window(memory: NDArray[np.uint8], base: int, view: TensorView) -> NDArray[Any]:
    """The view's elements in place, in a memory that begins at `base`: unsigned integers."""
    width = DTYPE_BYTES[view.dtype]
    kind = np.dtype(f"<u{width}")
    if not view.count:
        return np.zeros(view.sizes, kind)
    start = view.address - base
    flat = memory[start : start + extent_bytes(view)].view(kind)
    steps = tuple(step * width for step in view.strides)
    return np.lib.stride_tricks.as_strided(flat, view.sizes, steps)


def elements(memory: NDArray[np.uint8], base: int, view: TensorView) -> NDArray[Any]:
    """A copy of the view's elements."""
    return window(memory, base, view).copy()


def outside(addresses: NDArray[np.int64], views: list[TensorView]) -> NDArray[np.int64]:
    """Those of the addresses that are no byte of an element of any of the views."""
    for view in views:
        if not len(addresses):
            break
        extent = extent_bytes(view)
        width = DTYPE_BYTES[view.dtype]
        near = (addresses >= view.address) & (addresses < view.address + extent)
        covered = np.zeros(extent // width, np.bool_)
        if view.count:
            np.lib.stride_tricks.as_strided(covered, view.sizes, view.strides)[...] = True
        hit = np.zeros(len(addresses), np.bool_)
        hit[near] = covered[(addresses[near] - view.address) // width]
        addresses = addresses[~hit]
    return addresses
