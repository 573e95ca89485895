# SPDX-License-Identifier: Apache-2.0
"""Random calls of torch: an op of a table, tensors of any type, shape, layout and special values,
numbers beside them. For a comparison of two devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import torch
from torch import Tensor
from torch.nn import functional

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
WHOLE = (torch.int64, torch.int32, torch.int8, torch.uint8)
TYPES = (*FLOATS, *WHOLE, torch.bool)

UNARY = """
    abs neg exp log sqrt rsqrt sin cos tanh sigmoid floor ceil round trunc sign sgn reciprocal
    square isnan isinf isfinite signbit logical_not bitwise_not positive frac erf erfc expm1 log1p
    exp2 log2 log10 relu nan_to_num deg2rad rad2deg atan sinh cosh asinh isposinf isneginf erfinv
"""
BINARY = """
    add sub mul div floor_divide remainder fmod pow eq ne lt le gt ge bitwise_and bitwise_or
    bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_or logical_xor
    copysign xlogy float_power true_divide
"""
OF_TENSORS = """
    maximum minimum fmax fmin atan2 hypot gcd lcm heaviside logaddexp
"""
"""Binary ops that take no number."""
REDUCTIONS = """
    sum mean prod amax amin any all std var nansum count_nonzero logsumexp argmax argmin
"""
ALONG = """
    cumsum cumprod cummax cummin softmax log_softmax flip logcumsumexp diff sort argsort median
    max min unbind
"""
"""Of one dimension."""


@dataclass(frozen=True)
class RandomCall:
    """What to call, with CPU tensors."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]

    def __str__(self) -> str:
        shown = [*map(_shown, self.args), *(f"{k}={_shown(v)}" for k, v in self.options.items())]
        return f"{self.name}({', '.join(shown)})"


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        layout = "" if value.is_contiguous() else f" strides {value.stride()}"
        return f"{str(value.dtype)[6:]}{list(value.shape)}{layout} {value.tolist()}"
    return repr(value)


# ---------------------------------------------------------------------- tensors
def _element(dtype: torch.dtype) -> st.SearchStrategy[float]:
    if dtype is torch.bool:
        return st.booleans()
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        small = st.integers(0 if info.min == 0 else -4, 5)
        return st.one_of(small, small, st.sampled_from((info.min, info.max)))
    plain = st.sampled_from((0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 0.25, 7.5, -0.125))
    odd = st.sampled_from((-0.0, math.inf, -math.inf, math.nan, 1e-3, 100.0))
    return st.one_of(plain, plain, plain, odd)


@st.composite
def tensors(
    draw: st.DrawFn,
    dtypes: Sequence[torch.dtype] = TYPES,
    shape: tuple[int, ...] | None = None,
    *,
    least: int = 0,
) -> Tensor:
    """A tensor, dense or with other strides. `least`: dimensions."""
    dtype = draw(st.sampled_from(dtypes))
    if shape is None:
        shape = tuple(draw(st.lists(st.integers(0, 4), min_size=least, max_size=3)))
    count = math.prod(shape)
    elements = draw(st.lists(_element(dtype), min_size=count, max_size=count))
    dense = torch.tensor(elements, dtype=dtype).reshape(shape)
    layout = draw(st.sampled_from(("dense", "dense", "turned", "spread", "repeated")))
    if layout == "turned" and dense.dim() > 1:
        return dense.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "spread" and dense.dim():
        wide = dense.repeat_interleave(2, -1)
        return wide[..., ::2]
    if layout == "repeated" and dense.dim() and dense.shape[0]:
        return dense[:1].expand(dense.shape)
    return dense


def _broadcastable(shape: Sequence[int]) -> st.SearchStrategy[tuple[int, ...]]:
    def partly(cut: int, ones: list[bool]) -> tuple[int, ...]:
        kept = shape[cut:]
        return tuple(1 if one else n for one, n in zip(ones, kept, strict=False))

    return st.builds(
        partly,
        st.integers(0, len(shape)),
        st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)),
    )


