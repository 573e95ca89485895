# SPDX-License-Identifier: Apache-2.0
"""Operands as both sides compute with them: in the type that torch converts them to first.

Integers beside floats, and tensors without dimensions beside others, take the type of the others,
which rounds them where that has 16 bits. A right factor or a divisor of one element stays fp32.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from golden.bounds.expectation import Expectation, Rule, Subject
from golden.calls import OpCall

_OPERANDS = ("self", "other", "exponent", "tensor1", "tensor2")


def promoted(rule: Rule, *, wide_factor: bool = False) -> Rule:
    """The rule of the converted operands, where the result is a float. `wide_factor`: `other`
    stays fp32 if it is one element."""

    def of_converted(subject: Subject) -> tuple[Expectation | None, ...]:
        if not subject.answer().is_floating_point():
            return rule(subject)
        call = subject.call
        arguments = {**call.arguments, **_converted(call)}
        other = arguments.get("other")
        if wide_factor and isinstance(other, torch.Tensor) and other.numel() == 1:
            arguments["other"] = call["other"].to(torch.float32)
        return rule(replace(subject, call=replace(call, args=(), kwargs=arguments)))

    return of_converted


def _converted(call: OpCall) -> dict[str, torch.Tensor]:
    operands = {name: call[name] for name in _OPERANDS if call.arguments.get(name) is not None}
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT
    _, common = elementwise_dtypes(*operands.values(), type_promotion_kind=kind)
    return {n: x.to(common) for n, x in operands.items() if isinstance(x, torch.Tensor)}
