# SPDX-License-Identifier: Apache-2.0
"""Where the tensors of a case lie in device memory, and how its arguments look to the lowering.

Owns allocation and initial bytes: results and temporaries start as noise, so that an element that
no packet writes, or that is read before it is written, does not look right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from driver.capture import Constant, TensorRef, Value
from driver.capture.tensors import storage_view
from driver.compile import fused_program
from driver.config import HwConfig
from driver.errors import UnsupportedOp
from driver.isa import DTYPE_BYTES, DType, Packet
from driver.lower import Arg, lower
from driver.runtime import Buffer, TensorView, loaded
from driver.runtime.buffer import DEFAULT_REGION
from driver.runtime.torch_types import NPU_TYPES
from tb.ops.case import Case
from tb.ops.cost import compulsory_bytes
from tb.ops.outputs import Output, Place

_AT_LEAST = 1
"""Bytes: an empty tensor has an address like any other."""
_WORDS = (torch.dtype, torch.layout, torch.device, torch.memory_format)


class Memory(Protocol):
    """The devices' memories, alike."""

    config: HwConfig

    def alloc(self, size_bytes: int, region: str = DEFAULT_REGION) -> Buffer:
        """Fresh bytes, at the same address on every device."""
        ...

    def free(self, buffer: Buffer) -> None:
        """Give them back."""
        ...

    def write(self, address: int, array: NDArray[Any]) -> None:
        """Put bytes into every memory."""
        ...


@dataclass(frozen=True)
class NoisyMemory:
    """Memory whose fresh bytes are random: a byte that no packet writes is detected."""

    memory: Memory
    noise: np.random.Generator

    def alloc(self, size_bytes: int, region: str = DEFAULT_REGION) -> Buffer:
        """See Memory; an empty tensor has an address like any other."""
        buffer = self.memory.alloc(max(size_bytes, _AT_LEAST), region)
        self.write(buffer.address, self.noise.integers(0, 256, buffer.size_bytes, np.uint8))
        return buffer

    def free(self, buffer: Buffer) -> None:
        """See Memory."""
        self.memory.free(buffer)

    def write(self, address: int, array: NDArray[Any]) -> None:
        """See Memory."""
        self.memory.write(address, array)


@dataclass(frozen=True)
class Placed:
    """A case in device memory: its packets, and where its results are to be found."""

    packets: tuple[Packet, ...]
    results: tuple[TensorView | None, ...]
    temporaries: tuple[range, ...]
    """Addresses that packets may write to besides the elements of results."""
    compulsory_bytes: int


@contextmanager
def placed(memory: Memory, case: Case, seed: int, rule: str | None = None) -> Iterator[Placed]:
    """Operands, results, temporaries and descriptors in memory; freed afterwards.

    `rule`: of the op's lowering rules, by default the best one.
    UnsupportedOp when the op has no packets, OutOfMemory when something does not fit.
    """
    fresh = NoisyMemory(memory, np.random.default_rng([seed, case.index]))
    with ExitStack() as stack:

        def kept(buffer: Buffer) -> Buffer:
            stack.callback(memory.free, buffer)
            return buffer

        views = _Operands(
            memory, case, lambda size, region: kept(memory.alloc(max(size, _AT_LEAST), region))
        )
        args = tuple(views.argument(position, value) for position, value in enumerate(case.args))
        kwargs = {name: views.argument(name, value) for name, value in case.kwargs.items()}
        found: dict[Place, Arg] = dict((*enumerate(args), *kwargs.items()))
        results = tuple(
            _result(output, found, lambda size: kept(fresh.alloc(size))) for output in case.outputs
        )
        returned = tuple(
            view
            for view, output in zip(results, case.outputs, strict=True)
            if output is None or output.returned
        )
        lowered = lower(case.op, args, kwargs, returned, memory.config, case.stream, rule)
        program = fused_program(lowered, memory.config)
        bound = stack.enter_context(loaded(fresh, program))
        read = compulsory_bytes(case.op, args, kwargs, results)
        yield Placed(bound.packets, results, bound.temporaries, read)


