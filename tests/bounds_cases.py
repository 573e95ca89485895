# SPDX-License-Identifier: Apache-2.0
"""Calls of every op that golden has a rule for, with ordinary and with awkward values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from golden.bounds import Expectation
from golden.calls import OpCall
from golden.formats import Bits

INF, NAN = float("inf"), float("nan")
FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def as_specified(expectation: Expectation, bits: Bits) -> Bits:
    """The bits of a result, with those that are specified of the elements that are checked."""
    if expectation.specified is None:
        return bits
    found = bits.copy()
    for flat in expectation.specified.sampled:
        found.reshape(-1)[flat] = expectation.specified.bits(flat)
    return found


class Tensors:
    """Random operands of one type; `awkward` mixes in NaN, infinities, zeros and subnormals."""

    def __init__(self, dtype: torch.dtype, seed: int, *, awkward: bool) -> None:
        self.dtype = dtype
        self._generator = torch.Generator().manual_seed(seed)
        self._awkward = awkward

    def __call__(self, *shape: int, positive: bool = False) -> torch.Tensor:
        x = torch.randn(shape, generator=self._generator) * 3
        x = x.abs() + 0.1 if positive else x
        if self._awkward:
            chosen = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1e-40, -3e-41, 88.0, 3e38, -104.0])
            picked = torch.randint(0, len(chosen), shape, generator=self._generator)
            keep = torch.rand(shape, generator=self._generator) < 0.8
            x = torch.where(keep, x, chosen[picked])
        return x.to(self.dtype)

    def ints(self, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        return torch.randint(0, high, shape, generator=self._generator).to(dtype)


UNARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tanh", "sigmoid"),
    *("erf", "silu", "gelu", "sqrt", "rsqrt", "reciprocal", "neg", "abs", "relu", "softplus"),
    *("square", "isnan", "logical_not", "clone", "floor", "ceil", "round", "trunc"),
)


def elementwise(t: Tensors) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    for name in UNARY:
        yield f"aten.{name}.default", (t(5, 7),), {}
    yield "aten.gelu.default", (t(5, 7),), {"approximate": "tanh"}
    for name in ("add", "sub"):
        yield f"aten.{name}.Tensor", (t(5, 7), t(7)), {}
        yield f"aten.{name}.Tensor", (t(5, 7), t(5, 1)), {"alpha": 0.3}
        yield f"aten.{name}.Tensor", (t(5, 7), 0.1), {}
        yield f"aten.{name}_.Tensor", (t(5, 7), t(7)), {}
    yield "aten.rsub.Scalar", (t(5, 7), 1), {}
    for name in ("mul", "div", "maximum", "minimum"):
        yield f"aten.{name}.{'Tensor' if len(name) == 3 else 'default'}", (t(5, 7), t(7)), {}
    yield "aten.mul.Tensor", (t(5, 7), 0.1), {}
    yield "aten.div.Tensor", (t(5, 7), 3.3), {}
    yield "aten.mul.Tensor", (t(5, 7), t.ints(1000, 7)), {}
    yield "aten.pow.Tensor_Scalar", (t(5, 7, positive=True), 2.5), {}
    yield "aten.pow.Tensor_Scalar", (t(5, 7), 3), {}
    yield "aten.pow.Tensor_Tensor", (t(5, 7, positive=True), t(5, 7)), {}
    yield "aten.clamp.default", (t(5, 7), -0.7, 1.1), {}
    yield "aten.addcmul.default", (t(5, 7), t(7), t(5, 1)), {"value": 0.5}
    for name in ("lt", "le", "eq", "ne", "gt", "ge"):
        yield f"aten.{name}.Tensor", (t(5, 7), t(7)), {}
        yield f"aten.{name}.Scalar", (t(5, 7), 0.1), {}
    yield "aten.where.self", (t(5, 7) > 0, t(5, 7), t(7)), {}
    yield "aten.masked_fill.Scalar", (t(5, 7), t(7) > 0, -1e4), {}


def rows(t: Tensors) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    x = t(6, 5, 40)
    for dim in ([2], [0], [0, 1, 2]):
        yield "aten.sum.dim_IntList", (x, dim), {}
        yield "aten.mean.dim", (x, dim, True), {}
        yield "aten.var.correction", (x, dim), {"correction": 1}
        yield "aten.amax.default", (x, dim), {}
    yield "aten.sum.default", (x,), {}
    yield "aten.sum.dim_IntList", (x, [1]), {"dtype": torch.float32}
    yield "aten.std.correction", (x, [2]), {"correction": 0}
    yield "aten.var_mean.correction", (x, [1, 2]), {"correction": 1, "keepdim": True}
    yield "aten.logsumexp.default", (x, [2]), {}
    yield "aten.argmax.default", (x, 1), {}
    yield "aten.max.dim", (x, 1), {}
    for dim in (0, 2):
        yield "aten.cumsum.default", (x, dim), {}
        yield "aten._softmax.default", (x, dim, False), {}
        yield "aten._log_softmax.default", (x, dim, False), {}
    yield "aten.native_layer_norm.default", (x, [40], t(40), t(40), 1e-5), {}
    yield "aten.native_layer_norm.default", (x, [5, 40], None, None, 1e-5), {}
    yield "aten.rms_norm.default", (x, [40], t(40), 1e-6), {}
    yield "aten.rms_norm.default", (x, [40]), {}
    yield "aten.sort.default", (x, 2), {}
    yield "aten.argsort.default", (x, 0), {}
    yield "aten.native_group_norm.default", (t(2, 6, 7), t(6), t(6), 2, 6, 7, 3, 1e-5), {}
    yield "aten._safe_softmax.default", (x, 1), {}
    yield "aten.topk.default", (x, 3), {}
    stats = (t(5), t(5, positive=True))
    yield (
        "aten._native_batch_norm_legit_no_training.default",
        (x, t(5), t(5), *stats, 0.1, 1e-5),
        {},
    )
    yield "aten.native_batch_norm.default", (x, None, None, *stats, False, 0.1, 1e-5), {}


def larger(t: Tensors) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    q, k, v = t(1, 4, 9, 16), t(1, 2, 11, 16), t(1, 2, 11, 16)
    attention = "aten.scaled_dot_product_attention.default"
    yield attention, (q, k, v), {"enable_gqa": True}
    yield attention, (q, q, q), {"is_causal": True}
    yield attention, (q, q, q, t(9, 9)), {"scale": 0.3}
    flash = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    yield flash, (q, q, q, 0.0, True), {}
    yield "aten._scaled_dot_product_attention_math.default", (q, q, q), {}
    image, kernel = t(2, 4, 9, 10), t(6, 2, 3, 3)
    convolution = (image, kernel, t(6), [2, 1], [1, 1], [1, 2], False, [0, 0], 2)
    yield "aten.convolution.default", convolution, {}
    yield "aten.max_pool2d_with_indices.default", (image, [2, 2], [2, 2]), {}
    yield "aten.avg_pool2d.default", (image, [3, 3], [2, 2], [1, 1]), {}
    yield "aten._adaptive_avg_pool2d.default", (image, [3, 4]), {}
    yield "aten.addmm.default", (t(5), t(3, 8), t(8, 5)), {"alpha": 0.5, "beta": 2}
    yield "aten.mm.default", (t(3, 8), t(8, 5)), {}


def ours(t: Tensors) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    x, scale = t(4, 6), t(6, positive=True)
    zero = torch.tensor([1, 2, -3, 0, 5, 6], dtype=torch.int32)
    one = (torch.tensor(0.02), torch.tensor(-3))
    yield "npu.quantize.default", (x, *one), {}
    yield "npu.quantize.default", (x, scale, zero, 1), {}
    yield "npu.dequantize.default", (t.ints(255, 4, 6, dtype=torch.int8), scale, zero, 1), {}
    sums = t.ints(100_000, 4, 6, dtype=torch.int32)
    yield "npu.requantize.default", (sums, torch.tensor(1e-3), torch.tensor(4)), {}
    yield "npu.rotary.default", (t(2, 5, 8), t(5, 8), t(5, 8)), {}
    weights = t.ints(2**31, 3, 6, dtype=torch.int32)
    yield "npu.int4_mm.default", (t(3, 20), weights, t(3, 6, positive=True), 8), {}


def moves(t: Tensors) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    x, index = t(6, 8), t.ints(6, 4, 8)
    yield "aten.cat.default", ([x, t(2, 8)],), {}
    yield "aten.stack.default", ([x, t(6, 8)], 1), {}
    yield "aten.embedding.default", (x, t.ints(6, 3, 2)), {}
    yield "aten.index_select.default", (x, 1, t.ints(8, 5)), {}
    yield "aten.gather.default", (x, 0, index), {}
    yield "aten.scatter_add.default", (x, 0, index, t(4, 8)), {}
    yield "aten.index_put.default", (x, [t.ints(6, 9)], t(9, 8), True), {}
    yield "aten.index_put.default", (x, [torch.arange(3)], t(3, 8)), {}
    yield "aten.embedding_dense_backward.default", (t(7, 4), t.ints(5, 7), 5, -1, False), {}
    yield "aten.tril.default", (x,), {}
    yield "aten.constant_pad_nd.default", (x, [1, 2]), {}
    yield "aten.copy_.default", (t(6, 8), x), {}
    for dtype in (*FLOATS, torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool):
        yield "aten._to_copy.default", (x,), {"dtype": dtype}
    yield "aten._to_copy.default", (t.ints(1 << 30, 5, 7),), {"dtype": t.dtype}
    yield "aten.arange.start_step", (0.5, 9.0, 0.3), {"dtype": t.dtype}
    yield "aten.full.default", ([3, 2], 0.1), {"dtype": t.dtype}


def calls(dtype: torch.dtype, *, awkward: bool = False) -> list[OpCall]:
    """All of them."""
    families = (elementwise, rows, larger, moves, ours)
    made = (family(Tensors(dtype, seed, awkward=awkward)) for seed, family in enumerate(families))
    return [OpCall(*call) for family in made for call in family]
