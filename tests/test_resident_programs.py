# SPDX-License-Identifier: Apache-2.0
"""Programs made at run time: packets that name them, devices that load and replace them."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from backend_host import CONFIG, executes

from driver.backend import InspectableBackend
from driver.errors import DeviceFault, InfrastructureError
from driver.isa import ISA_VERSION, DType, ErrorCode, Opcode, Packet, csr
from driver.isa.assembler import Assembler, Value, vector_program
from driver.isa.image import OWN_LINE, PROGRAM_RAM, lines_of, pack
from driver.isa.micro import MicroOp, Reduce, VectorProgram
from driver.isa.programs import PROGRAMS
from driver.lower.builder import ProgramBuilder
from driver.runtime import Buffer, Device, Program, TensorView, dense
from driver.runtime.program import unpacked
from driver.runtime.resident import ProgramLines, ResidentPrograms
from driver.runtime.vector_programs import FIRST_PLACEHOLDER, named_by, placeholder
from golden import softvector
from golden.backend import CmodelBackend
from tb.seqs.images import EXAMPLE, random_program

COUNT = 5
SERIAL = count(1)


@pytest.fixture
def device() -> Device:
    return Device(CmodelBackend(CONFIG), CONFIG)


def unique(lines: int = 1) -> VectorProgram:
    """A program of so many lines that no test had before: src1 + a number of its own."""
    number = next(SERIAL)

    def body(p: Assembler) -> Value:
        value = p.op(MicroOp.IADD, p.src1, p.word(number))
        for _ in range(8 * (lines - 1)):
            value = p.op(MicroOp.IADD, value, p.word(0))
        return value

    program = vector_program(body, sources=1)
    assert lines_of(program) == lines
    return program


def plus(*programs: VectorProgram) -> Program:
    """Each program on a vector of INT32, after the other: one operand, one result."""
    b = ProgramBuilder("test", CONFIG)
    source, target = (dense(Buffer(4 * COUNT), DType.INT32, (COUNT,)) for _ in range(2))
    for program in programs:
        b.vector(program, (source,), target)
        source = target
    return b.program()


def run(device: Device, program: Program) -> list[int]:
    """The result of a program on 0 … COUNT − 1."""
    source = device.upload(np.arange(COUNT, dtype=np.int32))
    target = device.upload(np.zeros(COUNT, np.int32))
    records = device.execute(program, [source.address, target.address])
    assert [record.opcode for record in records] == [Opcode.VECTOR] * program.packet_count
    result = device.download(target.address, (COUNT,), np.int32)
    device.free(source)
    device.free(target)
    return [int(word) for word in result]


def added(programs: list[VectorProgram]) -> list[int]:
    total = sum(program.constants[0] for program in programs)
    return [at + total for at in range(COUNT)]


def test_a_program_is_loaded_before_its_first_use_and_stays(device: Device) -> None:
    first, second = unique(), unique()
    assert run(device, plus(first)) == added([first])
    assert device.programs_loaded == 1
    assert run(device, plus(first, second, first)) == added([first, second, first])
    assert run(device, plus(second)) == added([second])
    assert device.programs_loaded == 2


def test_equal_images_are_one_program(device: Device) -> None:
    one = unique()
    assert run(device, plus(one)) == run(device, plus(replace(one, name="other", text="x")))
    assert device.programs_loaded == 1
    assert placeholder(one) == placeholder(replace(one, name="another"))
    assert named_by(placeholder(one)) is not None and named_by(FIRST_PLACEHOLDER - 1) is None


def test_more_programs_than_fit_replace_each_other_within_one_submission(device: Device) -> None:
    programs = [unique(lines) for lines in (1, 30, 17) * 20]
    twice = [*programs, *programs]
    assert run(device, plus(*twice)) == added(twice)
    assert device.programs_loaded == len(
        twice
    )  # 960 lines in 496: each is gone when it comes again
    kept = programs[-5:]
    assert run(device, plus(*kept)) == added(kept)
    assert device.programs_loaded == len(twice)


def test_programs_are_forgotten_with_a_reset_and_after_an_error(device: Device) -> None:
    program = unique()
    for again in range(4):
        assert run(device, plus(program)) == added([program])
        assert device.programs_loaded == again + 1
        if again == 0:
            device.reset()
        else:
            with pytest.raises(DeviceFault) as caught:
                device.submit([Packet(Opcode.NOP), Packet(Opcode.LOAD, params=(0, 1))])
            assert (caught.value.code, caught.value.number) == (ErrorCode.BAD_PARAM, 1)
            device.recover()


def test_a_fault_behind_a_load_names_the_packet_that_was_submitted(device: Device) -> None:
    first, second = plus(unique()), plus(unique())
    at = device.upload(np.zeros(64, np.int32)).address
    good = [first.bind([at, at]).packets[0], second.bind([at, at]).packets[0]]
    bad = replace(good[0], dst=1)
    with pytest.raises(DeviceFault) as caught:
        device.submit([*good, bad, *good])
    assert (caught.value.code, caught.value.number) == (ErrorCode.MISALIGNED, 2)
    assert caught.value.seq == 4  # two LOADs before it
    assert caught.value.packet is not None and caught.value.packet.dst == 1


def test_a_number_that_is_no_placeholder_of_ours_is_not_loaded(device: Device) -> None:
    for line in (0xFFFF_FFFF, 1023, PROGRAM_RAM):
        with pytest.raises(DeviceFault, match="NOT_LOADED"):
            device.submit([Packet(Opcode.VECTOR, dst=CONFIG.memory.base, params=(line, 1))])
        device.recover()


def test_the_last_lines_are_left_to_packets_that_load_themselves(device: Device) -> None:
    own = unique()
    image = device.upload(np.frombuffer(pack(own), np.uint8))
    device.submit([Packet(Opcode.LOAD, 0, image.address, params=(OWN_LINE, 1))])
    programs = [unique(31) for _ in range(40)]
    assert run(device, plus(*programs)) == added(programs)
    data = device.upload(np.arange(COUNT, dtype=np.int32))
    flags = DType.INT32 | DType.INT32 << 4
    packet = Packet(Opcode.VECTOR, flags, data.address, 0, data.address, (OWN_LINE, COUNT))
    device.submit([packet])
    result = device.download(data.address, (COUNT,), np.int32)
    assert result.tolist() == added([own])


def test_threads_share_what_is_loaded(device: Device) -> None:
    programs = [unique(20) for _ in range(60)]

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(30):
            some = rng.choices(programs, k=rng.randint(1, 4))
            assert run(device, plus(*some)) == added(some)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_a_program_says_what_it_needs_and_its_digest_does_not_depend_on_numbers() -> None:
    one, two = unique(), unique()
    made = plus(one, two)
    assert made.loadable == ((0, one), (1, two))
    assert made.vector_programs == (one.name,)
    assert one.name in str(made)
    assert made.digest == plus(one, two).digest != plus(two, one).digest
    assert plus(PROGRAMS["int_abs"]).loadable == ()


def test_lines_are_given_first_fit_and_the_least_recently_used_make_room() -> None:
    lines = ProgramLines(range(100, 110))
    assert [lines.place(key, size) for key, size in enumerate((3, 4, 3))] == [100, 103, 107]
    assert lines.find(0) == 100  # used again: 1 is the oldest now
    assert lines.place(3, 2) == 103
    assert lines.place(4, 2) == 105
    assert [lines.find(key) for key in range(5)] == [100, None, 107, 103, 105]
    assert lines.place(5, 6) == 100  # 0 and 2 make no gap of six; with 3 they do
    assert [lines.find(key) for key in range(6)] == [None, None, None, None, None, 100]
    with pytest.raises(ValueError, match="11 lines, the device has 10"):
        lines.place(9, 11)


def test_an_image_in_use_by_a_segment_ends_it() -> None:
    written: list[int] = []
    resident = ResidentPrograms(
        range(1024, 1060), 0x1000, lambda address, data: written.append(address)
    )
    programs = [unique(20), unique(20), unique(16), unique(20)]
    data = plus(*programs).bind([0, 0]).packet_bytes
    segments = list(resident.segments(data))
    assert [(s.first, s.loads, len(s.data) // 64) for s in segments] == [
        (0, (0,), 2),
        (1, (0, 1), 4),
        (3, (0,), 2),
    ]
    assert [unpacked(s.data)[0].params[0] for s in segments] == [1024] * 3
    assert written == [0x1000, 0x1000, 0x1000 + 20 * 64, 0x1000]
    assert segments[1].number_of(3) == 2


def test_loads_go_to_the_front_unless_an_earlier_packet_uses_their_lines() -> None:
    resident = ResidentPrograms(range(1024, 1064), 0x1000, lambda address, data: None)
    old, first, second, third = unique(20), unique(10), unique(10), unique(16)
    (before,) = resident.segments(plus(old).bind([0, 0]).packet_bytes)
    assert before.loads == (0,)
    data = plus(first, old, second, first, third).bind([0, 0]).packet_bytes
    (segment,) = resident.segments(data)
    opcodes = [Opcode(packet.opcode).name for packet in unpacked(segment.data)]
    assert opcodes == ["LOAD", "LOAD", *["VECTOR"] * 4, "LOAD", "VECTOR"]  # in place of `old`
    assert segment.loads == (0, 1, 6)
    assert [segment.number_of(at) for at in range(8)] == [0, 0, 0, 1, 2, 3, 4, 4]


class OtherDevice(CmodelBackend):
    """A device of which a register reads something else."""

    def __init__(self, offset: int, value: int) -> None:
        super().__init__(CONFIG)
        self._other = {offset: value}

    def read_csr(self, offset: int) -> int:
        value = super().read_csr(offset)
        return self._other.get(offset, value)


_OWN = rf"{ISA_VERSION >> 16}\.{ISA_VERSION & 0xFFFF}"


@pytest.mark.parametrize(
    ("offset", "value", "text"),
    [
        (csr.VERSION, 0x0001_0001, f"the device has instruction set 1.1, expected {_OWN}, that"),
        (csr.PROGRAM_DIGEST_LO, 0, "booted with other vector programs: digest [0-9a-f]{8}0{8}, e"),
        (csr.PROGRAM_DIGEST_HI, 7, "booted with other vector programs: digest 00000007"),
        (csr.ID, 1, "not the device of configuration"),
    ],
)
def test_another_device_is_refused_in_one_line(offset: int, value: int, text: str) -> None:
    with pytest.raises(InfrastructureError, match=text) as caught:
        Device(OtherDevice(offset, value), CONFIG)
    assert "\n" not in str(caught.value)


def test_a_device_without_loadable_lines_runs_what_it_booted_with() -> None:
    device = Device(OtherDevice(csr.PROGRAM_RAM, 0), CONFIG)
    assert run(device, plus(PROGRAMS["int_abs"])) == list(range(COUNT))
    with pytest.raises(InfrastructureError, match="needs 1 lines, the device has 0 to load"):
        run(device, plus(unique()))


def test_a_program_that_does_not_fit_leaves_no_other_for_loaded() -> None:
    device = Device(OtherDevice(csr.PROGRAM_RAM, PROGRAM_RAM | 20 << 16), CONFIG)  # 4 lines for us
    small, large = unique(2), unique(5)
    with pytest.raises(InfrastructureError, match="needs 5 lines, the device has 4 to load"):
        run(device, plus(small, large))
    assert run(device, plus(small)) == added([small])


# ---------------------------------------------------------------------- many programs
def executed(device: Device, program: VectorProgram, rng: np.random.Generator) -> None:
    """Run the program on a few numbers; compare its bits with those by integers."""
    program = replace(program, imms=("a", "b", "c", "d", "e", "f"))
    shape = (2, COUNT)
    reduced = shape if program.reduce is Reduce.NONE else (2, 1)
    imms = rng.integers(-(1 << 31), 1 << 31, 6).tolist()
    words = rng.integers(0, 1 << 32, (program.sources, *shape)).astype(np.uint32)
    floats = rng.normal(size=words.shape).astype(np.float32).view(np.uint32)
    words = np.where(rng.random(words.shape) < 0.7, floats, words)
    sources = [device.upload(source) for source in words]
    results = [device.alloc(4 * int(np.prod(reduced))) for _ in range(program.results)]

    def view(buffer: Buffer, sizes: tuple[int, ...]) -> TensorView:
        return dense(buffer, DType.INT32, sizes)

    b = ProgramBuilder("test", CONFIG)
    b.vector(
        program,
        [view(buffer, shape) for buffer in sources],
        [view(buffer, reduced) for buffer in results],
        *imms,
    )
    device.execute(b.program())
    wanted = np.zeros((program.results, *shape), np.uint32)
    unsigned = [imm & 0xFFFF_FFFF for imm in imms]
    for index in np.ndindex(shape):
        element = [int(source[index]) for source in words]
        wanted[(slice(None), *index)] = softvector.run(program, element, unsigned, index[-1])
    if program.reduce is not Reduce.NONE:
        rows = [softvector.reduce(program.reduce, row.tolist()) for row in wanted[0]]
        wanted = np.array(rows, np.uint32).reshape(1, *reduced)
    for buffer, words_of_result in zip(results, wanted, strict=True):
        found = device.download(buffer.address, reduced, np.uint32)
        np.testing.assert_array_equal(found, words_of_result)
    for buffer in (*sources, *results):
        device.free(buffer)


def many_programs(device: Device, number: int) -> None:
    """Run so many different programs, some of them again, and compare all bits."""
    rng, draw = random.Random(11), np.random.default_rng(11)
    recent: list[VectorProgram] = []
    seen: set[bytes] = set()
    while len(seen) < number:
        program = random_program(rng)
        seen.add(pack(program))
        recent = [*recent[-30:], program]
        executed(device, program, draw)
        if rng.random() < 0.2:
            executed(device, rng.choice(recent), draw)
    assert device.programs_loaded >= number


def test_hundreds_of_generated_programs(device: Device) -> None:
    many_programs(device, 200)


@executes
def test_every_backend_loads_runs_and_replaces_programs(opened: InspectableBackend) -> None:
    device = Device(opened, CONFIG)
    many_programs(device, 15)
    programs = [unique(30) for _ in range(20)]  # 600 lines
    assert run(device, plus(*programs)) == added(programs)
    before = device.programs_loaded
    device.reset()
    assert run(device, plus(programs[-1])) == added(programs[-1:])
    assert device.programs_loaded == before + 1


@pytest.mark.broad
@pytest.mark.parametrize("opened", ["rtl"], indirect=True)
def test_hundreds_of_generated_programs_on_the_rtl(opened: InspectableBackend) -> None:
    many_programs(Device(opened, CONFIG), 300)


@pytest.mark.broad
def test_ten_thousand_generated_programs(device: Device) -> None:
    many_programs(device, 10_000)


def test_the_example_program_is_what_its_text_says(device: Device) -> None:
    executed(device, EXAMPLE, np.random.default_rng(1))
