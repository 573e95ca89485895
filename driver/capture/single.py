# SPDX-License-Identifier: Apache-2.0
"""Capsules of exactly one ATen call: what a failing op was given, and smaller versions of it.

Owns making such capsules. Does not know what they are used for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch._ops import OpOverloadPacket, _OpNamespace

import driver.capture.npu_ops  # noqa: F401 (registers torch.ops.npu)
from driver.capture.capsule import Capsule, signed
from driver.capture.format import Op, TensorRef, Value
from driver.capture.recorder import capture
from driver.capture.schemas import written_tensors
from driver.capture.tensors import to_torch
from driver.errors import InputError
from driver.random_stream import RandomStream

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Call:
    """An ATen call with its real arguments, and where it came from."""

    op: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    module: str = ""
    source: str = ""
    parameters: frozenset[int] = frozenset()
    """Positions of arguments that are a model's parameters."""
    stream: RandomStream | None = None
    """What it drew, if it was an op of a run."""


class _Caller(torch.nn.Module):
    """Makes one call. Its parameters are buffers, so that the capsule says what they are."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call
        for position in call.parameters:
            self.register_buffer(f"arg{position}", call.args[position])

    def forward(self, *_tensors: torch.Tensor) -> Any:
        with torch.inference_mode():  # where aten.linear stays what it is
            return overload(self._call.op)(*self._call.args, **self._call.kwargs)


def overload(name: str) -> Any:
    """The op of a name such as aten.mm.default. InputError when torch has none, or none that only
    computes: names come from files, and an op with a `filename` reads or writes one."""
    space, _, rest = name.partition(".")
    packet, _, which = rest.partition(".")
    names = getattr(torch.ops, space, None)
    ops = getattr(names, packet, None) if isinstance(names, _OpNamespace) else None
    if not isinstance(ops, OpOverloadPacket) or which not in ops.overloads():
        raise InputError("op", "name", name, "an op of this torch")
    found = getattr(ops, which)
    if any(argument.name == "filename" for argument in found._schema.arguments):
        raise InputError("op", "name", name, "an op that reads and writes no file")
    return found


def argument_kinds(name: str) -> dict[str, str]:
    """Type of each argument in torch's schema. "Scalar" where torch takes a number for a tensor: as
    a number it is not rounded to 16 bits."""
    schema = overload(name)._schema
    exact = torch._C._should_allow_numbers_as_tensors(schema.name.removeprefix("aten::"))
    return {str(a.name): "Scalar" if exact else str(a.type) for a in schema.arguments}


def overload_names(space: str, name: str) -> list[str]:
    """Every overload of an op, as aten.add.Tensor; none where torch has no such op."""
    packet = getattr(getattr(torch.ops, space), name, None)
    if not isinstance(packet, OpOverloadPacket):  # a namespace has attributes of its own
        return []
    return [f"{space}.{name}.{one}" for one in packet.overloads()]


def single_call(name: str, calls: Sequence[Call], seed: int = 0) -> Capsule:
    """A capsule of these calls, one op each, with the module paths and sources they came with.

    InputError when torch refuses a call, or takes it apart into other ops.
    """
    steps = torch.nn.ModuleList(_Caller(call) for call in calls)
    inputs = [arg for call in calls for arg in call.args if isinstance(arg, torch.Tensor)]
    # The arguments that a call writes to are the caller's, and stay as they are.
    before = [
        (x, x.clone())
        for call in calls
        for x in written_tensors(overload(call.op), call.args, call.kwargs)
    ]
    try:
        capsule = capture(_Sequence(steps), inputs, name=name, seed=seed)
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        raise InputError(name, "call", str(error).split("\n")[0], "a call torch accepts") from error
    finally:
        with torch.no_grad():
            for x, as_it_was in before:
                x.copy_(as_it_was)
    made, wanted = [op.op for op in capsule.ops], [call.op for call in calls]
    if made != wanted:
        raise InputError(name, "ops", " ".join(made), f"{' '.join(wanted)} as such")
    ops = [_as_it_was(op, call) for op, call in zip(capsule.ops, calls, strict=True)]
    return _with_ops(capsule, tuple(ops))


class _Sequence(torch.nn.Module):
    def __init__(self, steps: torch.nn.ModuleList) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, *_tensors: torch.Tensor) -> list[Any]:
        return [step() for step in self.steps]


def _as_it_was(op: Op, call: Call) -> Op:
    changes: dict[str, object] = {"module": call.module, "source": call.source or "unknown:0"}
    if call.stream is not None and torch.Tag.nondeterministic_seeded in overload(call.op).tags:
        changes["stream"] = (call.stream.seed, call.stream.op)
    return op.model_copy(update=changes)


def _with_ops(capsule: Capsule, ops: tuple[Op, ...]) -> Capsule:
    """The capsule with other ops of the same tensors, signed anew."""
    return Capsule(signed({**dict(capsule.document), "ops": ops}), capsule.data)


def recorded_stream(capsule: Capsule, op: Op) -> RandomStream:
    """What the op draws: the seed and its index in the capsule, or of where it was taken from."""
    return RandomStream(*(op.stream or (capsule.document.seed, op.index)))


def recall(capsule: Capsule, index: int, arrays: Mapping[str, Array]) -> Call:
    """The call of op `index`, with other tensors where `arrays` names a field as Op.refs() does.

    An array keeps its strides; bfloat16 comes as uint16 bits. A list of whole numbers that named a
    size which changed (as in layer_norm's normalized_shape) names the new one.
    """
    op = capsule.ops[index]
    sizes: dict[int, int] = {}
    for name, ref in op.refs():
        if name in arrays:
            sizes |= dict(zip(ref.sizes, arrays[name].shape, strict=True))

    def value(name: str, recorded: Value) -> object:
        if isinstance(recorded, TensorRef) and name in arrays:
            return _tensor(arrays[name], recorded.dtype)
        if isinstance(recorded, tuple):
            items = [value(f"{name}[{i}]", item) for i, item in enumerate(recorded)]
            plain = all(type(item) is int for item in items)
            return [sizes.get(item, item) for item in items] if plain else items  # type: ignore[call-overload]
        return to_torch(capsule, recorded)

    parameters = {
        position
        for position, recorded in enumerate(op.inputs)
        if isinstance(recorded, TensorRef)
        and capsule.document.storages[recorded.storage].parameter is not None
    }
    return Call(
        op=op.op,
        args=[value(f"inputs[{i}]", item) for i, item in enumerate(op.inputs)],
        kwargs={name: value(f"kwargs.{name}", item) for name, item in op.kwargs.items()},
        module=op.module,
        source=op.source,
        parameters=frozenset(parameters),
        stream=recorded_stream(capsule, op),
    )


def _tensor(array: Array, element_type: str) -> torch.Tensor:
    """A tensor on a copy of the array's bytes, with its order of dimensions in memory."""
    own = array.copy(order="K")
    if element_type == "bfloat16":
        return torch.from_numpy(own.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(own)