class _Operands:
    """Puts each storage into memory once: tensors that share one share it there too."""

    def __init__(self, memory: Memory, case: Case, place: Callable[[int, str], Buffer]) -> None:
        self._memory, self._case, self._place = memory, case, place
        self._placed: dict[int, Buffer] = {}

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
            self._memory.write(self._placed[key].address, storage)
        return view_of(tensor, self._placed[key], dtype)


def view_of(tensor: torch.Tensor, buffer: Buffer, dtype: DType) -> TensorView:
    """The tensor, whose storage lies in the buffer."""
    offset_bytes = int(tensor.storage_offset()) * tensor.element_size()
    sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
    return TensorView(buffer, offset_bytes, dtype, sizes, strides, tensor.dtype is torch.bool)


def recorded_view(op: str, ref: TensorRef, buffer: Buffer) -> TensorView:
    """A recorded tensor of op `op`, whose storage lies in the buffer."""
    if ref.npu_dtype is None:
        raise UnsupportedOp(op, "dtype", ref.dtype, "a type that the NPU holds")
    offset_bytes, truth = ref.offset * ref.element_bytes, ref.dtype == "bool"
    return TensorView(buffer, offset_bytes, ref.npu_dtype, ref.sizes, ref.strides, truth)


def recorded_argument(op: str, value: Value, view: Callable[[TensorRef], TensorView]) -> Arg:
    """A recorded argument as the lowering takes it."""
    if isinstance(value, tuple):
        return tuple(recorded_argument(op, item, view) for item in value)
    if isinstance(value, TensorRef):
        return view(value)
    if not isinstance(value, Constant):
        return value
    try:
        return float(value.value) if value.kind == "float" else value.value
    except ValueError as error:
        raise UnsupportedOp(op, "float", value.value, "a number") from error


def argument(value: Any, view: Callable[[torch.Tensor], TensorView]) -> Arg:
    """A torch value as the lowering takes it: views for tensors, words for types and the like."""
    if isinstance(value, torch.Tensor):
        return view(value)
    if isinstance(value, TensorView):  # placed already
        return value
    if isinstance(value, list | tuple):
        return tuple(argument(item, view) for item in value)
    if isinstance(value, _WORDS):
        return str(value).removeprefix("torch.")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"an argument of type {type(value).__name__}")


def _result(
    output: Output | None, arguments: dict[Place, Arg], fresh: Callable[[int], Buffer]
) -> TensorView | None:
    if output is None:
        return None
    if output.overwrites is not None:
        given = arguments[output.overwrites]
        assert isinstance(given, TensorView)
        return given
    view = TensorView(Buffer(0), 0, output.dtype, output.sizes, output.strides, output.boolean)
    return replace(view, buffer=fresh(view.extent_bytes))


def window(memory: NDArray[np.uint8], base: int, view: TensorView) -> NDArray[Any]:
    """The view's elements in place, in a memory that begins at `base`: unsigned integers."""
    width = DTYPE_BYTES[view.dtype]
    kind = np.dtype(f"<u{width}")
    if not view.count:
        return np.zeros(view.sizes, kind)
    start = view.address - base
    flat = memory[start : start + view.extent_bytes].view(kind)
    steps = tuple(step * width for step in view.strides)
    return np.lib.stride_tricks.as_strided(flat, view.sizes, steps)


def elements(memory: NDArray[np.uint8], base: int, view: TensorView) -> NDArray[Any]:
    """A copy of the view's elements."""
    return window(memory, base, view).copy()


def outside(addresses: NDArray[np.uint64], views: list[TensorView]) -> NDArray[np.uint64]:
    """Those of the addresses that are no byte of an element of any of the views."""
    for view in views:
        if not len(addresses):
            break
        extent = view.extent_bytes
        width = DTYPE_BYTES[view.dtype]
        near = (addresses >= view.address) & (addresses < view.address + extent)
        covered = np.zeros(extent // width, np.bool_)
        if view.count:
            np.lib.stride_tricks.as_strided(covered, view.sizes, view.strides)[...] = True
        hit = np.zeros(len(addresses), np.bool_)
        hit[near] = covered[(addresses[near] - view.address) // width]
        addresses = addresses[~hit]
    return addresses
