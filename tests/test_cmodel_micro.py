# SPDX-License-Identifier: Apache-2.0
"""Every instruction of the vector engine, in every set of loops, against integers only."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cmodel_util import Words, special_bits

from driver.isa.assembler import float_bits
from driver.isa.image import pack
from driver.isa.micro import (
    DST_RESULT,
    MICRO_INFO,
    OPERAND_SRC,
    OPERAND_TABLE,
    Instruction,
    MicroOp,
    Reduce,
    VectorProgram,
)
from driver.isa.programs import LINES, PROGRAMS
from driver.isa.tables import TABLE_NUMBER, TABLES, Table
from golden import _cmodel, softvector
from golden.softfloat import FP32

COUNT = 1500
INTEGERS = (0, 1, 2, 31, 32, 33, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFF)
ROUNDINGS = (  # halves, the ends of int32, 2^23 and 2^24 with their neighbours
    *(0x3F00_0000, 0x3F00_0001, 0x3EFF_FFFF, 0x3FC0_0000, 0x4020_0000, 0x4060_0000),
    *(0x4EFF_FFFF, 0x4F00_0000, 0x4F00_0001, 0xCF00_0000, 0xCF00_0001, 0xCEFF_FFFF),
    *(0x4AFF_FFFF, 0x4B00_0000, 0x4B00_0001, 0x4B7F_FFFF, 0x4B80_0001, 0xCAFF_FFFF),
)


def words(rng: np.random.Generator, count: int) -> Words:
    """A third each: any bits, moderate numbers, chosen patterns."""
    chosen = [*special_bits(FP32), *INTEGERS, *ROUNDINGS]
    moderate = rng.normal(size=count).astype(np.float32) * 4
    moderate[rng.random(count) < 0.2] *= 2.0**22
    pool = np.stack(
        [
            rng.integers(0, 1 << 32, count).astype(np.uint32),
            moderate.view(np.uint32),
            rng.choice(np.array(chosen, np.uint32), count),
        ]
    )
    return np.ascontiguousarray(pool[rng.integers(0, 3, count), np.arange(count)])


@pytest.mark.parametrize("kernels", _cmodel.kernel_names())
@pytest.mark.parametrize("op", MicroOp)
def test_an_instruction_has_the_bits_of_the_contract(op: MicroOp, kernels: str) -> None:
    rng = np.random.default_rng([op, 1])
    a, b, c = (words(rng, COUNT) for _ in range(3))
    out = np.zeros(COUNT, np.uint32)
    _cmodel.micro(op, a, b, c, out, kernels)
    count = 2 if op is MicroOp.SEGMENT else MICRO_INFO[op].operands
    operands = (a.tolist(), b.tolist(), c.tolist())[:count]
    expected = [softvector.MICRO[op](*values) for values in zip(*operands, strict=True)]
    np.testing.assert_array_equal(out, np.array(expected, np.uint32))
    assert len(expected) == COUNT


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_same_bits_in_all_loops_and_in_integers(name: str) -> None:
    program = PROGRAMS[name]
    rng = np.random.default_rng(LINES[name])
    sources = [words(rng, 1100) for _ in range(program.sources)]
    imms = words(rng, 4).tolist()
    results = []
    for kernels in _cmodel.kernel_names():
        results.append(np.zeros(1100, np.uint32))
        _cmodel.run_program(pack(program), sources, imms, [results[-1]], kernels)
        np.testing.assert_array_equal(results[0], results[-1])
    picked = rng.choice(1100, 120, replace=False).tolist()
    for i in picked:
        element = [int(source[i]) for source in sources]
        assert softvector.run(program, element, imms, i) == (results[0][i],)


def around(table: Table) -> Words:
    """The first and the last number of every segment, their neighbours, and the ends of all."""
    starts = table.first + (np.arange(table.last + 2, dtype=np.int64) << table.shift)
    near = (starts[:, None] + np.arange(-2, 3)).ravel()
    words = np.concatenate([near, [0, 1, 0x7F7F_FFFF, 0x7F80_0000, 0x7F80_0001, 0x7FFF_FFFF]])
    return np.concatenate([words, words | 1 << 31]).astype(np.uint32)


@pytest.mark.parametrize("kernels", _cmodel.kernel_names())
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_segment_of_a_table_begins_and_ends_where_it_says(table: Table, kernels: str) -> None:
    code = [Instruction(MicroOp.SEGMENT, 0, OPERAND_SRC, TABLE_NUMBER[table.name])]
    words = around(table)
    for column in range(table.columns):
        code[1:] = [Instruction(MicroOp.MOV, DST_RESULT, OPERAND_TABLE + column)]
        code += [Instruction(MicroOp.MOV, DST_RESULT + 1, 0)]
        program = VectorProgram("table", "", "", 1, (), Reduce.NONE, tuple(code), results=2)
        results = [np.zeros(len(words), np.uint32) for _ in range(2)]
        _cmodel.run_program(pack(program), [words], [], results, kernels)
        expected = [softvector.run(program, [word], []) for word in words.tolist()]
        np.testing.assert_array_equal(np.stack(results, 1), np.array(expected, np.uint32))


def test_the_segments_of_tanh_by_hand() -> None:
    # 16 segments per octave of |a|; the first reaches to 1.25/32, the last one to 9.5.
    rows = TABLES[TABLE_NUMBER["tanh"]].rows
    numbers = [0.0, 1.24 / 32, 1.25 / 32, 1.0, 1.06, 1.07, 9.0, 9.4, 9.5, math.inf, -1.0, math.nan]
    indices = [0, 0, 1, 77, 77, 78, 127, 127, 127, 127, 77, 127]
    cut = {9.5: 0x4117_FFFF, math.inf: 0x4117_FFFF}
    for x, index in zip(numbers, indices, strict=True):
        bits = float_bits(x)
        result, columns = softvector.segment(bits, TABLE_NUMBER["tanh"])
        assert result == cut.get(x, bits & 0x7FFF_FFFF)
        sign = bits & 1 << 31
        assert columns == [rows[index][0], *(word ^ sign for word in rows[index][1:])]


def test_what_does_not_fit_is_refused() -> None:
    word = np.zeros(3, np.uint32)
    out = np.zeros(3, np.uint32)
    with pytest.raises(ValueError, match="no such instruction"):
        _cmodel.micro(len(MicroOp), word, word, word, out)
    with pytest.raises(ValueError, match="lengths differ"):
        _cmodel.micro(0, word[:2].copy(), word, word, out)
    neg = pack(PROGRAMS["neg"])
    for sources, imms in (([], []), ([word, word], []), ([word[:2].copy()], []), ([word], [0] * 7)):
        with pytest.raises(ValueError, match="do not fit"):
            _cmodel.run_program(neg, sources, imms, [out])
    for outs in ([], [out, out]):
        with pytest.raises(ValueError, match="do not fit"):
            _cmodel.run_program(neg, [word], [], outs)


def test_boot_programs_that_are_malformed_are_refused() -> None:
    memory = np.zeros(4096, np.uint8)
    neg = pack(PROGRAMS["neg"])
    for boot, text in [
        (neg[:-1], "line 0: image: another number of lines"),
        (neg + b"0", "line 1: image: the header's magic"),
        (neg * 1025, "longer than the read-only lines"),
    ]:
        with pytest.raises(ValueError, match=text):
            _cmodel.CModel(memory, 0, 4096, 1, boot)
