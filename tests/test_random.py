# SPDX-License-Identifier: Apache-2.0
"""Random numbers: Philox's known answers on every side, and what the drawn numbers look like."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from lower_torch import TorchBench, open_bench

from driver.errors import UnsupportedOp
from driver.isa import DType
from driver.lower import lower
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import constant
from driver.lower.philox import permute
from driver.lower.words import below
from driver.random_stream import RandomStream
from driver.runtime import dense
from driver.runtime.torch_types import NPU_TYPES
from golden import draws, philox
from golden.calls import OpCall, answers

ONES = 0xFFFF_FFFF
KNOWN = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)
"""Of Random123's kat_vectors for philox4x32-10: counter, key, result."""
DRAWN = 40_000
STREAM = RandomStream(2**63 + 12345, 7)


@pytest.fixture(scope="module")
def npu() -> Iterator[TorchBench]:
    made = open_bench()
    yield made
    made.device.close()


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_golden_gives_philoxs_known_answers(
    counter: tuple[int, ...], key: tuple[int, int], expected: tuple[int, ...]
) -> None:
    c0, c1, c2, c3 = (np.array([word], np.uint64) for word in counter)
    made = philox.philox((c0, c1, c2, c3), key)
    assert tuple(int(word[0]) for word in made) == expected


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_the_vector_programs_give_philoxs_known_answers(
    npu: TorchBench, counter: tuple[int, ...], key: tuple[int, int], expected: tuple[int, ...]
) -> None:
    b = ProgramBuilder("philox", npu.device.config)
    made = dense(npu.device.alloc(16), DType.INT32, (4, 1))
    words = [b.expanded(constant(b, word, DType.INT32), (1,)) for word in counter]
    permute(b, words, key, [made.selected(0, at) for at in range(4)])
    npu.device.execute(b.program())
    found = npu.device.download(made.address, (4,), np.uint32)
    assert tuple(int(word) for word in found) == expected


def run(npu: TorchBench, op: str, *args: Any, stream: RandomStream = STREAM) -> torch.Tensor:
    """The first result of a random op on the cmodel."""
    call = OpCall(f"aten.{op}", args, {}, stream)
    results = [None if x is None else npu.result(x) for x in answers(call)]
    placed = [npu.argument(value) for value in args]
    npu.device.execute(lower(call.op, placed, {}, results, npu.device.config, stream))
    view = results[0]
    assert view is not None
    return npu.fetch(view, answers(call)[0])


def test_numbers_depend_on_seed_and_op_and_nothing_else(npu: TorchBench) -> None:
    x = torch.empty(1000)
    first = run(npu, "uniform.default", x)
    assert torch.equal(first, run(npu, "uniform.default", x))
    assert torch.equal(first[:10], run(npu, "uniform.default", x[:10]))
    others = [RandomStream(STREAM.seed, 8), RandomStream(STREAM.seed + (1 << 32), 7)]
    others += [RandomStream(STREAM.seed, 7 + (1 << 32)), RandomStream(0, 7)]
    for other in others:
        assert (first == run(npu, "uniform.default", x, stream=other)).sum() < 5


def test_an_op_without_a_stream_is_refused(npu: TorchBench) -> None:
    view = npu.result(torch.zeros(4))
    with pytest.raises(UnsupportedOp, match="stream: got None, expected the seed"):
        lower("aten.uniform.default", (view,), {}, (view,), npu.device.config)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (1.0, 1.0009765625)])
def test_uniform_numbers_stay_below_the_end(
    npu: TorchBench, dtype: torch.dtype, low: float, high: float
) -> None:
    x = run(npu, "uniform.default", torch.empty(DRAWN, dtype=dtype), low, high).double()
    assert x.min() >= low and x.max() < high
    assert len(x.unique()) > 100 or high < 1.1


KOLMOGOROV = math.sqrt(-0.5 * math.log(1e-6 / 2) / DRAWN)
"""The largest distance of two distributions that chance exceeds once in a million runs."""


def distance(values: torch.Tensor, distribution: Any) -> float:
    """Kolmogorov and Smirnov's: of the values' distribution from a continuous one."""
    ordered = np.sort(values.double().numpy())
    expected = np.asarray(distribution(torch.from_numpy(ordered)))
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return float(max(np.max(steps[1:] - expected), np.max(expected - steps[:-1])))


