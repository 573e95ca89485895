# SPDX-License-Identifier: Apache-2.0
"""Packets of TEST=bus with operands that random ones seldom have: legal, and what they cover."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator

import pytest
from backend_host import CONFIG

from driver.isa import DTYPE_BYTES, FLAGS, Descriptor, DType, ErrorCode, Opcode, Packet
from driver.isa.tables import TABLES
from golden.backend import CmodelBackend
from tb.seqs.arena import Arena
from tb.seqs.int4 import scale_groups
from tb.seqs.loading import table_reads
from tb.seqs.streams import strided_vectors

_BASE, _LIMIT = 1 << 16, 1 << 21
Packets = Callable[[Arena], Iterator[Packet]]


def _executed(make: Packets) -> tuple[list[Packet], CmodelBackend]:
    """The packets, each accepted by the model, and the model behind them."""
    arena = Arena(random.Random(1), _BASE, _LIMIT)
    packets = list(make(arena))
    device = CmodelBackend(CONFIG, threads=1)
    for address, data in arena.taken():
        device.write_memory(address, data)
    codes = {device._execute(packet.pack(), 0) for packet in packets}
    assert codes == {ErrorCode.NONE}
    return packets, device


def test_every_short_distance_of_every_size_of_element() -> None:
    packets, device = _executed(strided_vectors)
    found = set()
    for packet in packets:
        src = Descriptor.unpack(device.read_memory(packet.src1, 64))
        found.add((DTYPE_BYTES[src.dtype], src.strides[-1]))
    assert found == {(size, at) for size in (1, 2, 4, 8) for at in (1, 2, 3, 4, 5)}


def test_every_word_of_every_table_is_read() -> None:
    packets, device = _executed(table_reads)
    runs = [packet for packet in packets if packet.opcode == Opcode.VECTOR]
    columns = [(table, column) for table in TABLES for column in range(table.columns)]
    assert [packet.params[1] == 1 for packet in runs] == [False, True, True] * len(columns)
    for packet, (table, column) in zip(runs[::3], columns, strict=True):
        count = packet.params[1]
        data = (device.read_memory(at, 4 * count) for at in (packet.src1, packet.dst))
        words, results = (struct.unpack(f"<{count}I", half) for half in data)
        beyond = [word for word in words if table.limit < word & 0x7FFF_FFFF <= 0x7F80_0000]
        assert len(beyond) >= 8
        pairs = zip(words, results, strict=True)
        read = {right ^ min(word, table.limit) for word, right in pairs if word < 0x7F80_0001}
        assert read == {row[column] for row in table.rows}
    for alone, (table, column) in zip(
        zip(runs[1::3], runs[2::3], strict=True), columns, strict=True
    ):
        words = [struct.unpack("<I", device.read_memory(packet.dst, 4))[0] for packet in alone]
        given = [struct.unpack("<I", device.read_memory(packet.src1, 4))[0] for packet in alone]
        rows = [table.rows[at][column] for at in (0, -1)]
        assert [word ^ min(x, table.limit) for word, x in zip(words, given, strict=True)] == rows


@pytest.mark.parametrize("group", [3, 4, 5, 6])
def test_each_group_has_scales_of_its_own_that_matter(group: int) -> None:
    packets, device = _executed(scale_groups)
    packet = packets[group - 3]
    rows, depth, columns = packet.params[:3]
    assert packet.flags >> FLAGS["INT4_GROUP"].lsb & 15 == group and depth > 2 << group
    size_bytes = rows * columns * DTYPE_BYTES[DType.FP32]
    before = device.read_memory(packet.dst, size_bytes)
    scales = packet.params[6]
    first = device.read_memory(scales, 2 * columns)
    device.write_memory(scales + 2 * columns, first * 2)  # those of the first group for all
    assert device._execute(packet.pack(), 0) is ErrorCode.NONE
    behind = device.read_memory(packet.dst, size_bytes)
    pairs = zip(struct.iter_unpack("<f", before), struct.iter_unpack("<f", behind), strict=True)
    assert sum(one != other for one, other in pairs) > rows * columns * 0.9
