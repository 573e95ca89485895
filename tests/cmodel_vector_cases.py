# SPDX-License-Identifier: Apache-2.0
"""VECTOR, GATHER and SCATTER commands that a device must refuse, one rule broken each."""

from __future__ import annotations

from dataclasses import replace

from cmodel_cases import (
    DESC_A,
    DESC_B,
    DESC_C,
    FP16,
    FP32,
    HIGH,
    INT8,
    INT32,
    LIMIT,
    A,
    B,
    C,
    Case,
    with_flags,
    with_param,
)

from driver.isa import FLAGS, Descriptor, DType, ErrorCode, Opcode, Packet
from driver.isa.image import LINE_BYTES, PROGRAM_RAM
from driver.isa.programs import BOOT_IMAGE, LINES, PROGRAM_AT

THIRD = 0x5000
DESC_D = 0x80C0
INT64 = DType.INT64
SOURCES = {DESC_A: A, DESC_B: B, DESC_D: THIRD}
"""Descriptor of src1, src2, src3 → its data."""


NO_PROGRAM = next(line for line in range(len(PROGRAM_AT) + 1) if line not in PROGRAM_AT)
"""A line in the middle of a boot program."""


def flag(name: str, value: int = 1) -> int:
    return value << FLAGS[name].lsb


def number(name: str) -> int:
    return LINES[name]


def view(base: int, dtype: DType = FP32, sizes: tuple[int, ...] = (2, 3)) -> Descriptor:
    strides = tuple({1: (1,), 2: (sizes[-1], 1)}.get(len(sizes), (0,) * len(sizes)))
    return Descriptor(base, dtype, sizes, strides)


ALL_DESC = sum(flag(f"{name}_DESC") for name in ("SRC1", "SRC2", "SRC3", "DST"))
INDEXED_DESC = ALL_DESC & ~flag("SRC3_DESC")
VIEWS = (*((at, view(base)) for at, base in SOURCES.items()), (DESC_C, view(C)))
REDUCED = (*VIEWS[:3], (DESC_C, view(C, sizes=(2, 1))))
COUNTED = Packet(Opcode.VECTOR, 0, A, B, C, (number("mul_add"), 6, 0, 0, 0, 0, THIRD, 0))
DESCRIBED = Packet(
    Opcode.VECTOR, ALL_DESC, DESC_A, DESC_B, DESC_C, (number("mul_add"), 0, 0, 0, 0, 0, DESC_D, 0)
)
SUM_FLAGS = flag("SRC1_DESC") | flag("DST_DESC")
SUM = Packet(Opcode.VECTOR, SUM_FLAGS, DESC_A, 0, DESC_C, (number("sum"), 0, 1, 2, 3, 4))
RANGE = Packet(
    Opcode.VECTOR, flag("DST_DTYPE", INT32), dst=C, params=(number("int_range"), 9, 0, 1)
)
TABLE = (
    (DESC_A, view(A, sizes=(5, 3))),
    (DESC_B, view(B, INT32, (2, 3))),
    (DESC_C, view(C, sizes=(2, 3))),
)
INDEX_FLAGS = INDEXED_DESC | flag("SRC2_DTYPE", INT32)
GATHER = Packet(Opcode.GATHER, INDEX_FLAGS, DESC_A, DESC_B, DESC_C, (0,))
SCATTER_VIEWS = ((DESC_A, view(A)), TABLE[1], (DESC_C, view(C, sizes=(5, 3))))
SCATTER = Packet(Opcode.SCATTER, INDEX_FLAGS, DESC_A, DESC_B, DESC_C, (0,))

GOOD = {
    "counted": Case("", ErrorCode.NONE, COUNTED),
    "described": Case("", ErrorCode.NONE, DESCRIBED, VIEWS),
    "sum": Case("", ErrorCode.NONE, SUM, REDUCED),
    "range": Case("", ErrorCode.NONE, RANGE),
    "gather": Case("", ErrorCode.NONE, GATHER, TABLE),
    "scatter": Case("", ErrorCode.NONE, SCATTER, SCATTER_VIEWS),
}


