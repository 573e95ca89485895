# SPDX-License-Identifier: Apache-2.0
"""The judge of a matrix product blames the side that is wrong, and names the element."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from judged_call import run

from driver.isa import DType
from golden import _cmodel
from golden import judge as judges
from golden.bounds.specified import SpecifiedBits
from golden.calls import OpCall, answers
from golden.formats import UINTS, Bits
from golden.judge import expectations, judge
from golden.products import Product, chain_bits
from golden.tensors import tensor_bits
from tb.ops.pair import DevicePair

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


def product_call(operand: DType = DType.FP32, batch: int = 2) -> OpCall:
    dtype, _ = TYPES[operand]
    a, b = operands(dtype, batch, 7, 9, seed=1), operands(dtype, batch, 9, 6, seed=2)
    return OpCall("aten.bmm.default", (a, b))


def product_of(call: OpCall) -> Product:
    assert call.product is not None
    return call.product


def computed(call: OpCall) -> Bits:
    """The cmodel's bits."""
    product = product_of(call)
    a, b = tensor_bits(product.a), tensor_bits(product.b)
    size = TYPES[product.operand][1]
    result = np.zeros((a.shape[0], a.shape[1], b.shape[2]), UINTS[size])
    _cmodel.matmul(a, b, result, int(product.operand), int(product.result))
    return result


def flipped(bits: Bits, index: tuple[int, int, int]) -> Bits:
    wrong = bits.copy()
    wrong[index] ^= 1
    return wrong


@pytest.mark.parametrize("operand", TYPES)
def test_agreement_passes_and_counts_every_element(operand: DType) -> None:
    call = product_call(operand)
    bits = computed(call)
    verdict = judge(call, [bits], [bits.copy()], ARRAY)
    assert verdict.ok
    assert verdict.elements_compared == 2 * 7 * 6
    assert verdict.comparison.elements_compared == 2 * 7 * 6


@pytest.mark.parametrize("operand", TYPES)
def test_one_flipped_bit_of_the_rtl_is_the_rtls_fault(operand: DType) -> None:
    call = product_call(operand)
    bits = computed(call)
    verdict = judge(call, [bits], [flipped(bits, (1, 5, 4))], ARRAY)
    assert (verdict.blame, verdict.rtl_mismatches, verdict.ok) == ("rtl", 1, False)
    assert verdict.failure is not None
    assert verdict.failure.element == (1, 5, 4)
    assert verdict.failure.tile == (1, 1)
    assert verdict.failure.expected_bits == hex(bits[1, 5, 4])
    assert verdict.failure.actual_bits == hex(bits[1, 5, 4] ^ 1)


def test_one_flipped_bit_of_the_cmodel_is_the_cmodels_fault() -> None:
    call = product_call()
    bits = computed(call)
    verdict = judge(call, [flipped(bits, (0, 2, 3))], [bits], ARRAY)
    assert verdict.blame == "cmodel"
    assert verdict.failure is not None
    assert verdict.failure.expected_bits == hex(bits[0, 2, 3])


