# SPDX-License-Identifier: Apache-2.0
"""What the C++ core needs to queue a call again without Python: program, operands and results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from driver.torch_device import _core
from driver.torch_device.programs import RememberedProgram

Tensor = torch.Tensor
CallSignature = tuple[bytes, list[Tensor]]
"""The signature of a call, and its tensors in the order in which they come."""
Fresh = tuple[list[int], list[int], torch.dtype]
"""Sizes, strides and type of a result."""


class QueuedCall(NamedTuple):
    """A call of an op that does not look at values, which has just been queued."""

    op: object
    """What its signature was taken of."""
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    outs: Collection[str]
    """Keyword arguments that are results, not operands."""
    results: Sequence[Tensor | None]
    """Arguments that the op wrote to, or fresh tensors."""


def remember(signature: CallSignature, call: QueuedCall, found: RememberedProgram) -> None:
    """Keep a call for the core.

    `signature`: the call before it ran. `found`: its program, with the operands first, then the
    results that are tensors.
    """
    op, args, kwargs, outs, results = call
    key, tensors = signature
    operands = _operands(args, kwargs, outs)
    if len(operands) != found.arguments or not results:
        return
    known = {id(tensor): number for number, tensor in enumerate(tensors)}
    made = [None if x is None else known.get(id(x), -1) for x in results]
    places = [len(tensors) + at for at, number in enumerate(made) if number is not None]
    numbers = [*operands, *places]
    overlaps = [
        (
            number,
            found.extents[found.arguments + at],
            operand,
            found.extents[argument],
            found.may_share(found.arguments + at, argument),
        )
        for at, number in enumerate(number for number in made if number is not None)
        if number >= 0
        for argument, operand in enumerate(operands)
    ]
    described: list[int | Fresh | None] = [
        number if x is None or number != -1 else (list(x.shape), list(x.stride()), x.dtype)
        for x, number in zip(results, made, strict=True)
    ]
    begins = [numbers[at] for at in found.begins]
    _core.remember(key, op, found.queued, begins, described, overlaps, found.seed)


def _operands(args: Sequence[Any], kwargs: Mapping[str, Any], outs: Collection[str]) -> list[int]:
    """The numbers of the tensors that are operands, among all of the call."""
    numbers: list[int] = []
    count = 0
    for name, value in [*(("", value) for value in args), *kwargs.items()]:
        here = _tensors(value)
        if name not in outs:
            numbers += range(count, count + here)
        count += here
    return numbers


def _tensors(value: Any) -> int:
    if isinstance(value, list | tuple):
        return sum(map(_tensors, value))
    return isinstance(value, Tensor)
