# SPDX-License-Identifier: Apache-2.0
"""The scoreboard blames the side that is wrong, and names the element."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from driver.isa import DType
from golden import _cmodel, scoreboard
from golden.reference import MatmulCall, matmul_call
from golden.scoreboard import UINTS, Bits, Blame, judge, tensor_bits, third_opinion

ARRAY = 4
TYPES = {
    DType.FP32: (torch.float32, 4),
    DType.FP16: (torch.float16, 2),
    DType.BF16: (torch.bfloat16, 2),
    DType.INT8: (torch.int8, 4),
}


def operands(dtype: torch.dtype, *shape: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.int8:
        return torch.randint(-128, 128, shape, dtype=dtype, generator=generator)
    return torch.randn(shape, generator=generator).to(dtype)


def problem(operand: DType = DType.FP32, batch: int = 2) -> MatmulCall:
    dtype, _ = TYPES[operand]
    a, b = operands(dtype, batch, 7, 9, seed=1), operands(dtype, batch, 9, 6, seed=2)
    return matmul_call("aten.bmm.default", (a, b))


def computed(call: MatmulCall) -> Bits:
    """The cmodel's bits."""
    a, b = tensor_bits(call.a), tensor_bits(call.b)
    size = TYPES[call.operand][1]
    result = np.zeros((a.shape[0], a.shape[1], b.shape[2]), UINTS[size])
    _cmodel.matmul(a, b, result, int(call.operand), int(call.result))
    return result


def flipped(bits: Bits, index: tuple[int, int, int]) -> Bits:
    wrong = bits.copy()
    wrong[index] ^= 1
    return wrong


@pytest.mark.parametrize("operand", TYPES)
def test_agreement_passes_and_counts_every_element(operand: DType) -> None:
    call = problem(operand)
    bits = computed(call)
    verdict = judge(call, bits, bits.copy(), ARRAY)
    assert verdict.ok
    assert verdict.elements_compared == 2 * 7 * 6
    assert verdict.comparison.elements_compared == 2 * 7 * 6


@pytest.mark.parametrize("operand", TYPES)
def test_one_flipped_bit_of_the_rtl_is_the_rtls_fault(operand: DType) -> None:
    call = problem(operand)
    bits = computed(call)
    verdict = judge(call, bits, flipped(bits, (1, 5, 4)), ARRAY)
    assert (verdict.blame, verdict.rtl_mismatches, verdict.ok) == (Blame.RTL, 1, False)
    assert verdict.finding is not None
    assert verdict.finding.element == (1, 5, 4)
    assert verdict.finding.tile == (1, 1)
    assert verdict.finding.expected_bits == int(bits[1, 5, 4])
    assert verdict.finding.actual_bits == int(bits[1, 5, 4]) ^ 1


def test_one_flipped_bit_of_the_cmodel_is_the_cmodels_fault() -> None:
    call = problem()
    bits = computed(call)
    verdict = judge(call, flipped(bits, (0, 2, 3)), bits, ARRAY)
    assert verdict.blame is Blame.CMODEL
    assert verdict.finding is not None
    assert verdict.finding.expected_bits == int(bits[0, 2, 3])


def test_both_computing_another_product_is_the_lowerings_fault() -> None:
    call = problem()
    other = matmul_call("aten.bmm.default", (call.a.flip(1), call.b))
    bits = computed(other)
    verdict = judge(call, bits, bits.copy(), ARRAY)
    assert (verdict.blame, verdict.rtl_mismatches) == (Blame.LOWERING, 0)


def test_torch_out_of_bounds_is_a_matter_of_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    call = problem()
    bits = computed(call)
    right = scoreboard.reference(call)
    monkeypatch.setattr(scoreboard, "reference", lambda _: right + 1e-3)
    verdict = judge(call, bits, bits.copy(), ARRAY)
    assert verdict.blame is Blame.PRECISION


@pytest.mark.parametrize("operand", TYPES)
def test_third_opinion_agrees_with_the_cmodel_on_every_element(operand: DType) -> None:
    call = problem(operand, batch=1)
    bits = computed(call)
    agreed = sum(third_opinion(call, index) == int(bits[index]) for index in np.ndindex(bits.shape))
    assert agreed == 7 * 6


def test_element_is_counted_as_torch_counts_a_flattened_result() -> None:
    x, weight = operands(torch.float32, 2, 3, 5, seed=3), operands(torch.float32, 4, 5, seed=4)
    call = matmul_call("aten.linear.default", (x, weight))
    bits = tensor_bits(call.a @ call.b).reshape(1, 6, 4)
    verdict = judge(call, bits, flipped(bits, (0, 4, 1)), ARRAY)
    assert verdict.finding is not None
    assert verdict.finding.element == (1, 1, 1)
