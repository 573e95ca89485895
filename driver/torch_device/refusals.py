# SPDX-License-Identifier: Apache-2.0
"""Arguments that torch refuses on the CPU and an op's row would compute something of: types that
the op has no meaning for, numbers beyond the type, a divisor of 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

import torch

from driver.capture.schemas import named_arguments
from driver.errors import UnsupportedOp
from driver.torch_device.index_arguments import MASKS
from driver.torch_device.overloads import ArrivingOp

_FLOATS = (
    *(
        "_softmax",
        "_log_softmax",
        "_safe_softmax",
        "logcumsumexp",
        "_logcumsumexp",
        "logaddexp",
        "logaddexp2",
    ),
    *("hypot", "igamma", "igammac", "frac", "frexp", "std", "var", "std_mean", "var_mean"),
    *("silu", "mish", "gelu", "hardsigmoid", "hardshrink", "softshrink", "softplus", "renorm"),
    *("elu", "leaky_relu"),
    *("nll_loss_forward", "nll_loss2d_forward", "multi_margin_loss", "_cdist_forward"),
    *("multilabel_margin_loss_forward", "grid_sampler_2d", "grid_sampler_3d", "multinomial"),
    *("adaptive_avg_pool2d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "normal"),
    *("uniform", "cauchy", "log_normal", "native_batch_norm", "_native_batch_norm_legit"),
    *("_native_batch_norm_legit_no_training", "native_layer_norm", "native_group_norm"),
)
_INTEGERS = ("gcd", "lcm", "bitwise_not")
_NO_TRUTH = (
    *("gcd", "lcm", "mm", "bmm", "addmm", "addbmm", "baddbmm", "mv", "addmv", "dot", "vdot"),
    *("linear", "addcmul", "addcdiv", "bincount", "__lshift__", "__rshift__"),
    *("kthvalue", "median", "nanmedian"),
    *("abs", "ceil", "floor", "trunc", "round", "relu", "trace"),
    *("bitwise_left_shift", "bitwise_right_shift", "cauchy", "log_normal", "geometric"),
)
Holds = Callable[[Sequence[torch.dtype]], bool]
_TYPES: tuple[tuple[frozenset[str], str, Holds], ...] = (
    (
        frozenset(_FLOATS),
        "a floating-point type",
        lambda types: any(dtype.is_floating_point for dtype in types),
    ),
    (
        frozenset(_INTEGERS),
        "integer types",
        lambda types: not any(dtype.is_floating_point for dtype in types),
    ),
    (
        frozenset(("bincount",)),
        "an integer type",
        lambda types: not types[0].is_floating_point,
    ),
    (
        frozenset(_NO_TRUTH),
        "a type of numbers",
        lambda types: any(dtype is not torch.bool for dtype in types),
    ),
)
"""Ops, what their tensors have to be, and whether tensors of these types are."""

_CONVERTED: dict[str, tuple[str, ...]] = {
    "fill.Scalar": ("value",),
    "masked_fill.Scalar": ("value",),
    "index_fill.int_Scalar": ("value",),
    "constant_pad_nd.default": ("value",),
    "scatter.value": ("value",),
    "threshold.default": ("threshold", "value"),
    "clamp.default": ("min", "max"),
    "clamp_min.default": ("min",),
    "clamp_max.default": ("max",),
    **dict.fromkeys(("add.Tensor", "sub.Tensor", "rsub.Tensor", "rsub.Scalar"), ("alpha",)),
    **dict.fromkeys(
        (f"{name}.default" for name in ("addmm", "addmv", "addr", "addbmm", "baddbmm")),
        ("beta", "alpha"),
    ),
    **dict.fromkeys(("addcmul.default", "addcdiv.default"), ("value",)),
    "lerp.Scalar": ("weight",),
    "index_add.default": ("alpha",),
    "hardtanh.default": ("min_val", "max_val"),
    "pow.Tensor_Scalar": ("exponent",),
    "leaky_relu.default": ("negative_slope",),
    "elu.default": ("alpha", "scale", "input_scale"),
    "softplus.default": ("beta", "threshold"),
    **dict.fromkeys(("hardshrink.default", "softshrink.default"), ("lambd",)),
}
"""The op → its numbers that torch converts to the type of the result."""

_IN_FP32 = frozenset(
    (
        *("addmm.default", "addbmm.default", "baddbmm.default", "addcmul.default"),
        *("addcdiv.default", "lerp.Scalar", "leaky_relu.default", "elu.default"),
        "softplus.default",
    )
)
"""Of these, those that convert to fp32 beside tensors of 16 bits."""

_NEGATED = frozenset(("sub.Tensor", "rsub.Tensor", "rsub.Scalar"))
"""Of these, those that convert the number with the other sign."""

_UNCHECKED = (torch.float16, torch.bfloat16)
"""Types to which torch converts a single number without a look."""

_DIVISIONS = {
    *("floor_divide.default", "floor_divide.Scalar", "floor_divide.Tensor"),
    *("remainder.Tensor", "remainder.Scalar", "fmod.Tensor", "fmod.Scalar"),
    *("div.Tensor_mode", "div.Scalar_mode"),
}


_ALIKE = frozenset(
    ("mm", "bmm", "addmm", "addbmm", "baddbmm", "mv", "addmv", "dot", "vdot", "linear")
)
"""Ops that take tensors of one type only."""


def require_arguments(arrived: ArrivingOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """UnsupportedOp for types that the op does not take; RuntimeError, as the CPU says it, for a
    number that it cannot take."""
    namespace, name, overload = arrived.name.split(".")
    if namespace != "aten":
        return
    name = name if name.endswith("__") else name.removesuffix("_")  # in place or not
    _require_types(arrived, name, args, kwargs)
    base = f"{name}.{overload}"
    if base in _CONVERTED:
        _require_converted(base, named_arguments(arrived.op, args, kwargs))
    elif base in _DIVISIONS:
        given = named_arguments(arrived.op, args, kwargs)
        if given.get("rounding_mode", "trunc") is not None:  # else a quotient of floats
            _require_divisor(given["self"], given["other"])
    if base in _REQUIREMENTS:
        _REQUIREMENTS[base](**named_arguments(arrived.op, args, kwargs))


def _require_convolution(
    weight: Any, bias: Any, stride: Any, dilation: Any, transposed: bool, **rest: Any
) -> None:
    """What the CPU requires, and the formula of the result's sizes does not."""
    for name, values in (("stride", stride), ("dilation", dilation)):
        if any(value <= 0 for value in values):
            raise RuntimeError(f"convolution: got {name} {list(values)}, expected more than 0")
    channels = weight.shape[1] * rest["groups"] if transposed else weight.shape[0]
    if not weight.shape[0]:
        raise RuntimeError(f"convolution: got weight {list(weight.shape)}, expected filters")
    if bias is not None and list(bias.shape) != [channels]:
        raise RuntimeError(f"convolution: got bias {list(bias.shape)}, expected [{channels}]")
    limits = zip(rest["output_padding"], stride, dilation, strict=False)
    if transposed and any(pad >= max(step, apart) for pad, step, apart in limits):
        more = list(rest["output_padding"])
        raise RuntimeError(
            f"convolution: got output_padding {more}, expected less than stride or dilation"
        )


