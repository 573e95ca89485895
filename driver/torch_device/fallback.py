# SPDX-License-Identifier: Apache-2.0
"""Ops on the CPU: those that the NPU refuses where the program allows it, and those that it names.

All are counted.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._C import DispatchKey

from driver.capture.schemas import named_arguments, written_tensors
from driver.errors import InputError
from driver.torch_device import _core
from driver.torch_device.observers import not_seen

Tensor = torch.Tensor
Overload = torch._ops.OpOverload
_allowed = False
_ran: Counter[str] = Counter()
_BATCH_NORMS = ("aten.native_batch_norm.default",)
_registered: dict[str, frozenset[str]] = {}
"""What `register_cpu_fallback` was given → the schemas' names of all overloads that it means."""


def allow_cpu_fallback(allowed: bool = True) -> None:
    """Whether an op that the NPU refuses runs on the CPU, with a warning at the first of each."""
    global _allowed  # noqa: PLW0603
    _allowed = allowed


def cpu_fallbacks() -> Mapping[str, int]:
    """How often each op ran on the CPU in this process."""
    return dict(_ran)


def is_allowed() -> bool:
    """Whether the program has allowed it."""
    return _allowed


def register_cpu_fallback(name: str) -> None:
    """From now on the CPU runs this op, also where the NPU could: for bringing up an op.

    `name`: "aten::cumsum", with all its overloads, `out` and in-place forms. InputError for a name
    that torch does not have, or an op that torch takes apart above all devices.
    """
    space, _, op = str(name).partition("::")
    found = [*_overloads(space, op), *_overloads(space, f"{op}_")]
    if not found:
        raise InputError("register_cpu_fallback", "name", name, "an op of torch, as aten::cumsum")
    if all(_is_composite(one) for one in found if not any(a.is_out for a in one._schema.arguments)):
        expected = "an op that reaches the device: torch runs this one by smaller ops"
        raise InputError("register_cpu_fallback", "name", name, expected)
    _registered[name] = frozenset(one._name for one in found)
    _core.forget_calls()  # they ran on the NPU


def unregister_cpu_fallback(name: str) -> None:
    """Undo `register_cpu_fallback`. InputError for a name that is not registered."""
    if name not in _registered:
        known = f"one of {', '.join(_registered) or 'none'}"
        raise InputError("unregister_cpu_fallback", "name", name, known)
    del _registered[name]


def list_cpu_fallbacks() -> tuple[str, ...]:
    """The names registered, in the order of their registration."""
    return tuple(_registered)


def registered_name(op: Overload) -> str | None:
    """The name by which an overload was registered; None for all others."""
    return next((name for name, ops in _registered.items() if op._name in ops), None)


def _overloads(space: str, name: str) -> list[Overload]:
    """Those on tensors; TorchScript's alone have no place in the dispatcher."""
    packet = getattr(getattr(torch.ops, space), name, None) if space and name else None
    found = [] if packet is None else [getattr(packet, one) for one in packet.overloads()]
    return [one for one in found if torch._C._dispatch_has_kernel(one._name)]


def _is_composite(op: Overload) -> bool:
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return bool(has_kernel(op._name, DispatchKey.CompositeImplicitAutograd))


def run_on_cpu(
    op: Overload,
    device: torch.device,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    reason: str,
) -> Any:
    """The op by CPU torch; what it writes and returns is on `device` afterwards.

    A random op draws from the CPU's generator.
    """
    if not torch._C._dispatch_has_computed_kernel_for_dispatch_key(op._name, "CPU"):
        raise NotImplementedError(f"npu: {op} has no kernel on the CPU either: {reason}")
    if str(op) not in _ran:
        warnings.warn(f"npu: {op} runs on the CPU: {reason}", RuntimeWarning, stacklevel=2)
    _ran[str(op)] += 1
    not_seen(f"{op} on the CPU")
    copies: dict[int, Tensor] = {}
    given = [_to_cpu(value, copies) for value in args]
    named = {name: _to_cpu(value, copies) for name, value in kwargs.items()}
    made = op(*given, **named)
    back: dict[int, Tensor] = {}
    for tensor in (*written_tensors(op, args, kwargs), *_statistics(op, args, kwargs)):
        fresh = copies.get(id(tensor), tensor)
        if fresh is not tensor:
            back[id(fresh)] = _stored(fresh, tensor)
    return _to_device(made, device, back)


def _statistics(op: Overload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
    """What a batch norm in training writes to, although its schema does not say so."""
    if str(op) not in _BATCH_NORMS:
        return []
    given = named_arguments(op, args, kwargs)
    found = (given["running_mean"], given["running_var"])
    return [x for x in found if given["training"] and isinstance(x, Tensor)]


def _to_cpu(value: Any, copies: dict[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        if value.device.type == "cpu":
            return value
        if id(value) not in copies:
            copies[id(value)] = value.detach().cpu()
        return copies[id(value)]
    if isinstance(value, list | tuple):
        return [_to_cpu(item, copies) for item in value]
    if isinstance(value, torch.device):
        return torch.device("cpu")
    return None if isinstance(value, torch.Generator) else value


def _stored(fresh: Tensor, tensor: Tensor) -> Tensor:
    """The tensor of the program with what the CPU left in its copy."""
    if tensor.shape != fresh.shape:
        tensor.resize_(fresh.shape)
    if tensor.numel():
        tensor.detach().copy_(fresh)
    return tensor


def _to_device(made: Any, device: torch.device, back: Mapping[int, Tensor]) -> Any:
    """Results on the device: the program's own tensor where the op returned one."""
    if isinstance(made, list | tuple):
        items = [_to_device(item, device, back) for item in made]
        return items if isinstance(made, list) else tuple(items)
    if not isinstance(made, Tensor):
        return made
    return back[id(made)] if id(made) in back else made.to(device)
