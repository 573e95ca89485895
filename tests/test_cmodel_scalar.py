# SPDX-License-Identifier: Apache-2.0
"""The cmodel's primitives against golden.softfloat, bit for bit."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from cmodel_util import apply, special_bits

from driver.isa import DType
from golden import _cmodel, softfloat
from golden.softfloat import BF16, FP16, FP32, Format

SIGN = 1 << 31


def near_ties(rng: random.Random) -> tuple[int, int, int]:
    """A product whose low half is cut off by c's exponent near a tie."""
    a = 0x3F80_0000 + (rng.getrandbits(11) << 12)
    b = 0x3F80_0000 + (rng.getrandbits(11) << 12)
    c = (0x3F80_0000 + (rng.randrange(0, 26) << 23) + rng.getrandbits(2)) | rng.getrandbits(1) << 31
    return a, b, c


def cancelling(rng: random.Random) -> tuple[int, int, int]:
    """c close to -a·b, also where the difference is subnormal."""
    a, b = ((rng.randrange(40, 150) << 23) + rng.getrandbits(23) for _ in range(2))
    product = softfloat.fma(a, b, 0)
    c = max(0, min(product + rng.randrange(-2, 3), FP32.infinity - 1)) ^ SIGN
    return a, b, c


def subnormal(rng: random.Random) -> tuple[int, int, int]:
    """A product around the least subnormals and a c that is one."""
    a = rng.randrange(0, 0x0100_0000) | rng.getrandbits(1) << 31
    b = (rng.randrange(100, 130) << 23) + rng.getrandbits(23)
    return a, b, rng.randrange(0, 0x0100_0000) | rng.getrandbits(1) << 31


def any_bits(rng: random.Random) -> tuple[int, int, int]:
    return rng.getrandbits(32), rng.getrandbits(32), rng.getrandbits(32)


def assert_fma_agrees(triples: list[tuple[int, int, int]]) -> int:
    """Compares every triple; returns how many."""
    got = apply(_cmodel.fma32, *zip(*triples, strict=True))
    expected = [softfloat.fma(*triple) for triple in triples]
    wrong = [t for t, x, y in zip(triples, got, expected, strict=True) if x != y]
    assert not wrong, [tuple(map(hex, t)) for t in wrong[:5]]
    return len(expected)


def test_fma_agrees_on_all_special_classes_crossed() -> None:
    triples = list(itertools.product(special_bits(FP32), repeat=3))
    assert assert_fma_agrees(triples) == 38**3


@pytest.mark.parametrize("draw", [any_bits, near_ties, cancelling, subnormal])
def test_fma_agrees_on_random_operands(
    draw: Callable[[random.Random], tuple[int, int, int]],
) -> None:
    rng = random.Random(4)
    assert assert_fma_agrees([draw(rng) for _ in range(50_000)]) == 50_000


@pytest.mark.parametrize(
    ("function", "dtype"), [(_cmodel.widen_fp16, DType.FP16), (_cmodel.widen_bf16, DType.BF16)]
)
def test_widening_agrees_on_every_pattern(function: Callable[..., None], dtype: DType) -> None:
    got = apply(function, range(1 << 16))
    expected = [softfloat.widen(dtype, bits) for bits in range(1 << 16)]
    assert got == expected
    assert len(got) == 65536


def around_every_boundary(fmt: Format, dtype: DType) -> Iterator[int]:
    """For every finite pattern: itself, the midpoint to the next, and one fp32 ULP around both."""
    for bits in range(1 << 16):
        if bits & fmt.infinity == fmt.infinity:
            continue
        here = softfloat.widen(dtype, bits)
        beyond = softfloat.widen(dtype, bits + 1)
        middle = (here + beyond) // 2
        yield from ((value + d) & 0xFFFF_FFFF for value in (here, middle) for d in (-1, 0, 1))


@pytest.mark.parametrize(
    ("function", "fmt", "dtype"),
    [
        (_cmodel.narrow_fp16, FP16, DType.FP16),
        (_cmodel.narrow_bf16, BF16, DType.BF16),
    ],
)
def test_narrowing_agrees_around_every_boundary(
    function: Callable[..., None], fmt: Format, dtype: DType
) -> None:
    rng = random.Random(5)
    values = list(around_every_boundary(fmt, dtype))
    values += special_bits(FP32) + [rng.getrandbits(32) for _ in range(50_000)]
    got = apply(function, values)
    wrong = [hex(v) for v, x in zip(values, got, strict=True) if x != softfloat.narrow(dtype, v)]
    assert not wrong, wrong[:5]
    assert len(got) > 400_000


def test_mac8_agrees_on_every_pair_of_operands() -> None:
    rng = random.Random(6)
    pairs = list(itertools.product(range(256), repeat=2))
    accs = [rng.choice([0, 0x7FFF_FFFF, 0x8000_0000, rng.getrandbits(32)]) for _ in pairs]
    got = apply(_cmodel.mac8, [a for a, _ in pairs], [b for _, b in pairs], accs)
    expected = [softfloat.mac8(a, b, c) for (a, b), c in zip(pairs, accs, strict=True)]
    assert got == expected
    assert len(got) == 65536


def test_subnormals_survive_a_caller_that_flushes_them() -> None:
    least_normal, half, least = 0x0080_0000, 0x3F00_0000, 1
    assert torch.set_flush_denormal(True)
    try:
        assert apply(_cmodel.fma32, [least_normal], [half], [0]) == [0x0040_0000]
        assert apply(_cmodel.fma32, [0], [0], [least]) == [least]
        a = np.array([[[least_normal]]], dtype=np.uint32)
        b = np.array([[[half] * 100]], dtype=np.uint32)
        c = np.zeros((1, 1, 100), dtype=np.uint32)
        _cmodel.matmul(a, b, c, DType.FP32, DType.FP32)
        assert c.tolist() == [[[0x0040_0000] * 100]]
        # The caller's own setting is back in force.
        assert float(torch.tensor(1.5e-38) * 0.5) == 0.0
    finally:
        torch.set_flush_denormal(False)


def test_scalar_functions_refuse_unequal_lengths() -> None:
    words = np.zeros(3, dtype=np.uint32)
    with pytest.raises(ValueError, match="lengths"):
        _cmodel.fma32(words, words, words[:2], words)
