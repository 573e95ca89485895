# SPDX-License-Identifier: Apache-2.0
"""The numbers of the instruction set: opcodes, data types, error codes, queue states."""

from __future__ import annotations

from enum import IntEnum

ISA_VERSION = 0x0002_0001
"""Major in the upper, minor in the lower half word; read back from the VERSION register."""

DEVICE_ID = 0x4E50_5530
"""ASCII "NPU0"; read back from the ID register."""


class Opcode(IntEnum):
    """What a packet does. Numbers without an entry in `OPERATIONS` are reserved."""

    NOP = 0
    MATMUL = 1
    VECTOR = 2
    COPY = 3
    FILL = 4
    GATHER = 5
    SCATTER = 6
    FENCE = 7
    SYNC = 8
    LOAD = 9


class DType(IntEnum):
    """Element types in memory, little endian."""

    FP32 = 0
    FP16 = 1
    BF16 = 2
    INT8 = 3
    INT32 = 4
    UINT8 = 5
    """Bytes 0 to 255; torch's bool as 0 and 1."""
    INT64 = 6
    """A storage type: engines see the low 32 bits, and extend the sign when they write."""


DTYPE_BYTES: dict[DType, int] = {
    DType.FP32: 4,
    DType.FP16: 2,
    DType.BF16: 2,
    DType.INT8: 1,
    DType.INT32: 4,
    DType.UINT8: 1,
    DType.INT64: 8,
}

MATMUL_DTYPES: tuple[tuple[DType, DType], ...] = (
    (DType.FP32, DType.FP32),
    (DType.FP16, DType.FP16),
    (DType.FP16, DType.FP32),
    (DType.BF16, DType.BF16),
    (DType.BF16, DType.FP32),
    (DType.INT8, DType.INT32),
)
"""(operand type, result type) pairs that MATMUL accepts; any other is BAD_DTYPE."""

INT4_ROWS = 8
"""Rows of a matrix of weights of four bits that one 32-bit word holds."""

INT4_GROUPS = range(3, 16)
"""INT4_GROUP of a MATMUL that has such weights: log2 of the rows that share a scale."""

INDEX_DTYPES: tuple[DType, ...] = (DType.INT32, DType.INT64)
"""Types of GATHER's and SCATTER's indices; any other is BAD_DTYPE."""

SCATTER_ADD_DTYPES: tuple[DType, ...] = (DType.FP32, DType.FP16, DType.BF16, DType.INT32)
"""Types that SCATTER adds in; any other with ACCUMULATE is BAD_DTYPE."""


class ErrorCode(IntEnum):
    """Why the queue stopped; also the status word of a completion record."""

    NONE = 0
    BAD_OPCODE = 1
    RESERVED_BITS = 2
    BAD_DTYPE = 3
    BAD_PARAM = 4
    BAD_DESCRIPTOR = 5
    MISALIGNED = 6
    OUT_OF_RANGE = 7
    BUS_READ = 8
    BUS_WRITE = 9
    BAD_INDEX = 10
    NOT_LOADED = 11
    BAD_IMAGE = 12


ERROR_TEXT: dict[ErrorCode, str] = {
    ErrorCode.NONE: "no error",
    ErrorCode.BAD_OPCODE: "opcode unknown or reserved",
    ErrorCode.RESERVED_BITS: "a bit that this opcode does not use is set",
    ErrorCode.BAD_DTYPE: "data type, or pair of data types, not supported by this opcode",
    ErrorCode.BAD_PARAM: "a size, count, line or dimension that does not exist or fit",
    ErrorCode.BAD_DESCRIPTOR: (
        "descriptor malformed, at odds with the packet, or its destination is broadcast"
    ),
    ErrorCode.MISALIGNED: "address not aligned to its element size (descriptors: 64 bytes)",
    ErrorCode.OUT_OF_RANGE: "an operand's first or last byte lies outside device memory",
    ErrorCode.BUS_READ: "a read of packet, descriptor or operand was answered with an error",
    ErrorCode.BUS_WRITE: "a write was answered with an error",
    ErrorCode.BAD_INDEX: "an index of GATHER or SCATTER lies outside the table",
    ErrorCode.NOT_LOADED: "no vector program begins at that line of program memory",
    ErrorCode.BAD_IMAGE: "the image that LOAD read is no program",
}


class DeviceState(IntEnum):
    """Bits 1:0 of the STATUS register."""

    IDLE = 0
    BUSY = 1
    DONE = 2
    ERROR = 3
