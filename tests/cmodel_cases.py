# SPDX-License-Identifier: Apache-2.0
"""Commands that a device must refuse, one rule broken each, and how to check that it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from cmodel_util import SmallDevice

from driver.isa import FLAGS, Descriptor, DType, ErrorCode, Opcode, Packet, flag_word

FP32, FP16, INT8, INT32 = DType.FP32, DType.FP16, DType.INT8, DType.INT32
A, B, C = 0x2000, 0x4000, 0x6000
DESC_A, DESC_B, DESC_C = 0x8000, 0x8040, 0x8080
LIMIT, BASE = SmallDevice.LIMIT, SmallDevice.BASE
HIGH = (1 << 64) - 64
"""An address whose last bytes wrap when computed in 64 bits."""

ALL_DESC = ("SRC1_DESC", "SRC2_DESC", "DST_DESC")
DESCRIPTORS = {
    DESC_A: Descriptor(A, FP32, (2, 3, 4), (12, 4, 1)),
    DESC_B: Descriptor(B, FP32, (2, 4, 5), (20, 5, 1)),
    DESC_C: Descriptor(C, FP32, (2, 3, 5), (15, 5, 1)),
}
MATMUL = Packet(Opcode.MATMUL, flag_word(FP32, FP32), A, B, C, (3, 4, 5, 2))
MATMUL_DESC = Packet(
    Opcode.MATMUL, flag_word(FP32, FP32, *ALL_DESC), DESC_A, DESC_B, DESC_C, (3, 4, 5, 2)
)
COPY = Packet(Opcode.COPY, flag_word(FP16, FP16), A, 0, C, (9,))
COPY_DESC = Packet(
    Opcode.COPY, flag_word(FP32, FP32, "SRC1_DESC", "DST_DESC"), DESC_A, 0, DESC_C, (0,)
)
FILL = Packet(Opcode.FILL, flag_word(FP32, INT8), dst=C, params=(9, 0x7F))
FILL_DESC = Packet(Opcode.FILL, flag_word(FP32, FP32, "DST_DESC"), dst=DESC_C, params=(0, 1))
SYNC = Packet(Opcode.SYNC, dst=C, params=(1,))
NOP, FENCE = Packet(Opcode.NOP), Packet(Opcode.FENCE)

GOOD = [MATMUL, MATMUL_DESC, COPY, FILL, FILL_DESC, SYNC, NOP, FENCE]


@dataclass(frozen=True)
class Case:
    """A packet with its descriptors and the code it must be answered with."""

    name: str
    code: ErrorCode
    packet: Packet
    descriptors: tuple[tuple[int, Descriptor | bytes], ...] = ()
    poison: tuple[tuple[int, int, bool, bool], ...] = ()


def prepared(case: Case) -> SmallDevice:
    """A device with the good descriptors, those of the case, and its bus errors."""
    device = SmallDevice()
    device.memory[:] = 0x11
    for address, descriptor in [*DESCRIPTORS.items(), *case.descriptors]:
        device.store(address, descriptor if isinstance(descriptor, bytes) else descriptor.pack())
    for address, size_bytes, read, write in case.poison:
        device.model.poison(address, size_bytes, read, write)
    return device


def with_flags(packet: Packet, bits: int) -> Packet:
    return replace(packet, flags=packet.flags | bits)


def with_param(packet: Packet, index: int, value: int) -> Packet:
    params = [*packet.params, *[0] * (8 - len(packet.params))]
    params[index] = value
    return replace(packet, params=tuple(params))


def malformed(address: int, **change: object) -> tuple[tuple[int, Descriptor | bytes], ...]:
    """The good descriptor at `address` with fields replaced."""
    return ((address, replace(DESCRIPTORS[address], **change)),)  # type: ignore[arg-type]


def patched(address: int, offset: int, value: int) -> tuple[tuple[int, Descriptor | bytes], ...]:
    """The good descriptor at `address` with one 32-bit word replaced."""
    raw = bytearray(DESCRIPTORS[address].pack())
    raw[offset : offset + 4] = value.to_bytes(4, "little")
    return ((address, bytes(raw)),)


def opcode_cases() -> list[Case]:
    reserved = (10, 11, 0x8000_0000, 0xFFFF_FFFF, 0x0100_0001, 0x0000_0102)
    return [Case(f"opcode {op:#x}", ErrorCode.BAD_OPCODE, Packet(op)) for op in reserved]


def reserved_cases() -> list[Case]:
    """Each flag bit, address and parameter that an opcode does not use, one at a time."""
    code, cases = ErrorCode.RESERVED_BITS, []
    usage = {  # allowed flag bits, addresses, number of parameters
        NOP: (0x8000, (), 0),
        FENCE: (0x8000, (), 0),
        SYNC: (0x8000, ("dst",), 1),
        FILL: (0xC0F0, ("dst",), 2),
        COPY: (0xD0FF, ("src1", "dst"), 1),
        MATMUL: (0x1E00_F7FF, ("src1", "src2", "dst"), 4),
    }
    for packet, (mask, addresses, params) in usage.items():
        name = Opcode(packet.opcode).name
        cases += [
            Case(f"{name} flag {bit}", code, with_flags(packet, 1 << bit))
            for bit in range(32)
            if not mask >> bit & 1
        ]
        cases += [
            Case(f"{name} {field}", code, replace(packet, **{field: 1 << 63}))
            for field in ("src1", "src2", "dst")
            if field not in addresses
        ]
        cases += [
            Case(f"{name} param {i}", code, with_param(packet, i, 1)) for i in range(params, 8)
        ]
    cases.append(Case("FILL value", code, with_param(FILL, 1, 0x100)))
    fill16 = replace(FILL, flags=flag_word(FP32, FP16))
    cases.append(Case("FILL value 16", code, with_param(fill16, 1, 0x1_0000)))
    fill_u8 = replace(FILL, flags=flag_word(FP32, DType.UINT8))
    cases.append(Case("FILL value UINT8", code, with_param(fill_u8, 1, 0x100)))
    return cases


def dtype_cases() -> list[Case]:
    code = ErrorCode.BAD_DTYPE
    good = {(0, 0), (1, 1), (1, 0), (2, 2), (2, 0), (3, 4)}
    every = [(s, d) for s in range(16) for d in range(16)]
    return [
        *(
            Case(f"MATMUL {s}->{d}", code, replace(MATMUL, flags=s | d << 4))
            for s, d in every
            if (s, d) not in good
        ),
        Case("MATMUL INT4_GROUP of INT8", code, replace(MATMUL, flags=3 | 4 << 4 | 3 << 25)),
        *(
            Case(f"COPY {s}->{d}", code, replace(COPY, flags=s | d << 4))
            for s, d in every
            if s != d or s not in iter(DType)
        ),
        *(Case(f"FILL {d}", code, replace(FILL, flags=d << 4)) for d in range(6, 16)),
        Case("FILL 7, wide value", code, with_param(replace(FILL, flags=7 << 4), 1, 1 << 31)),
        Case("FILL INT64, wide value", code, with_param(replace(FILL, flags=6 << 4), 1, 1 << 31)),
    ]


def param_cases() -> list[Case]:
    code = ErrorCode.BAD_PARAM
    one_sided = (
        replace(COPY_DESC, flags=flag_word(FP32, FP32, name), params=(1,))
        for name in ("SRC1_DESC", "DST_DESC")
    )
    return [
        *(Case(f"MATMUL INT4_GROUP {g}", code, with_flags(MATMUL, g << 25)) for g in (1, 2)),
        *(Case(f"MATMUL param {i} zero", code, with_param(MATMUL, i, 0)) for i in range(4)),
        Case("COPY count zero", code, with_param(COPY, 0, 0)),
        Case("FILL count zero", code, with_param(FILL, 0, 0)),
        Case("COPY count with descriptors", code, with_param(COPY_DESC, 0, 24)),
        *(Case("COPY count with a descriptor", code, packet) for packet in one_sided),
        Case("FILL count with a descriptor", code, with_param(FILL_DESC, 0, 30)),
    ]


def descriptor_cases() -> list[Case]:
    code, cases = ErrorCode.BAD_DESCRIPTOR, []
    for address, good in DESCRIPTORS.items():
        name = f"descriptor {address:#x}"
        cases += [
            Case(f"{name}: word {offset}", code, MATMUL_DESC, patched(address, offset, value))
            for offset, value in [
                (8, INT8),  # type that is not the packet's
                (8, 1 << 16),
                (12, 0),
                (12, 2),
                (12, 4),
                (12, 6),
                (28, 1),  # size beyond the rank
                (32, 1),
                (48, 1),  # stride beyond the rank
                (52, 1),
                (56, 1),
                (60, 1 << 31),
                (16, 0),
                (24, 0),
            ]
        ]
        for d in range(3):
            sizes = tuple(s + (i == d) for i, s in enumerate(good.sizes))
            cases.append(
                Case(f"{name}: size {d}", code, MATMUL_DESC, malformed(address, sizes=sizes))
            )
    for d in range(3):
        strides = tuple(0 if i == d else s for i, s in enumerate((15, 5, 1)))
        broadcast = malformed(DESC_C, strides=strides)
        cases.append(Case(f"MATMUL dst broadcast {d}", code, MATMUL_DESC, broadcast))
        cases.append(Case(f"FILL dst broadcast {d}", code, FILL_DESC, broadcast))
    same = replace(DESCRIPTORS[DESC_C], sizes=(2, 3, 4))
    flat = Descriptor(C, FP32, (24,), (1,))
    cases += [
        Case("COPY sizes differ", code, COPY_DESC),
        Case("COPY ranks differ", code, COPY_DESC, ((DESC_C, flat),)),
        Case("COPY dst broadcast", code, COPY_DESC, ((DESC_C, replace(same, strides=(0, 4, 1))),)),
    ]
    return cases


def address_cases() -> list[Case]:
    misaligned, out = ErrorCode.MISALIGNED, ErrorCode.OUT_OF_RANGE
    cases = []
    for field, size_bytes in (("src1", 96), ("src2", 160), ("dst", 120)):
        for offset in (1, 2, 3):
            address = getattr(MATMUL, field) + offset
            cases.append(Case(f"{field}+{offset}", misaligned, replace(MATMUL, **{field: address})))
        for address in (BASE - 4, LIMIT - size_bytes + 4, LIMIT, HIGH, 0):
            packet = replace(MATMUL, **{field: address})
            cases.append(Case(f"{field} at {address:#x}", out, packet))
    for field, good in (("src1", DESC_A), ("src2", DESC_B), ("dst", DESC_C)):
        odd = replace(MATMUL_DESC, **{field: good + 32})
        cases.append(Case(f"{field} descriptor at +32", misaligned, odd))
        for address in (BASE - 64, LIMIT, HIGH):
            packet = replace(MATMUL_DESC, **{field: address})
            cases.append(Case(f"{field} descriptor at {address:#x}", out, packet))
        cases += [
            Case(f"{field} base", misaligned, MATMUL_DESC, malformed(good, base=A + 2)),
            Case(f"{field} base high", out, MATMUL_DESC, malformed(good, base=HIGH)),
            Case(
                f"{field} strides",
                out,
                MATMUL_DESC,
                malformed(good, strides=(0xFFFF_FFFF,) * 3),
            ),
        ]
    # Offsets that come to 2^64 bytes, so to zero without saturation: by product, and by sum.
    once = Descriptor(C, FP32, (0x8000_0001,), (0x8000_0000,))
    fill8 = replace(FILL_DESC, flags=flag_word(FP32, INT8, "DST_DESC"))
    four_times = Descriptor(C, INT8, (0x8000_0001,) * 4, (0x8000_0000,) * 4)
    cases.append(Case("FILL of 2^64 bytes", out, FILL_DESC, ((DESC_C, once),)))
    cases.append(Case("FILL of 4 · 2^62 bytes", out, fill8, ((DESC_C, four_times),)))
    huge = replace(MATMUL, params=(0xFFFF_FFFF,) * 4)
    cases += [
        Case("MATMUL of 2^96 elements", out, huge),
        Case("COPY past the end", out, replace(COPY, src1=LIMIT - 16)),
        Case("COPY odd", misaligned, replace(COPY, dst=C + 1)),
        Case("FILL past the end", out, replace(FILL, dst=LIMIT - 8)),
        Case("SYNC odd", misaligned, replace(SYNC, dst=C + 2)),
        Case("SYNC past the end", out, replace(SYNC, dst=LIMIT)),
    ]
    return cases


def bus_cases() -> list[Case]:
    read, write = ErrorCode.BUS_READ, ErrorCode.BUS_WRITE
    accumulate = with_flags(MATMUL, FLAGS["ACCUMULATE"].mask)
    c_desc = replace(MATMUL, flags=flag_word(FP32, FP32, "DST_DESC"), dst=DESC_C)
    return [
        *(
            Case(f"descriptor {at:#x}", read, MATMUL_DESC, poison=((at + 63, 1, True, False),))
            for at in DESCRIPTORS
        ),
        Case("A's first byte", read, MATMUL, poison=((A, 1, True, False),)),
        Case("A's last byte", read, MATMUL, poison=((A + 95, 1, True, False),)),
        Case("B's last byte", read, MATMUL, poison=((B + 159, 64, True, False),)),
        Case("C read", read, accumulate, poison=((C + 119, 1, True, False),)),
        Case("C written", write, MATMUL, poison=((C + 119, 1, False, True),)),
        Case("C through a descriptor", write, c_desc, poison=((C + 64, 64, False, True),)),
        Case("both", read, MATMUL, poison=((C, 4, False, True), (B, 4, True, False))),
        Case("COPY read", read, COPY, poison=((A + 17, 1, True, True),)),
        Case("COPY write", write, COPY, poison=((C - 7, 8, False, True),)),
        Case("FILL", write, FILL, poison=((C + 8, 1, False, True),)),
        Case("SYNC", write, SYNC, poison=((C + 3, 1, False, True),)),
        Case("a range past 2^64", write, SYNC, poison=((A, (1 << 64) - 1, False, True),)),
    ]


CASES = [
    *opcode_cases(),
    *reserved_cases(),
    *dtype_cases(),
    *param_cases(),
    *descriptor_cases(),
    *address_cases(),
    *bus_cases(),
]


def assert_refused(case: Case, arrange: Callable[[SmallDevice], None] | None = None) -> None:
    """`arrange` puts what the case needs besides into memory."""
    device = prepared(case)
    if arrange is not None:
        arrange(device)
    before = device.memory.copy()
    code = ErrorCode(device.model.execute(case.packet.pack(), 7))
    assert code == case.code, f"{case.name}: {code.name}"
    np.testing.assert_array_equal(device.memory, before)
    assert device.model.dirty_pages() == []
    assert device.model.last_fault.startswith("command 7: ")
