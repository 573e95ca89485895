# SPDX-License-Identifier: Apache-2.0
"""Ops, most of them backward ones, that torch does not define by smaller ops: by ops with rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from driver.torch_device import attention, layers
from driver.torch_device.formulas import FORMULAS, IN_FP32
from driver.torch_device.formulas.integers import in_common_type

Tensor = torch.Tensor


def index_put_impl(
    self: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Tensor:
    """What the gradient of an index calls: index_put_ with or without a check of the indices."""
    found: Tensor = torch.ops.aten.index_put_(self, indices, values, accumulate)
    return found


def addbmm(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta·self + alpha·(the sum of the products of a batch), rounded once."""
    found: Tensor = torch.bmm(_wide(batch1), _wide(batch2)).sum(0) * _factor(self, alpha)
    found = found if beta == 0 else found + _wide(self) * _factor(self, beta)
    return found.to(batch1.dtype)


def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta·self + alpha·(the products of all pairs), rounded once. RuntimeError, as on the CPU, for
    a fraction beside integers."""
    if _is_whole(self) and float in (type(beta), type(alpha)):
        raise RuntimeError("For integral input tensors, beta and alpha must not be floating point.")
    x, left, right = in_common_type(self, vec1, vec2)
    found = torch.outer(_wide(left), _wide(right)) * _factor(self, alpha)
    found = found if beta == 0 else found + _wide(x) * _factor(self, beta)
    return found.to(x.dtype)


def _is_whole(x: Tensor) -> bool:
    return not x.is_floating_point() and not x.is_complex()


def _factor(x: Tensor, factor: float) -> float:
    """As torch takes it: cut to a whole number for integers."""
    return int(factor) if _is_whole(x) else factor


def eye(n: int, *sizes: int, **kwargs: Any) -> Tensor:
    """1 on the diagonal of n rows and as many columns, or so many. torch counts in uint16."""
    made: Tensor = torch.zeros(n, *(sizes or (n,)), **kwargs)
    made.diagonal().fill_(1)
    return made


def table(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A table of numbers, which the host makes."""

    def made(
        *args: Any,
        dtype: torch.dtype | None = None,
        device: torch.device | None = None,
        **_options: Any,
    ) -> Tensor:
        options = {} if dtype is None else {"dtype": dtype}
        return make(*args, **options).to(device)

    return made


def linspace(start: float, end: float, steps: int, **kwargs: Any) -> Tensor:
    """Integers are a table: fp32 does not hold those beyond 2²⁴."""
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    if dtype.is_floating_point or dtype.is_complex:
        made: Tensor = torch._refs.linspace(start, end, steps, **kwargs)
        return made
    return table(torch.linspace)(start, end, steps, **kwargs)


def threshold(self: Tensor, threshold: float, value: float) -> Tensor:
    """`value` where the element is not above a threshold, of integers in their own type; NaN
    stays."""
    if _is_whole(self):
        threshold, value = int(threshold), int(value)
    return torch.where(self <= threshold, value, self)


def _wide(x: Tensor) -> Tensor:
    """In fp32, if it is in a shorter floating-point type."""
    return x.float() if x.is_floating_point() else x


def fmax(self: Tensor, other: Tensor) -> Tensor:
    """The larger one, or the one that is a number."""
    larger = torch.maximum(self, other)
    return torch.where(self.isnan(), other, torch.where(other.isnan(), self, larger))


def fmin(self: Tensor, other: Tensor) -> Tensor:
    """The smaller one, or the one that is a number."""
    smaller = torch.minimum(self, other)
    return torch.where(self.isnan(), other, torch.where(other.isnan(), self, smaller))


def index_fill_(self: Tensor, dim: int, index: Tensor, value: float | Tensor) -> Tensor:
    """`value` at these positions of a dimension."""
    sizes = list(self.shape)
    if sizes:
        sizes[dim] = index.numel()
    filled = self.new_empty(sizes)
    filled = filled.copy_(value) if isinstance(value, Tensor) else filled.fill_(value)
    count = self.shape[dim] if sizes else 1
    return self.index_copy_(dim, torch.where(index < 0, index + count, index), filled)


def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    """Each place as often as `repeats` says: places [their sum], of its type.

    RuntimeError for a negative number, and when the sum is not `output_size`.
    """
    if not repeats.numel():
        return torch.empty_like(repeats)
    ends = repeats.cumsum(0)
    if bool((repeats < 0).any()):
        raise RuntimeError("repeats can not be negative")
    count = int(ends[-1])
    if output_size is not None and output_size != count:
        raise RuntimeError(f"allocated size {output_size} does not match required size {count}")
    places = torch.arange(count, dtype=ends.dtype, device=repeats.device)
    return torch.searchsorted(ends, places, right=True).to(repeats.dtype)


def softshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    """x less lambd towards 0, but not beyond. A sum has lambd exact, a comparison not."""
    positive = self > 0
    nearer = torch.where(positive, self - lambd, self + lambd)
    return torch.where(torch.where(positive, nearer > 0, nearer < 0), nearer, self * 0)


