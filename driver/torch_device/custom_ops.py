# SPDX-License-Identifier: Apache-2.0
"""torch.npu.custom_op: an op of the program's own on the NPU, judged like those of the op table.

The decorated function is a lowering rule. The op is one of torch.library: autograd, autocast, fake
tensors and torch.compile are torch's.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from driver.custom_ops import CustomOp, declare
from driver.errors import InputError
from driver.torch_device import _core
from driver.torch_device.pool import POOL

if TYPE_CHECKING:
    from driver.lower.builder import ProgramBuilder

Tensor = torch.Tensor
_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")
_TAKEN = ("aten", "npu", "prims")
"""Namespaces of torch and of this project."""
_NO_TENSORS = (int, float, str, tuple, list, type(None))
_BEFORE = 2
"""Parameters of a rule before the op's own: the builder and the result."""


def custom_op(
    name: str,
    *,
    reference: Callable[..., Any],
    bound: Callable[..., Any],
    samples: Sequence[tuple[Any, ...]],
    dtypes: Sequence[torch.dtype] = (torch.float32,),
    fake: Callable[..., Any] | None = None,
    backward: Callable[..., Any] | None = None,
    setup_context: Callable[..., Any] | None = None,
    autocast: torch.dtype | None = None,
) -> Callable[[Callable[..., None]], Any]:
    """Declare the decorated function as how the NPU computes a new op.

    The function adds packets to a builder, as the rules in driver/lower do: its parameters are the
    builder, the result (a tuple of several), then the op's arguments.

    Args:
        name: "mylib::quantize".
        reference: the op on the CPU, by torch ops, with type hints from which torch makes the
            schema. It computes in float64 for float64 arguments. It writes to no argument.
        bound: a rule of golden.bounds; golden.bounds.own has the usual ones.
        samples: argument lists for its tests; tensors as tb.ops.samples.T.
        dtypes: the types that samples are tried in.
        fake: sizes and types of the results; by default `reference` on fake tensors.
        backward: the gradients of the arguments, from (ctx, gradients of the results).
        setup_context: what `backward` needs, kept from (ctx, inputs, output).
        autocast: the type to which autocast converts floating-point arguments.

    Returns:
        torch's CustomOpDef: callable, and torch.ops.mylib.quantize is the same op.

    Raises:
        InputError: a name, a bound, a rule's parameters or samples that are not as above. Torch's
        errors for a reference that it makes no schema of.

    Example: examples/custom_op.py, explained in docs/custom-ops.md.
    """
    _check_name(name)
    if not callable(bound):
        raise InputError(name, "bound", bound, "a rule of golden.bounds.own, or as those")
    if not samples:
        raise InputError(name, "samples", "none", "one list of arguments")

    def declared(rule: Callable[..., None]) -> Any:
        _check_parameters(name, rule, reference)
        made = torch.library.custom_op(name, reference, mutates_args=(), device_types="cpu")
        schema = made._opoverload._schema
        _check_samples(name, samples, schema.arguments)
        made.register_fake(fake or reference)
        if backward is not None:
            made.register_autograd(backward, setup_context=setup_context)
        if autocast is not None:
            made.register_autocast("npu", autocast)
        overload = f"{name.replace('::', '.')}.default"
        _add_row(overload, _adding(rule), len(schema.returns))
        file = Path(inspect.getfile(rule))
        declare(CustomOp(overload, bound, tuple(samples), tuple(dtypes), file))
        return made

    return declared


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError("custom_op", "name", name, "namespace::name, as mylib::quantize")
    space = name.partition("::")[0]
    if space in _TAKEN:
        raise InputError("custom_op", "name", name, f"a namespace other than {', '.join(_TAKEN)}")


def _check_parameters(name: str, rule: Callable[..., None], reference: Callable[..., Any]) -> None:
    wanted = list(inspect.signature(reference).parameters)
    found = list(inspect.signature(rule).parameters)[_BEFORE:]
    if found != wanted:
        expected = f"builder, result, {', '.join(wanted)}: the reference's"
        raise InputError(name, "parameters of the rule", ", ".join(found) or "none", expected)


def _check_samples(name: str, samples: Sequence[tuple[Any, ...]], schema: Sequence[Any]) -> None:
    """InputError for a sample without a required argument, with more than the schema has, or
    with something else than a tensor in the place of one."""
    required = sum(not argument.has_default_value() for argument in schema)
    for sample in samples:
        if not required <= len(sample) <= len(schema):
            wanted = ", ".join(argument.name for argument in schema)
            raise InputError(name, "samples", f"{len(sample)} arguments", wanted)
        for argument, value in zip(schema, sample, strict=False):
            if str(argument.type) == "Tensor" and isinstance(value, _NO_TENSORS):
                raise InputError(name, f"samples, {argument.name}", value, "T(), a tensor")


def _adding(rule: Callable[..., None]) -> Callable[..., None]:
    """The rule, refused where it adds no packet: its result would be whatever was in memory."""

    @wraps(rule)
    def checked(builder: ProgramBuilder, *args: Any, **kwargs: Any) -> None:
        rule(builder, *args, **kwargs)
        if builder.is_empty:
            expected = "a rule that adds packets, or raises b.unsupported(...)"
            raise builder.unsupported("packets", "none", expected)

    return checked


def _add_row(overload: str, rule: Callable[..., None], outputs: int) -> None:
    from driver.lower.table import add_row  # noqa: PLC0415 (heavy; torch is being imported)
    from driver.torch_device.overloads import arriving, smaller_ops  # noqa: PLC0415 (likewise)

    add_row(overload, rule, outputs)
    arriving.cache_clear()  # what was known of an older op of this name
    smaller_ops.cache_clear()
    for device in POOL.opened.values():
        device.forget_programs()
    _core.forget_calls()
