# SPDX-License-Identifier: Apache-2.0
"""torch's tensors as golden reads them: exact values, bits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch

from golden.formats import UINTS, Bits, Values


def values_of(tensor: torch.Tensor) -> Values:
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


@contextlib.contextmanager
def without_onednn() -> Iterator[None]:
    """torch uses its own kernels. torch.backends.mkldnn.flags sets TF32 too, and warns of it."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)