def shrink_backward(grad_output: Tensor, self: Tensor, lambd: float) -> Tensor:
    """The gradient where hardshrink and softshrink are not flat, and of NaN."""
    return torch.where(self.abs() <= lambd, torch.zeros_like(grad_output), grad_output)


def power_of_number(self: float, exponent: Tensor) -> Tensor:
    """A number to the power of each element."""
    dtype = torch.result_type(exponent, self)
    return torch.pow(torch.full_like(exponent, self, dtype=dtype), exponent.to(dtype))


def mish_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    """grad·(t + x·σ(x)·(1 − t²)), t = tanh(log(1 + eˣ)), rounded once."""
    x = _wide(self)
    slope = torch.tanh(torch.nn.functional.softplus(x))
    slope = slope + x * torch.sigmoid(x) * (1 - slope * slope)
    return (_wide(grad_output) * slope).to(self.dtype)


def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """v·g ÷ its norm over all other dimensions, rounded once; the norm, of bf16 in fp32."""
    norm = torch.norm_except_dim(_wide(v), 2, dim)
    kept = norm if v.dtype is torch.bfloat16 else norm.to(g.dtype)
    return (_wide(v) * (_wide(g) / norm)).to(v.dtype), kept


def weight_norm_backward(
    grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int
) -> Any:
    """As torch defines it where it is to be differentiated again, rounded once."""
    given = (_wide(x) for x in (grad_w, saved_v, saved_g, saved_norms))
    made = torch.ops.aten._weight_norm_differentiable_backward(*given, dim)
    return tuple(x.to(saved.dtype) for x, saved in zip(made, (saved_v, saved_g), strict=True))


def embedding_renorm_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """The rows that are looked up, scaled down to a p-norm of at most `max_norm`."""
    rows = torch.unique(indices.reshape(-1)).long()
    return self.index_copy_(0, rows, self[rows].renorm(norm_type, 0, max_norm))


OF_TWO_NUMBERS = frozenset(
    f"aten.{name}{form}"
    for name, overload in (
        *(("xlogy", "Tensor"), ("special_xlog1py", "default"), ("hypot", "default")),
        *(("igamma", "default"), ("igammac", "default"), ("special_zeta", "default")),
        *(("copysign", "Tensor"), ("nextafter", "default"), ("gcd", "default"), ("lcm", "default")),
    )
    for form in (f".{overload}", f"_.{overload}")
)
"""Ops whose definition takes operands of one type, on one device."""

COMPUTED_IN_FP32 = IN_FP32 | {
    *("aten.addbmm.default", "aten.addr.default", "aten.mish_backward.default"),
    *("aten._weight_norm_interface.default", "aten._weight_norm_interface_backward.default"),
    *("aten.scatter_reduce.two", "aten.index_reduce.default"),
}
"""Formulas that take nothing of float64."""

DEFINITIONS: dict[str, Callable[..., Any]] = {
    **FORMULAS,
    "aten.addbmm.default": addbmm,
    "aten.addr.default": addr,
    "aten.eye.default": eye,
    "aten.eye.m": eye,
    "aten.linspace.default": linspace,
    "aten.logspace.default": table(torch.logspace),
    **{
        f"aten.kaiser_window.{form}": table(torch.kaiser_window)
        for form in ("default", "periodic", "beta")
    },
    "aten.threshold.default": threshold,
    "aten.fmax.default": fmax,
    "aten.fmin.default": fmin,
    "aten.repeat_interleave.Tensor": repeat_interleave,
    "aten.pow.Scalar": power_of_number,
    "aten.tril_indices.default": table(torch.tril_indices),
    "aten.triu_indices.default": table(torch.triu_indices),
    "aten.softshrink.default": softshrink,
    "aten.hardshrink_backward.default": shrink_backward,
    "aten.softshrink_backward.default": shrink_backward,
    "aten.index_fill_.int_Scalar": index_fill_,
    "aten.index_fill_.int_Tensor": index_fill_,
    "aten._index_put_impl_.default": index_put_impl,
    "aten._scaled_dot_product_fused_attention_overrideable.default": attention.attention,
    "aten._scaled_dot_product_fused_attention_overrideable_backward.default": (
        attention.attention_backward
    ),
    "aten.mish_backward.default": mish_backward,
    "aten._weight_norm_interface.default": weight_norm,
    "aten._weight_norm_interface_backward.default": weight_norm_backward,
    "aten.embedding_renorm_.default": embedding_renorm_,
    "aten._thnn_fused_lstm_cell.default": layers.lstm_cell,
    "aten._thnn_fused_lstm_cell_backward_impl.default": layers.lstm_cell_backward,
    "aten._thnn_fused_gru_cell.default": layers.gru_cell,
    "aten._thnn_fused_gru_cell_backward.default": layers.gru_cell_backward,
    "aten._native_multi_head_attention.default": layers.multi_head_attention,
    "aten._transformer_encoder_layer_fwd.default": layers.transformer_encoder_layer,
    "aten._nested_tensor_from_mask_left_aligned.default": layers.no_nested_tensor,
}
"""Op → its definition by ops with rows, with the op's arguments."""
