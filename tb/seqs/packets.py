# SPDX-License-Identifier: Apache-2.0
"""Random packets with operands of every kind: direct, transposed, strided, broadcast, misfit.

Legal by construction; `broken` makes one illegal in a chosen way. Knows no simulator.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import prod

from driver.isa import (
    DESCRIPTOR_BYTES,
    DTYPE_BYTES,
    FLAGS,
    MATMUL_DTYPES,
    MAX_RANK,
    Descriptor,
    DType,
    Opcode,
    Packet,
    flag_word,
)

_GAP_BYTES = 256
_STRIDE_BYTE = 36
"""Where a descriptor's strides start."""


@dataclass
class Arena:
    """Hands out fresh addresses upwards, each aligned to the element only; collects contents."""

    rng: random.Random
    base: int
    limit: int
    contents: list[tuple[int, bytes]] = field(default_factory=list)

    def place(self, size_bytes: int, alignment: int) -> int:
        """Somewhere within the next few hundred bytes."""
        start = self.base + self.rng.randrange(_GAP_BYTES)
        address = -(-start // alignment) * alignment
        self.base = address + size_bytes
        assert self.base <= self.limit, "arena is full"
        return address

    def fill(self, address: int, size_bytes: int, dtype: DType = DType.INT8) -> None:
        """Random bytes there before the packet runs; INT32 close to where it wraps."""
        data = self.rng.randbytes(size_bytes)
        if dtype is DType.INT32:
            data = b"".join(self._near_wrap() for _ in range(size_bytes // 4))
        self.contents.append((address, data))

    def _near_wrap(self) -> bytes:
        return ((1 << 31) + self.rng.randint(-30_000, 30_000)).to_bytes(4, "little")

    def taken(self) -> list[tuple[int, bytes]]:
        """The contents since the last call."""
        contents, self.contents = self.contents, []
        return contents


@dataclass(frozen=True)
class _Operand:
    address: int
    descriptor: bool


def _strides(rng: random.Random, sizes: tuple[int, ...], broadcast: bool) -> tuple[int, ...]:
    """A random order of dimensions in memory with random gaps; maybe one dimension repeated."""
    order = rng.sample(range(len(sizes)), len(sizes))
    strides = [0] * len(sizes)
    step = 1 if rng.random() < 0.7 else rng.randint(2, 3)
    for at in order:
        strides[at] = step
        step = step * sizes[at] + (rng.randint(0, 3) if rng.random() < 0.3 else 0)
    if broadcast and rng.random() < 0.2:
        strides[rng.randrange(len(sizes))] = 0
    return tuple(strides)


def _operand(arena: Arena, sizes: tuple[int, ...], dtype: DType, *, source: bool) -> _Operand:
    rng, width = arena.rng, DTYPE_BYTES[dtype]
    if rng.random() < 0.5:
        size_bytes = prod(sizes) * width
        address = arena.place(size_bytes, width)
        arena.fill(address, size_bytes, dtype)
        return _Operand(address, False)
    return _Operand(_view(arena, dtype, sizes, _strides(rng, sizes, broadcast=source)), True)


def _view(arena: Arena, dtype: DType, sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Random data and the descriptor of it: the descriptor's address."""
    width = DTYPE_BYTES[dtype]
    span = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) + 1
    base = arena.place(span * width, width)
    arena.fill(base, span * width, dtype)
    at = arena.place(DESCRIPTOR_BYTES, DESCRIPTOR_BYTES)
    arena.contents.append((at, Descriptor(base, dtype, sizes, strides).pack()))
    return at


def matmul(arena: Arena, longest: int) -> Packet:
    """A random MATMUL with sizes up to `longest`. Random bits are NaN and infinity now and then."""
    rng = arena.rng
    source, result = rng.choice(MATMUL_DTYPES)
    m, k, n = (rng.randint(1, longest) for _ in range(3))
    batch = rng.choice((1, 1, 1, 2, 3))
    flags = [name for name in ("TRANS_A", "TRANS_B", "ACCUMULATE", "IRQ") if rng.random() < 0.3]
    a_sizes = (batch, k, m) if "TRANS_A" in flags else (batch, m, k)
    b_sizes = (batch, n, k) if "TRANS_B" in flags else (batch, k, n)
    a = _operand(arena, a_sizes, source, source=True)
    b = _operand(arena, b_sizes, source, source=True)
    c = _operand(arena, (batch, m, n), result, source=False)
    for name, operand in (("SRC1_DESC", a), ("SRC2_DESC", b), ("DST_DESC", c)):
        flags += [name] if operand.descriptor else []
    word = flag_word(source, result, *flags)
    return Packet(Opcode.MATMUL, word, a.address, b.address, c.address, (m, k, n, batch))


def copy(arena: Arena, longest: int) -> Packet:
    """A random COPY of up to 5 dimensions."""
    rng = arena.rng
    dtype = rng.choice(list(DType))
    rank = rng.randint(1, MAX_RANK)
    most = (longest // 3, longest // 3, longest // 3, 6, 4)[rank - 1]
    sizes = tuple(rng.randint(1, max(2, most)) for _ in range(rank))
    src = _operand(arena, sizes, dtype, source=True)
    dst = _operand(arena, sizes, dtype, source=False)
    flags = ["SRC1_DESC"] if src.descriptor else []
    flags += ["DST_DESC"] if dst.descriptor else []
    count = 0 if flags else prod(sizes)
    word = flag_word(dtype, dtype, *flags, *(["IRQ"] if rng.random() < 0.3 else []))
    return Packet(Opcode.COPY, word, src.address, 0, dst.address, (count,))


def long_copy(arena: Arena) -> Packet:
    """A COPY of more bytes than one request to the memory controller has, at odd addresses."""
    count = (1 << 16) + arena.rng.randint(1, 1 << 13)
    src, dst = (arena.place(count, 1) for _ in range(2))
    arena.fill(src, count)
    arena.fill(dst, count)
    word = flag_word(DType.INT8, DType.INT8)
    return Packet(Opcode.COPY, word, src, 0, dst, (count,))


def offset_copies(arena: Arena, beat: int) -> Iterator[Packet]:
    """Runs of about a beat of bytes from every offset in a beat to every offset in a beat."""
    for run in (2, beat - 1, beat + 1):
        room = 4 * beat
        sizes = (beat, beat, run)
        strides = (beat * room + 1, room, 1), (beat * (room + 1), room + 1, 1)
        src, dst = (_view(arena, DType.INT8, sizes, order) for order in strides)
        word = flag_word(DType.INT8, DType.INT8, "SRC1_DESC", "DST_DESC")
        yield Packet(Opcode.COPY, word, src, 0, dst)


def repeating_copies(arena: Arena) -> Iterator[Packet]:
    """Sources that repeat along each of three short dimensions."""
    for strides in ((0, 2, 1), (2, 0, 1), (2, 1, 0)):
        src = _view(arena, DType.INT8, (2, 2, 2), strides)
        dst = _view(arena, DType.INT8, (2, 2, 2), (4, 2, 1))
        word = flag_word(DType.INT8, DType.INT8, "SRC1_DESC", "DST_DESC")
        yield Packet(Opcode.COPY, word, src, 0, dst)


def fill(arena: Arena, longest: int) -> Packet:
    """A random FILL."""
    rng = arena.rng
    dtype = rng.choice(list(DType))
    sizes = tuple(rng.randint(1, longest) for _ in range(rng.randint(1, 3)))
    dst = _operand(arena, sizes, dtype, source=False)
    value = rng.getrandbits(8 * DTYPE_BYTES[dtype])
    word = flag_word(DType.FP32, dtype, *(["DST_DESC"] if dst.descriptor else []))
    return Packet(
        Opcode.FILL, word, 0, 0, dst.address, (0 if dst.descriptor else prod(sizes), value)
    )


def sync(arena: Arena, longest: int) -> Packet:
    """A SYNC somewhere."""
    return Packet(
        Opcode.SYNC, dst=arena.place(4, 4), params=(arena.rng.getrandbits(32) % (longest << 24),)
    )


def nop(arena: Arena, longest: int) -> Packet:
    """A NOP or a FENCE, with or without its interrupt."""
    opcode = arena.rng.choice((Opcode.NOP, Opcode.FENCE))
    return Packet(opcode, FLAGS["IRQ"].mask if arena.rng.randint(0, longest) % 2 else 0)


MAKERS: tuple[tuple[Callable[[Arena, int], Packet], int], ...] = (
    (matmul, 4),
    (copy, 3),
    (fill, 2),
    (sync, 1),
    (nop, 1),
)
"""Kinds of packet and how often they come."""


def legal(arena: Arena, longest: int) -> Packet:
    """A random legal packet of any kind."""
    makers, weights = zip(*MAKERS, strict=True)
    return arena.rng.choices(makers, weights)[0](arena, longest)


def _repeating_destination(packet: Packet, arena: Arena) -> Packet:
    """A COPY whose destination repeats."""
    view = Descriptor(arena.place(64, 4), DType.FP32, (4, 4), (4, 0))
    return _copy_into(view.pack(), packet, arena)


def _stride_beyond_rank(packet: Packet, arena: Arena) -> Packet:
    """A COPY whose destination has a stride for a dimension that it has not."""
    data = bytearray(Descriptor(arena.place(64, 4), DType.FP32, (4, 4), (4, 1)).pack())
    data[_STRIDE_BYTE + 4 * 2] = 1
    return _copy_into(bytes(data), packet, arena)


def _copy_into(descriptor: bytes, packet: Packet, arena: Arena) -> Packet:
    at = arena.place(DESCRIPTOR_BYTES, DESCRIPTOR_BYTES)
    arena.contents.append((at, descriptor))
    return Packet(
        Opcode.COPY, flag_word(DType.FP32, DType.FP32, "DST_DESC"), packet.dst & ~63, 0, at
    )


BREAKS: dict[str, Callable[[Packet, Arena], Packet]] = {
    "unknown opcode": lambda p, a: replace(p, opcode=a.rng.choice((2, 5, 6, 9, 0x8000_0001))),
    "reserved flag": lambda p, _: replace(p, flags=p.flags | 1 << 11),
    "reserved parameter": lambda p, _: replace(p, params=(*p.params, 0, 0, 0, 1)[:8]),
    "reserved flag, unknown type": lambda p, _: replace(p, flags=p.flags | 1 << 11 | 0xFF),
    "unknown type": lambda p, _: replace(p, flags=p.flags | 0xFF),
    "zero size": lambda p, _: replace(p, params=(0, *p.params[1:])),
    "misaligned": lambda p, _: replace(p, src1=p.src1 | 1, flags=p.flags & ~0xFF | 0x00),
    "out of range": lambda p, a: replace(p, dst=(a.limit | (1 << 40)) & ~63),
    "repeating destination": _repeating_destination,
    "stride beyond the rank": _stride_beyond_rank,
}
"""Ways to break a MATMUL; the model says which error code each must give."""
