# SPDX-License-Identifier: Apache-2.0
"""Every way in which a window, or a MATMUL with one, is malformed."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from cmodel_cases import Case, assert_refused, prepared, with_flags, with_param
from cmodel_util import SmallDevice
from window_products import (
    START,
    START_WINDOW,
    WINDOWS,
    A,
    B,
    C,
    WindowProduct,
)

from driver.isa import (
    FLAGS,
    WINDOW_BYTES,
    DType,
    ErrorCode,
    Opcode,
    Packet,
    WindowDescriptor,
    begins_window,
    flag_word,
)

GOOD = WindowProduct(
    WindowDescriptor(A, DType.FP32, (2, 1, 1, 3, 1, 2, 2), (12, 0, 0, 4, 0, 2, 1)),
    WindowDescriptor(B, DType.FP32, (2, 2, 2, 1, 5, 1, 1), (20, 10, 5, 1, 1, 0, 0)),
    WindowDescriptor(C, DType.FP32, (2, 3, 1, 1, 1, 5, 1), (15, 5, 0, 0, 0, 1, 0)),
    accumulate=False,
)
NAMES = dict(zip("abc", WINDOWS.values(), strict=True))
BAD = ErrorCode.BAD_DESCRIPTOR


def placed(product: WindowProduct) -> tuple[tuple[int, bytes], ...]:
    windows = (product.a, product.b, product.c)
    return tuple((at, x.pack()) for at, x in zip(WINDOWS.values(), windows, strict=True))


def wrong(name: str, code: ErrorCode, which: str, **change: object) -> Case:
    """The good product with a field of one window replaced."""
    changed = replace(getattr(GOOD, which), **change)
    return Case(f"{which} {name}", code, GOOD.packet, placed(replace(GOOD, **{which: changed})))


def patched_word(which: str, offset: int, value: int) -> Case:
    """The good product with a 32-bit word of one window replaced."""
    parts = dict(placed(GOOD))
    raw = bytearray(parts[NAMES[which]])
    raw[offset : offset + 4] = value.to_bytes(4, "little")
    parts[NAMES[which]] = bytes(raw)
    return Case(f"{which} byte {offset}", BAD, GOOD.packet, tuple(parts.items()))


def sized(which: str, at: int, size: int) -> tuple[int, ...]:
    sizes = list(getattr(GOOD, which).sizes)
    sizes[at] = size
    return tuple(sizes)


def wrong_cases() -> list[Case]:
    reserved = [*range(44, 64, 4), *range(92, WINDOW_BYTES, 4)]
    cases = [patched_word(x, at, 1 << 31) for x in "abc" for at in reserved]
    cases += [patched_word(x, 8, dtype) for x in "abc" for dtype in (1, 7, 1 << 16)]
    cases += [patched_word(x, 12, rank) for x in "abc" for rank in (0, 6, 8, 7 | 1 << 31)]
    cases += [
        wrong(f"size {at} is 0", BAD, x, sizes=sized(x, at, 0)) for x in "abc" for at in range(7)
    ]
    cases += [wrong(f"size {at}", BAD, x, sizes=sized(x, at, 7)) for x in "abc" for at in range(7)]
    # Products that are M = 3, K = 4 and N = 5 modulo 2^64, and modulo 2^32.
    wraps = {
        "a": (2, 0x3EF3F617, 0x15AE1, 0x60095, 1, 2, 2),
        "b": (2, 0xBBE0A, 0x78CB2, 0x2E34495, 5, 1, 1),
        "c": (2, 3, 1, 1, 0x18BE807, 0x367C55, 0x91D47),
    }
    assert prod(wraps["a"][1:4]) % (1 << 64) == 3
    assert prod(wraps["b"][1:4]) % (1 << 64) == 4
    assert prod(wraps["c"][4:]) % (1 << 64) == 5
    cases += [wrong("wraps", BAD, x, sizes=sizes) for x, sizes in wraps.items()]
    short = (2, 0x8000_0001, 0x8000_0001, 3, 1, 2, 2)
    cases.append(wrong("wraps in 32 bits", BAD, "a", sizes=short))
    cases += [
        wrong(f"destination repeats {at}", BAD, "c", strides=tuple(
            0 if at == d else step for d, step in enumerate(GOOD.c.strides)
        ))
        for at in (0, 1, 5)
    ]  # fmt: skip
    odd, low, high = ErrorCode.MISALIGNED, 0x800, (1 << 64) - 64
    for x in "abc":
        base = getattr(GOOD, x).base
        cases.append(wrong("misaligned", odd, x, base=base + 2))
        cases += [wrong("outside", ErrorCode.OUT_OF_RANGE, x, base=at) for at in (low, high)]
        far = tuple(0xFFFF_FFFF if size > 1 else step for size, step in zip(
            getattr(GOOD, x).sizes, getattr(GOOD, x).strides, strict=True
        ))  # fmt: skip
        cases.append(wrong("too long", ErrorCode.OUT_OF_RANGE, x, strides=far))
    flags = {"TRANS_A": "a", "TRANS_B": "b"}
    for flag in flags:
        packet = replace(GOOD.packet, flags=GOOD.packet.flags | FLAGS[flag].mask)
        cases.append(Case(flag, BAD, packet, placed(GOOD)))
    for at, (x, address) in enumerate(NAMES.items()):
        field = ("src1", "src2", "dst")[at]
        packet = replace(GOOD.packet, **{field: address + 64})
        cases.append(Case(f"{x} half a window", BAD, packet, placed(GOOD)))
        packet = replace(GOOD.packet, **{field: address + 32})
        cases.append(Case(f"{x} misplaced", odd, packet, placed(GOOD)))
        for half in (0, 64):
            poison = ((address + half, 64, True, False),)
            name = f"{x} unreadable from {half}"
            cases.append(Case(name, ErrorCode.BUS_READ, GOOD.packet, placed(GOOD), poison))
    return cases


def start_cases() -> list[Case]:
    """A third source that is malformed, or that the packet does not have."""
    reserved = ErrorCode.RESERVED_BITS
    start = WindowDescriptor(START, DType.FP32, (2, 1, 1, 3, 1, 1, 5), (0, 0, 0, 1, 0, 0, 0))
    good = replace(GOOD, start=start, accumulate=True)
    assert prepared(Case("", ErrorCode.NONE, good.packet, started(good))).run(good.packet) == 0
    packet, flags = good.packet, good.packet.flags
    bare = replace(packet, flags=flags & ~FLAGS["SRC3_DESC"].mask)
    sums = replace(packet, flags=flags & ~FLAGS["ACCUMULATE"].mask)
    high = replace(packet, params=(*packet.params[:7], 1))
    cases = [
        Case("address of no source", reserved, bare, started(good)),
        Case("start without sums", reserved, sums, started(good)),
        Case("start far away", ErrorCode.OUT_OF_RANGE, high, started(good)),
        Case(
            "odd start",
            ErrorCode.MISALIGNED,
            with_param(packet, 6, START_WINDOW + 4),
            started(good),
        ),
        Case("type of src3", reserved, with_flags(packet, 1 << FLAGS["SRC3_DTYPE"].lsb)),
    ]
    cases += [
        Case(f"param {at}", reserved, with_param(packet, at, 1), started(good)) for at in (4, 5)
    ]
    changes: dict[str, dict[str, object]] = {
        "type": {"dtype": DType.FP16},
        "rows": {"sizes": (2, 1, 1, 2, 1, 1, 5)},
        "columns": {"sizes": (2, 1, 1, 3, 1, 1, 4)},
        "batch": {"sizes": (1, 1, 1, 3, 1, 1, 5)},
    }
    for name, change in changes.items():
        changed = replace(good, start=replace(start, **change))
        cases.append(Case(f"start {name}", BAD, packet, started(changed)))
    before = replace(good, start=replace(start, base=1), b=replace(good.b, base=B + 2))
    cases.append(Case("src2 before src3", ErrorCode.MISALIGNED, packet, started(before)))
    odd = replace(good, start=replace(start, base=START + 2), c=replace(good.c, base=1 << 60))
    cases.append(Case("src3 before dst", ErrorCode.MISALIGNED, packet, started(odd)))
    poison = ((START + 8, 4, True, False),)
    return [*cases, Case("unreadable", ErrorCode.BUS_READ, packet, started(good), poison)]


def started(product: WindowProduct) -> tuple[tuple[int, bytes], ...]:
    assert product.start
    return (*placed(product), (START_WINDOW, product.start.pack()))


CASES = [*wrong_cases(), *start_cases()]


def test_the_product_that_the_cases_break_is_good() -> None:
    device = prepared(Case("good", ErrorCode.NONE, GOOD.packet, placed(GOOD)))
    assert device.run(GOOD.packet) == ErrorCode.NONE, device.model.last_fault
    assert begins_window(GOOD.a.pack()[:64])
    assert WindowDescriptor.unpack(GOOD.a.pack()) == GOOD.a


def test_every_malformed_window_is_refused_and_writes_nothing() -> None:
    for case in CASES:
        assert_refused(case)
    assert len(CASES) > 130


def test_a_window_must_lie_in_memory_to_its_last_byte() -> None:
    last = SmallDevice.LIMIT - WINDOW_BYTES
    for at, code in ((last, ErrorCode.NONE), (last + 64, ErrorCode.OUT_OF_RANGE)):
        where = placed(GOOD)
        packet = replace(GOOD.packet, dst=at)
        case = Case(
            "edge", code, packet, (*where[:2], (at, GOOD.c.pack()[: SmallDevice.LIMIT - at]))
        )
        assert prepared(case).run(packet) == code


@pytest.mark.parametrize("opcode", [Opcode.COPY, Opcode.FILL, Opcode.GATHER, Opcode.VECTOR])
def test_only_a_product_takes_windows(opcode: Opcode) -> None:
    names = {
        Opcode.COPY: ("SRC1_DESC", "DST_DESC"),
        Opcode.FILL: ("DST_DESC",),
        Opcode.GATHER: ("SRC1_DESC", "SRC2_DESC", "DST_DESC"),
        Opcode.VECTOR: ("SRC1_DESC", "DST_DESC"),
    }[opcode]
    flags = flag_word(DType.FP32, DType.FP32, *names)
    flags |= (DType.INT32 << FLAGS["SRC2_DTYPE"].lsb) if opcode is Opcode.GATHER else 0
    src1, src2, dst = WINDOWS.values()
    packet = Packet(
        opcode,
        flags,
        src1 if "SRC1_DESC" in names else 0,
        src2 if "SRC2_DESC" in names else 0,
        dst,
    )
    assert_refused(Case(opcode.name, BAD, packet, placed(GOOD)))


@pytest.mark.parametrize("flag", ["TRANS_A", "TRANS_B"])
def test_a_window_is_not_transposed_even_where_it_is_square(flag: str) -> None:
    sizes, strides = (1, 1, 2, 2, 1, 2, 2), (0, 0, 8, 4, 0, 2, 1)
    square = WindowProduct(
        *(WindowDescriptor(base, DType.FP32, sizes, strides) for base in (A, B, C)),
        accumulate=False,
    )
    case = Case(flag, BAD, with_flags(square.packet, FLAGS[flag].mask), placed(square))
    assert prepared(case).run(square.packet) == ErrorCode.NONE
    assert_refused(case)


def test_bus_errors_concern_only_bytes_of_elements() -> None:
    device = prepared(Case("", ErrorCode.NONE, GOOD.packet, placed(GOOD)))
    device.model.poison(A + 24 * 4, 64, True, True)  # behind the last element
    assert device.run(GOOD.packet) == ErrorCode.NONE
    device.model.poison(A + 23 * 4, 1, True, False)
    assert device.run(GOOD.packet) == ErrorCode.BUS_READ
    device.model.clear_poison()
    device.model.poison(C + 29 * 4, 1, False, True)
    assert device.run(GOOD.packet) == ErrorCode.BUS_WRITE
