# SPDX-License-Identifier: Apache-2.0
"""Random vector programs, and ways in which the image of one is malformed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from driver.isa.image import LINE_BYTES, WORD_BYTES, pack
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
from driver.isa.tables import TABLE_NUMBER, TABLES

_NOTABLE = (0x3F80_0000, 0xBF80_0000, 0x8000_0000, 0x7FC0_0001, 1, 0xFFFF_FFFF, 23, 0x4B00_0000)
_OFTEN = 20
"""Instructions of most random programs, at most."""


def random_program(rng: random.Random) -> VectorProgram:
    """A legal program of any number of sources and results; now and then of greatest size."""
    sources, results = rng.randint(0, MAX_SOURCES), rng.randint(1, MAX_RESULTS)
    largest = rng.random() < 0.02
    count = MAX_INSTRUCTIONS if largest else rng.randint(results, _OFTEN)
    constants = MAX_CONSTANTS if largest else rng.choice((0, 0, 1, 2, rng.randint(3, 12)))
    reduces = results == 1 and sources > 0 and rng.random() < 0.4
    words = [rng.choice((rng.choice(_NOTABLE), rng.getrandbits(32))) for _ in range(constants)]
    code = _random_code(rng, count, sources, results, constants)
    kind = rng.choice(list(Reduce)) if reduces else Reduce.NONE
    return VectorProgram("random", "", "", sources, (), kind, code, tuple(words), results)


def _random_code(
    rng: random.Random, count: int, sources: int, results: int, constants: int
) -> tuple[Instruction, ...]:
    places = [*rng.sample(range(count - 1), results - 1), count - 1]
    result_at = dict(zip(places, rng.sample(range(results), results), strict=True))
    given = [OPERAND_SRC + at for at in range(sources)] * 2
    given += [OPERAND_CONST + at for at in range(constants)]
    given += [OPERAND_INDEX, *(OPERAND_IMM + at for at in range(IMMEDIATES))]
    written: list[int] = []
    columns: list[int] = []
    code = []
    for at in range(count):
        op = MicroOp.SEGMENT if rng.random() < 0.1 else rng.choice(list(MicroOp))
        codes = [
            rng.choice(written if written and rng.random() < 0.6 else given)
            for _ in range(MICRO_INFO[op].operands)
        ]
        if columns and rng.random() < 0.5:
            codes[rng.randrange(len(codes))] = rng.choice(columns)
        if op is MicroOp.SEGMENT:
            codes.append(rng.randrange(len(TABLES)))
            columns = [OPERAND_TABLE + column for column in range(TABLES[codes[1]].columns)]
        result = result_at.get(at)
        dst = rng.randrange(REGISTERS) if result is None else DST_RESULT + result
        code.append(Instruction(op, dst, *codes))
        if result is None:
            written.append(dst)
    return tuple(code)


def _words(program: VectorProgram) -> list[int]:
    """Where the words of the example's image begin."""
    return [WORD_BYTES * at for at in range(1 + len(program.code))]


EXAMPLE = VectorProgram(
    "example",
    "",
    "(√(src1·src2 + 3), (src1·src2 + 3)·3 + a coefficient of tanh)",
    sources=2,
    imms=(),
    reduce=Reduce.NONE,
    code=(
        Instruction(MicroOp.FMA, 0, 16, 17, 64),
        Instruction(MicroOp.SQRT, 1, 0),
        Instruction(MicroOp.MOV, 16, 1),
        Instruction(MicroOp.SEGMENT, 2, 0, TABLE_NUMBER["tanh"]),
        Instruction(MicroOp.FMA, 17, 0, 64, OPERAND_TABLE + 4),
    ),
    constants=(0x4040_0000,),
    results=2,
)
"""The program whose image the breaks below start from: an odd number of constants, two results."""

_HEAD, _FMA, _SQRT, _MOV, _SEGMENT, _LAST = _words(EXAMPLE)
_PADDING = _LAST + WORD_BYTES + 4 * len(EXAMPLE.constants)


