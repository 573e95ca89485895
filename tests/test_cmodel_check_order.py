# SPDX-License-Identifier: Apache-2.0
"""Which of several broken rules is reported."""

from __future__ import annotations

import mmap
from dataclasses import replace
from itertools import pairwise

import numpy as np
from cmodel_cases import (
    COPY_DESC,
    DESC_A,
    DESC_B,
    DESC_C,
    FP32,
    HIGH,
    LIMIT,
    MATMUL,
    MATMUL_DESC,
    A,
    B,
    C,
    Case,
    assert_refused,
    malformed,
    patched,
)

from driver.isa import DType, ErrorCode, Packet, flag_word
from golden._cmodel import CModel

MAP_NORESERVE = 0x4000
"""Linux's flag for pages that cost nothing until they are touched; not in Python's mmap."""

BROKEN_FROM = 0xFFFF_FFFF_FFFF_FFF1
"""An address that is neither aligned nor in memory."""

ORDER = [
    # Each breaks one rule more than the next, the earlier rule in the order of checks.
    Case("opcode", ErrorCode.BAD_OPCODE, Packet(10, 0xFFFF_FFFF, 1, 1, 1, (0,) * 8)),
    Case("reserved", ErrorCode.RESERVED_BITS, Packet(1, 0x0001_00FF, 1, 1, 1, (0,) * 8)),
    Case("type", ErrorCode.BAD_DTYPE, Packet(1, 0xFF, 1, 1, 1, (0,) * 8)),
    Case("params", ErrorCode.BAD_PARAM, Packet(1, 0, 1, 1, 1, (1, 1, 1, 0))),
]


def test_the_earlier_group_of_checks_is_reported() -> None:
    for case in ORDER:
        assert_refused(case)
    ranks = [case.code for case in ORDER]
    assert all(first < second for first, second in pairwise(ranks))


def test_an_operand_is_finished_before_the_next_is_looked_at() -> None:
    wrecked = dict.fromkeys(("src1", "src2", "dst"), BROKEN_FROM)
    cases = [
        Case("src1 range, src2 odd", ErrorCode.OUT_OF_RANGE, replace(MATMUL, src1=0, src2=B + 1)),
        Case("src1 odd, rest out", ErrorCode.MISALIGNED, replace(MATMUL, **wrecked)),
        Case("src2 range, dst odd", ErrorCode.OUT_OF_RANGE, replace(MATMUL, src2=0, dst=C + 1)),
        Case(
            "src1 data out, src2 descriptor bad",
            ErrorCode.OUT_OF_RANGE,
            MATMUL_DESC,
            (*malformed(DESC_A, base=HIGH), *patched(DESC_B, 12, 9)),
        ),
        Case(
            "src2 descriptor bad, dst unreadable",
            ErrorCode.BAD_DESCRIPTOR,
            MATMUL_DESC,
            patched(DESC_B, 12, 9),
            ((DESC_C, 64, True, False),),
        ),
        Case(
            "src1 unreadable, src2 odd",
            ErrorCode.BUS_READ,
            replace(MATMUL_DESC, src2=DESC_B + 4),
            (),
            ((DESC_A, 64, True, False),),
        ),
        Case(
            "data poisoned, dst out: checks come before data",
            ErrorCode.OUT_OF_RANGE,
            replace(MATMUL, dst=LIMIT),
            (),
            ((A, 64, True, False),),
        ),
    ]
    for case in cases:
        assert_refused(case)


def test_within_an_operand_the_order_is_that_of_the_contract() -> None:
    bad = patched(DESC_A, 12, 9)
    unreadable = ((DESC_A, 64, True, False),)
    cases = [
        Case("odd and out", ErrorCode.MISALIGNED, replace(MATMUL_DESC, src1=BROKEN_FROM)),
        Case("unreadable and malformed", ErrorCode.BUS_READ, MATMUL_DESC, bad, unreadable),
        Case(
            "malformed and misaligned",
            ErrorCode.BAD_DESCRIPTOR,
            MATMUL_DESC,
            malformed(DESC_A, base=BROKEN_FROM, sizes=(2, 3, 3)),
        ),
        Case(
            "misaligned and out of range",
            ErrorCode.MISALIGNED,
            MATMUL_DESC,
            malformed(DESC_A, base=BROKEN_FROM),
        ),
    ]
    for case in cases:
        assert_refused(case)


def test_copy_of_direct_data_to_a_descriptor_finishes_dst_before_src1() -> None:
    packet = replace(COPY_DESC, flags=flag_word(FP32, FP32, "DST_DESC"), src1=A)
    bad, odd_base = patched(DESC_C, 12, 9), malformed(DESC_C, base=C + 2)
    cases = [
        Case("dst's descriptor first", ErrorCode.BAD_DESCRIPTOR, replace(packet, src1=A + 2), bad),
        Case("then dst's base", ErrorCode.MISALIGNED, replace(packet, src1=0), odd_base),
        Case("then src1's base", ErrorCode.MISALIGNED, replace(packet, src1=2)),
        Case("then src1's extent", ErrorCode.OUT_OF_RANGE, replace(packet, src1=0)),
    ]
    for case in cases:
        assert_refused(case)


def test_a_dense_operand_whose_stride_needs_more_than_32_bits_is_out_of_range() -> None:
    """In a memory that holds it: a stride of 2**32 elements, between two matrices of INT8."""
    side, base = 1 << 16, 1 << 40
    size = 2 * side * side + (2 << 20)
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
    model = CModel(np.frombuffer(memory, np.uint8), base, base + size)
    b, c = base + size - (2 << 20), base + size - (1 << 20)
    packet = Packet(1, flag_word(DType.INT8, DType.INT32), base, b, c, (side, side, 1, 2))
    short = replace(packet, params=(1, side, 1, 2))
    assert model.execute(short.pack()) == ErrorCode.NONE
    assert model.execute(packet.pack()) == ErrorCode.OUT_OF_RANGE
