# SPDX-License-Identifier: Apache-2.0
"""torch's tensors as golden reads them: the NPU's types, exact values, bits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch

from driver.isa import DType
from golden.formats import UINTS, Bits, Values

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


def exact_values(tensor: torch.Tensor) -> Values:
    """A tensor's values as float64 (int64 for integers and truth values), with its shape."""
    exact = tensor.detach().to(torch.float64 if tensor.is_floating_point() else torch.int64)
    return np.ascontiguousarray(exact.numpy()).reshape(tuple(tensor.shape))


def tensor_bits(tensor: torch.Tensor) -> Bits:
    """A tensor's elements as unsigned integers of their size, with its shape."""
    size = tensor.element_size()
    dense = tensor.detach().contiguous()
    return np.asarray(dense.view(getattr(torch, f"int{8 * size}")).numpy()).view(UINTS[size])


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """No user setting may lower torch's fp32 products to bf16 or tf32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
