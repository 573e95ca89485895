# SPDX-License-Identifier: Apache-2.0
"""One op as torch was asked for it, CPU torch's answer, and the true one in float64.

Any op of `golden.bounds.table`; matrix products have a reference of their own, golden.reference.
Knows nothing of packets, lowering or bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from driver.capture.single import overload
from golden.formats import Values
from golden.reference import exact_values, full_precision

Tensor = torch.Tensor
Result = Tensor | None
"""An output; None when it is no tensor."""


@dataclass(frozen=True)
class OpCall:
    """An ATen (or npu) overload with its arguments as they were recorded."""

    op: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def overload(self) -> Any:
        """The op in torch. InputError when torch has none of that name."""
        return overload(self.op)

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """Every argument by its name in the schema, defaults included."""
        schema = self.overload._schema
        named = {a.name: a.default_value for a in schema.arguments}
        positional = [a.name for a in schema.arguments if not a.kwarg_only]
        named |= dict(zip(positional, self.args, strict=False))
        return named | dict(self.kwargs)

    def __getitem__(self, name: str) -> Any:
        """An argument by its name."""
        return self.arguments[name]

    def tensors(self) -> list[Tensor]:
        """The tensor arguments, those in lists included, in the order of the schema."""
        found: list[Tensor] = []
        for value in self.arguments.values():
            for item in value if isinstance(value, list | tuple) else (value,):
                if isinstance(item, Tensor):
                    found.append(item)
        return found


def base_name(op: str) -> str:
    """aten.add_.Tensor is an `add`, npu.rotary.default an `npu.rotary`."""
    space, name, *_ = op.split(".")
    name = name if name.startswith("__") else name.removesuffix("_")
    return name if space == "aten" else f"{space}.{name}"


def answers(call: OpCall) -> tuple[Result, ...]:
    """What CPU torch computes, in the types it has; the call's own tensors stay as they are."""
    return _run(call, lambda value: value)


def truths(call: OpCall, **replaced: Any) -> tuple[Result, ...]:
    """The same op in float64 on the exactly widened operands; integers as they are.

    Python floats are rounded to fp32 first, as both sides do. `replaced`: arguments that differ
    from the recorded ones.
    """
    arguments = {**call.arguments, **replaced}
    schema = call.overload._schema
    positional = [arguments[a.name] for a in schema.arguments if not a.kwarg_only]
    named = {a.name: arguments[a.name] for a in schema.arguments if a.kwarg_only}
    return _run(OpCall(call.op, positional, named), widened)


def widened(value: Any) -> Any:
    """An argument of the float64 op: floats widened, exactly; containers alike."""
    if isinstance(value, Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, list | tuple):
        return [widened(item) for item in value]
    if isinstance(value, torch.dtype) and value.is_floating_point:
        return torch.float64
    if isinstance(value, float):
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    return value


def values_of(result: Tensor) -> Values:
    """Values as float64 (int64 for integers and truth values), with the tensor's shape."""
    return exact_values(result).reshape(tuple(result.shape))


def _run(call: OpCall, prepare: Callable[[Any], Any]) -> tuple[Result, ...]:
    written = {
        a.name
        for a in call.overload._schema.arguments
        if a.alias_info is not None and a.alias_info.is_write
    }
    arguments = {
        name: value.clone() if name in written and isinstance(value, Tensor) else value
        for name, value in call.arguments.items()
    }
    schema = call.overload._schema
    positional = [prepare(arguments[a.name]) for a in schema.arguments if not a.kwarg_only]
    named = {a.name: prepare(arguments[a.name]) for a in schema.arguments if a.kwarg_only}
    with full_precision(), torch.no_grad():
        made = call.overload(*positional, **named)
    outputs = made if isinstance(made, tuple | list) else (made,)
    return tuple(x.detach() if isinstance(x, Tensor) else None for x in outputs)