def replaced(
    views: tuple[tuple[int, Descriptor], ...], at: int, **change: object
) -> tuple[tuple[int, Descriptor], ...]:
    """`views` with fields of the descriptor at an address replaced."""
    return tuple(
        (where, replace(found, **change) if where == at else found)  # type: ignore[arg-type]
        for where, found in views
    )


def reserved_cases() -> list[Case]:
    code = ErrorCode.RESERVED_BITS
    masks = {
        "VECTOR": (COUNTED, 0x00FF_F8FF, 8),
        "GATHER": (GATHER, 0x000F_F0FF, 1),
        "SCATTER": (SCATTER, 0x000F_F4FF, 1),
    }
    cases = []
    for name, (packet, mask, params) in masks.items():
        cases += [
            Case(f"{name} flag {bit}", code, with_flags(packet, 1 << bit))
            for bit in range(32)
            if not mask >> bit & 1
        ]
        cases += [
            Case(f"{name} param {i}", code, with_param(packet, i, 1)) for i in range(params, 8)
        ]
    mul = replace(COUNTED, params=(number("mul"), 6))
    neg = replace(COUNTED, src2=0, params=(number("neg"), 6))
    unused = {
        "src3 low": with_param(mul, 6, THIRD),
        "src3 high": with_param(mul, 7, 1),
        "src3 type": with_flags(mul, flag("SRC3_DTYPE", INT8)),
        "src3 DESC": with_flags(mul, flag("SRC3_DESC")),
        "src2": replace(neg, src2=B),
        "src2 type": with_flags(neg, flag("SRC2_DTYPE", 15)),
        "src2 DESC": with_flags(neg, flag("SRC2_DESC")),
        "src1": replace(RANGE, src1=A),
        "src1 type": with_flags(RANGE, flag("SRC_DTYPE", FP16)),
        "src1 DESC": with_flags(RANGE, flag("SRC1_DESC")),
    }
    return cases + [Case(f"VECTOR {name} unused", code, made) for name, made in unused.items()]


def dtype_cases() -> list[Case]:
    code, cases = ErrorCode.BAD_DTYPE, []
    fields = ("SRC_DTYPE", "SRC2_DTYPE", "SRC3_DTYPE", "DST_DTYPE")
    missing_program = with_param(COUNTED, 0, NO_PROGRAM)
    for bad in range(len(DType), 16):
        cases += [
            Case(f"{field} {bad}", code, with_flags(packet, flag(field, bad)))
            for field in fields
            for packet in (COUNTED, DESCRIBED, missing_program)
        ]
        both = flag("SRC_DTYPE", bad) | flag("DST_DTYPE", bad)
        cases.append(Case(f"GATHER of {bad}", code, with_flags(GATHER, both)))
    for packet in (GATHER, SCATTER):
        cases += [
            Case("types differ", code, with_flags(packet, flag(field, INT8)))
            for field in ("SRC_DTYPE", "DST_DTYPE")
        ]
        bare = packet.flags & ~FLAGS["SRC2_DTYPE"].mask
        cases += [
            Case(f"index {index}", code, replace(packet, flags=bare | flag("SRC2_DTYPE", index)))
            for index in range(16)
            if index not in (INT32, INT64)
        ]
    for dtype in (INT8, DType.UINT8, INT64):
        types = flag("SRC_DTYPE", dtype) | flag("DST_DTYPE", dtype) | flag("ACCUMULATE")
        cases.append(Case(f"SCATTER adds {dtype}", code, with_flags(SCATTER, types)))
    return cases


