# SPDX-License-Identifier: Apache-2.0
"""Random commands that share a few KiB of memory: each reads and writes what others write and read.

Legal by construction: no command overwrites its own operands, descriptors or indices, except where
that is the point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from driver.isa import DTYPE_BYTES, FLAGS, Descriptor, DType, Opcode, Packet, flag_word
from driver.isa.programs import LINES, PROGRAMS
from tb.seqs.arena import Arena
from tb.seqs.streams import indices, stream_flags, stream_packet

_LINE = 64


@dataclass
class SharedOperands:
    """The shared bytes, and the operands that the command being made has in them."""

    arena: Arena
    base: int
    size_bytes: int
    taken: list[range] = field(default_factory=list)

    def operand(self, size_bytes: int, alignment: int) -> int:
        """A random place that no other operand of this command touches."""
        while True:
            room = (self.size_bytes - size_bytes) // alignment
            address = self.base + self.arena.rng.randint(0, room) * alignment
            found = range(address, address + size_bytes)
            if all(found.stop <= other.start or other.stop <= found.start for other in self.taken):
                self.taken.append(found)
                return address


def shared_memory(arena: Arena, size_bytes: int = 2048) -> SharedOperands:
    """Fresh memory with random bytes."""
    base = arena.place(size_bytes, _LINE)
    arena.fill(base, size_bytes)
    return SharedOperands(arena, base, size_bytes)


def _copy(memory: SharedOperands) -> list[Packet]:
    count = memory.arena.rng.choice((1, 7, 64, memory.arena.rng.randint(1, 400)))
    src, dst = memory.operand(count, 1), memory.operand(count, 1)
    return [Packet(Opcode.COPY, flag_word(DType.INT8, DType.INT8), src, 0, dst, (count,))]


def _fill(memory: SharedOperands) -> list[Packet]:
    rng = memory.arena.rng
    dtype = rng.choice((DType.INT8, DType.FP16, DType.INT32))
    width = DTYPE_BYTES[dtype]
    count = rng.randint(1, 80)
    dst = memory.operand(count * width, width)
    params = (count, rng.getrandbits(8 * width))
    return [Packet(Opcode.FILL, flag_word(DType.FP32, dtype), 0, 0, dst, params)]


def _product(memory: SharedOperands) -> list[Packet]:
    rng = memory.arena.rng
    source, result = rng.choice(((DType.FP32, DType.FP32), (DType.INT8, DType.INT32)))
    m, k, n = (rng.randint(1, 9) for _ in range(3))
    width, width_out = DTYPE_BYTES[source], DTYPE_BYTES[result]
    src1, src2 = memory.operand(m * k * width, width), memory.operand(k * n * width, width)
    dst = memory.operand(m * n * width_out, width_out)
    flags = ["ACCUMULATE"] if rng.random() < 0.3 else []
    word = flag_word(source, result, *flags)
    return [Packet(Opcode.MATMUL, word, src1, src2, dst, (m, k, n, 1))]


def _pass(memory: SharedOperands) -> list[Packet]:
    count = memory.arena.rng.randint(1, 60)
    program = PROGRAMS["add"]
    sources = [memory.operand(4 * count, 4) for _ in range(program.sources)]
    dst = memory.operand(4 * count, 4)
    flags = stream_flags([DType.FP32] * program.sources, DType.FP32, descriptors=False)
    return [stream_packet(LINES["add"], flags, sources, dst, count=count, imms=[0] * 4)]


def _described(memory: SharedOperands, base: int, count: int) -> int:
    at = memory.arena.place(_LINE, _LINE)
    memory.arena.contents.append((at, Descriptor(base, DType.INT32, (count,), (1,)).pack()))
    return at


def _gather(memory: SharedOperands) -> list[Packet]:
    rng = memory.arena.rng
    table, count = rng.randint(1, 40), rng.randint(1, 40)
    src = _described(memory, memory.operand(4 * table, 4), table)
    picked = indices(memory.arena, DType.INT32, (count,), table, rng.randrange(table))
    dst = _described(memory, memory.operand(4 * count, 4), count)
    word = stream_flags([DType.INT32, DType.INT32], DType.INT32, descriptors=True)
    return [Packet(Opcode.GATHER, word, src, picked, dst, (0,))]


def _order(memory: SharedOperands) -> list[Packet]:
    rng = memory.arena.rng
    if rng.random() < 0.4:
        word = memory.operand(4, 4)
        return [Packet(Opcode.SYNC, dst=word, params=(rng.getrandbits(32),))]
    return [Packet(rng.choice((Opcode.NOP, Opcode.FENCE)))]


def _new_descriptor(memory: SharedOperands) -> list[Packet]:
    """A COPY that changes the descriptor of the command behind it."""
    count = memory.arena.rng.randint(1, 30)
    src = memory.operand(4 * count, 4)
    before, after = (memory.operand(4 * count, 4) for _ in range(2))
    used = _described(memory, before, count)
    change = Packet(
        Opcode.COPY,
        flag_word(DType.INT8, DType.INT8),
        _described(memory, after, count),
        0,
        used,
        (_LINE,),
    )
    word = flag_word(DType.INT32, DType.INT32) | FLAGS["DST_DESC"].mask
    return [change, Packet(Opcode.COPY, word, src, 0, used)]


_MAKERS: tuple[tuple[Callable[[SharedOperands], list[Packet]], int], ...] = (
    (_copy, 5),
    (_fill, 4),
    (_product, 5),
    (_pass, 5),
    (_gather, 2),
    (_order, 1),
    (_new_descriptor, 2),
)


def dependent(memory: SharedOperands, count: int) -> list[Packet]:
    """At least `count` commands on the shared memory."""
    makers, weights = zip(*_MAKERS, strict=True)
    packets: list[Packet] = []
    while len(packets) < count:
        memory.taken.clear()
        packets += memory.arena.rng.choices(makers, weights)[0](memory)
    return packets