_NUMBERS = st.one_of(
    st.sampled_from((0, 1, 2, -1, 3, 7, 300, -129, 1 << 40)),
    st.sampled_from((0.0, 0.5, -2.0, 1.5, 1e6, math.inf, -0.0)),
    st.booleans(),
)


# ---------------------------------------------------------------------- calls
@st.composite
def _unary(draw: st.DrawFn) -> RandomCall:
    name = draw(st.sampled_from(UNARY.split()))
    return RandomCall(name, getattr(torch, name), (draw(tensors()),), {})


@st.composite
def _binary(draw: st.DrawFn) -> RandomCall:
    name = draw(st.sampled_from((BINARY + OF_TENSORS).split()))
    first = draw(tensors())
    number = name not in OF_TENSORS.split() and draw(st.booleans())
    second = draw(_NUMBERS if number else tensors(shape=draw(_broadcastable(first.shape))))
    options: dict[str, Any] = {}
    if name == "div":
        options = {"rounding_mode": draw(st.sampled_from((None, "floor", "trunc")))}
    if draw(st.booleans()) and hasattr(Tensor, f"{name}_"):

        def in_place(x: Tensor, *rest: Any, **named: Any) -> Tensor:
            changed: Tensor = getattr(x.clone(), f"{name}_")(*rest, **named)
            return changed

        return RandomCall(f"{name}_", in_place, (first, second), options)
    pair = (second, first) if not number and draw(st.booleans()) else (first, second)
    return RandomCall(name, getattr(torch, name), pair, options)


@st.composite
def _reduction(draw: st.DrawFn) -> RandomCall:
    name, x = draw(st.sampled_from(REDUCTIONS.split())), draw(tensors())
    options: dict[str, Any] = {}
    if draw(st.booleans()) and x.dim():
        options = {"dim": draw(st.integers(-x.dim(), x.dim() - 1))}
        if name != "count_nonzero":
            options["keepdim"] = draw(st.booleans())
    if name in ("sum", "prod", "mean", "nansum") and draw(st.booleans()):
        options["dtype"] = draw(st.sampled_from(TYPES))
    return RandomCall(name, getattr(torch, name), (x,), options)


@st.composite
def _along(draw: st.DrawFn) -> RandomCall:
    name, x = draw(st.sampled_from(ALONG.split())), draw(tensors(least=1))
    dim = draw(st.integers(-x.dim(), x.dim() - 1))
    options: dict[str, Any] = {
        "dims" if name == "flip" else "dim": (dim,) if name == "flip" else dim
    }
    if name in ("sort", "argsort"):
        options |= {"stable": True, "descending": draw(st.booleans())}
    if name in ("cumsum", "cumprod") and draw(st.booleans()):
        options["dtype"] = draw(st.sampled_from(TYPES))
    function = getattr(torch, name)
    if name == "median":  # which of equal elements is open; the CPU's is wrong for strides of 0

        def function(x: Tensor, dim: int) -> Tensor:
            return torch.median(x.contiguous(), dim).values

    return RandomCall(name, function, (x,), options)


@st.composite
def _choice(draw: st.DrawFn) -> RandomCall:
    x = draw(tensors())
    mask = draw(tensors((torch.bool,), draw(_broadcastable(x.shape))))
    kind = draw(st.sampled_from(("where", "where number", "masked_fill", "clamp", "stored")))
    if kind == "where":
        other = draw(tensors(shape=draw(_broadcastable(x.shape))))
        return RandomCall("where", torch.where, (mask, x, other), {})
    if kind == "where number":
        return RandomCall("where", torch.where, (mask, x, draw(_NUMBERS)), {})
    if kind == "masked_fill":
        return RandomCall("masked_fill", torch.masked_fill, (x, mask, draw(_NUMBERS)), {})
    if kind == "clamp":
        bounds = st.one_of(st.none(), _NUMBERS)
        return RandomCall("clamp", torch.clamp, (x, draw(bounds), draw(bounds)), {})

    def stored(x: Tensor, mask: Tensor, value: float) -> Tensor:
        changed = x.clone()
        changed[mask] = value
        return changed

    whole = draw(tensors((torch.bool,), tuple(x.shape)))
    return RandomCall("x[mask] = number", stored, (x, whole, draw(_NUMBERS)), {})


