# SPDX-License-Identifier: Apache-2.0
"""torch's element types, by name, and the NPU's: the only map between the two. Torch-free.

With torch's own objects as keys: driver.runtime.torch_types.
"""

from __future__ import annotations

from driver.isa import DType

NPU_TYPES: dict[str, DType] = {
    "float32": DType.FP32,
    "float16": DType.FP16,
    "bfloat16": DType.BF16,
    "int8": DType.INT8,
    "int32": DType.INT32,
    "int64": DType.INT64,
    "uint8": DType.UINT8,
    "bool": DType.UINT8,
}
"""Element types that the NPU holds; it has no others."""
