# SPDX-License-Identifier: Apache-2.0
"""What a case asks of the NPU, and who judges the answer.

Matrix products have a reference of their own, bit for bit by integers; every other op is judged
by golden's table of ops. Knows torch and golden; no addresses, no packets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from driver.capture.format import HOST_READ
from driver.capture.single import overload
from driver.errors import UnsupportedOp
from driver.isa import DType
from driver.lower.views import dense_strides
from golden.calls import OpCall, answers
from golden.judge import judge as judge_call
from golden.judge import supports
from golden.reference import NPU_TYPES, MatmulCall, is_matmul, matmul_call, reference
from golden.scoreboard import Bits, Verdict
from golden.scoreboard import judge as judge_product
from tb.ops.case import Case, Place

Call = MatmulCall | OpCall


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


@dataclass(frozen=True)
class Problem:
    """A call to judge. An output that is no tensor is None."""

    call: Call
    outputs: tuple[Output | None, ...]


def problem_of(case: Case) -> Problem:
    """What the case asks for. UnsupportedOp when golden has no answer to it."""
    if is_matmul(case.op):
        try:
            call = matmul_call(case.op, case.args, case.kwargs, result=case.result)
        except UnsupportedOp:
            if not supports(case.op):
                raise
        else:
            return Problem(call, (Output(call.sizes, dense_strides(call.sizes), call.result),))
    if not supports(case.op):
        raise UnsupportedOp(case.op, "op", case.op, "an op that golden can judge")
    asked = OpCall(case.op, case.args, dict(case.kwargs), case.stream)
    results = answers(asked)
    written = asked.written()
    count = len(results) - len(written)
    places = overwritten(case.op)
    if len(places) != count:  # a list of tensors is one result to the schema
        places = (None,) * count
    outputs = [
        None if tensor is None else _output(case.op, tensor, place)
        for tensor, place in zip(results[:count], places, strict=True)
    ]
    for name, tensor in zip(written, results[count:], strict=True):
        assert tensor is not None
        output = _output(case.op, tensor, _place(case.op, name))
        outputs.append(replace(output, returned=False))
    return Problem(asked, tuple(outputs))


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


def torch_answers(call: Call) -> tuple[torch.Tensor | None, ...]:
    """CPU torch's results."""
    return (reference(call),) if isinstance(call, MatmulCall) else answers(call)


def judged(
    call: Call, cmodel: Sequence[Bits | None], rtl: Sequence[Bits | None] | None, array_size: int
) -> Verdict:
    """What the scoreboard says of the results of `call`, in the order of its outputs."""
    if isinstance(call, MatmulCall):
        shape = product_shape(call)
        (left,), (right,) = cmodel, rtl or (None,)
        assert left is not None
        batched = None if right is None else right.reshape(shape)
        return judge_product(call, left.reshape(shape), batched, array_size)
    return judge_call(call, cmodel, rtl, array_size)


def product_shape(call: MatmulCall) -> tuple[int, int, int]:
    """[batch, M, N] of a matrix product."""
    return call.a.shape[0] if call.a.dim() == 3 else 1, call.a.shape[-2], call.b.shape[-1]