def test_both_computing_another_product_is_the_lowerings_fault() -> None:
    call = product_call()
    other = OpCall("aten.bmm.default", (call.args[0].flip(1), call.args[1]))
    bits = computed(other)
    verdict = judge(call, [bits], [bits.copy()], ARRAY)
    assert (verdict.blame, verdict.rtl_mismatches) == ("lowering", 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_sum_in_another_order_is_the_lowerings_fault(dtype: torch.dtype) -> None:
    a, b = operands(dtype, 5, 64, seed=5), operands(dtype, 64, 3, seed=6)
    call = OpCall("aten.mm.default", (a, b))
    right = np.array(
        [[chain_bits(product_of(call), (0, i, j)) for j in range(3)] for i in range(5)],
        UINTS[dtype.itemsize],
    )
    assert judge(call, [right], [right.copy()], ARRAY).ok
    for place in ((0, 0), (2, 1), (4, 2)):  # the neighbour is within the bound, and not specified
        other = right.copy()
        other[place] ^= 1
        verdict = judge(call, [other], [other.copy()], ARRAY)
        assert verdict.blame == "lowering"
        assert verdict.failure is not None and verdict.failure.element == place
        assert int(verdict.failure.expected_bits, 16) == int(right[place])


def test_torch_out_of_bounds_is_a_matter_of_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    call = product_call()
    bits = computed(call)
    (right,) = answers(call)
    assert right is not None
    monkeypatch.setattr(judges, "answers", lambda _: (right + 1e-3,))
    verdict = judge(call, [bits], [bits.copy()], ARRAY)
    assert verdict.blame == "precision"


def test_a_wrong_element_of_the_npu_goes_before_one_of_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = product_call()
    bits = computed(call)
    bits[1, 5, 4] ^= 1 << 29
    (right,) = answers(call)
    assert right is not None
    right[0, 0, 0] += 1e-3
    monkeypatch.setattr(judges, "answers", lambda _: (right,))
    verdict = judge(call, [bits], [bits.copy()], ARRAY)
    assert verdict.blame == "lowering"
    assert verdict.failure is not None and verdict.failure.element == (1, 5, 4)


@pytest.mark.parametrize("operand", TYPES)
def test_third_opinion_agrees_with_the_cmodel_on_every_element(operand: DType) -> None:
    call = product_call(operand, batch=1)
    bits = computed(call)
    agreed = sum(
        chain_bits(product_of(call), index) == int(bits[index]) for index in np.ndindex(bits.shape)
    )
    assert agreed == 7 * 6


def test_element_is_counted_as_torch_counts_a_flattened_result() -> None:
    x, weight = operands(torch.float32, 2, 3, 5, seed=3), operands(torch.float32, 4, 5, seed=4)
    call = OpCall("aten.linear.default", (x, weight))
    product = product_of(call)
    bits = tensor_bits(product.a @ product.b).reshape(2, 3, 4)
    verdict = judge(call, [bits], [flipped(bits, (1, 1, 1))], ARRAY)
    assert verdict.failure is not None
    assert verdict.failure.element == (1, 1, 1)
    assert verdict.failure.tile == (1, 0)  # row 4 of the product


CONVOLUTIONS = {
    "lines": ((2, 3, 12), (5, 3, 3), [1], [1], [1], 1),
    "images": ((2, 5, 9, 8), (4, 5, 3, 3), [1, 1], [1, 1], [1, 1], 1),
    "strides and dilation": ((1, 4, 9, 9), (8, 2, 3, 2), [2, 1], [1, 0], [1, 2], 2),
    "depthwise": ((2, 6, 8, 8), (12, 1, 3, 3), [2, 2], [1, 1], [1, 1], 6),
    "volumes": ((2, 3, 5, 5, 5), (4, 3, 2, 3, 3), [1, 1, 1], [0, 1, 1], [1, 1, 1], 1),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_convolution_is_one_chain_over_channels_and_kernel(
    name: str, bias: bool, dtype: torch.dtype, pair: DevicePair
) -> None:
    sizes, kernel, stride, padding, dilation, groups = CONVOLUTIONS[name]
    x, weight = operands(dtype, *sizes, seed=7), operands(dtype, *kernel, seed=8)
    first = operands(dtype, kernel[0], seed=9) if bias else None
    rest = (stride, padding, dilation, False, [0] * len(stride), groups)
    op = "aten.convolution.default"
    result, verdict = run(pair, op, x, weight, first, *rest)
    assert verdict.failure is None and verdict.by_integers
    call = OpCall(op, (x, weight, first, *rest))
    (expectation,) = expectations(call, answers(call))
    assert expectation is not None and expectation.specified is not None
    (bits,) = result.cmodel.bits
    assert bits is not None
    every = range(0, bits.size, max(1, bits.size // 50))
    assert all(expectation.specified.bits(at) == int(bits.flat[at]) for at in every)
    other = bits.copy()
    other.flat[bits.size - 1] ^= 1
    assert judge(call, [other], None, ARRAY).blame == "lowering"
    assert judge(call, [bits], [other], ARRAY).blame == "rtl"
    assert judge(call, [other], [bits], ARRAY).blame == "cmodel"


@pytest.mark.parametrize("depth", [1, 64, 9000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_products_of_vectors_are_one_chain_up_to_the_longest(
    depth: int, dtype: torch.dtype, pair: DevicePair
) -> None:
    a, b = (operands(dtype, *sizes, seed=11) for sizes in ((5, depth), (depth,)))
    _, verdict = run(pair, "aten.mv.default", a, b)
    assert verdict.failure is None and verdict.by_integers
    _, verdict = run(pair, "aten.dot.default", a[0].clone(), b)
    assert verdict.failure is None
    assert verdict.by_integers == (depth <= 8192)


@pytest.mark.parametrize(
    "steps, checked", [(0, 3), (1, 3), (1000, 3), (2048, 2), (5000, 1), (1 << 16, 1), (1 << 17, 0)]
)
def test_so_many_chains_are_computed_as_take_little_time(steps: int, checked: int) -> None:
    specified = SpecifiedBits(10, steps, DType.FP32, lambda at: 0x3F80_0000 + at)
    assert len(specified.sampled) == checked
    values = np.array([1 + at * 2.0**-23 for at in range(10)])
    assert specified.admits(values).all()
    assert np.count_nonzero(~specified.admits(-values)) == checked
    assert not SpecifiedBits(0, steps, DType.FP32, lambda at: at).sampled