def _require_types(
    arrived: ArrivingOp, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    for names, wanted, holds in _TYPES:
        if name in names:
            inputs = (*args, *(kwargs[key] for key in kwargs if key not in arrived.outs))
            types = [x.dtype for x in inputs if isinstance(x, torch.Tensor)]
            if types and not holds(types):
                raise UnsupportedOp(arrived.name, "dtype", str(types[0])[6:], wanted)
    if name in _ALIKE:
        types = [x.dtype for x in args if isinstance(x, torch.Tensor)]
        for other in types[1:]:
            if other is not types[0]:
                both = f"{str(types[0])[6:]} != {str(other)[6:]}"
                raise RuntimeError(f"{name}: expected tensors of the same dtype, but got: {both}")


def _require_divisor(dividend: Any, divisor: Any) -> None:
    """Not 0 as a number of the dividend's type, to which it wraps."""
    if not isinstance(dividend, torch.Tensor) or not isinstance(divisor, int):
        return
    dtype = torch.result_type(dividend, divisor)
    whole = dividend.numel() and not dtype.is_floating_point
    if whole and int(divisor) % (1 << 8 * dtype.itemsize) == 0:
        raise RuntimeError("ZeroDivisionError")


def _require_alike(
    self: Any, indices: Any, values: Any, accumulate: bool = False, **_: Any
) -> None:
    """torch fills with one value where a mask is true, and converts it."""
    masks = any(index is not None and index.dtype in MASKS for index in indices)
    fills = masks and not accumulate and values.numel() == 1
    if values.dtype is not self.dtype and not fills:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{str(self.dtype)[6:]} for the destination and {str(values.dtype)[6:]} for the source."
        )


def _require_weights(
    self: torch.Tensor, num_samples: int, replacement: bool = False, **_: Any
) -> None:
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and self.dim() and num_samples > self.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if not self.numel():
        return
    low, high = (float(x.item()) for x in torch.aminmax(self))
    if not (low >= 0 and high < inf):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not bool((torch.amax(self, -1) > 0).all()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def _require_numbers(self: Any, other: Any, **_: Any) -> None:
    """torch asks this itself where no `out` is given."""
    if any(isinstance(x, torch.Tensor) and x.dtype is torch.bool for x in (self, other)):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
            "to invert a mask, use the `~` or `logical_not()` operator instead."
        )


def _require_mask(mask: torch.Tensor, **_: Any) -> None:
    if mask.dtype is not torch.bool:
        found = str(mask.dtype)[6:]
        raise RuntimeError(
            f"masked_fill only supports boolean masks, but got mask with dtype {found}"
        )


