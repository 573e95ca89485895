# SPDX-License-Identifier: Apache-2.0
"""The assembler: a program's code computes its Python expression, in few registers, once each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from driver.isa import micro
from driver.isa.assembler import (
    Assembler,
    Declaration,
    Family,
    ProgramError,
    Value,
    vector_program,
)
from driver.isa.catalogue import Catalogue
from driver.isa.image import LINE_BYTES, lines_of, pack
from driver.isa.micro import MICRO_INFO, MicroOp, Reduce
from driver.isa.programs import BOOT_IMAGE, FAMILIES, LINES, PROGRAM_AT, PROGRAMS
from driver.isa.programs._math import from_table
from driver.isa.tables import TABLE_NUMBER
from golden import softvector
from golden.programs import run_words

DECLARED = {d.name: d for module in FAMILIES for d in module.FAMILY.declared}
WORDS = (
    *(0x0000_0000, 0x8000_0000, 0x3F80_0000, 0xBF80_0000, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000),
    *(0x7F80_0001, 0xFFFF_FFFF, 0x0000_0001, 0x807F_FFFF, 0x7F7F_FFFF, 0x4B80_0001, 0xC2F6_E979),
)
COUNT = 64


@dataclass(frozen=True)
class Computed(Value):
    """An operand that is its own value."""

    word: int = 0  # type: ignore[assignment]


class Evaluator(Assembler):
    """Takes an assembler's place and computes each instruction at once, by integers."""

    def __init__(self, sources: tuple[int, ...], imms: tuple[int, ...], index: int) -> None:
        super().__init__()
        self._operands = (sources, imms, index)
        self._columns: list[int] = []

    def src(self, number: int) -> Value:
        return Computed(-1, word=self._operands[0][number])

    def imm(self, number: int) -> Value:
        return Computed(-1, word=self._operands[1][number])

    @property
    def index(self) -> Value:
        return Computed(-1, word=self._operands[2])

    def word(self, bits: int) -> Value:
        return Computed(-1, word=bits & 0xFFFF_FFFF)

    def op(self, op: MicroOp, *operands: Value) -> Value:
        assert all(isinstance(operand, Computed) for operand in operands)
        words = [operand.word for operand in operands if isinstance(operand, Computed)]
        return Computed(-1, word=softvector.MICRO[op](*words))

    def segment(self, a: Value, table: str) -> Value:
        assert isinstance(a, Computed)
        result, self._columns = softvector.segment(a.word, TABLE_NUMBER[table])
        return Computed(-1, word=result)

    def column(self, segment: Value, number: int) -> Value:
        return Computed(-1, word=self._columns[number])


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_code_computes_the_expression(name: str) -> None:
    program = PROGRAMS[name]
    rng = np.random.default_rng(LINES[name])
    near = rng.normal(size=(program.sources, COUNT)).astype(np.float32).view(np.uint32)
    sources = np.where(rng.random(near.shape) < 0.5, near, rng.choice(np.uint32(WORDS), near.shape))
    imms = tuple(int(word) for word in rng.choice(WORDS, micro.IMMEDIATES))
    rows = [np.ascontiguousarray(row) for row in sources.astype(np.uint32)]
    (out,) = run_words(program, rows, imms, count=COUNT)
    for at in range(COUNT):
        evaluator = Evaluator(tuple(int(row[at]) for row in rows), imms, at)
        value = DECLARED[name].body(evaluator)
        assert isinstance(value, Computed)
        assert value.word == out[at], f"element {at} of {[hex(row[at]) for row in rows]}"


def test_programs_lie_one_behind_the_other_in_the_order_of_their_families() -> None:
    assert list(PROGRAMS) == list(DECLARED)
    at = 0
    for name, program in PROGRAMS.items():
        assert LINES[name] == at and PROGRAM_AT[at] is program
        count = lines_of(program)
        assert BOOT_IMAGE[at * LINE_BYTES : (at + count) * LINE_BYTES] == pack(program)
        at += count
    assert at * LINE_BYTES == len(BOOT_IMAGE)
    for program in PROGRAMS.values():
        assert len(set(program.constants)) == len(program.constants) <= micro.MAX_CONSTANTS


