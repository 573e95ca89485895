# SPDX-License-Identifier: Apache-2.0
"""What completion records say about time, against what any hardware of this kind needs.

The cmodel has no clock, so nothing else compares these numbers of an op; reports, baselines and
rooflines rest on them. Records without any time are those of a device without a clock, as stands in
for the RTL in tests of the bench: that the RTL's have one is held by TEST=bus, CommandCounters.
"""

from __future__ import annotations

from collections.abc import Sequence

from driver.config import HwConfig
from driver.isa import CompletionRecord, Opcode, Packet
from tb.ops.cost import macs_of


def impossible(
    packets: Sequence[Packet], records: Sequence[CompletionRecord], config: HwConfig
) -> str | None:
    """The first record that cannot be right, in words; None: all can be."""
    if not any(record.end_cycle for record in records):
        return None
    before = 0
    for number, (packet, record) in enumerate(zip(packets, records, strict=False), 1):
        wrong = _impossible(packet, record, config.array_size**2)
        if wrong is None and record.start_cycle < before:
            wrong = f"it started in cycle {record.start_cycle}, the one before in {before}"
        if wrong is not None:
            return f"record of command {number}, {Opcode(packet.opcode).name}: {wrong}"
        before = record.start_cycle
    return None


def _impossible(packet: Packet, record: CompletionRecord, peak: int) -> str | None:
    """`peak`: multiply-adds of the array per cycle."""
    took = record.cycles
    if record.end_cycle < record.start_cycle:
        return f"ended in cycle {record.end_cycle}, started in {record.start_cycle}"
    beats = max(record.read_beats, record.write_beats)
    if beats > took:
        return f"{beats} beats of a channel in {took} cycles"
    spent = record.active_cycles + record.operand_stall + record.result_stall
    if spent > took:
        return f"active or stalled in {spent} of {took} cycles"
    macs = macs_of(packet)
    if macs > took * peak:
        return f"{macs} multiply-adds in {took} cycles of at most {peak}"
    return None
