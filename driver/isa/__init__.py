# SPDX-License-Identifier: Apache-2.0
"""The instruction set, declared once. Imports the standard library only.

`python -m driver.isa.generate` (or `make gen`) emits rtl/pkg/npu_isa_pkg.sv,
golden/cmodel/npu_isa.h and docs/isa.md from these tables.
"""

from driver.isa.codec import (
    CompletionRecord,
    Descriptor,
    Packet,
    WindowDescriptor,
    begins_window,
    flag_field,
    flag_word,
)
from driver.isa.layout import (
    COMPLETION_BYTES,
    COMPLETION_TIMING_BYTES,
    DESCRIPTOR_BYTES,
    FLAGS,
    MAX_RANK,
    OPERATION_OF,
    OPERATIONS,
    PACKET_BYTES,
    PARAM_COUNT,
    WINDOW_BYTES,
    WINDOW_GROUP,
    WINDOW_RANK,
)
from driver.isa.types import (
    DEVICE_ID,
    DTYPE_BYTES,
    ERROR_TEXT,
    ISA_VERSION,
    MATMUL_DTYPES,
    DeviceState,
    DType,
    ErrorCode,
    Opcode,
)

__all__ = [
    "COMPLETION_BYTES",
    "COMPLETION_TIMING_BYTES",
    "DESCRIPTOR_BYTES",
    "DEVICE_ID",
    "DTYPE_BYTES",
    "ERROR_TEXT",
    "FLAGS",
    "ISA_VERSION",
    "MATMUL_DTYPES",
    "MAX_RANK",
    "OPERATIONS",
    "OPERATION_OF",
    "PACKET_BYTES",
    "PARAM_COUNT",
    "WINDOW_BYTES",
    "WINDOW_GROUP",
    "WINDOW_RANK",
    "CompletionRecord",
    "DType",
    "Descriptor",
    "DeviceState",
    "ErrorCode",
    "Opcode",
    "Packet",
    "WindowDescriptor",
    "begins_window",
    "flag_field",
    "flag_word",
]
