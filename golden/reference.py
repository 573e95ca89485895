# SPDX-License-Identifier: Apache-2.0
"""CPU torch's answer: the op on the original tensors. Knows nothing of packets or lowering.

`matmul_call` reads the arguments of an ATen op, `reference` has torch compute it, `product`
states the same problem in exact values for `golden.tolerance`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from driver.capture import Capsule, Op
from driver.capture.tensors import to_torch
from driver.errors import UnsupportedOp
from driver.isa import MATMUL_DTYPES, DType
from golden.formats import Values
from golden.problem import Product

Tensor = torch.Tensor

NPU_TYPES: dict[torch.dtype, DType] = {
    torch.float32: DType.FP32,
    torch.float16: DType.FP16,
    torch.bfloat16: DType.BF16,
    torch.int8: DType.INT8,
    torch.int32: DType.INT32,
    torch.uint8: DType.UINT8,
    torch.bool: DType.UINT8,
    torch.int64: DType.INT64,
}
TORCH_TYPES = {npu: dtype for dtype, npu in NPU_TYPES.items() if dtype is not torch.bool}


_OPERANDS = {operand for operand, _ in MATMUL_DTYPES}


@dataclass(frozen=True)
class MatmulCall:
    """One matrix product as torch was asked for it: D = A·B (+ C).

    a [M, K] or [batch, M, K], b likewise, c broadcasts to D. `sizes` is D's shape as the op
    returns it (linear keeps the leading dimensions of its input).
    """

    op: str
    a: Tensor
    b: Tensor
    c: Tensor | None
    operand: DType
    result: DType
    sizes: tuple[int, ...]


def is_matmul(op: str) -> bool:
    """Whether `matmul_call` knows the op."""
    return op in _READERS


def matmul_call(
    op: str, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, *, result: Any = None
) -> MatmulCall:
    """Read the arguments of an ATen op ("aten.addmm.default").

    `result` (DType) overrides the result type: by default that of the operands, and INT32 for
    int8, where the NPU keeps the whole sum.

    Raises:
        UnsupportedOp: another op, other scalars than alpha = 1 and beta = 0 or 1, or other types.
    """
    reader = _READERS.get(op)
    if reader is None:
        raise UnsupportedOp(op, "op", op, f"one of {', '.join(_READERS)}")
    a, b, c, lead = reader(op, args, dict(kwargs or {}))
    operand = NPU_TYPES.get(a.dtype)
    if operand not in _OPERANDS or b.dtype != a.dtype:
        raise UnsupportedOp(op, "dtype", f"{a.dtype} and {b.dtype}", "fp32, fp16, bf16 or int8")
    if result is None:
        result = DType.INT32 if operand is DType.INT8 else operand
    return MatmulCall(op, a, b, c, operand, result, (*lead, b.shape[-1]))


def recorded_call(capsule: Capsule, op: Op) -> MatmulCall:
    """The same for an op of a capsule, with its recorded tensors."""
    args = [to_torch(capsule, value) for value in op.inputs]
    named = {key: to_torch(capsule, value) for key, value in op.kwargs.items()}
    return matmul_call(op.op, args, named)


def reference(call: MatmulCall) -> Tensor:
    """What CPU torch computes, of shape `call.sizes` and the result type.

    Operands and result of one type: torch's own op. fp16 or bf16 to fp32: torch's fp32 product of
    the widened operands. int8: torch has no such op for all shapes (its int8 mm wraps to int8), so
    the exact int64 product, modulo 2^32.
    """
    if call.operand is DType.INT8:
        total = torch.matmul(call.a.long(), call.b.long())
        total = total if call.c is None else total + call.c.long()
        return total.to(torch.int32).reshape(call.sizes)  # keeps the low 32 bits
    dtype = TORCH_TYPES[call.result]
    a, b = call.a.to(dtype), call.b.to(dtype)
    c = None if call.c is None else call.c.to(dtype)
    with full_precision(), torch.no_grad():
        return _compute(a, b, c).reshape(call.sizes)


def product(call: MatmulCall) -> Product:
    """The problem in exact values, batched: a [batch, M, K], b [batch, K, N], c [batch, M, N]."""
    a, b = (_batched(exact_values(x)) for x in (call.a, call.b))
    c = None
    if call.c is not None:
        shape = (a.shape[0], a.shape[1], b.shape[2])
        c = np.broadcast_to(exact_values(call.c), shape)
    return Product(a, b, c, call.operand, call.result)


def exact_values(tensor: Tensor) -> Values:
    """A tensor's values as float64 (int64 for integers), with its shape."""
    exact = tensor.detach().to(torch.float64 if tensor.is_floating_point() else torch.int64)
    return np.ascontiguousarray(exact.numpy())


def _batched(values: Values) -> Values:
    return values if values.ndim == 3 else values[None]


def _compute(a: Tensor, b: Tensor, c: Tensor | None) -> Tensor:
    if c is None:
        return torch.bmm(a, b) if a.dim() == 3 else torch.mm(a, b)
    return torch.baddbmm(c, a, b) if a.dim() == 3 else torch.addmm(c, a, b)


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """No user setting may lower torch's fp32 products to bf16 or tf32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


_Read = tuple[Tensor, Tensor, Tensor | None, tuple[int, ...]]


def _read_product(op: str, args: Sequence[Any], kwargs: dict[str, Any]) -> _Read:
    a, b = args
    return a, b, None, tuple(a.shape[:-1])


def _read_sum(op: str, args: Sequence[Any], kwargs: dict[str, Any]) -> _Read:
    c, a, b = args
    alpha, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
    if alpha != 1 or beta not in (0, 1):
        expected = "alpha = 1 and beta = 0 or 1"
        raise UnsupportedOp(op, "alpha, beta", f"{alpha}, {beta}", expected)
    # torch ignores C altogether when beta is 0, NaN included.
    return a, b, c if beta else None, tuple(a.shape[:-1])


def _read_linear(op: str, args: Sequence[Any], kwargs: dict[str, Any]) -> _Read:
    inputs, weight, *rest = args
    bias = rest[0] if rest else kwargs.get("bias")
    return inputs.reshape(-1, weight.shape[1]), weight.t(), bias, tuple(inputs.shape[:-1])


_READERS: dict[str, Callable[[str, Sequence[Any], dict[str, Any]], _Read]] = {
    "aten.mm.default": _read_product,
    "aten.bmm.default": _read_product,
    "aten.addmm.default": _read_sum,
    "aten.baddbmm.default": _read_sum,
    "aten.linear.default": _read_linear,
    "aten._int_mm.default": _read_product,
}
