# SPDX-License-Identifier: Apache-2.0
"""MATMUL through windows: against the chain on gathered elements, and every way to be malformed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt
import pytest
from cmodel_cases import Case, assert_refused, prepared
from cmodel_util import STORAGE, SmallDevice, random_bits
from test_cmodel_matmul import expected_product
from test_packets import agreed

from driver.isa import (
    DTYPE_BYTES,
    FLAGS,
    MATMUL_DTYPES,
    WINDOW_BYTES,
    DType,
    ErrorCode,
    Opcode,
    Packet,
    WindowDescriptor,
    begins_window,
    flag_word,
)

A, B, C = 0x2000, 0x6000, 0xA000
WINDOWS = {"SRC1_DESC": 0x1000, "SRC2_DESC": 0x1080, "DST_DESC": 0x1100}
Index = npt.NDArray[np.int64]
FACTORS = (1, 1, 2, 3)


def positions(window: WindowDescriptor) -> Index:
    """Offset in elements of each [batch, row, column]."""
    index = np.zeros((1,), np.int64)
    groups = []
    for part in (slice(0, 1), *window.groups):
        index = np.zeros((1,), np.int64)
        for size, stride in zip(window.sizes[part], window.strides[part], strict=True):
            index = (index[:, None] + np.arange(size) * stride).reshape(-1)
        groups.append(index)
    batch, rows, columns = groups
    return batch[:, None, None] + rows[:, None] + columns


def elements(device: SmallDevice, window: WindowDescriptor) -> npt.NDArray[np.unsignedinteger]:
    """The window's elements as [batch, rows, columns]."""
    dtype = DType(window.dtype)
    at = positions(window)
    return device.load(window.base, dtype, int(at.max()) + 1)[at]