@st.composite
def _places(draw: st.DrawFn) -> RandomCall:
    x = draw(tensors(least=1))
    dim = draw(st.integers(-x.dim(), x.dim() - 1))
    size = x.shape[dim]
    places = st.lists(st.integers(0, max(size - 1, 0)), max_size=4 if size else 0)
    index = torch.tensor(draw(places), dtype=draw(st.sampled_from((torch.int64, torch.int32))))
    kind = draw(
        st.sampled_from(("index_select", "index_fill", "index_add", "take_along_dim", "[]"))
    )
    if kind == "index_select":
        return RandomCall(kind, torch.index_select, (x, dim, index), {})
    if kind == "index_fill":
        return RandomCall(kind, torch.index_fill, (x, dim, index.long(), draw(_NUMBERS)), {})
    if kind == "index_add":
        sizes = tuple(len(index) if at == dim % x.dim() else n for at, n in enumerate(x.shape))
        return RandomCall(
            kind, torch.index_add, (x, dim, index, draw(tensors((x.dtype,), sizes))), {}
        )
    if kind == "take_along_dim":
        line = index.long().reshape([-1 if at == dim % x.dim() else 1 for at in range(x.dim())])
        return RandomCall(kind, torch.take_along_dim, (x, line, dim), {})

    def chosen(x: Tensor, index: Tensor) -> Tensor:
        return x.movedim(dim, 0)[index]

    return RandomCall("x[index]", chosen, (x, index), {})


_SHAPED: dict[str, Callable[[st.DrawFn, Tensor], tuple[Any, ...]]] = {
    "roll": lambda draw, x: (draw(st.integers(-5, 5)), draw(_dims(x))),
    "tril": lambda draw, _: (draw(st.integers(-3, 3)),),
    "triu": lambda draw, _: (draw(st.integers(-3, 3)),),
    "repeat_interleave": lambda draw, x: (draw(st.integers(0, 3)), draw(_dims(x))),
    "tile": lambda draw, _: ((draw(st.integers(0, 2)), 1, 2),),
    "rot90": lambda draw, _: (draw(st.integers(-1, 3)), (0, -1)),
    "narrow_copy": lambda draw, x: (-1, draw(st.integers(0, x.shape[-1])), 0),
    "diagonal": lambda draw, _: (draw(st.integers(-2, 2)), 0, -1),
}
"""Op → what it takes besides the tensor."""


def _dims(x: Tensor) -> st.SearchStrategy[int]:
    return st.integers(-x.dim(), x.dim() - 1)


@st.composite
def _shape(draw: st.DrawFn) -> RandomCall:
    x = draw(tensors(least=1))
    kind = draw(st.sampled_from(("cat", "stack", "pad", "to", *_SHAPED)))
    if kind in ("cat", "stack"):
        other = draw(tensors(shape=tuple(x.shape)))
        return RandomCall(kind, getattr(torch, kind), ([x, other], draw(_dims(x))), {})
    if kind == "pad":
        sides = [draw(st.integers(-1, 2)) for _ in range(2)]
        return RandomCall(kind, functional.pad, (x, sides), {"value": draw(_NUMBERS)})
    if kind == "to":
        return RandomCall(kind, Tensor.to, (x, draw(st.sampled_from(TYPES))), {})
    return RandomCall(kind, getattr(torch, kind), (x, *_SHAPED[kind](draw, x)), {})


