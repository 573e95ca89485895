# SPDX-License-Identifier: Apache-2.0
"""Vector programs as packets of the driver name them, before a device has a place for them.

A program that is there after a reset is named by its line. Any other has a placeholder, a number
that is no line: `driver.runtime.resident` puts the line in when the packet is submitted.
Placeholders are those of this process; equal images have equal ones, and none is used twice.
"""

from __future__ import annotations

import threading

from driver.isa import Opcode, Packet
from driver.isa.image import digest
from driver.isa.micro import VectorProgram
from driver.isa.programs import PROGRAM_AT

FIRST_PLACEHOLDER = 1 << 31
_LOCK = threading.Lock()
_PLACEHOLDERS: dict[str, int] = {}
_PROGRAMS: list[VectorProgram] = []


def placeholder(program: VectorProgram) -> int:
    """What VECTOR's parameter `program` is, until the device has the program."""
    key = digest(program)
    with _LOCK:
        number = _PLACEHOLDERS.get(key)
        if number is None:
            number = _PLACEHOLDERS[key] = FIRST_PLACEHOLDER + len(_PROGRAMS)
            _PROGRAMS.append(program)
        return number


def named_by(number: int) -> VectorProgram | None:
    """The program of a line after a reset, or of a placeholder; None for any other number."""
    if number < FIRST_PLACEHOLDER:
        return PROGRAM_AT.get(number)
    at = number - FIRST_PLACEHOLDER
    return _PROGRAMS[at] if at < len(_PROGRAMS) else None


def packet_name(packet: Packet) -> str:
    """For a listing: the opcode, and the program of a VECTOR packet."""
    try:
        name = Opcode(packet.opcode).name
    except ValueError:
        return f"opcode {packet.opcode}"
    return f"{name} {name_of(packet.params[0])}" if packet.opcode == Opcode.VECTOR else name


def name_of(number: int) -> str:
    """For a listing: the program's name, or its line."""
    program = named_by(number)
    return f"line {number}" if program is None else program.name
