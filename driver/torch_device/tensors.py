# SPDX-License-Identifier: Apache-2.0
"""Tensors of device "npu" between torch and the devices: addresses, views, and copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from driver.capture.format import HOST_READ
from driver.errors import UnsupportedOp
from driver.lower import Arg
from driver.runtime import TensorView
from driver.runtime.torch_types import NPU_TYPES
from driver.torch_device import _core, debug
from driver.torch_device.hardware import COPY_ROW, OpenDevice, view_of
from driver.torch_device.observers import begin, not_seen, op_by_op
from driver.torch_device.pool import POOL, torch_memory_errors
from driver.torch_device.replays import QueuedCall, remember

Tensor = torch.Tensor
_WORDS = (torch.dtype, torch.layout, torch.memory_format)


# ---------------------------------------------------------------------- views
def is_npu(value: object) -> bool:
    """Whether a value is a tensor of this device."""
    return isinstance(value, Tensor) and value.device.type == "npu"


def device_of(tensor: Tensor) -> OpenDevice:
    """The device that holds a tensor."""
    return POOL[tensor.device.index]


def device_address(tensor: Tensor, is_stored: bool = False) -> int:
    """Where the tensor's elements begin. RuntimeError when its storage was given back, or was
    shortened so that the tensor ends behind it; or was not computed, unless all of its bytes are
    to be stored."""
    pointer = tensor.data_ptr()
    held = tensor.untyped_storage().nbytes() // tensor.element_size()
    if tensor.numel() and held < tensor.storage_offset() + spanned(tensor):
        raise RuntimeError(
            f"npu: the memory of this tensor of {list(tensor.shape)} is gone: its storage has "
            f"{tensor.untyped_storage().nbytes()} bytes"
        )
    return _core.address(pointer, is_stored)


def spanned(tensor: Tensor) -> int:
    """How many elements lie between its first and its last one, both included; it has at least
    one."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return 1 + sum((size - 1) * step for size, step in steps)


def view(op: object, tensor: Tensor) -> TensorView:
    """The tensor as rows of the op table take it. UnsupportedOp for a type that the NPU has not."""
    dtype = NPU_TYPES.get(tensor.dtype)
    if dtype is None or tensor.is_neg():
        kind = f"{tensor.dtype}{', negated' if tensor.is_neg() else ''}".removeprefix("torch.")
        raise UnsupportedOp(str(op), "dtype", kind, "a type that the NPU computes with")
    address = device_address(tensor)
    boolean = tensor.dtype is torch.bool
    return view_of(address, dtype, tuple(tensor.shape), tensor.stride(), boolean)


def argument(value: Any, as_view: Callable[[Tensor], Arg]) -> Arg:
    """An argument of torch as rows take it: views for tensors, names for types and the like."""
    if isinstance(value, Tensor):
        return as_view(value)
    if isinstance(value, list | tuple):
        return tuple(argument(item, as_view) for item in value)
    if isinstance(value, _WORDS):
        return str(value).removeprefix("torch.")
    number: bool | int | float | str | None = value
    return number


@contextmanager
def in_place(tensor: Tensor, *, writes: bool = False) -> Iterator[Tensor]:
    """A CPU tensor over the bytes of device memory that the tensor spans, in a `with` block.

    Nothing is copied where the backend maps its memory. `writes`: the block writes all elements.
    """
    span = spanned(tensor)
    size_bytes = span * tensor.element_size()
    reads = not writes or not _is_dense(tensor)
    device = device_of(tensor)
    device.queue.wait()  # a fault is raised as such before it is one of this tensor
    address = device_address(tensor, is_stored=not reads and _is_whole(tensor))
    with device.host_bytes(address, size_bytes, reads=reads, writes=writes) as data:
        there = torch.from_numpy(data).view(tensor.dtype)
        there = there.as_strided(tensor.shape, tensor.stride())
        there = there.conj() if tensor.is_conj() else there
        yield torch._neg_view(there) if tensor.is_neg() else there
    if writes:
        _core.note_stored(tensor.data_ptr(), 0 if reads else size_bytes)


def _is_whole(tensor: Tensor) -> bool:
    """Whether a tensor without holes has all bytes of its storage."""
    return tensor.nbytes == tensor.untyped_storage().nbytes()


def _is_dense(tensor: Tensor) -> bool:
    """Whether its elements are all that it spans, each once."""
    steps = sorted(zip(tensor.stride(), tensor.shape, strict=True))
    expected = 1
    for step, size in steps:
        if size > 1 and step != expected:
            return False
        expected *= size
    return True


def storage_bytes(tensor: Tensor) -> Tensor:
    """A copy of the tensor's whole storage, as bytes on the CPU."""
    storage = tensor.untyped_storage()
    if not storage.nbytes():
        return torch.empty(0, dtype=torch.uint8)
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    with in_place(flat.set_(storage, 0, (storage.nbytes(),), (1,))) as there:
        return there.clone()


