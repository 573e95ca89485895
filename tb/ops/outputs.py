# SPDX-License-Identifier: Apache-2.0
"""The results of a call: how torch lays them out, and which arguments they overwrite. Runs the call
on CPU torch, by golden; knows no addresses, no packets."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from driver.capture.format import HOST_READ
from driver.capture.single import overload
from driver.errors import UnsupportedOp
from driver.isa import DType
from driver.runtime.torch_types import NPU_TYPES
from golden.calls import OpCall, answers
from golden.judge import supports

Place = int | str
"""Which argument: its position, or its keyword."""


@dataclass(frozen=True)
class Output:
    """One result: as torch lays it out, and the argument it overwrites, if the op is in place."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    overwrites: Place | None = None
    boolean: bool = False
    """Truth values, which share a type of the NPU with uint8."""
    returned: bool = True
    """False: an argument that the op writes to without returning it."""


def outputs_of(call: OpCall) -> tuple[Output | None, ...]:
    """The call's results; None for one that is no tensor. UnsupportedOp when golden has no answer
    to the call."""
    if not supports(call.op):
        raise UnsupportedOp(call.op, "op", call.op, "an op that golden can judge")
    results = answers(call)
    written = call.written()
    count = len(results) - len(written)
    places = overwritten(call.op)
    if len(places) != count:  # a list of tensors is one result to the schema
        places = (None,) * count
    outputs = [
        None if tensor is None else _output(call.op, tensor, place)
        for tensor, place in zip(results[:count], places, strict=True)
    ]
    for name, tensor in zip(written, results[count:], strict=True):
        assert tensor is not None
        output = _output(call.op, tensor, _place(call.op, name))
        outputs.append(replace(output, returned=False))
    return tuple(outputs)


def _place(op: str, name: str) -> Place:
    """Where an argument is given: by its position unless it is keyword-only."""
    arguments = overload(op)._schema.arguments
    found = next(at for at, argument in enumerate(arguments) if argument.name == name)
    return name if arguments[found].kwarg_only else found


def overwritten(op: str) -> tuple[Place | None, ...]:
    """For each result of an ATen op the argument that it is, written in place; None: fresh."""
    if op == HOST_READ:  # nothing is written, but the result is where the operand is
        return (0,)
    schema = overload(op)._schema
    found: list[Place | None] = []
    for result in schema.returns:
        place: Place | None = None
        if result.alias_info is not None and result.alias_info.is_write:
            for position, argument in enumerate(schema.arguments):
                info = argument.alias_info
                if info is not None and info.before_set & result.alias_info.before_set:
                    place = argument.name if argument.kwarg_only else position
        found.append(place)
    return tuple(found)


def _output(op: str, tensor: torch.Tensor, place: Place | None) -> Output:
    dtype = NPU_TYPES.get(tensor.dtype)
    if dtype is None:
        names = ", ".join(str(known).removeprefix("torch.") for known in NPU_TYPES)
        raise UnsupportedOp(op, "dtype", tensor.dtype, f"one of {names}")
    truth = tensor.dtype == torch.bool
    return Output(tuple(tensor.shape), tensor.stride(), dtype, place, truth)
