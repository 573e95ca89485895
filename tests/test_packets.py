# SPDX-License-Identifier: Apache-2.0
"""The third opinion on a packet agrees with the cmodel on every element, and says who is wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from cmodel_util import SmallDevice, random_bits
from test_cmodel_gather import case as indexed_case
from test_cmodel_gather import packet as indexed_packet
from test_cmodel_vector import BASES, DST, View, flag, random_view, vector_packet

from driver.isa import Descriptor, DType, ErrorCode, Opcode, Packet
from driver.isa.micro import Reduce
from driver.isa.programs import LINES, PROGRAMS
from golden.packets import blame_packet, destinations, third_opinion_packet


def reader(memory: np.ndarray) -> Callable[[int, int], bytes]:
    return lambda address, size: memory[address - 0x1000 :][:size].tobytes()


def agreed(device: SmallDevice, packet: Packet) -> int:
    """Run a packet; elements of its destination on which the third opinion agrees: all."""
    before = device.memory.copy()
    assert device.run(packet) == ErrorCode.NONE, device.model.last_fault
    (view,) = destinations(packet, reader(before))
    after = reader(device.memory)
    for index in np.ndindex(view.sizes):
        assert third_opinion_packet(packet, reader(before), index) == view.bits(after, index)
        assert view.index_of(view.address(index)) == index
    return int(np.prod(view.sizes))


def filled(device: SmallDevice, seed: int) -> SmallDevice:
    rng = np.random.default_rng(seed)
    device.store(0x2000, random_bits(rng, DType.FP32, (0x3800,), specials=0.05))
    return device


@pytest.mark.parametrize("name", ["add", "where", "sum", "int_amax", "int_range", "clamp"])
def test_vector(name: str) -> None:
    program, compared = PROGRAMS[name], 0
    for seed in range(6):
        device, rng = filled(SmallDevice(), seed), np.random.default_rng([seed, 1])
        sizes = tuple(int(s) for s in rng.integers(1, 5, rng.integers(1, 4)))
        types = [DType(t) for t in rng.choice(list(DType), 4)]
        sources = [
            random_view(rng, BASES[i], types[i], sizes, dst=False) for i in range(program.sources)
        ]
        shape = sizes if program.reduce is Reduce.NONE else (*sizes[:-1], 1)
        dst = random_view(rng, DST, types[3], shape, dst=True)
        imms = rng.integers(0, 1 << 32, 4).tolist()
        compared += agreed(device, vector_packet(program, sources, dst, imms, device))
    assert compared > 6


def test_vector_by_count() -> None:
    views = [View(base, DType.BF16, (40,), (1,)) for base in (*BASES, DST)]
    packet = vector_packet(PROGRAMS["mul_add"], views[:3], views[3], [0] * 4, None)
    assert agreed(filled(SmallDevice(), 3), packet) == 40


@pytest.mark.parametrize(
    ("opcode", "accumulate"),
    [(Opcode.GATHER, False), (Opcode.SCATTER, False), (Opcode.SCATTER, True)],
)
def test_gather_and_scatter(opcode: Opcode, *, accumulate: bool) -> None:
    scatter = opcode is Opcode.SCATTER
    extra = flag("ACCUMULATE") if accumulate else 0
    for seed in range(10):
        device, views, dim = indexed_case(seed, DType.BF16, DType.INT64, scatter=scatter)
        assert agreed(device, indexed_packet(device, opcode, views, dim, extra)) > 0


@pytest.mark.parametrize("trans", ["", "TRANS_A", "TRANS_B"])
@pytest.mark.parametrize("types", [(DType.FP16, DType.FP16), (DType.INT8, DType.INT32)])
def test_matmul(types: tuple[DType, DType], trans: str) -> None:
    flags = flag("SRC_DTYPE", types[0]) | flag("DST_DTYPE", types[1]) | flag("ACCUMULATE")
    flags |= flag(trans) if trans else 0
    packet = Packet(Opcode.MATMUL, flags, *BASES[:2], DST, (3, 7, 4, 2))
    assert agreed(filled(SmallDevice(), 5), packet) == 24


def test_moves() -> None:
    device = filled(SmallDevice(), 6)
    device.describe(0x1000, Descriptor(0x2000, DType.INT64, (3, 4), (1, 5)))
    types = flag("SRC_DTYPE", DType.INT64) | flag("DST_DTYPE", DType.INT64)
    packets = [
        Packet(Opcode.COPY, types | flag("SRC1_DESC"), 0x1000, 0, DST),
        Packet(Opcode.COPY, types, 0x2000, 0, DST, (9,)),
        Packet(Opcode.FILL, flag("DST_DTYPE", DType.FP16), dst=DST, params=(5, 0x3C01)),
        Packet(Opcode.SYNC, dst=DST, params=(77,)),
    ]
    assert [agreed(device, packet) for packet in packets] == [12, 9, 5, 1]


def test_who_does_not_agree_with_the_integers_is_wrong() -> None:
    packet = Packet(Opcode.VECTOR, 0, BASES[0], BASES[1], DST, (LINES["mul"], 8))
    device = filled(SmallDevice(), 7)
    read = reader(device.memory.copy())
    right = third_opinion_packet(packet, read, (5,))
    assert blame_packet(packet, read, (5,), right, right ^ 1) == ("rtl", right)
    assert blame_packet(packet, read, (5,), right ^ 1, right) == ("cmodel", right)
    assert blame_packet(packet, read, (5,), right ^ 1, right ^ 2) == ("rtl", right)


def test_bytes_between_elements_belong_to_none() -> None:
    device = SmallDevice()
    device.describe(0x1000, Descriptor(DST, DType.FP32, (2, 3), (10, 2)))
    packet = Packet(Opcode.FILL, flag("DST_DESC"), dst=0x1000, params=(0, 1))
    (view,) = destinations(packet, reader(device.memory))
    found = {view.index_of(DST + 4 * word) for word in range(-1, 18)}
    assert found == {None, *np.ndindex(2, 3)}
