# SPDX-License-Identifier: Apache-2.0
"""Random LOADs, and VECTORs that run loaded programs or have their operands in a list."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

from driver.backend.shared_memory import FaultRange
from driver.isa import DESCRIPTOR_BYTES, FLAGS, MAX_RANK, Descriptor, DType, Opcode, Packet
from driver.isa.image import (
    LINE_BYTES,
    MAX_LINES,
    PROGRAM_RAM,
    PROGRAM_RAM_LINES,
    lines_of,
    pack,
)
from driver.isa.micro import (
    DST_RESULT,
    IMMEDIATES,
    MAX_CONSTANTS,
    MAX_INSTRUCTIONS,
    OPERAND_CONST,
    OPERAND_IMM,
    OPERAND_SRC,
    OPERAND_TABLE,
    PLAIN_IMMEDIATES,
    PLAIN_SOURCES,
    Instruction,
    MicroOp,
    Reduce,
    VectorProgram,
)
from driver.isa.programs import LINES, PROGRAMS
from driver.isa.tables import TABLES, Table
from tb.seqs.arena import Arena, place_view, strides
from tb.seqs.images import EXAMPLE, ImageBreak, random_program
from tb.seqs.streams import plain_vector, stream_flags, stream_packet

LISTED = FLAGS["OPERAND_LIST"].mask
_FEW_LINES = 96
"""Where random programs go: so few lines that they overwrite each other."""

LONGEST_LIST = VectorProgram(
    name="four sources, three results",
    family="",
    text="",
    sources=4,
    imms=(),
    reduce=Reduce.NONE,
    code=(
        Instruction(MicroOp.IADD, DST_RESULT, OPERAND_SRC, OPERAND_SRC + 1),
        Instruction(MicroOp.XOR, DST_RESULT + 1, OPERAND_SRC + 2, OPERAND_SRC + 3),
        Instruction(MicroOp.ISUB, DST_RESULT + 2, OPERAND_SRC, OPERAND_SRC + 2),
    ),
    results=3,
)
"""Every source changes a result."""

_BOOT = 0.3
"""Part of the VECTORs that run a boot program although there are loaded ones."""


def _load_of(arena: Arena, image: bytes, line: int, lines: int) -> Packet:
    address = arena.place(len(image), LINE_BYTES)
    arena.contents.append((address, image))
    return Packet(Opcode.LOAD, 0, address, params=(line, lines))


def load(arena: Arena, longest: int) -> Packet:
    """A random program to some of few lines; what it overwrites is no longer loaded."""
    program = random_program(arena.rng)
    count = lines_of(program)
    first = arena.rng.choice((PROGRAM_RAM, PROGRAM_RAM + PROGRAM_RAM_LINES - _FEW_LINES))
    line = first + arena.rng.randrange(_FEW_LINES - count + 1)
    for other, one in list(arena.loaded.items()):
        if other < line + count and line < other + lines_of(one):
            del arena.loaded[other]
    arena.loaded[line] = program
    return _load_of(arena, pack(program), line, count)


def vector_of_any(arena: Arena, longest: int) -> Packet:
    """A random VECTOR of a loaded program, or of a boot program by a list."""
    known = list(arena.loaded.items())
    if not known or arena.rng.random() < _BOOT:
        known = [(LINES[name], one) for name, one in PROGRAMS.items()]
    line, program = arena.rng.choice(known)
    fits = program.sources <= PLAIN_SOURCES and program.results == 1
    if fits and arena.rng.random() < 0.5:
        return plain_vector(arena, line, program, longest)
    return listed_vector(arena, line, program, _sizes(arena.rng, longest))


def _sizes(rng: random.Random, longest: int) -> tuple[int, ...]:
    """A few elements: a program may have hundreds of instructions."""
    rank = rng.randint(1, MAX_RANK)
    most = (2 * longest, longest, longest // 2, 5, 3)[rank - 1]
    return tuple(rng.randint(1, max(2, most)) for _ in range(rank))


def listed_vector(
    arena: Arena, line: int, program: VectorProgram, sizes: tuple[int, ...]
) -> Packet:
    """A VECTOR of the program at a line, with operands of random types and views in a list."""
    rng = arena.rng
    reduced = sizes if program.reduce is Reduce.NONE else (*sizes[:-1], 1)
    shapes = [sizes] * program.sources + [reduced] * program.results
    descriptors = b""
    for at, shape in enumerate(shapes):
        source = at < program.sources
        steps = strides(rng, shape, broadcast=source)
        place_view(arena, rng.choice(list(DType)), shape, steps, source=source)
        descriptors += arena.contents.pop()[1]
    address = arena.place(len(descriptors), DESCRIPTOR_BYTES)
    arena.contents.append((address, descriptors))
    imms = (rng.getrandbits(32) for _ in range(IMMEDIATES))
    return Packet(Opcode.VECTOR, LISTED, address, params=(line, 0, *imms))


def example_load(arena: Arena) -> Packet:
    """The LOAD of a small program, which forgets no random one."""
    return _load_of(arena, pack(EXAMPLE), PROGRAM_RAM + _FEW_LINES, lines_of(EXAMPLE))


def load_longest_list(arena: Arena) -> Packet:
    """The LOAD of LONGEST_LIST to PROGRAM_RAM."""
    return _load_of(arena, pack(LONGEST_LIST), PROGRAM_RAM, lines_of(LONGEST_LIST))


def broken_load(arena: Arena, broken: ImageBreak) -> Packet:
    """The LOAD of a malformed image."""
    lines = lines_of(broken.program) + broken.lines
    return _load_of(arena, broken.image(), PROGRAM_RAM + _FEW_LINES, lines)


def square_list(arena: Arena, line: int, program: VectorProgram) -> Packet:
    """A legal VECTOR with a list of dense FP32 operands of 16 times 16 elements, on lines."""
    views = []
    for _ in range(program.sources + program.results):
        base = arena.place(1024, LINE_BYTES)
        arena.fill(base, 1024)
        views.append(Descriptor(base, DType.FP32, (16, 16), (16, 1)).pack())
    address = arena.place(DESCRIPTOR_BYTES * len(views), DESCRIPTOR_BYTES)
    arena.contents.append((address, b"".join(views)))
    return Packet(Opcode.VECTOR, LISTED, address, params=(line,))


def line_of(address: int, number: int, *, write: bool = False) -> FaultRange:
    """Line `number` from an address on, which fails in one direction."""
    begin = address + number * LINE_BYTES
    return FaultRange(begin, begin + LINE_BYTES, on_read=not write, on_write=write)


def reload(
    arena: Arena, line: int, *, least: int = 1, most: int = MAX_LINES
) -> tuple[Packet, Packet]:
    """The LOAD of a random program of so many lines, and a VECTOR that runs it."""
    program = random_program(arena.rng)
    while not least <= lines_of(program) <= most:
        program = random_program(arena.rng)
    first = _load_of(arena, pack(program), line, lines_of(program))
    return first, listed_vector(arena, line, program, (3, 5))


def long_load(arena: Arena, line: int) -> tuple[Packet, Packet]:
    """The LOAD of a program of greatest size, and a VECTOR that runs it: each word of it is in the
    result."""
    constants = [OPERAND_CONST + at % MAX_CONSTANTS for at in range(MAX_INSTRUCTIONS)]
    code = [Instruction(MicroOp.XOR, 0, 0, constant) for constant in constants[1:-1]]
    code.insert(0, Instruction(MicroOp.XOR, 0, OPERAND_SRC, constants[0]))
    code.append(Instruction(MicroOp.XOR, DST_RESULT, 0, constants[-1]))
    words = tuple(arena.rng.getrandbits(32) for _ in range(MAX_CONSTANTS))
    program = VectorProgram("long", "", "", 1, (), Reduce.NONE, tuple(code), words)
    use = _run_on(arena, line, [arena.rng.getrandbits(32) for _ in range(16)])
    return _load_of(arena, pack(program), line, lines_of(program)), use


def too_many_sources(arena: Arena) -> tuple[Packet, Packet]:
    """The LOAD of a program of more sources than a packet names, and a VECTOR that runs it without
    a list."""
    code = (
        Instruction(MicroOp.IADD, 0, OPERAND_SRC, OPERAND_SRC + PLAIN_SOURCES),
        Instruction(MicroOp.IADD, DST_RESULT, 0, OPERAND_SRC + 1),
    )
    program = VectorProgram("four", "", "", PLAIN_SOURCES + 1, (), Reduce.NONE, code, ())
    line = PROGRAM_RAM + _FEW_LINES
    places = [place_view(arena, DType.INT32, (3,), (1,)) for _ in range(PLAIN_SOURCES + 1)]
    types = [DType.INT32] * PLAIN_SOURCES
    flags = stream_flags(types, DType.INT32, descriptors=True)
    imms = [0] * PLAIN_IMMEDIATES
    use = stream_packet(line, flags, places[:-1], places[-1], count=0, imms=imms)
    return _load_of(arena, pack(program), line, lines_of(program)), use


def boot_aliases(arena: Arena) -> list[Packet]:
    """Programs in the lines behind the boot programs that have their numbers but for one bit, and
    VECTORs that run both in turns, so that none is fetched again for another reason."""
    packets = []
    for name in ("move", "neg"):
        boot = listed_vector(arena, LINES[name], PROGRAMS[name], (3, 5))
        load, use = reload(arena, PROGRAM_RAM + LINES[name], most=1)
        packets += [load, boot, use, boot]
    return packets


def programs_apart(arena: Arena) -> list[Packet]:
    """LOADs of one-line programs to line 0 and to lines with one bit set, then VECTORs that run
    them: an address of which a bit is lost is the place of another program."""
    lines = [0, *(1 << bit for bit in range((PROGRAM_RAM_LINES - 1).bit_length()))]
    pairs = [reload(arena, PROGRAM_RAM + line, most=1) for line in lines]
    return [load for load, _ in pairs] + [use for _, use in pairs]


def unused_immediates(arena: Arena) -> Iterator[Packet]:
    """The LOAD of a program that reads imm4 and imm5, a VECTOR that gives them, and some whose
    packets hold the address of src3 where a list would have them: they see zeros."""
    code = (
        Instruction(MicroOp.XOR, 0, OPERAND_SRC, OPERAND_IMM + PLAIN_IMMEDIATES),
        Instruction(MicroOp.XOR, DST_RESULT, 0, OPERAND_IMM + IMMEDIATES - 1),
    )
    program = VectorProgram("immediates", "", "", PLAIN_SOURCES, (), Reduce.NONE, code, ())
    line = PROGRAM_RAM + _FEW_LINES
    yield _load_of(arena, pack(program), line, lines_of(program))
    yield listed_vector(arena, line, program, (3, 5))
    for _ in range(4):
        yield plain_vector(arena, line, program, 20)


def table_reads(arena: Arena) -> Iterator[Packet]:
    """LOADs of programs that read one column each of every table, and VECTORs that run them on
    numbers in every segment, at the table's end and beyond it, and on one number alone of the first
    and of the last segment: nothing but its own beat keeps the table's clock running."""
    for number, table in enumerate(TABLES):
        for column in range(table.columns):
            code = (
                Instruction(MicroOp.SEGMENT, 0, OPERAND_SRC, number),
                Instruction(MicroOp.XOR, DST_RESULT, 0, OPERAND_TABLE + column),
            )
            program = VectorProgram("column", "", "", 1, (), Reduce.NONE, code, ())
            line = PROGRAM_RAM + _FEW_LINES
            yield _load_of(arena, pack(program), line, lines_of(program))
            words = _segments(table)
            for some in (words, words[:1], [words[len(table.rows)]]):
                yield _run_on(arena, line, some)


_INFINITY, _NAN, _SIGN = 0x7F80_0000, 0x7FC0_0001, 1 << 31


def _segments(table: Table) -> list[int]:
    """Bits of the ends of all segments, of numbers beyond the last one, and the same negative."""
    begins = [table.first + (at << table.shift) for at in range(len(table.rows) + 2)]
    words = [0, *begins, *(word - 1 for word in begins), _INFINITY - 1, _INFINITY, _NAN]
    return words + [word | _SIGN for word in words]


def _run_on(arena: Arena, line: int, words: list[int]) -> Packet:
    """A VECTOR of the program at a line, of one source and one result, on these words."""
    data = struct.pack(f"<{len(words)}I", *words)
    src, dst = (arena.place(len(data), 4) for _ in range(2))
    arena.contents.append((src, data))
    arena.fill(dst, len(data))
    flags = stream_flags([DType.INT32], DType.INT32, descriptors=False)
    imms = [0] * PLAIN_IMMEDIATES
    return stream_packet(line, flags, [src], dst, count=len(words), imms=imms)