def assembled(*declarations: Declaration) -> Catalogue:
    family = Family("test")
    family.declared += declarations
    return Catalogue([family])


def declaration(body: object, sources: int = 1, imms: tuple[str, ...] = ()) -> Declaration:
    assert callable(body)
    return Declaration("it", body, "", sources, imms, Reduce.NONE)


def test_equal_expressions_are_computed_once_and_unused_ones_not_at_all() -> None:
    def body(p: Assembler) -> Value:
        p.sqrt(p.src1)
        return p.add(p.mul(p.src1, p.src1), p.mul(p.src1, p.src1))

    code = assembled(declaration(body)).programs["it"].code
    assert [line.op for line in code] == [MicroOp.FMA, MicroOp.FMA]


def test_registers_are_used_again_and_16_values_at_once_are_all() -> None:
    def chain(p: Assembler) -> Value:
        value = p.src1
        for step in range(100):
            value = p.add(value, p.f(step % 50))
        return value

    def fan(width: int) -> Declaration:
        def body(p: Assembler) -> Value:
            values = [p.add(p.src1, p.f(step + 1)) for step in range(width)]
            total = values[0]
            for value in values[1:]:
                total = p.mul(total, value)
            return total

        return declaration(body)

    code = assembled(declaration(chain)).programs["it"].code
    assert len(code) == 100
    assert max(line.dst for line in code[:-1]) == 0
    most = micro.REGISTERS
    assert len(assembled(fan(most)).programs["it"].code) == 2 * most - 1
    with pytest.raises(ProgramError, match="more than 16 values are live"):
        assembled(fan(most + 1))


def test_a_result_that_is_an_operand_is_moved() -> None:
    (line,) = assembled(declaration(lambda p: p.src1)).programs["it"].code
    assert (line.op, line.dst, line.a) == (MicroOp.MOV, micro.DST_RESULT, micro.OPERAND_SRC)


def two_columns(p: Assembler) -> Value:
    one = p.segment(p.src1, "tanh")
    return p.fma(p.column(one, 1), one, p.column(one, 1))


def late_column(p: Assembler) -> Value:
    one, two = p.segment(p.src1, "tanh"), p.segment(p.src2, "tanh")
    return p.add(p.column(one, 0), p.op(MicroOp.MOV, p.column(two, 0)))


def test_a_row_that_another_segment_replaced_is_found_again() -> None:
    def body(p: Assembler) -> tuple[Value, ...]:
        first = from_table(p, p.src1, "tanh")
        again = from_table(p, p.src1, "tanh")  # nothing between: the same values
        second = from_table(p, p.src2, "erf")
        third = from_table(p, p.src1, "tanh")
        return p.add(first, again), second, third

    program = vector_program(body, sources=2)
    segments = [(line.a, line.b) for line in program.code if line.op is MicroOp.SEGMENT]
    numbers = TABLE_NUMBER["tanh"], TABLE_NUMBER["erf"]
    assert segments == [(16, numbers[0]), (17, numbers[1]), (16, numbers[0])]
    first, second, third = run_words(program, [np.array([0x3F80_0000], np.uint32)] * 2)
    assert first.view(np.float32) == 2 * third.view(np.float32) == np.float32(2 * math.tanh(1.0))
    assert abs(second.view(np.float32) - math.erf(1.0)) < 2e-7


