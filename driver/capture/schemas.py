# SPDX-License-Identifier: Apache-2.0
"""The arguments of a call by the schema of its ATen op, and what goes into those it writes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

Overload = torch._ops.OpOverload


@cache
def _names(op: Overload) -> tuple[str, ...]:
    return tuple(a.name for a in op._schema.arguments)


@cache
def _written_names(op: Overload) -> tuple[str, ...]:
    return tuple(a.name for a in op._schema.arguments if a.alias_info and a.alias_info.is_write)


def named_arguments(op: Overload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name; those that it leaves out are missing."""
    return {**dict(zip(_names(op), args, strict=False)), **kwargs}


def written_values(op: Overload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """What the schema says the call writes to, in lists too; None where an argument is left out."""
    given = named_arguments(op, args, kwargs)
    for name in _written_names(op):
        yield from tree_leaves(given.get(name))


def written_tensors(
    op: Overload, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[torch.Tensor]:
    """The tensors among `written_values`."""
    return (x for x in written_values(op, args, kwargs) if isinstance(x, torch.Tensor))


def require_cast(computed: torch.dtype, wanted: torch.dtype) -> None:
    """RuntimeError, as torch says it, where a result does not go into a tensor of that type."""
    if not torch.can_cast(computed, wanted):
        raise RuntimeError(
            f"result type {str(computed)[6:]} can't be cast to the desired output type "
            f"{str(wanted)[6:]}"
        )
