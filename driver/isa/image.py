# SPDX-License-Identifier: Apache-2.0
"""Programs as program memory holds them: lines of eight 64-bit words; docs/isa.md, Program image.

`pack` writes an image; `unpack` reads one and says what is malformed, by the rules of LOAD.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise

from driver.isa.micro import (
    DST_RESULT,
    IMMEDIATES,
    MAX_CONSTANTS,
    MAX_INSTRUCTIONS,
    MAX_RESULTS,
    MAX_SOURCES,
    MICRO_INFO,
    OPERAND_CONST,
    OPERAND_IMM,
    OPERAND_INDEX,
    OPERAND_SRC,
    OPERAND_TABLE,
    REGISTERS,
    Instruction,
    MicroOp,
    Reduce,
    VectorProgram,
)
from driver.isa.tables import TABLE_COLUMNS, TABLES

WORD_BYTES = 8
LINE_WORDS = 8
LINE_BYTES = LINE_WORDS * WORD_BYTES
MAGIC = 0x5056
"""Upper 16 bits of a header, ASCII "VP"; no instruction has bits there."""
PROGRAM_RAM = 1024
"""First line of program memory that LOAD can write."""
PROGRAM_RAM_LINES = 512
OWN_LINES = 16
"""The last of them: for a program that packets load themselves; the driver keeps none there."""
OWN_LINE = PROGRAM_RAM + PROGRAM_RAM_LINES - OWN_LINES
"""The first of these."""

_HEADER = struct.Struct("<6BH")
_INSTRUCTION = struct.Struct("<5B3x")


def line_count(instructions: int, constants: int) -> int:
    """Lines of a program's image."""
    return -(-(1 + instructions + -(-constants // 2)) // LINE_WORDS)


MAX_LINES = line_count(MAX_INSTRUCTIONS, MAX_CONSTANTS)
"""Of the longest program."""


class ImageError(ValueError):
    """A malformed image: `field`, its value, and what was expected."""

    def __init__(self, field: str, value: object, expected: str) -> None:
        super().__init__(f"program image: {field} is {value}, expected {expected}")
        self.field = field


def pack(program: VectorProgram) -> bytes:
    """The image: whole lines, zeros behind the last word."""
    head = _HEADER.pack(
        *(len(program.code), len(program.constants), program.sources, program.results),
        *(program.reduce, 0, MAGIC),
    )
    lines = [_INSTRUCTION.pack(line.op, line.dst, line.a, line.b, line.c) for line in program.code]
    data = b"".join((head, *lines, struct.pack(f"<{len(program.constants)}I", *program.constants)))
    return data.ljust(lines_of(program) * LINE_BYTES, b"\0")


def lines_of(program: VectorProgram) -> int:
    """Lines of the program's image."""
    return line_count(len(program.code), len(program.constants))


def digest(program: VectorProgram) -> str:
    """SHA-256 of the image: equal for programs that do the same instructions."""
    return sha256(pack(program)).hexdigest()


def unpack(data: bytes, name: str = "loaded") -> VectorProgram:
    """The program in an image of whole lines, under `name`. ImageError when it is malformed."""
    instructions, constants, sources, results, reduce, zero, magic = _HEADER.unpack_from(data)
    _within("instructions", instructions, range(1, MAX_INSTRUCTIONS + 1))
    _within("constants", constants, range(MAX_CONSTANTS + 1))
    _within("sources", sources, range(MAX_SOURCES + 1))
    _within("results", results, range(1, MAX_RESULTS + 1))
    _within("reduce", reduce, range(len(Reduce)))
    _within("header byte 5", zero, range(1))
    _within("magic", magic, range(MAGIC, MAGIC + 1))
    lines = line_count(instructions, constants)
    _within("bytes", len(data), range(lines * LINE_BYTES, lines * LINE_BYTES + 1))
    if reduce != Reduce.NONE and (results != 1 or not sources):
        raise ImageError("reduce", reduce, "0 unless there is one result and at least one source")
    at = (1 + instructions) * WORD_BYTES
    end = at + constants * 4
    _within("padding", int.from_bytes(data[end:], "little"), range(1))
    words = [data[i : i + WORD_BYTES] for i in range(WORD_BYTES, at, WORD_BYTES)]
    code = tuple(_checked(words, sources, results, constants))
    pool = struct.unpack_from(f"<{constants}I", data, at)
    return VectorProgram(name, "", "", sources, (), Reduce(reduce), code, pool, results)


def _within(field: str, value: int, allowed: range) -> None:
    if value not in allowed:
        bounds = str(allowed.start) if len(allowed) == 1 else f"{allowed[0]} to {allowed[-1]}"
        raise ImageError(field, value, bounds)


def _checked(
    words: Sequence[bytes], sources: int, results: int, constants: int
) -> Iterator[Instruction]:
    """The instructions in these words, each checked with what those before it wrote."""
    columns = range(OPERAND_TABLE, OPERAND_TABLE + TABLE_COLUMNS)
    written: set[int] = set()
    given = {OPERAND_INDEX, *range(OPERAND_IMM, OPERAND_IMM + IMMEDIATES)}
    given |= {*range(OPERAND_SRC, OPERAND_SRC + sources)}
    given |= {*range(OPERAND_CONST, OPERAND_CONST + constants)}
    for number, word in enumerate(words):
        op, dst, *operands = word[:5]
        where = f"instruction {number}: "
        _within(where + "upper bytes", int.from_bytes(word[5:], "little"), range(1))
        _within(where + "op", op, range(len(MicroOp)))
        _within(where + "dst", dst, range(DST_RESULT + results))
        if dst >= DST_RESULT and dst in written:
            raise ImageError(where + "dst", dst, "a result that is not written yet")
        count = MICRO_INFO[MicroOp(op)].operands
        for letter, code in zip("abc"[:count], operands, strict=False):
            if code not in given and not (code < REGISTERS and code in written):
                raise ImageError(where + letter, code, "an operand that has a value")
        read = sum(code in columns for code in operands[:count])
        _within(where + "columns of a table", read, range(2))
        if op == MicroOp.SEGMENT:
            _within(where + "table", operands[1], range(len(TABLES)))
            given -= {*columns}
            given |= {*columns[: TABLES[operands[1]].columns]}
            count += 1
        _within(where + "unused operands", max([0, *operands[count:]]), range(1))
        written.add(dst)
        yield Instruction(MicroOp(op), dst, *operands)
    missing = {*range(DST_RESULT, DST_RESULT + results)} - written
    if missing:
        raise ImageError("results not written", len(missing), "0")
    if dst < DST_RESULT:
        raise ImageError("dst of the last instruction", dst, "a result")


def starts(programs: Sequence[VectorProgram]) -> list[int]:
    """First line of each program when they lie one behind the other from line 0 on."""
    lines = [0]
    for program in programs:
        lines.append(lines[-1] + lines_of(program))
    assert all(first < second for first, second in pairwise(lines))
    return lines[:-1]
