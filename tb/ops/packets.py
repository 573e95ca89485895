# SPDX-License-Identifier: Apache-2.0
"""Which packet of an op first leaves something else in memory: the op again, packet by packet."""

from __future__ import annotations

from dataclasses import dataclass

from driver.isa import Opcode, Packet
from driver.isa.programs import PROGRAMS
from tb.ops.case import Case
from tb.ops.pair import DevicePair
from tb.ops.placing import placed
from tb.ops.problem import Problem

_PROGRAM_NAMES = {program.number: name for name, program in PROGRAMS.items()}


@dataclass(frozen=True)
class WrongPacket:
    """The first packet after which the memories differ."""

    number: int
    """Counted from 1."""
    count: int
    packet: Packet
    address: int | None
    """The first byte that differs; None when only one of the devices refused the packet."""

    def __str__(self) -> str:
        where = "" if self.address is None else f", first at {self.address:#x}"
        return f"packet {self.number} of {self.count}, {packet_name(self.packet)}{where}"


def packet_name(packet: Packet) -> str:
    """Opcode, and the program of a VECTOR packet."""
    name = Opcode(packet.opcode).name
    if packet.opcode != Opcode.VECTOR:
        return name
    return f"{name} {_PROGRAM_NAMES.get(packet.params[0], packet.params[0])}"


def first_wrong_packet(
    pair: DevicePair, case: Case, problem: Problem, seed: int
) -> WrongPacket | None:
    """Run the case again in steps. None when it is one packet, or when nothing differs now."""
    with placed(pair, case, problem, seed) as here:
        packets, descriptors = here.program.packets, here.program.descriptors
        if len(packets) < 2:
            return None
        for number, packet in enumerate(packets, 1):
            trial = pair.execute(type(here.program)((packet,), descriptors), ())
            assert trial.rtl is not None
            faults = [outcome.fault is not None for outcome in (trial.cmodel, trial.rtl)]
            if trial.stray or any(faults):
                address = trial.stray[0] if trial.stray else None
                return WrongPacket(number, len(packets), packet, address)
    return None