def _require_vector(index: torch.Tensor, **_: Any) -> None:
    if index.dim() > 1:
        raise IndexError(
            f"index_select(): Index is supposed to be a vector, but got dim: {index.dim()}"
        )


def _require_addend(self: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, **_: Any) -> None:
    """Of a product's sizes, also where beta is 0."""
    if mat1.dim() == mat2.dim() == 2:
        self.expand(mat1.shape[0], mat2.shape[1])  # which raises


def _require_order(p: float, **_: Any) -> None:
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")


def _require_range(self: torch.Tensor, to: float = 1.0, **given: Any) -> None:
    """`from` is a word of Python's."""
    begin: float = given.get("from", 0.0)
    limits = torch.finfo(self.dtype)
    for name, value in (("from", begin), ("to", to)):
        if not limits.min <= value <= limits.max:
            raise RuntimeError(f"{name} is out of bounds for {limits.dtype}")
    if begin > to:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={begin} > to={to}"
        )
    if to - begin > limits.max:
        raise RuntimeError(
            f"uniform_ expects to-from <= {limits.max}, but found to={to} and from={begin}"
        )


def _require_chance(p: float = 0.5, train: bool | None = True, **_: Any) -> None:
    if train is not False and not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")


def _require_finite(self: torch.Tensor, min: float = 0, max: float = 0, **_: Any) -> None:
    """Of a histogram without a range: that of the elements, which the host reads."""
    if min == max and self.numel() and not bool(self.isfinite().all()):
        low, high = (x.item() for x in torch.aminmax(self))
        raise RuntimeError(f"torch.histc: range of [{low}, {high}] is not finite")


def _require_whole_range(to: int | None = None, **given: Any) -> None:
    """Of whole numbers; `from` is a word of Python's."""
    begin = given.get("from", 0)
    if to is not None and begin >= to:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={begin} >= to={to}"
        )


def _require_elements(self: torch.Tensor, dim: int, **_: Any) -> None:
    if self.dim() and not self.shape[dim]:
        raise IndexError(
            f"median(): Expected reduction dim {dim % self.dim()} to have non-zero size."
        )


def _require_places(self: torch.Tensor, dim: int, index: torch.Tensor, **_: Any) -> None:
    """An index of a dimension without places is wrong, whatever it is."""
    if self.dim() and index.numel() and not self.shape[dim]:
        raise RuntimeError(f"index out of bounds for dimension {dim % self.dim()} with size 0")


_REQUIREMENTS: dict[str, Callable[..., None]] = {
    "histc.default": _require_finite,
    "median.dim": _require_elements,
    **dict.fromkeys(("random.from", "random.to"), _require_whole_range),
    **dict.fromkeys(
        (
            *("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce"),
            *("scatter_add.default", "scatter_reduce.two", "gather.default"),
        ),
        _require_places,
    ),
    **dict.fromkeys(("masked_fill.Scalar", "masked_fill.Tensor"), _require_mask),
    "sub.Tensor": _require_numbers,
    "_cdist_forward.default": _require_order,
    "addmm.default": _require_addend,
    "index_select.default": _require_vector,
    "index_put.default": _require_alike,
    "convolution.default": _require_convolution,
    "multinomial.default": _require_weights,
    "uniform.default": _require_range,
    **dict.fromkeys(("bernoulli.float", "bernoulli.p", "native_dropout.default"), _require_chance),
}
"""The op → what its arguments, by name, have to be."""


def _require_converted(base: str, given: Mapping[str, Any]) -> None:
    x = given["self"]
    if not isinstance(x, torch.Tensor):  # of rsub
        x = given["other"]
    numbers = [given.get(key) for key in _CONVERTED[base]]
    dtype = x.dtype
    if base == "fill.Scalar" and x.numel() == 1 and dtype in _UNCHECKED:
        return
    if base == "constant_pad_nd.default" and not any(size > 0 for size in given["pad"]):
        return  # nothing is filled
    if base == "pow.Tensor_Scalar":
        if dtype is torch.float32:
            return  # any number is one of float64
        dtype = torch.result_type(x, given["exponent"])
    if "other" in given:
        dtype = torch.result_type(x, given["other"])
    for beside in ("tensor1", "tensor2"):
        if beside in given:
            dtype = torch.promote_types(dtype, torch.result_type(x, given[beside]))
    if base.startswith("clamp") and any(isinstance(number, float) for number in numbers):
        dtype = torch.result_type(x, 0.5)
    if base in _IN_FP32 and dtype in _UNCHECKED:
        dtype = torch.float32
    for number in numbers:
        if isinstance(number, bool | int | float | complex):
            negated = base in _NEGATED and not isinstance(number, bool)
            torch.empty(2, dtype=dtype).fill_(-number if negated else number)  # which raises