DISTRIBUTIONS = {
    "uniform": ("uniform.default", (), lambda x: x, 1 / 2, 1 / 12),
    "normal": (
        "normal_functional.default",
        (1.5, 2.0),
        lambda x: torch.special.ndtr((x - 1.5) / 2),
        1.5,
        4.0,
    ),
    "exponential": ("exponential.default", (2.0,), lambda x: 1 - (-2 * x).exp(), 0.5, 0.25),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_numbers_are_distributed_as_they_should_be(npu: TorchBench, name: str) -> None:
    op, args, distribution, mean, variance = DISTRIBUTIONS[name]
    x = run(npu, op, torch.empty(DRAWN), *args).double()
    assert distance(x, distribution) < KOLMOGOROV
    assert abs(float(x.mean()) - mean) < 5 * math.sqrt(variance / DRAWN)
    assert abs(float(x.var()) / variance - 1) < 5 * math.sqrt(8 / DRAWN)
    neighbours = torch.corrcoef(torch.stack((x[:-1], x[1:])))[0, 1]
    assert abs(float(neighbours)) < 5 / math.sqrt(DRAWN)


def test_chances_and_integers_come_as_often_as_they_should(npu: TorchBench) -> None:
    kept = run(npu, "bernoulli.p", torch.empty(DRAWN), 0.3)
    assert abs(float(kept.mean()) - 0.3) < 5 * math.sqrt(0.21 / DRAWN)
    x = run(npu, "random.from", torch.empty(DRAWN, dtype=torch.int64), -5, 15)
    counts = torch.bincount(x + 5, minlength=20).double()
    chi_squared = float(((counts - DRAWN / 20) ** 2 / (DRAWN / 20)).sum())
    assert chi_squared < 19 + 6 * math.sqrt(2 * 19)
    weights = torch.tensor([0.0, 1.0, 2.0, 5.0])
    drawn = run(npu, "multinomial.default", weights, 8000, True)
    shares = torch.bincount(drawn, minlength=4) / 8000
    assert shares[0] == 0
    assert (shares - weights / 8).abs().max() < 5 * math.sqrt(0.25 / 8000)


def test_a_draw_without_replacement_repeats_nothing(npu: TorchBench) -> None:
    drawn = run(npu, "multinomial.default", torch.ones(3, 50), 50, False)
    assert torch.equal(drawn.sort().values, torch.arange(50).expand(3, 50))
    order = run(npu, "randperm.default", 1000)
    assert torch.equal(order.sort().values, torch.arange(1000))
    assert (
        abs(float(torch.corrcoef(torch.stack((order.double(), torch.arange(1000.0))))[0, 1])) < 0.2
    )


def test_golden_rounds_a_sum_of_a_product_once() -> None:
    rng = np.random.default_rng(1)
    a = rng.random(2000).astype(np.float32)
    for b, c in np.float32([(3.0000002, -1.7), (1.1, 1e-9), (7.3, 0.0), (-0.4, 2.0**-30)]):
        exact = [_nearest(Fraction(float(x)) * Fraction(float(b)) + Fraction(float(c))) for x in a]
        found = philox.fma(a.astype(np.float64), float(b), float(c))
        assert np.array_equal(found.astype(np.float32), np.array(exact))


def _nearest(value: Fraction) -> np.float32:
    """The fp32 number nearest to a fraction, ties to even."""
    guess = np.float32(float(value))
    near = [np.nextafter(guess, np.float32(side)) for side in (-np.inf, np.inf)]
    return min(
        (guess, *near),
        key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(np.uint32)) & 1),
    )


NUMBERS = (1.0, -1.0, 0.1, -0.3, 0.0, 2.0**-14, 3.0, 65504.0, 1e-7, -(2.0**-24), 2.0**-126)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_both_sides_know_the_number_below(dtype: torch.dtype) -> None:
    kind = NPU_TYPES[dtype]
    for value in map(draws.fp32, NUMBERS):
        found = below(value, kind)
        assert found == draws.below(value, kind)
        assert found < value and float(torch.tensor(found, dtype=dtype)) == found
        up = torch.nextafter(torch.tensor(found, dtype=dtype), torch.tensor(1e30, dtype=dtype))
        assert float(up) >= value
