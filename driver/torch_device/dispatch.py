# SPDX-License-Identifier: Apache-2.0
"""The one kernel below torch's dispatcher: an op with its arguments becomes a row of the op table.

An op without a row runs by smaller ops, as torch defines it; one without a definition, or one that
its row refuses, is an error that names it. Nothing is computed on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import local
from typing import Any

import torch

from driver.capture.schemas import require_cast, written_tensors
from driver.errors import UnsupportedOp
from driver.lower import Arg
from driver.random_stream import RandomStream
from driver.runtime.torch_types import NPU_TYPES
from driver.torch_device import _core, debug
from driver.torch_device.call_text import call_text
from driver.torch_device.data_dependent import DATA_DEPENDENT
from driver.torch_device.definitions import (
    COMPUTED_IN_FP32,
    DEFINITIONS,
    OF_TWO_NUMBERS,
)
from driver.torch_device.fallback import is_allowed, registered_name, run_on_cpu
from driver.torch_device.formulas.integers import in_common_type, numbers_in_int64
from driver.torch_device.hardware import view_of
from driver.torch_device.index_arguments import (
    CLASSES,
    INDEXED,
    classes_as_places,
    indices_on_the_device,
    masks_as_places,
)
from driver.torch_device.observers import OBSERVERS, begin, take_apart
from driver.torch_device.origins import place
from driver.torch_device.overloads import (
    ArrivingOp,
    Overload,
    arriving,
    is_factory,
    smaller_ops,
    without_out,
)
from driver.torch_device.pool import POOL, torch_memory_errors
from driver.torch_device.programs import RememberedProgram
from driver.torch_device.refusals import require_arguments
from driver.torch_device.replays import QueuedCall, remember
from driver.torch_device.shapes import ResultShape, ResultShapes, result_shapes
from driver.torch_device.tensors import Tensor, argument, host_bytes, is_npu, view


class _Within(local):
    """Ops that this thread is taking apart with the types of their tensors, outermost first."""

    def __init__(self) -> None:
        self.calls: list[Any] = []


_WITHIN = _Within()


def dispatch(op: Overload, *args: Any, **kwargs: Any) -> Any:
    """Run one op on the device of its tensors.

    Raises:
        RuntimeError: tensors of more than one device, or what torch raises for wrong arguments.
        NotImplementedError: the NPU cannot run the op, with the reason.
    """
    _core.enter_call()
    try:
        return _dispatch(op, *args, **kwargs)
    finally:
        _core.leave_call()


def _dispatch(op: Overload, *args: Any, **kwargs: Any) -> Any:
    arrived = arriving(op)
    args = numbers_in_int64(args)
    if arrived.row in INDEXED or arrived.name == _INDEX_GRADIENT:
        args = tuple(indices_on_the_device(args))
    elif arrived.row in CLASSES:
        args = tuple(classes_as_places(args))
    elif arrived.name == _FILL and not is_npu(args[0]):
        return args[0].fill_(args[1].item())  # which torch reads too
    device = _device(arrived, args, kwargs)
    try:
        name = registered_name(op)
        if name is not None:
            return _on_cpu(op, device, args, kwargs, f"{name} is registered for it")
        require_arguments(arrived, args, kwargs)
        if arrived.as_out:
            kwargs = _in_the_type_of_out(arrived, args, kwargs)
        if arrived.row is not None:
            return _row_or_formula(arrived, device, args, kwargs)
        return _by_smaller_ops(arrived, args, kwargs)
    except UnsupportedOp as error:
        if is_allowed():
            return _on_cpu(op, device, args, kwargs, str(error))
        where = place()
        raise NotImplementedError(
            f"npu: {call_text(op, args, kwargs)} does not run on the NPU: {error}"
            + (f"; {where}" if where else "")
        ) from error


def _in_the_type_of_out(
    arrived: ArrivingOp, args: Sequence[Any], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Asked for in the type of `out`, where no other is; a mean is one of floats only."""
    out = kwargs[arrived.outs[0]].dtype
    mean = arrived.name.startswith("aten.mean")
    if kwargs.get("dtype") is not None or (
        mean and not (out.is_floating_point and args[0].is_floating_point())
    ):
        return kwargs
    return {**kwargs, "dtype": out}


def _on_cpu(
    op: Overload, device: torch.device, args: Sequence[Any], kwargs: Mapping[str, Any], reason: str
) -> Any:
    if debug.prints(debug.OPS):
        debug.line("CPU", debug.op_text(op, args, kwargs))
    return run_on_cpu(op, device, args, kwargs, reason)