@st.composite
def _product(draw: st.DrawFn) -> RandomCall:
    m, k, n = (draw(st.integers(0, 4)) for _ in range(3))
    dtype = (draw(st.sampled_from(TYPES)),)
    batch = tuple(draw(st.lists(st.integers(1, 2), max_size=1)))
    left = draw(tensors(dtype, (*batch, m, k)))
    right = draw(tensors(dtype, draw(st.sampled_from(((*batch, k, n), (k, n), (k,))))))
    return RandomCall("matmul", torch.matmul, (left, right), {})


# ---------------------------------------------------------------------- layers and gradients
_SMOOTH = """
    exp tanh sigmoid sin cos erf expm1 atan sinh asinh relu square gelu silu softplus elu celu selu
    mish hardswish hardtanh leaky_relu logsigmoid hardsigmoid softsign tanhshrink relu6
"""
_LAYERS: dict[str, Callable[..., Tensor]] = {
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: functional.rms_norm(x, x.shape[-1:], eps=1e-5),
    "softmax": lambda x: functional.softmax(x, 0),
    "log_softmax": lambda x: functional.log_softmax(x, -1),
    "normalize": lambda x: functional.normalize(x, dim=-1),
    "avg_pool1d": lambda x: functional.avg_pool1d(x[None, None].flatten(2), 2, 1, 1),
    "max_pool1d": lambda x: functional.max_pool1d(x[None, None].flatten(2), 2, 2),
    "linear interpolation": lambda x: functional.interpolate(
        x[None, None].flatten(2), size=5, mode="linear", align_corners=True
    ),
    "cosine": lambda x: functional.cosine_similarity(x, x * x + 1, dim=-1),
    "mse": lambda x: functional.mse_loss(x, x.detach() * 2 + 1),
    "huber": lambda x: functional.huber_loss(x, x.detach() * 2 + 1, reduction="sum"),
    "kl": lambda x: functional.kl_div(x, x.detach().softmax(0), reduction="none"),
    "classes": lambda x: functional.cross_entropy(
        x.flatten(0, -2), torch.zeros(x.shape[:-1].numel(), dtype=torch.long, device=x.device)
    ),
    "convolution": lambda x: functional.conv1d(x[None, None].flatten(2), x.new_ones(1, 1, 2)),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(-1),
    "prod": lambda x: x.prod(0),
    "amax": lambda x: x.amax(-1),
    "std": lambda x: x.std(-1),
    "logsumexp": lambda x: x.logsumexp(0),
    "product": lambda x: x.flatten(0, -2) @ x.flatten(0, -2).mT,
    "norm": lambda x: torch.linalg.vector_norm(x, 3),
    "sort": lambda x: x.sort(0, stable=True).values,
    "turned": lambda x: x.mT * x.mT.flip(0) if x.dim() > 1 else x,
}


@st.composite
def _gradient(draw: st.DrawFn) -> RandomCall:
    """A function of floats, and the gradient of its sum of squares."""
    name = draw(st.sampled_from((*_SMOOTH.split(), *_LAYERS)))
    function = _LAYERS.get(name) or getattr(torch, name, None) or getattr(functional, name)
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    numbers = st.sampled_from((-2.0, -1.0, -0.5, 0.25, 0.5, 1.0, 1.5, 3.0, 0.125))
    count = math.prod(sizes)
    elements = draw(st.lists(numbers, min_size=count, max_size=count))
    x = torch.tensor(elements).reshape(sizes)
    x = x.mT if draw(st.booleans()) else x

    def both(x: Tensor) -> tuple[Tensor, Tensor | None]:
        x = x.clone().requires_grad_()
        found = function(x)
        (found * found).sum().backward()
        return found.detach(), x.grad

    return RandomCall(f"{name}, backward", both, (x,), {})


CALLS: st.SearchStrategy[RandomCall] = st.one_of(
    *(_unary(), _binary(), _binary(), _reduction(), _along(), _choice(), _places(), _shape()),
    *(_product(), _gradient(), _gradient()),
)
