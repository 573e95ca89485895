# SPDX-License-Identifier: Apache-2.0
"""driver.runtime.types with torch's own type objects. The only file of the runtime with torch."""

from __future__ import annotations

import torch

from driver.isa import DType
from driver.runtime import types

NPU_TYPES: dict[torch.dtype, DType] = {
    getattr(torch, name): dtype for name, dtype in types.NPU_TYPES.items()
}
"""Element types that the NPU holds; it has no others."""
TORCH_TYPES: dict[DType, torch.dtype] = {
    npu: dtype for dtype, npu in NPU_TYPES.items() if dtype is not torch.bool
}
"""The other way; uint8 for bytes that may also be truth values."""