def param_cases() -> list[Case]:
    code = ErrorCode.BAD_PARAM
    every = [flag(f"{name}_DESC") for name in ("SRC1", "SRC2", "SRC3", "DST")]
    indexed = [flag(f"{name}_DESC") for name in ("SRC1", "SRC2", "DST")]
    return [
        *(
            Case(f"program {line:#x}", ErrorCode.NOT_LOADED, with_param(packet, 0, line))
            for line in (NO_PROGRAM, len(BOOT_IMAGE) // LINE_BYTES, PROGRAM_RAM, 1536, 0xFFFF_FFFF)
            for packet in (
                COUNTED,
                DESCRIBED,
                replace(DESCRIBED, flags=ALL_DESC & ~FLAGS["SRC3_DESC"].mask),
            )
        ),
        Case("count zero", code, with_param(COUNTED, 1, 0)),
        Case("range, count zero", code, with_param(RANGE, 1, 0)),
        Case("count and descriptors", code, with_param(DESCRIBED, 1, 6)),
        *(Case("one descriptor and a count", code, with_flags(COUNTED, bit)) for bit in every),
        *(
            Case("all but one descriptor", code, replace(DESCRIBED, flags=ALL_DESC & ~bit))
            for bit in every
        ),
        Case("reduction by count", code, replace(SUM, flags=0, params=(number("sum"), 6))),
        *(
            Case("indexed, no descriptor", code, replace(packet, flags=packet.flags & ~bit))
            for packet in (GATHER, SCATTER)
            for bit in indexed
        ),
        *(
            Case(f"dim {dim}", code, with_param(packet, 0, dim))
            for packet in (GATHER, SCATTER)
            for dim in (5, 0xFFFF_FFFF)
        ),
    ]


def descriptor_cases() -> list[Case]:
    code, cases = ErrorCode.BAD_DESCRIPTOR, []
    for at in (*SOURCES, DESC_C):
        for name, change in {
            "type": {"dtype": INT8},
            "sizes": {"sizes": (2, 4)},
            "rank": {"sizes": (6,), "strides": (1,)},
        }.items():
            cases.append(Case(f"{at:#x}: {name}", code, DESCRIBED, replaced(VIEWS, at, **change)))
    broadcast = replaced(VIEWS, DESC_C, strides=(0, 1))
    whole = (*REDUCED[:3], (DESC_C, view(C)))
    reduced_to_flat = (*REDUCED[:3], (DESC_C, view(C, sizes=(2,))))
    cases += [
        Case("VECTOR dst broadcast", code, DESCRIBED, broadcast),
        Case("reduction to whole rows", code, SUM, whole),
        Case("reduction to a lower rank", code, SUM, reduced_to_flat),
        Case("dim not below the rank", code, with_param(GATHER, 0, 2), TABLE),
        Case("dim not below the rank", code, with_param(SCATTER, 0, 4), SCATTER_VIEWS),
        Case("GATHER table", code, GATHER, replaced(TABLE, DESC_A, sizes=(5, 4))),
        Case("GATHER index rank", code, GATHER, replaced(TABLE, DESC_B, sizes=(2,), strides=(1,))),
        Case("GATHER index type", code, GATHER, replaced(TABLE, DESC_B, dtype=INT64)),
        Case("GATHER dst", code, GATHER, replaced(TABLE, DESC_C, sizes=(3, 3))),
        Case("GATHER along the other", code, with_param(GATHER, 0, 1), TABLE),
        Case("SCATTER index", code, SCATTER, replaced(SCATTER_VIEWS, DESC_B, sizes=(3, 3))),
        Case("SCATTER dst", code, SCATTER, replaced(SCATTER_VIEWS, DESC_C, sizes=(5, 2))),
        Case(
            "SCATTER dst broadcast", code, SCATTER, replaced(SCATTER_VIEWS, DESC_C, strides=(0, 1))
        ),
    ]
    return cases


def address_cases() -> list[Case]:
    misaligned, out = ErrorCode.MISALIGNED, ErrorCode.OUT_OF_RANGE
    wide = flag("SRC3_DTYPE", INT64)
    return [
        *(
            Case(f"{f} odd", misaligned, replace(COUNTED, **{f: C + 2}))
            for f in ("src1", "src2", "dst")
        ),
        Case("src3 odd", misaligned, with_param(COUNTED, 6, THIRD + 2)),
        Case("src3 INT64 odd", misaligned, with_param(with_flags(COUNTED, wide), 6, THIRD + 4)),
        Case("src3 far", out, with_param(COUNTED, 7, 1)),
        Case("src3 past the end", out, with_param(COUNTED, 6, LIMIT - 20)),
        Case("src3 descriptor odd", misaligned, with_param(DESCRIBED, 6, DESC_D + 32), VIEWS),
        Case("src3 descriptor far", out, with_param(DESCRIBED, 6, LIMIT), VIEWS),
        Case("count of 2^32 − 1", out, with_param(COUNTED, 1, 0xFFFF_FFFF)),
        *(
            Case(f"{at:#x} base high", out, DESCRIBED, replaced(VIEWS, at, base=HIGH))
            for at in (*SOURCES, DESC_C)
        ),
        Case("GATHER index base", misaligned, GATHER, replaced(TABLE, DESC_B, base=B + 2)),
        Case("GATHER table out", out, GATHER, replaced(TABLE, DESC_A, strides=(0x4000, 1))),
        Case("SCATTER dst out", out, SCATTER, replaced(SCATTER_VIEWS, DESC_C, base=LIMIT)),
    ]


def order_cases() -> list[Case]:
    """src1, src2, src3, dst: one is finished before the next is looked at."""
    misaligned, out = ErrorCode.MISALIGNED, ErrorCode.OUT_OF_RANGE
    bad = ErrorCode.BAD_DESCRIPTOR
    return [
        Case("src2 out, src3 odd", out, with_param(replace(COUNTED, src2=0), 6, THIRD + 1)),
        Case("src3 out, dst odd", out, with_param(replace(COUNTED, dst=C + 1), 6, 0)),
        Case("src3 odd, dst out", misaligned, with_param(replace(COUNTED, dst=0), 6, THIRD + 1)),
        Case(
            "src2's shape, src3 odd",
            bad,
            with_param(DESCRIBED, 6, 1),
            replaced(VIEWS, DESC_B, sizes=(2, 1)),
        ),
        Case(
            "index range, dst's shape",
            out,
            GATHER,
            replaced(replaced(TABLE, DESC_B, base=HIGH), DESC_C, sizes=(9, 9)),
        ),
        Case(
            "table's dim, its base",
            bad,
            with_param(GATHER, 0, 3),
            replaced(TABLE, DESC_A, base=HIGH),
        ),
    ]


def bus_cases() -> list[Case]:
    read, write = ErrorCode.BUS_READ, ErrorCode.BUS_WRITE
    index = ((DESC_B, view(B, INT32)),)
    return [
        *(
            Case(f"source at {at:#x}", read, COUNTED, poison=((at + 23, 1, True, False),))
            for at in SOURCES.values()
        ),
        Case("VECTOR dst", write, COUNTED, poison=((C + 23, 1, False, True),)),
        Case("src3's descriptor", read, DESCRIBED, VIEWS, ((DESC_D + 63, 1, True, False),)),
        Case("index", read, GATHER, (*TABLE, *index), ((B + 20, 1, True, False),)),
        Case("GATHER dst", write, GATHER, TABLE, ((C + 20, 1, False, True),)),
        Case("SCATTER src", read, SCATTER, SCATTER_VIEWS, ((A + 20, 1, True, False),)),
    ]


CASES = [
    *reserved_cases(),
    *dtype_cases(),
    *param_cases(),
    *descriptor_cases(),
    *address_cases(),
    *order_cases(),
    *bus_cases(),
]
