# SPDX-License-Identifier: Apache-2.0
"""One op as torch was asked for it, CPU torch's answer, and the true one in float64.

Any op of `golden.bounds.table`. Knows nothing of packets, lowering or bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch

from driver.capture.format import HOST_READ
from driver.capture.single import overload
from driver.isa import DType
from driver.random_stream import FIRST_STREAM, RandomStream
from golden.draws import DRAWS, Draw
from golden.products import Product, product_of, reference
from golden.tensors import full_precision

Tensor = torch.Tensor
Result = Tensor | None
"""An output; None when it is no tensor."""
_CPU_KEYS = (
    *("CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd"),
    "CompositeExplicitAutogradNonFunctional",
)
_GRADIENTS_OF_NORMS = (
    *("native_batch_norm_backward", "native_layer_norm_backward"),
    *("native_group_norm_backward", "_fused_rms_norm_backward"),
)
_WRITTEN_IN_TRAINING = {"aten.native_batch_norm.default": ("running_mean", "running_var")}
"""Arguments that an op writes to although its schema does not say so."""


@dataclass(frozen=True)
class OpCall:
    """An ATen (or npu) overload with its arguments as they were recorded."""

    op: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    stream: RandomStream = FIRST_STREAM
    """What a random op draws."""
    result: DType | None = None
    """Result type of a matrix product, where torch has no such op."""

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

    @cached_property
    def product(self) -> Product | None:
        """The matrix product that the op is; None when it is none."""
        return product_of(self.op, self.arguments, self.result)

    def __getitem__(self, name: str) -> Any:
        """An argument by its name."""
        return self.arguments[name]

    def written(self) -> tuple[str, ...]:
        """The tensors that the op writes to and does not return, by name, in schema order."""
        schema = self.overload._schema
        returned = {
            alias for x in schema.returns if x.alias_info for alias in x.alias_info.before_set
        }
        hidden = _WRITTEN_IN_TRAINING.get(self.op, ()) if self.arguments.get("training") else ()
        return tuple(
            a.name
            for a in schema.arguments
            if isinstance(self[a.name], Tensor) and (_writes(a, returned) or a.name in hidden)
        )

    def tensors(self) -> list[Tensor]:
        """The tensor arguments, those in lists included, in the order of the schema."""
        found: list[Tensor] = []
        for value in self.arguments.values():
            for item in value if isinstance(value, list | tuple) else (value,):
                if isinstance(item, Tensor):
                    found.append(item)
        return found


def _writes(argument: Any, returned: set[str]) -> bool:
    """Whether a schema's argument is written to, and is none of what is returned."""
    info = argument.alias_info
    return info is not None and info.is_write and not info.before_set & returned


def base_name(op: str) -> str:
    """aten.add_.Tensor is an `add`, npu.rotary.default an `npu.rotary`."""
    space, name, *_ = op.split(".")
    name = name if name.startswith("__") else name.removesuffix("_")
    return name if space == "aten" else f"{space}.{name}"


def answers(call: OpCall) -> tuple[Result, ...]:
    """What the NPU should answer, by CPU torch: the results, then what `written` names as the op
    leaves it. The call's own tensors stay as they are.

    A matrix product has the result type of the matrix engine; a random op the numbers of
    docs/numerics.md, not those of torch's generator. Anything else is torch's own answer.
    """
    if call.product is not None:
        return (reference(call.product),)
    found = torch_answers(call)
    rule = DRAWS.get(base_name(call.op))
    return found if rule is None else rule(draw_of(call, found))


def torch_answers(call: OpCall) -> tuple[Result, ...]:
    """What CPU torch itself answers, in the types it has; else as `answers`.

    It has no gradient of a normalisation for fp32 statistics beside 16-bit operands: that one is
    its fp32 gradient, rounded to the types of what it is the gradient of.
    """
    types = {x.dtype for x in call.tensors() if x.is_floating_point()}
    if base_name(call.op) not in _GRADIENTS_OF_NORMS or len(types) == 1:
        return _run(call, lambda value: value)
    x, weight = call["input"], call["weight"]
    made = _run(call, _as_fp32)
    own = (x, *[x if weight is None else weight] * 2)
    return tuple(
        None if found is None else found.to(of.dtype) for found, of in zip(made, own, strict=False)
    )


def _as_fp32(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.is_floating_point() else value


def draw_of(call: OpCall, found: tuple[Result, ...]) -> Draw:
    """A random op as golden.draws takes it; `found` gives its results' sizes and types."""
    return Draw(call.arguments, call.stream, tuple(x for x in found if x is not None))


_NUMBERS = ("number", "Optional[number]")
"""Types of arguments that are operands, not sizes."""


def truths(call: OpCall, **replaced: Any) -> tuple[Result, ...]:
    """The same op in float64 on the exactly widened operands; integers as they are.

    Python numbers beside floats are rounded to fp32 first, as both sides do. `replaced`: arguments
    that differ from the recorded ones.
    """
    arguments = {**call.arguments, **replaced}
    schema = call.overload._schema
    if any(isinstance(x, Tensor) and x.is_floating_point() for x in arguments.values()):
        for a in schema.arguments:
            if str(a.type) in _NUMBERS and type(arguments[a.name]) is int:
                arguments[a.name] = float(np.float32(arguments[a.name]))
    positional = [arguments[a.name] for a in schema.arguments if not a.kwarg_only]
    named = {a.name: arguments[a.name] for a in schema.arguments if a.kwarg_only}
    return _run(OpCall(call.op, positional, named, call.stream), widened)


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


def _copied(value: Any) -> Any:
    """Tensors of their own, those in a list included."""
    if isinstance(value, list | tuple):
        return [_copied(item) for item in value]
    return value.clone() if isinstance(value, Tensor) else value


def _run(call: OpCall, prepare: Callable[[Any], Any]) -> tuple[Result, ...]:
    schema = call.overload._schema
    left = call.written()
    written = {a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write} | {*left}
    arguments = {
        name: prepare(_copied(value) if name in written else value)
        for name, value in call.arguments.items()
    }
    positional = [arguments[a.name] for a in schema.arguments if not a.kwarg_only]
    named = {a.name: arguments[a.name] for a in schema.arguments if a.kwarg_only}
    with full_precision(), torch.no_grad():
        made = _on_cpu(call.overload)(*positional, **named)
    outputs = [*(made if isinstance(made, tuple | list) else (made,))]
    if "output_mask" in arguments:  # torch may return a tensor for a gradient that is not asked for
        asked = arguments["output_mask"]
        outputs = [x if wanted else None for x, wanted in zip(outputs, asked, strict=True)]
    outputs = [*outputs[: len(outputs) if schema.returns else 0], *(arguments[n] for n in left)]
    return tuple(_result(call, item) for item in outputs)


def _on_cpu(overload: Any) -> Callable[..., Any]:
    """The op itself, or torch's definition of it by smaller ops where the CPU has no kernel."""
    name = overload._name
    if any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in _CPU_KEYS):
        return cast("Callable[..., Any]", overload)
    from torch._decomp import decomposition_table  # noqa: PLC0415 (slow, and seldom needed)

    return cast("Callable[..., Any]", decomposition_table.get(overload, overload))


def _result(call: OpCall, made: object) -> Result:
    """An output. A number is a tensor without dimensions; one that the host read, the operand."""
    if isinstance(made, bool | int | float):
        if call.op != HOST_READ:
            return torch.tensor(made)
        (operand,) = call.tensors()
        return torch.tensor(made, dtype=operand.dtype).reshape(operand.shape)
    return made.detach() if isinstance(made, Tensor) else None
