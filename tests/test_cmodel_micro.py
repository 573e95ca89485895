# SPDX-License-Identifier: Apache-2.0
"""Every instruction of the vector engine, in every set of loops, against integers only."""

from __future__ import annotations

import numpy as np
import pytest
from cmodel_util import Words, special_bits

from driver.isa.image import pack
from driver.isa.micro import MICRO_INFO, MicroOp
from driver.isa.programs import LINES, PROGRAMS
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
    operands = (a.tolist(), b.tolist(), c.tolist())[: MICRO_INFO[op].operands]
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
