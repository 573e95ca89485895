# SPDX-License-Identifier: Apache-2.0
"""A program's image: every malformed one is refused by Python and by the model alike."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from cmodel_util import SmallDevice

from driver.isa import ErrorCode, Opcode, Packet
from driver.isa.image import (
    LINE_BYTES,
    MAX_LINES,
    PROGRAM_RAM,
    PROGRAM_RAM_LINES,
    ImageError,
    lines_of,
    pack,
    unpack,
)
from driver.isa.micro import MAX_CONSTANTS, MAX_INSTRUCTIONS, Reduce, VectorProgram
from driver.isa.programs import PROGRAMS
from tb.seqs.images import EXAMPLE, IMAGE_BREAKS, random_program

IMAGE = 0x4000
PLAIN = Packet(Opcode.VECTOR, 0, 0x8000, 0, 0x9000, (PROGRAM_RAM, 1))


def content(program: VectorProgram) -> tuple[object, ...]:
    """What an image says."""
    return (program.code, program.constants, program.sources, program.results, program.reduce)


def load(device: SmallDevice, image: bytes, line: int = PROGRAM_RAM, lines: int = 0) -> ErrorCode:
    device.store(IMAGE, image)
    return device.run(
        Packet(Opcode.LOAD, 0, IMAGE, params=(line, lines or len(image) // LINE_BYTES))
    )


def test_an_image_is_read_as_it_was_written() -> None:
    rng = random.Random(1)
    programs = [*PROGRAMS.values(), EXAMPLE, *(random_program(rng) for _ in range(300))]
    for program in programs:
        assert content(unpack(pack(program))) == content(program)
    assert max(map(lines_of, programs)) == MAX_LINES == 36
    assert {p.sources for p in programs} == {0, 1, 2, 3, 4}
    assert {p.results for p in programs} == {1, 2, 3}
    assert {p.reduce for p in programs} == set(Reduce)
    largest = max(programs, key=lambda p: len(p.code))
    assert (len(largest.code), len(largest.constants)) == (MAX_INSTRUCTIONS, MAX_CONSTANTS)


@pytest.mark.parametrize("name", IMAGE_BREAKS)
def test_each_malformed_field_is_refused_and_nothing_changes(name: str) -> None:
    broken, count = IMAGE_BREAKS[name], lines_of(EXAMPLE)
    lines = count + broken.lines
    image = broken.image()[: lines * LINE_BYTES]
    with pytest.raises(ImageError):
        unpack(image)
    device = SmallDevice()
    assert load(device, pack(EXAMPLE)) == ErrorCode.NONE
    memory = device.memory.copy()
    for line in (PROGRAM_RAM, PROGRAM_RAM + count):
        device.memory[:] = memory
        assert load(device, image, line) == ErrorCode.BAD_IMAGE
        assert device.model.dirty_pages() == []
        assert "image: " in device.model.last_fault
    # The program that was there is there still, and none where the malformed image was to go.
    plain = Packet(Opcode.VECTOR, 0, 0x8000, 0x8100, 0x9000, (PROGRAM_RAM, 1))
    assert device.run(plain) == ErrorCode.BAD_PARAM  # two results need an operand list
    elsewhere = replace(plain, params=(PROGRAM_RAM + count, 1))
    assert device.run(elsewhere) == ErrorCode.NOT_LOADED


def test_a_reduction_without_sources_is_malformed() -> None:
    total = replace(PROGRAMS["constant"], reduce=Reduce.FADD)
    with pytest.raises(ImageError, match="reduce is 1"):
        unpack(pack(total))
    assert load(SmallDevice(), pack(total)) == ErrorCode.BAD_IMAGE


def test_any_byte_that_is_another_is_judged_alike_by_both_readers() -> None:
    rng, device = random.Random(7), SmallDevice()
    accepted = refused = 0
    for _ in range(1500):
        image = bytearray(pack(random_program(rng)))
        at = rng.randrange(min(len(image), 3 * LINE_BYTES))
        image[at] = rng.choice((image[at] ^ 1 << rng.randrange(8), rng.randrange(256)))
        try:
            unpack(bytes(image))
        except ImageError:
            refused += 1
            wanted = ErrorCode.BAD_IMAGE
        else:
            accepted += 1
            wanted = ErrorCode.NONE
        assert load(device, bytes(image)) == wanted, f"byte {at}: {device.model.last_fault}"
    assert min(accepted, refused) > 120


def test_a_program_that_is_overwritten_in_part_is_no_longer_loaded() -> None:
    device = SmallDevice()
    short, lines = PROGRAMS["neg"], lines_of(PROGRAMS["pow"])
    assert (lines_of(short), lines) == (1, 17)
    first, behind = PROGRAM_RAM + 3, PROGRAM_RAM + 3 + lines
    neg = replace(PLAIN, params=(behind, 1))
    assert load(device, pack(PROGRAMS["pow"]), first) == ErrorCode.NONE
    assert load(device, pack(short), behind) == ErrorCode.NONE
    power = Packet(Opcode.VECTOR, 0, 0x8000, 0x8100, 0x9000, (first, 1))
    for cut in (first + 1, first + lines - 1, first):
        assert device.run(power) == device.run(neg) == ErrorCode.NONE
        assert load(device, pack(short), cut) == ErrorCode.NONE
        if cut != first:
            assert device.run(power) == ErrorCode.NOT_LOADED
        assert device.run(replace(PLAIN, params=(cut, 1))) == ErrorCode.NONE
        assert load(device, pack(PROGRAMS["pow"]), first) == ErrorCode.NONE
        if cut != first:
            assert device.run(replace(PLAIN, params=(cut, 1))) == ErrorCode.NOT_LOADED
    device.model.forget_loaded_programs()
    assert device.run(power) == device.run(neg) == ErrorCode.NOT_LOADED
    assert device.run(replace(PLAIN, params=(0, 1))) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (Packet(Opcode.LOAD, 1 << 24, IMAGE, params=(PROGRAM_RAM, 1)), ErrorCode.RESERVED_BITS),
        (Packet(Opcode.LOAD, 0, IMAGE, 1, params=(PROGRAM_RAM, 1)), ErrorCode.RESERVED_BITS),
        (Packet(Opcode.LOAD, 0, IMAGE, 0, 1, (PROGRAM_RAM, 1)), ErrorCode.RESERVED_BITS),
        (Packet(Opcode.LOAD, 0, IMAGE, params=(PROGRAM_RAM, 1, 1)), ErrorCode.RESERVED_BITS),
        (Packet(Opcode.LOAD, 0, 1, params=(PROGRAM_RAM, 0)), ErrorCode.BAD_PARAM),
        (Packet(Opcode.LOAD, 0, 1, params=(PROGRAM_RAM, MAX_LINES + 1)), ErrorCode.BAD_PARAM),
        (Packet(Opcode.LOAD, 0, 1, params=(PROGRAM_RAM - 1, 1)), ErrorCode.BAD_PARAM),
        (Packet(Opcode.LOAD, 0, 1, params=(0, 1)), ErrorCode.BAD_PARAM),
        (Packet(Opcode.LOAD, 0, 1, params=(1536, 1)), ErrorCode.BAD_PARAM),
        (Packet(Opcode.LOAD, 0, 1, params=(1535, 2)), ErrorCode.BAD_PARAM),
        (Packet(Opcode.LOAD, 0, 1, params=(0xFFFF_FFFF, 2)), ErrorCode.BAD_PARAM),
        (Packet(Opcode.LOAD, 0, 32, params=(PROGRAM_RAM, 1)), ErrorCode.MISALIGNED),
        (Packet(Opcode.LOAD, 0, 0, params=(PROGRAM_RAM, 1)), ErrorCode.OUT_OF_RANGE),
        (Packet(Opcode.LOAD, 0, 0x10FC0, params=(PROGRAM_RAM, 2)), ErrorCode.OUT_OF_RANGE),
        (Packet(Opcode.LOAD, 0, (1 << 64) - 64, params=(PROGRAM_RAM, 2)), ErrorCode.OUT_OF_RANGE),
        (Packet(Opcode.LOAD, 0, 0x5000, params=(PROGRAM_RAM, 2)), ErrorCode.BUS_READ),
        (Packet(Opcode.LOAD, 0, IMAGE, params=(PROGRAM_RAM, 2)), ErrorCode.BAD_IMAGE),
    ],
)
def test_load_is_checked_in_the_order_of_the_contract(packet: Packet, code: ErrorCode) -> None:
    device = SmallDevice()
    device.store(IMAGE, pack(PROGRAMS["neg"]))
    device.model.poison(0x5040, 64, True, False)
    assert device.run(packet) == code, device.model.last_fault
    assert device.run(replace(PLAIN)) == ErrorCode.NOT_LOADED
    assert device.run(Packet(Opcode.LOAD, 0, IMAGE, params=(PROGRAM_RAM, 1))) == ErrorCode.NONE
    assert device.run(PLAIN) == ErrorCode.NONE


def test_the_last_line_can_be_loaded() -> None:
    device = SmallDevice()
    last = PROGRAM_RAM + PROGRAM_RAM_LINES - 1
    assert load(device, pack(PROGRAMS["neg"]), last) == ErrorCode.NONE
    device.store(0x8000, np.array([0x3F80_0000], np.uint32))
    assert device.run(replace(PLAIN, params=(last, 1))) == ErrorCode.NONE
    assert device.memory[0x9003 - device.BASE] == 0xBF
