# SPDX-License-Identifier: Apache-2.0
"""Which ops a capsule holds whole, and what torch turns the others into.

An op with a row in the op table is recorded as it is, and so is what moves no data or draws random
numbers. A step of an optimizer on lists becomes steps on one parameter. Any other op is run as
torch defines it by smaller ones, if it does: a composite kernel, a
decomposition (`torch._decomp`), a primitive's ATen form, or for an op in place or into `out` the op
itself and a copy. What is left is recorded whole, and refused when it is lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch._C import DispatchKey

import driver.capture.npu_ops  # noqa: F401 (registers torch.ops.npu)
from driver.capture.npu_optimizer_ops import DEFINITIONS
from driver.capture.schemas import require_cast
from driver.errors import UnsupportedOp
from driver.lower import LOWERINGS

Overload = torch._ops.OpOverload
Definition = Callable[..., Any]

ROOM = frozenset(
    f"aten.{name}"
    for name in (
        *("empty.memory_format", "empty_strided.default", "empty_like.default"),
        *("new_empty.default", "new_empty_strided.default", "empty_permuted.default"),
    )
)
"""Ops that only make room: their bytes are not defined."""


_OF_TORCH = ("aten", "profiler")
"""Libraries whose composite kernels call ops, which are recorded."""


@cache
def definition(func: Overload) -> Definition | None:
    """What to call instead of the op, with its arguments; None when it is recorded whole."""
    if str(func) in LOWERINGS or str(func) in ROOM:
        return None
    if str(func) in _OWN_DEFINITIONS:
        return _OWN_DEFINITIONS[str(func)]
    if is_composite(func):
        return func.decompose
    if torch.Tag.nondeterministic_seeded in func.tags or _is_view(func):
        return None
    if func._schema.is_mutable and func.namespace != "prims":
        return _in_place(func) or _into(func)
    return _by_smaller_ops(func)


def _by_smaller_ops(func: Overload) -> Definition | None:
    """torch's definition of an op that writes to no argument."""
    if func.namespace == "prims":
        return getattr(func, "impl_aten", None)
    known = _table().get(func)
    own = func.namespace in _OF_TORCH  # the kernel of another library may be any code, numpy's too
    if known is None and own and _has_kernel(func, DispatchKey.CompositeExplicitAutograd):
        return partial(func._op_dk, DispatchKey.CompositeExplicitAutograd)
    return known


def is_composite(func: Overload) -> bool:
    """Whether torch itself takes the op apart, on every device."""
    return _has_kernel(func, DispatchKey.CompositeImplicitAutograd)


def is_view(func: Overload) -> bool:
    """Whether the op only looks at its argument's elements in another way, in place or not."""
    return torch.Tag.inplace_view in func.tags or not func._schema.is_mutable


def _is_view(func: Overload) -> bool:
    """Whether a result is declared as part of an argument that is not written to."""
    if torch.Tag.inplace_view in func.tags or func is torch.ops.aten._unsafe_view.default:
        return True
    aliases = [result.alias_info for result in func._schema.returns]
    return any(info is not None and not info.is_write for info in aliases)


def fresh_op(func: Overload) -> Overload | None:
    """The op that computes what one in place, or into `out`, writes; None for any other."""
    if not func._schema.is_mutable:
        return None
    return _fresh_in_place(func) or _fresh_into(func)


def _fresh_in_place(func: Overload) -> Overload | None:
    name, arguments = func._schema.name, func._schema.arguments
    writes = [a.alias_info is not None and a.alias_info.is_write for a in arguments]
    if not name.endswith("_") or writes.index(True) or sum(writes) > 1:
        return None
    if str(arguments[0].type) != "Tensor":  # a list of them, as in _foreach_mul_
        return None
    return functional(name.removesuffix("_"), arguments)


def _fresh_into(func: Overload) -> Overload | None:
    outs = [a.name for a in func._schema.arguments if a.is_out]
    if len(outs) != 1 or len(func._schema.returns) != 1:
        return None
    return functional(func._schema.name, [a for a in func._schema.arguments if not a.is_out])


def _in_place(func: Overload) -> Definition | None:
    """The op that returns a fresh tensor, then a copy of it into the first argument."""
    fresh = _fresh_in_place(func)
    if fresh is None:
        return None
    return lambda first, *args, **kwargs: _put(first, fresh(first, *args, **kwargs))


def _put(target: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
    """The target with what was computed for it; a copy alone would convert every type."""
    require_cast(made.dtype, target.dtype)
    return target.copy_(made)


def _into(func: Overload) -> Definition | None:
    """For an op that writes to `out`: the op that returns a fresh tensor, then a copy.

    UnsupportedOp for an `out` of other sizes: torch would resize it, and a record's storages keep
    their size.
    """
    fresh = _fresh_into(func)
    if fresh is None:
        return None
    (name,) = (a.name for a in func._schema.arguments if a.is_out)

    def run(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop(name)
        made = fresh(*args, **kwargs)
        if out.shape != made.shape:
            raise UnsupportedOp(str(func), name, tuple(out.shape), f"sizes {tuple(made.shape)}")
        return _put(out, made)

    return run


def functional(name: str, arguments: Sequence[Any]) -> Overload | None:
    """The ATen overload of that name ("aten::add") with these arguments, that writes to none."""
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
    if packet is None:
        return None
    wanted = [(a.name, str(a.type)) for a in arguments]
    for overload_name in packet.overloads():
        overload: Overload = getattr(packet, overload_name)
        found = [(a.name, str(a.type)) for a in overload._schema.arguments]
        if found == wanted and not overload._schema.is_mutable:
            return overload
    return None


def _lstm_layer(x: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, ...]:
    """oneDNN's layer of an LSTM in one direction, as torch defines one by products and functions.
    RuntimeError for sequences of several lengths, which torch gives to no such layer."""
    from torch._decomp.decompositions import one_layer_lstm  # noqa: PLC0415 (as _table)

    *weights, hidden, cell, reverse, lengths, _, _, _, has_biases, _, _, _ = rest
    if lengths:
        raise RuntimeError(f"an LSTM of lengths {lengths}")
    state = tuple(one.reshape(one.shape[-2:]) for one in (hidden, cell))
    layer: Definition = one_layer_lstm
    out, (last, memory) = layer(x, state, weights, has_biases, reverse)
    return out, last.reshape(hidden.shape), memory.reshape(cell.shape), x.new_empty(0)


_OWN_DEFINITIONS: dict[str, Definition] = {
    **DEFINITIONS,
    "aten.mkldnn_rnn_layer.default": _lstm_layer,
}
"""Where torch has none. One CPU's fused layer is no op of other devices."""


def _has_kernel(func: Overload, key: DispatchKey) -> bool:
    try:
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func._name, key))
    except RuntimeError:  # an overload of TorchScript's alone
        return False


@cache
def _table() -> dict[Any, Definition]:
    """torch's decompositions by overload. Imported when the first op without a row is met."""
    from torch._decomp import decomposition_table  # noqa: PLC0415

    return dict(decomposition_table)