def factored(rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(int(size) for size in rng.choice(FACTORS, 3))


def refactored(rng: np.random.Generator, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Other factors of the same product, or one alone."""
    other = (1, 1, prod(sizes)) if rng.random() < 0.4 else tuple(rng.permutation(sizes).tolist())
    return tuple(int(size) for size in other)


def source_window(
    rng: np.random.Generator, base: int, dtype: DType, sizes: tuple[int, ...]
) -> WindowDescriptor:
    """Any strides: they overlap, repeat, and leave gaps."""
    return WindowDescriptor(base, dtype, sizes, tuple(int(s) for s in rng.integers(0, 9, 7)))


def result_window(
    rng: np.random.Generator, base: int, dtype: DType, sizes: tuple[int, ...]
) -> WindowDescriptor:
    """Dimensions in any order in memory, no element twice."""
    strides, step = [0] * 7, int(rng.integers(1, 3))
    for at in rng.permutation(7):
        strides[at] = step
        step *= sizes[at] + int(rng.random() < 0.15)
    return WindowDescriptor(base, dtype, sizes, tuple(strides))


@dataclass(frozen=True)
class WindowProduct:
    """A MATMUL of three windows."""

    a: WindowDescriptor
    b: WindowDescriptor
    c: WindowDescriptor
    accumulate: bool

    @property
    def packet(self) -> Packet:
        extra = ("ACCUMULATE",) if self.accumulate else ()
        flags = flag_word(DType(self.a.dtype), DType(self.c.dtype), *WINDOWS, *extra)
        m, n = (prod(self.c.sizes[part]) for part in self.c.groups)
        k = prod(self.a.sizes[self.a.groups[1]])
        return Packet(Opcode.MATMUL, flags, *WINDOWS.values(), (m, k, n, self.c.sizes[0]))

    def placed(self, seed: int) -> SmallDevice:
        device, rng = SmallDevice(), np.random.default_rng([seed, 9])
        for window, address in zip((self.a, self.b, self.c), WINDOWS.values(), strict=True):
            device.store(address, window.pack())
            count = 0x4000 // DTYPE_BYTES[DType(window.dtype)]
            device.store(window.base, random_bits(rng, DType(window.dtype), (count,), 0.02))
        return device


def random_product(seed: int, src: DType, dst: DType) -> WindowProduct:
    rng = np.random.default_rng(seed)
    batch, m, k, n = int(rng.integers(1, 4)), *(factored(rng) for _ in range(3))
    return WindowProduct(
        source_window(rng, A, src, (batch, *m, *k)),
        source_window(rng, B, src, (batch, *refactored(rng, k), *n)),
        result_window(rng, C, dst, (batch, *refactored(rng, m), *refactored(rng, n))),
        bool(rng.random() < 0.4),
    )


@pytest.mark.parametrize(("src", "dst"), MATMUL_DTYPES)
def test_products_of_random_windows_agree_with_softfloat(src: DType, dst: DType) -> None:
    compared = 0
    for seed in range(8):
        case = random_product(seed, src, dst)
        device = case.placed(seed)
        a, b, before = (elements(device, window) for window in (case.a, case.b, case.c))
        wanted = device.memory.copy()
        values = expected_product(a, b, before if case.accumulate else None, src, dst)
        flat = wanted[case.c.base - device.BASE :][:0x4000].view(STORAGE[dst])
        flat[positions(case.c)] = values
        assert device.run(case.packet) == ErrorCode.NONE, device.model.last_fault
        np.testing.assert_array_equal(device.memory, wanted)
        compared += values.size
    assert compared > 300


@pytest.mark.parametrize(("src", "dst"), [(DType.BF16, DType.BF16), (DType.INT8, DType.INT32)])
def test_the_third_opinion_reads_windows(src: DType, dst: DType) -> None:
    compared = 0
    for seed in range(4):
        case = random_product(seed, src, dst)
        compared += agreed(case.placed(seed), case.packet)
    assert compared > 60


def test_a_convolution_is_one_product_of_overlapping_windows() -> None:
    images, channels, side, out, kernel = 2, 3, 9, 4, 3
    places = side - kernel + 1
    device, rng = SmallDevice(), np.random.default_rng(5)
    x = rng.integers(-8, 8, (images, channels, side, side)).astype(np.float32)
    weight = rng.integers(-8, 8, (out, channels, kernel, kernel)).astype(np.float32)
    device.store(A, weight.view(np.uint32))
    device.store(B, x.view(np.uint32))
    plane, area = side * side, places * places
    taps = channels * kernel * kernel
    windows = WindowDescriptor(
        B,
        DType.FP32,
        (1, channels, kernel, kernel, images, places, places),
        (0, plane, side, 1, channels * plane, side, 1),
    )
    result = WindowDescriptor(
        C, DType.FP32, (1, 1, 1, out, 1, images, area), (0, 0, 0, area, 0, out * area, 1)
    )
    device.store(WINDOWS["SRC2_DESC"], windows.pack())
    device.store(WINDOWS["DST_DESC"], result.pack())
    flags = flag_word(DType.FP32, DType.FP32, "SRC2_DESC", "DST_DESC")
    sizes = (out, taps, images * area, 1)
    packet = Packet(Opcode.MATMUL, flags, A, *list(WINDOWS.values())[1:], sizes)
    assert device.run(packet) == ErrorCode.NONE, device.model.last_fault
    found = device.load(C, DType.FP32, images * out * area).view(np.float32)
    patches = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))
    wanted = np.einsum("ncpqij,ocij->nopq", patches, weight)
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


# ---------------------------------------------------------------------- what is refused
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


CASES = wrong_cases()


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


def test_bus_errors_concern_only_bytes_of_elements() -> None:
    device = prepared(Case("", ErrorCode.NONE, GOOD.packet, placed(GOOD)))
    device.model.poison(A + 24 * 4, 64, True, True)  # behind the last element
    assert device.run(GOOD.packet) == ErrorCode.NONE
    device.model.poison(A + 23 * 4, 1, True, False)
    assert device.run(GOOD.packet) == ErrorCode.BUS_READ
    device.model.clear_poison()
    device.model.poison(C + 29 * 4, 1, False, True)
    assert device.run(GOOD.packet) == ErrorCode.BUS_WRITE