# ---------------------------------------------------------------------- a row
def _row_or_formula(
    arrived: ArrivingOp, device: torch.device, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The row; where it refuses the call, the op's formula if there is one."""
    try:
        return _run_row(arrived, device, args, kwargs)
    except UnsupportedOp as refused:
        if _kind(arrived.op, args) in _WITHIN.calls or arrived.name not in DEFINITIONS:
            raise
        try:
            return _by_smaller_ops(arrived, args, kwargs)
        except UnsupportedOp:
            raise refused from None


def _run_row(
    arrived: ArrivingOp, device: torch.device, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    row = arrived.row
    assert row is not None
    signature = _core.signature(arrived.op, args, kwargs) if _is_lasting(arrived) else None
    if row in INDEXED:
        placed = masks_as_places(args)
        signature = signature if placed is args else None
        args = placed
    results = _results(arrived, device, _shapes(arrived, args, kwargs), args, kwargs)
    found = _queue_row(arrived, device, args, kwargs, results)
    converted = [x is not kwargs[name] for x, name in zip(results, arrived.outs, strict=False)]
    if signature is not None and found is not None and not any(converted):
        again = _core.signature(arrived.op, args, kwargs)
        if again is not None and again[0] == signature[0]:  # no result had to be resized
            call = QueuedCall(arrived.op, args, kwargs, arrived.outs, results)
            remember(signature, call, found)
    if arrived.returns_number:
        (number,) = results
        assert number is not None
        return number.item()
    if any(converted):
        results = [_stored(x, kwargs[name]) for x, name in zip(results, arrived.outs, strict=True)]
    return tuple(results) if len(results) > 1 else results[0]


def _is_lasting(arrived: ArrivingOp) -> bool:
    """Whether equal calls do the same with their tensors; of a random op all but the number."""
    return not (arrived.returns_number or arrived.row in DATA_DEPENDENT)


def _queue_row(
    arrived: ArrivingOp,
    device: torch.device,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    results: Sequence[Tensor | None],
) -> RememberedProgram | None:
    """Queue a row; its program, if that alone was queued. What watches the program sees it."""
    hardware, row = POOL[device.index], arrived.row
    assert row is not None
    with torch_memory_errors(hardware.index), _numbers(row, device) as as_view:
        given = [argument(value, as_view) for value in args]
        named = {
            name: argument(value, as_view)
            for name, value in kwargs.items()
            if name not in arrived.outs and name not in ("generator", "device")
        }
        views = [None if x is None else view(row, x) for x in results]
        stream = _stream(device, args, kwargs) if arrived.random else None
        finish = begin(row, args, kwargs, results, stream)
        began = hardware.cycles() if hardware.has_clock and debug.prints(debug.OPS) else None
        found = hardware.run(row, given, named, views, stream)
        if debug.prints(debug.OPS):
            took = "" if began is None else f" {hardware.cycles() - began} cycles"
            debug.line("NPU", debug.op_text(row, args, kwargs) + took)
    if finish is not None:
        finish()
    return found


def _shapes(arrived: ArrivingOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ResultShapes:
    if arrived.returns_number:
        return (ResultShape((), (), torch.bool),)
    counted = DATA_DEPENDENT.get(arrived.row or "")
    if counted is not None:
        shape = counted(*args)
        for name in arrived.outs:
            if kwargs[name].dtype is not shape.dtype:
                raise RuntimeError(
                    f"Expected out tensor to have dtype {shape.dtype}, but got "
                    f"{kwargs[name].dtype} instead"
                )
        return (shape,)
    try:
        return result_shapes(arrived, args, kwargs)
    except NotImplementedError as error:
        reason = " ".join(str(error).split())
        raise UnsupportedOp(str(arrived.op), "sizes", reason, "known before the op runs") from None


def _results(
    arrived: ArrivingOp,
    device: torch.device,
    shapes: ResultShapes,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> list[Tensor | None]:
    """Where the results go: arguments that the op writes to, resized, or fresh tensors."""
    given: Sequence[Any] = [kwargs[name] for name in arrived.outs] or [
        None if at is None else args[at] for at in arrived.written or [None] * len(shapes)
    ]
    found: list[Tensor | None] = []
    for tensor, shape in zip(given, shapes, strict=True):
        if shape is None:
            found.append(None)
        elif tensor is None:
            found.append(
                torch.empty_strided(shape.sizes, shape.strides, dtype=shape.dtype, device=device)
            )
        else:
            _resize(tensor, shape.sizes, args)
            same = tensor.dtype is shape.dtype
            found.append(tensor if same else torch.empty_like(tensor, dtype=shape.dtype))
    return found


def _resize(out: Tensor, sizes: Sequence[int], args: Sequence[Any]) -> None:
    """Give a result its sizes. RuntimeError where it is an operand too, as torch has it: an operand
    may be a part of other memory, which more elements would overwrite."""
    if tuple(out.shape) == tuple(sizes):
        return
    if any(tensor is out for tensor in _tensors(args)):
        raise RuntimeError(
            f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(sizes)}"
        )
    out.resize_(sizes)


def _stored(result: Tensor | None, out: Tensor) -> Tensor:
    """`out` itself, with a result that was computed in another type converted into it."""
    return out if result is None or result is out else out.copy_(result)


_NARROWED = {torch.float64: torch.float32, torch.int16: torch.int32}
"""Types of numbers that the NPU has not → those in which it computes with them."""


@contextmanager
def _numbers(row: str, device: torch.device) -> Iterator[Any]:
    """How tensors become views; CPU tensors without dimensions go to the device for this op."""
    hardware = POOL[device.index]
    placed: list[int] = []

    def as_view(tensor: Tensor) -> Arg:
        if is_npu(tensor):
            return view(row, tensor)
        tensor = tensor.to(_NARROWED.get(tensor.dtype, tensor.dtype))
        dtype = NPU_TYPES.get(tensor.dtype)
        if dtype is None:
            number: bool | int | float = tensor.item()
            return number
        size_bytes = tensor.element_size()
        placed.append(hardware.allocate(size_bytes))
        hardware.queue.write(placed[-1], host_bytes(tensor.detach()))
        return view_of(placed[-1], dtype, (), (), tensor.dtype is torch.bool)

    try:
        yield as_view
    finally:
        if placed:
            hardware.free(placed)


def _stream(device: torch.device, args: Sequence[Any], kwargs: Mapping[str, Any]) -> RandomStream:
    """What a random op draws: the next stream of the generator given, or of the device's."""
    given = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Generator)]
    if given and given[0].device.type == device.type and given[0].device != device:
        raise RuntimeError(f"Expected a '{device}' generator device but found '{given[0].device}'")
    generator = given[0] if given else torch.npu.default_generators[device.index]  # type: ignore[attr-defined]
    return RandomStream(*_core.next_stream(generator))


# ---------------------------------------------------------------------- smaller ops
def _kind(op: Overload, args: Sequence[Any]) -> Any:
    """What may not be taken apart within itself."""
    return op, *(tensor.dtype for tensor in _tensors(args))


def _is_float64(values: Sequence[Any]) -> bool:
    """Whether an operand is of that type; one without dimensions is a number beside one that has
    some."""
    tensors = list(_tensors(values))
    wide = [x for x in tensors if x.dtype is torch.float64]
    return any(x.dim() for x in wide) or (bool(wide) and not any(x.dim() for x in tensors))


def _by_smaller_ops(arrived: ArrivingOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    op, kind = arrived.op, _kind(arrived.op, args)
    instead = None if kind in _WITHIN.calls else smaller_ops(op)
    if instead is None:
        raise UnsupportedOp(str(op), "op", op, "one with a row in the op table (docs/ops.md)")
    outs = [kwargs[name] for name in arrived.outs]
    named = {name: value for name, value in kwargs.items() if name not in arrived.outs}
    plain = without_out(op)
    name = str(plain)
    if name in COMPUTED_IN_FP32 and _is_float64([*args, *kwargs.values()]):
        raise UnsupportedOp(str(op), "dtype", "float64", "fp32, fp16 or bf16")
    if outs and plain is not None and is_factory(plain):
        named |= {"dtype": outs[0].dtype, "device": outs[0].device}
    if name in OF_TWO_NUMBERS:
        args = in_common_type(*args)
    outermost = not _WITHIN.calls
    finish = take_apart(plain or op, args, named) if outermost and OBSERVERS else None
    _WITHIN.calls.append(kind)
    try:
        with torch._C._DisableAutocast():  # it has seen the op: what the op is made of stays fp32
            made = instead(*args, **named)
    finally:
        _WITHIN.calls.pop()
    if made is NotImplemented:
        raise UnsupportedOp(
            str(op), "arguments", call_text(op, args, kwargs), "ones that torch defines"
        )
    if finish is not None:
        finish(made)
    if not outs:
        return made
    for out, fresh in zip(outs, made if isinstance(made, tuple) else (made,), strict=True):
        _resize(out, fresh.shape, args)
        require_cast(fresh.dtype, out.dtype)
        out.copy_(fresh)
    return outs[0] if len(outs) == 1 else tuple(outs)


# ---------------------------------------------------------------------- devices and texts
_FILL = "aten.fill_.Tensor"
_INDEX_GRADIENT = "aten._index_put_impl_.default"


def _device(arrived: ArrivingOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.device:
    """The one device of all tensors; a CPU tensor without dimensions that is only read is a
    number."""
    op = arrived.op
    found: torch.device | None = None
    operands = _tensors((*args, *kwargs.values()))
    placed = (tensor for tensor in operands if tensor.device.type != "cpu" or tensor.dim())
    for tensor in (*placed, *written_tensors(op, args, kwargs)):
        if found is not None and tensor.device != found:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{found} and {tensor.device}! ({op})"
            )
        found = tensor.device
    if found is not None and found.type != "npu":
        raise RuntimeError(f"Expected tensors on device npu, but found {found} ({op})")
    chosen = found or kwargs.get("device")
    if chosen is None or chosen.index is None:
        return torch.device("npu", torch.accelerator.current_device_index())
    return chosen


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