def dense_copy(tensor: Tensor) -> Tensor:
    """The tensor's elements on the CPU, in memory of their own."""
    with in_place(tensor.detach()) as there:
        return there.clone()


# ---------------------------------------------------------------------- copies
def copy_from(source: Tensor | float, target: Tensor, non_blocking: bool = False) -> Tensor:
    """Store the source's elements, broadcast, as the target's type.

    Within one device the NPU copies and converts; to and from the host, and for types that the NPU
    has not, the host does.
    """
    if not isinstance(source, Tensor):  # tensor.copy_(number)
        return target.fill_(source)
    if not target.numel():
        source.detach().expand(target.shape)  # what does not fit is an error all the same
        return target
    if source.device == target.device:
        if not op_by_op() and _core.replayed(COPY_ROW, (target, source), {}) is not NotImplemented:
            return target
        if _copied_by_the_npu(source, target):
            return target
    if debug.prints(debug.COPIES):
        debug.copy_line(source, target)
    apart = source.device == target.device and _overlap(source, target)
    with _on_host(source) as there:
        values = there.clone() if apart else there
        if not (is_npu(target) and _queued(values, target)):
            with _on_host(target, writes=True) as into:
                into.copy_(values)
    return target


def _overlap(source: Tensor, target: Tensor) -> bool:
    """Whether both are of one memory, each in its own order."""
    alike = source.stride() == target.stride() and source.data_ptr() == target.data_ptr()
    storages = [x.untyped_storage()._cdata for x in (source, target)]
    return storages[0] == storages[1] and not (alike and source.is_conj() == target.is_conj())


def _copied_by_the_npu(source: Tensor, target: Tensor) -> bool:
    """Queue a copy within a device; False for types that the NPU has not."""
    try:
        into, given = view(COPY_ROW, target), view(COPY_ROW, source)
        signature = _core.signature(COPY_ROW, (target, source), {})
        finish = begin(COPY_ROW, (target, source), {}, (target,))
        with torch_memory_errors(target.device.index):
            found = device_of(target).run(COPY_ROW, (into, given), {}, (into,))
    except UnsupportedOp:
        not_seen(f"a copy {_type(source)} → {_type(target)} by the host")
        return False
    if signature is not None and found is not None:
        remember(signature, QueuedCall(COPY_ROW, (target, source), {}, (), (target,)), found)
    if debug.prints(debug.COPIES):
        debug.copy_line(source, target)
    if finish is not None:
        finish()
    return True


def _queued(source: Tensor, target: Tensor) -> bool:
    """Whether a CPU tensor's elements are stored in their turn: they are for a plain target."""
    if not target.is_contiguous() or target.is_conj() or target.is_neg():
        return False
    data = source.to(target.dtype).expand(target.shape).resolve_conj().resolve_neg()
    stored = host_bytes(data)
    device_of(target).queue.write(device_address(target, _is_whole(target)), stored)
    _core.note_stored(target.data_ptr(), stored.nbytes)
    return True


def host_bytes(tensor: Tensor) -> NDArray[np.uint8]:
    """The bytes of a CPU tensor's elements in row-major order, as the NPU has them: a truth value
    is 0 or 1, whatever byte stands for it here.

    It may be a window on the tensor's memory. `Tensor.numpy` would leave the program with a storage
    that cannot be resized.
    """
    # A single element counts as contiguous whatever its strides are.
    flat = tensor.contiguous().as_strided((tensor.numel(),), (1,)).view(torch.uint8)
    if tensor.dtype is torch.bool:
        flat = flat.ne(0).view(torch.uint8)
    return np.asarray(np.from_dlpack(flat), dtype=np.uint8)


def _on_host(tensor: Tensor, writes: bool = False) -> AbstractContextManager[Tensor]:
    return in_place(tensor, writes=writes) if is_npu(tensor) else nullcontext(tensor.detach())


def copy_from_and_resize(source: Tensor, target: Tensor) -> Tensor:
    """The same into a target that takes the source's sizes."""
    return copy_from(source, target.resize_(source.shape))


def local_scalar_dense(tensor: Tensor) -> bool | int | float | complex:
    """The only element, as a number."""
    begin(HOST_READ, (tensor,), {}, (tensor,))
    with in_place(tensor) as there:
        return there.item()


def is_set_to(tensor: Tensor, source: Tensor) -> bool:
    """Whether both are the same elements of the same storage."""
    own, other = (
        (x.untyped_storage()._cdata, x.storage_offset(), x.shape, x.stride())
        for x in (tensor, source)
    )
    return own == other


def _type(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