def test_a_segment_whose_result_nobody_reads_stays() -> None:
    program = vector_program(
        lambda p: p.op(MicroOp.MOV, p.column(p.segment(p.src1, "tanh"), 1)), sources=1
    )
    assert lines(program) == [(MicroOp.SEGMENT, 0, (16,)), (MicroOp.MOV, 16, (33,))]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (declaration(lambda p: p.src2), "reads src2"),
        (declaration(lambda p: p.imm(0)), "imm0"),
        (declaration(lambda p: p.op(MicroOp.FMA, p.src1)), "FMA of 1 operands"),
        (
            declaration(lambda p: p.horner(p.src1, [float(i) for i in range(65)])),
            "65 constants, at most 64 fit",
        ),
        (declaration(lambda p: ()), "0 results"),
        (declaration(lambda p: (p.src1,) * 4), "4 results"),
        (declaration(lambda p: p.src(4)), "source 4"),
        (declaration(lambda p: p.imm(6)), "immediate 6"),
        (declaration(lambda p: p.segment(p.src1, "tan")), "table tan: expected one of tanh, "),
        (declaration(lambda p: p.op(MicroOp.SEGMENT, p.src1)), "SEGMENT without a table"),
        (
            declaration(lambda p: p.column(p.segment(p.src1, "tanh"), 5)),
            "column 5: expected 0 to 4",
        ),
        (declaration(lambda p: p.column(p.sqrt(p.src1), 0)), "column 0"),
        (declaration(lambda p: p.column(p.src1, 0)), "column 0"),
        (declaration(two_columns), "FMA reads two columns"),
        (declaration(late_column), "a column of a table is read behind another"),
        (Declaration("it", lambda p: (p.src1,) * 2, "", 1, (), Reduce.FADD), "2 results"),
        (Declaration("it", lambda p: p.index, "", 0, (), Reduce.IADD), "without a source"),
    ],
)
def test_a_mistake_in_a_declaration_stops_the_import(wrong: Declaration, message: str) -> None:
    with pytest.raises(ProgramError, match=f"^vector program it: .*{message}"):
        assembled(wrong)


def test_a_name_belongs_to_one_program() -> None:
    one = declaration(lambda p: p.src1)
    with pytest.raises(AssertionError, match="two programs named it"):
        assembled(one, one)


def test_a_program_that_is_too_long_is_refused() -> None:
    def body(p: Assembler) -> Value:
        value = p.src1
        for _ in range(micro.MAX_INSTRUCTIONS + 1):
            value = p.add(value, p.src1)
        return value

    with pytest.raises(ProgramError, match="256 instructions, at most 255"):
        assembled(declaration(body))


def test_every_instruction_is_in_use() -> None:
    used = {line.op for program in PROGRAMS.values() for line in program.code}
    # Roundings between steps are what generated programs need.
    assert used == {*MICRO_INFO} - {MicroOp.ROUND_FP16, MicroOp.ROUND_BF16}


def lines(program: micro.VectorProgram) -> list[tuple[MicroOp, int, tuple[int, ...]]]:
    return [(line.op, line.dst, line.operands) for line in program.code]


def test_a_result_that_is_used_again_is_moved_out_of_its_register() -> None:
    def body(p: Assembler) -> tuple[Value, ...]:
        total = p.add(p.src1, p.src2)
        return total, p.mul(total, p.src4), p.src3

    program = vector_program(body, sources=4)
    one, minus_zero = 0x3F80_0000, 0x8000_0000
    assert (program.results, program.constants) == (3, (one, minus_zero))
    assert lines(program) == [
        (MicroOp.FMA, 0, (16, 64, 17)),
        (MicroOp.MOV, 16, (0,)),
        (MicroOp.FMA, 17, (0, 19, 65)),
        (MicroOp.MOV, 18, (18,)),
    ]


def test_one_value_can_be_several_results() -> None:
    program = vector_program(lambda p: (p.sqrt(p.src1),) * 3, sources=1)
    assert lines(program) == [
        (MicroOp.SQRT, 0, (16,)),
        *((MicroOp.MOV, 16 + at, (0,)) for at in range(3)),
    ]


def test_the_register_of_a_value_that_is_only_results_is_free_again() -> None:
    def body(p: Assembler) -> tuple[Value, ...]:
        root = p.sqrt(p.src1)
        values = [p.add(p.src1, p.f(step + 1)) for step in range(micro.REGISTERS)]
        total = values[0]
        for value in values[1:]:
            total = p.mul(total, value)
        return root, root, total

    assert len(vector_program(body, sources=1).code) == 3 + 2 * micro.REGISTERS - 1
