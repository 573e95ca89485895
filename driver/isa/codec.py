# SPDX-License-Identifier: Apache-2.0
"""Packets, descriptors and completion records as Python values, and their bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from driver.isa.layout import (
    COMPLETION_BYTES,
    COMPLETION_FIELDS,
    DESCRIPTOR_BYTES,
    DESCRIPTOR_FIELDS,
    FLAGS,
    MAX_RANK,
    PACKET_BYTES,
    PACKET_FIELDS,
    PARAM_COUNT,
    WINDOW_BYTES,
    WINDOW_FIELDS,
    WINDOW_GROUP,
    WINDOW_RANK,
    Field,
)
from driver.isa.types import DType, ErrorCode

_CODE = {32: "I", 64: "Q"}


def _format(fields: tuple[Field, ...], size_bytes: int) -> struct.Struct:
    """The struct that packs `fields`; asserts that they tile `size_bytes` without a hole."""
    end = 0
    for field in fields:
        assert field.offset == end, f"{field.name} leaves a hole"
        end += field.count * field.bits // 8
    assert end == size_bytes
    return struct.Struct("<" + "".join(f"{f.count}{_CODE[f.bits]}" for f in fields))


_PACKET = _format(PACKET_FIELDS, PACKET_BYTES)
_DESCRIPTOR = _format(DESCRIPTOR_FIELDS, DESCRIPTOR_BYTES)
_WINDOW = _format(WINDOW_FIELDS, WINDOW_BYTES)
_COMPLETION = _format(COMPLETION_FIELDS, COMPLETION_BYTES)


def flag_word(src_dtype: DType = DType.FP32, dst_dtype: DType = DType.FP32, *names: str) -> int:
    """The flags word with both types and the named one-bit flags set."""
    word = (src_dtype << FLAGS["SRC_DTYPE"].lsb) | (dst_dtype << FLAGS["DST_DTYPE"].lsb)
    for name in names:
        word |= FLAGS[name].mask
    return word


def flag_field(flags: int, name: str) -> int:
    """The value of the named field of a flags word."""
    return (flags & FLAGS[name].mask) >> FLAGS[name].lsb


@dataclass(frozen=True)
class Packet:
    """A 64-byte command. Holds any bits at all: checking them is the device's job."""

    opcode: int
    flags: int = 0
    src1: int = 0
    src2: int = 0
    dst: int = 0
    params: tuple[int, ...] = ()

    def pack(self) -> bytes:
        """The 64 bytes; parameters not given are zero. struct.error if a value does not fit."""
        params = self.params + (0,) * (PARAM_COUNT - len(self.params))
        return _PACKET.pack(self.opcode, self.flags, self.src1, self.src2, self.dst, *params)

    @classmethod
    def unpack(cls, data: bytes) -> Packet:
        """The packet in exactly 64 bytes."""
        opcode, flags, src1, src2, dst, *params = _PACKET.unpack(data)
        return cls(opcode, flags, src1, src2, dst, tuple(params))


@dataclass(frozen=True)
class Descriptor:
    """A strided view of memory: element [i0, …] lies at base + sum(i·stride)·element size."""

    base: int
    dtype: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def pack(self) -> bytes:
        """The 64 bytes. struct.error if a value does not fit or the rank is above 5."""
        assert len(self.sizes) == len(self.strides)
        return _DESCRIPTOR.pack(
            self.base,
            self.dtype,
            len(self.sizes),
            *_padded(self.sizes),
            *_padded(self.strides),
            0,
        )

    @classmethod
    def unpack(cls, data: bytes) -> Descriptor:
        """The descriptor in exactly 64 bytes; entries beyond the rank are dropped."""
        base, dtype, rank, *rest = _DESCRIPTOR.unpack(data)
        sizes, strides = rest[:MAX_RANK], rest[MAX_RANK : 2 * MAX_RANK]
        return cls(base, dtype, tuple(sizes[:rank]), tuple(strides[:rank]))


@dataclass(frozen=True)
class WindowDescriptor:
    """A matrix operand whose rows and columns each have three dimensions with own strides.

    `sizes` and `strides`: batch, three of the row, three of the column, outermost first. Row r has
    the three indices of r in the mixed radix of the row's sizes, the last one fastest; columns
    likewise.
    """

    base: int
    dtype: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def pack(self) -> bytes:
        """The 128 bytes. struct.error if a value does not fit."""
        assert len(self.sizes) == len(self.strides) == WINDOW_RANK
        head = (self.base, self.dtype, WINDOW_RANK)
        return _WINDOW.pack(*head, *self.sizes, *(0,) * 5, *self.strides, *(0,) * 9)

    @classmethod
    def unpack(cls, data: bytes) -> WindowDescriptor:
        """The window in exactly 128 bytes."""
        base, dtype, _, *rest = _WINDOW.unpack(data)
        strides = rest[WINDOW_RANK + 5 :][:WINDOW_RANK]
        return cls(base, dtype, tuple(rest[:WINDOW_RANK]), tuple(strides))

    @property
    def groups(self) -> tuple[slice, slice]:
        """Where the row's and the column's entries are in `sizes` and `strides`."""
        return slice(1, 1 + WINDOW_GROUP), slice(1 + WINDOW_GROUP, WINDOW_RANK)


def begins_window(data: bytes) -> bool:
    """Whether the 64 bytes of a descriptor are the first half of a window's."""
    return bool(_DESCRIPTOR.unpack(data)[2] == WINDOW_RANK)


def _padded(values: Sequence[int]) -> tuple[int, ...]:
    return tuple(values) + (0,) * (MAX_RANK - len(values))


@dataclass(frozen=True)
class CompletionRecord:
    """What the device says of one finished command. Cycles count from reset."""

    seq: int
    status: ErrorCode
    start_cycle: int
    end_cycle: int
    active_cycles: int
    operand_stall: int
    result_stall: int
    read_beats: int
    write_beats: int
    opcode: int
    engine_wait: int = 0
    operand_wait: int = 0
    waited_for: int = 0
    waited_queue: int = 0

    @property
    def cycles(self) -> int:
        """From its start to the last acknowledged write."""
        return self.end_cycle - self.start_cycle

    def pack(self) -> bytes:
        """The 64 bytes."""
        return _COMPLETION.pack(
            self.seq,
            self.status,
            self.start_cycle,
            self.end_cycle,
            self.active_cycles,
            self.operand_stall,
            self.result_stall,
            self.read_beats,
            self.write_beats,
            self.opcode,
            self.engine_wait,
            self.operand_wait,
            self.waited_for,
            self.waited_queue,
        )

    @classmethod
    def unpack(cls, data: bytes) -> CompletionRecord:
        """The record in exactly 64 bytes; ValueError on an unknown status."""
        seq, status, *others = _COMPLETION.unpack(data)
        return cls(seq, ErrorCode(status), *others)
