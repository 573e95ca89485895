# SPDX-License-Identifier: Apache-2.0
"""One parameter's step of an optimizer, as ops of torch.ops.npu: torch has them for lists only.

What they mean on the CPU is torch's own fused kernel on lists of one tensor. `definitions` says how
the ops on lists become these, which is how device "npu" and captures run them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Tensor = torch.Tensor

_STATE = "Tensor(a!) self, Tensor grad, Tensor(b!) exp_avg, Tensor(c!) exp_avg_sq"
_ADAM = (
    "float lr, float beta1, float beta2, float weight_decay, float eps, bool maximize, "
    "bool decoupled"
)
SCHEMAS: dict[str, str] = {
    "sgd_": "(Tensor(a!) self, Tensor grad, *, float lr, float weight_decay, bool maximize)"
    " -> Tensor(a!)",
    "sgd_momentum_": "(Tensor(a!) self, Tensor grad, Tensor(b!) momentum_buffer, *, float lr, "
    "float momentum, float dampening, float weight_decay, bool nesterov, bool maximize, "
    "bool is_first_step) -> (Tensor(a!), Tensor(b!))",
    "adam_": f"({_STATE}, Tensor step, *, {_ADAM}) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    "amsgrad_": f"({_STATE}, Tensor(d!) max_exp_avg_sq, Tensor step, *, {_ADAM})"
    " -> (Tensor(a!), Tensor(b!), Tensor(c!), Tensor(d!))",
    "unscale_": "(Tensor(a!) self, Tensor(b!) found_inf, Tensor inv_scale)"
    " -> (Tensor(a!), Tensor(b!))",
}
"""Name → the rest of its schema."""


# ---------------------------------------------------------------------- meaning
_GRADIENT = 1
"""Its place among a parameter's tensors."""


def _in_lists(update: Callable[..., None], state: Sequence[Tensor | None], **options: Any) -> None:
    """torch's kernel on tensors that it handles: dense ones, not of 16 bits, which become fp32.

    It does not look at strides, and its SGD leaves 16-bit parameters as they are where they fill a
    vector register (torch 2.13).
    """
    dense = [None if x is None else _not_of_16_bits(x).contiguous().clone() for x in state]
    update(*([] if x is None else [x] for x in dense), **options)
    for at, (given, made) in enumerate(zip(state, dense, strict=True)):
        if at != _GRADIENT and given is not None and made is not None:
            given.copy_(made)


def _not_of_16_bits(x: Tensor) -> Tensor:
    return x.float() if x.element_size() == 2 else x


def _sgd(self: Tensor, grad: Tensor, **options: Any) -> Tensor:
    given = {"momentum": 0.0, "dampening": 0.0, "nesterov": False, "is_first_step": False}
    _in_lists(torch._fused_sgd_, (self, grad, None), **given, **options)
    return self


def _sgd_momentum(
    self: Tensor, grad: Tensor, momentum_buffer: Tensor, **options: Any
) -> tuple[Tensor, ...]:
    _in_lists(torch._fused_sgd_, (self, grad, momentum_buffer), **options)
    return self, momentum_buffer


def _adam(*state: Tensor, decoupled: bool, **options: Any) -> tuple[Tensor, ...]:
    """`state`: the tensors of a schema above, the step last."""
    update = torch._fused_adamw_ if decoupled else torch._fused_adam_
    parameter, grad, mean, square, *largest, step = state
    given = (parameter, grad, mean, square, largest[0] if largest else None, step)
    _in_lists(update, given, amsgrad=bool(largest), **options)
    return parameter, mean, square, *largest


def _unscale(self: Tensor, found_inf: Tensor, inv_scale: Tensor) -> tuple[Tensor, Tensor]:
    torch._amp_foreach_non_finite_check_and_unscale_([self], found_inf, inv_scale)
    return self, found_inf


KERNELS: dict[str, Callable[..., Any]] = {
    "sgd_": _sgd,
    "sgd_momentum_": _sgd_momentum,
    "adam_": _adam,
    "amsgrad_": _adam,
    "unscale_": _unscale,
}
"""Name → the op on the CPU."""


def written(name: str) -> Callable[..., Any]:
    """The op without its computation: what it returns is what it writes to."""

    def results(*args: Any, **_options: Any) -> Any:
        arguments = getattr(torch.ops.npu, name).default._schema.arguments
        found = tuple(
            value
            for value, argument in zip(args, arguments, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write
        )
        return found if len(found) > 1 else found[0]

    return results


# ---------------------------------------------------------------------- lists
def _may_step(grads: Sequence[Tensor], grad_scale: Tensor | None, found_inf: Tensor | None) -> bool:
    """False after an infinity, which the host reads as torch's own CPU kernel does; else the
    gradients are divided by their scale."""
    if found_inf is not None and found_inf.item():
        return False
    if grad_scale is not None:
        for grad in grads:
            grad.div_(grad_scale)
    return True


def _fused_sgd(
    self: Sequence[Tensor],
    grads: Sequence[Tensor],
    momentum_buffer_list: Sequence[Tensor],
    *,
    lr: float | Tensor,
    momentum: float,
    weight_decay: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    if not _may_step(grads, grad_scale, found_inf):
        return
    common = {"lr": float(lr), "weight_decay": weight_decay, "maximize": maximize}
    if not momentum_buffer_list:
        for parameter, grad in zip(self, grads, strict=True):
            torch.ops.npu.sgd_(parameter, grad, **common)
        return
    common |= {"momentum": momentum, "dampening": dampening, "nesterov": nesterov}
    for state in zip(self, grads, momentum_buffer_list, strict=True):
        torch.ops.npu.sgd_momentum_(*state, **common, is_first_step=is_first_step)


_LARGEST = 4
"""The place of the list max_exp_avg_sqs, which holds something with `amsgrad` only."""


def _fused_adam(decoupled: bool) -> Callable[..., None]:
    def fused(
        *lists: Sequence[Tensor],
        lr: float | Tensor,
        amsgrad: bool,
        grad_scale: Tensor | None = None,
        found_inf: Tensor | None = None,
        **options: Any,
    ) -> None:
        if not _may_step(lists[_GRADIENT], grad_scale, found_inf):
            return
        options |= {"lr": float(lr), "decoupled": decoupled}
        step = torch.ops.npu.amsgrad_ if amsgrad else torch.ops.npu.adam_
        for state in zip(
            *(given for at, given in enumerate(lists) if amsgrad or at != _LARGEST), strict=True
        ):
            step(*state, **options)

    return fused


def _check_and_unscale(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    for grad in self:
        torch.ops.npu.unscale_(grad, found_inf, inv_scale)


DEFINITIONS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(("aten._fused_sgd_.default", "aten._fused_sgd_.tensor_lr"), _fused_sgd),
    **dict.fromkeys(
        ("aten._fused_adam_.default", "aten._fused_adam_.tensor_lr"), _fused_adam(decoupled=False)
    ),
    **dict.fromkeys(
        ("aten._fused_adamw_.default", "aten._fused_adamw_.tensor_lr"), _fused_adam(decoupled=True)
    ),
    "aten._amp_foreach_non_finite_check_and_unscale_.default": _check_and_unscale,
}
"""Op on lists → its definition by the ops on one parameter, with the op's arguments."""
