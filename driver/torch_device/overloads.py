# SPDX-License-Identifier: Apache-2.0
"""How an op reaches the device, and what it is then: a row of the op table, or smaller ops.

torch hands most ops over in their `out` form, also those in place and those that return a fresh
tensor. The op table has a row for the form without `out`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from driver.capture.decompose import definition, functional
from driver.torch_device.definitions import DEFINITIONS
from driver.torch_device.hardware import has_row

Overload = torch._ops.OpOverload
_OPTIONS = ("dtype", "layout", "device", "pin_memory")


@dataclass(frozen=True)
class ArrivingOp:
    """What the dispatch needs to know of an overload."""

    op: Overload
    name: str
    """In full, of the form without `out`."""
    row: str | None
    """Its row of the op table."""
    outs: tuple[str, ...]
    """The keyword arguments that it writes its results to, in the order of the results."""
    written: tuple[int | None, ...]
    """For each result, the place of the argument that it is; None for a fresh tensor."""
    returns_number: bool
    """Whether its only result is a number or a truth value."""
    random: bool
    pointwise: bool
    """Whether the results' sizes follow from the arguments' sizes and types alone."""
    as_out: bool
    """Whether it computes in the type of `out` where no other is asked for."""


@cache
def arriving(op: Overload) -> ArrivingOp:
    """The facts about an overload."""
    schema = op._schema
    positional = [a for a in schema.arguments if not a.is_out]
    outs = tuple(a.name for a in schema.arguments if a.is_out)
    plain = without_out(op)
    return ArrivingOp(
        op=op,
        name=str(op if plain is None else plain),
        row=None if plain is None else _row(plain),
        outs=outs,
        written=()
        if outs
        else tuple(_argument_of(result, positional) for result in schema.returns),
        returns_number=[str(result.type) for result in schema.returns] in (["bool"], ["int"]),
        random=torch.Tag.nondeterministic_seeded in op.tags
        or any(a.name == "generator" for a in schema.arguments),
        pointwise=torch.Tag.pointwise in (op if plain is None else plain).tags,
        as_out=bool(outs) and schema.name.removeprefix("aten::") in _SUMS,
    )


_SUMS = ("sum", "nansum", "mean", "prod", "cumsum", "cumprod")


@cache
def without_out(op: Overload) -> Overload | None:
    """The overload that returns fresh tensors instead of writing to `out`; the op itself when it
    has no `out`; None when torch has no such overload."""
    name, arguments = op._schema.name, op._schema.arguments
    if not any(a.is_out for a in arguments):
        return op
    wanted = [a for a in arguments if not a.is_out]
    return functional(name, wanted) or _factory(name, wanted)


def is_factory(op: Overload) -> bool:
    """Whether the op makes a tensor of the type and device that it is given by name."""
    return {"dtype", "device"} <= {a.name for a in op._schema.arguments}


def _factory(name: str, arguments: Sequence[Any]) -> Overload | None:
    """The overload that makes a tensor from these arguments, and takes options besides."""
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
    wanted = [(a.name, str(a.type)) for a in arguments]
    for overload_name in packet.overloads():
        overload: Overload = getattr(packet, overload_name)
        own = [a for a in overload._schema.arguments if a.name not in _OPTIONS]
        if is_factory(overload) and [(a.name, str(a.type)) for a in own] == wanted:
            return overload
    return None


def _row(op: Overload) -> str | None:
    """The op's own row, or for an op in place that of the form that returns a fresh tensor."""
    if has_row(str(op)):
        return str(op)
    name = op._schema.name
    if name.endswith("_"):
        fresh = functional(name.removesuffix("_"), op._schema.arguments)
        if fresh is not None and has_row(str(fresh)):
            return str(fresh)
    return None


def _argument_of(result: Any, arguments: list[Any]) -> int | None:
    """The place of the argument that a result is, by the schema's aliases."""
    if result.alias_info is None or not result.alias_info.is_write:
        return None
    wanted = result.alias_info.before_set
    return next(
        at for at, a in enumerate(arguments) if a.alias_info and a.alias_info.before_set == wanted
    )


@cache
def smaller_ops(op: Overload) -> Callable[..., Any] | None:
    """What to call instead of an op without a row, with its arguments; None when nothing is known.

    For an `out` form it defines the form without `out`, and the results are to be copied.
    """
    plain = without_out(op)
    return None if plain is None else DEFINITIONS.get(str(plain)) or definition(plain)