_NO_SOURCE = VectorProgram(
    "no source",
    "",
    "the index",
    sources=0,
    imms=(),
    reduce=Reduce.NONE,
    code=(Instruction(MicroOp.MOV, DST_RESULT, OPERAND_INDEX),),
    constants=(),
)
_ONE_SOURCE = replace(
    _NO_SOURCE, sources=1, code=(Instruction(MicroOp.MOV, DST_RESULT, OPERAND_SRC),)
)
"""It could reduce: no other field forbids it."""
_THREE_RESULTS = replace(
    _ONE_SOURCE,
    code=tuple(
        Instruction(MicroOp.MOV, dst, OPERAND_SRC)
        for dst in (0, *(DST_RESULT + n for n in range(3)))
    ),
    results=3,
)
"""As many as a program can have: there is no bit for the one behind the last."""
_REDUCTION = 4
"""The byte of an image's header."""


@dataclass(frozen=True)
class ImageBreak:
    """Bytes of a program's image that are others, and how many lines LOAD says too many."""

    patches: dict[int, int]
    lines: int = 0
    program: VectorProgram = EXAMPLE

    def image(self) -> bytes:
        """The malformed image, of one line more than LOAD could ask for."""
        data = bytearray(pack(self.program))
        for at, value in self.patches.items():
            assert data[at] != value
            data[at] = value
        return bytes(data) + bytes(LINE_BYTES)


def _each(name: str, at: int, *values: int) -> dict[str, ImageBreak]:
    """A break per value of one byte."""
    return {f"{name} {value}": ImageBreak({at: value}) for value in values}


IMAGE_BREAKS: dict[str, ImageBreak] = {
    **_each("instructions", _HEAD, 0, 3, 12, 255),
    **_each("constants", _HEAD + 1, 0, 5, 64, 65, 255),
    **_each("sources", _HEAD + 2, 1, 5, 255),
    **_each("results", _HEAD + 3, 0, 1, 3, 4, 255),
    **_each("reduction", _HEAD + _REDUCTION, 1, 6, 7, 255),
    **_each("header byte 5", _HEAD + 5, 1, 0x80),
    **_each("magic, low byte", _HEAD + 6, 0x57, 0),
    **_each("magic, high byte", _HEAD + 7, 0x51, 0),
    **_each("op", _FMA, len(MicroOp), 0x40, 0x81, 255),
    **_each("dst", _SQRT + 1, 18, 19, 31, 32, 64, 255),
    **_each("result written twice", _MOV + 1, 17),
    **_each("result not written", _MOV + 1, 2),
    **_each("last one writes a register", _LAST + 1, 5),
    **_each("operand a", _FMA + 2, 0, 15, 18, 19, 21, 23, 30, 31, 40, 63, 67, 127, 128, 144, 255),
    **_each("operand b", _FMA + 3, 3, 18, 22, 31, 67, 192),
    **_each("operand c", _FMA + 4, 1, 19, 21, 32, 68, 255),
    **_each("column before a SEGMENT", _FMA + 2, 32, 39),
    **_each("column as operand of the first SEGMENT", _SEGMENT + 2, 32),
    **_each("column that the table lacks", _LAST + 4, 37, 38, 39, 40),
    **_each("two columns", _LAST + 3, 32, 36),
    **_each("two columns, the first operand", _LAST + 2, 36),
    **_each("table", _SEGMENT + 3, len(TABLES), 0x80, 255),
    **_each("operand c of SEGMENT", _SEGMENT + 4, 1, 32, 64),
    **_each("register written later", _FMA + 4, 1),
    **_each("operand b of one", _SQRT + 3, 1, 16, 255),
    **_each("operand c of one", _SQRT + 4, 1, 64),
    **_each("byte 5 of an instruction", _MOV + 5, 1, 0x80),
    **_each("byte 6 of an instruction", _SQRT + 6, 1, 0x80),
    **_each("byte 7 of an instruction", _LAST + 7, 1, 0x80),
    **_each("upper half of an odd constant", _PADDING, 1),
    **_each("upper half of an odd constant, last byte", _PADDING + 3, 0x80),
    **_each("padding", LINE_BYTES - 1, 1, 0x80),
    **_each("padding, first byte", _PADDING + 4, 1),
    **{
        f"reduction {number} of what could reduce": ImageBreak({_REDUCTION: number}, 0, _ONE_SOURCE)
        for number in (len(Reduce), len(Reduce) + 1, 0x81)
    },
    "dst behind three results": ImageBreak(
        {WORD_BYTES + 1: DST_RESULT + 3}, program=_THREE_RESULTS
    ),
    "a line too many": ImageBreak({}, lines=1),
    "a reduction of no source": ImageBreak({_REDUCTION: Reduce.FADD.value}, program=_NO_SOURCE),
}
"""Every field of an image, wrong. Each makes it malformed."""
