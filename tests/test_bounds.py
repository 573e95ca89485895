# SPDX-License-Identifier: Apache-2.0
"""The rules of golden.bounds: torch keeps to them, the truth passes, anything else does not."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from bounds_cases import FLOATS, as_specified, calls

from driver.lower import LOWERINGS, long_sums
from golden.bounds import RULES, reductions
from golden.bounds.budgets import SHORT, ULPS
from golden.bounds.expectation import U, unit
from golden.calls import OpCall, answers, base_name
from golden.formats import Bits
from golden.judge import expectations, judge, supports
from golden.tensors import tensor_bits, values_of

ARRAY = 4
AWKWARD = pytest.mark.parametrize(
    "awkward",
    [False, pytest.param(True, marks=pytest.mark.broad)],
    ids=["ordinary", "awkward"],
)
TYPES = pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: str(d).removeprefix("torch."))


def ideal(call: OpCall) -> list[Bits | None]:
    """Bits of the true results, rounded; torch's where nothing is claimed."""
    found = answers(call)
    made: list[Bits | None] = []
    for answer, expectation in zip(found, expectations(call, found), strict=True):
        if answer is None or expectation is None:
            made.append(None)
            continue
        interval = expectation.npu
        middle = np.where(interval.unbounded, values_of(answer), expectation.true)
        clipped = np.clip(middle, interval.low, interval.high)  # may change the sign of a zero
        inside = interval.unbounded | (clipped == middle)
        values = np.where(inside, middle, clipped)
        if answer.is_floating_point():
            values = np.where(interval.nan, np.nan, values)
        result = torch.from_numpy(np.ascontiguousarray(values)).to(answer.dtype)
        bits = tensor_bits(result.reshape(answer.shape))
        made.append(as_specified(expectation, bits))
    return made


@AWKWARD
@TYPES
def test_torch_keeps_to_the_bounds_that_are_claimed_of_it(
    dtype: torch.dtype, *, awkward: bool
) -> None:
    compared = 0
    for call in calls(dtype, awkward=awkward):
        verdict = judge(call, ideal(call), None, ARRAY)
        assert verdict.comparison.torch_violations == 0, (call.op, verdict.failure)
        compared += verdict.elements_compared
    assert compared > 20_000


@AWKWARD
@TYPES
def test_the_rounded_truth_passes(dtype: torch.dtype, *, awkward: bool) -> None:
    for call in calls(dtype, awkward=awkward):
        bits = ideal(call)
        verdict = judge(call, bits, bits, ARRAY)
        if verdict.undecided:
            assert awkward, call.op
            assert not verdict.ok
            continue
        assert verdict.ok, (call.op, verdict.failure)


@TYPES
def test_a_wrong_element_is_found_in_every_op_and_output(dtype: torch.dtype) -> None:
    found = 0
    for call in calls(dtype):
        good = ideal(call)
        for number, bits in enumerate(good):
            answer = answers(call)[number]
            if bits is None or answer is None or not bits.size or _is_open(call, number):
                continue
            wrong = bits.reshape(answer.shape).copy()
            at = tuple(size // 2 for size in wrong.shape)
            top = 0 if answer.dtype == torch.bool else 8 * bits.itemsize - 2
            wrong[at] ^= np.array(1 << top, bits.dtype)  # an exponent bit, or a truth value
            outputs = [*good[:number], wrong, *good[number + 1 :]]
            verdict = judge(call, outputs, None, ARRAY)
            assert not verdict.ok, call.op
            assert verdict.blame == "lowering"
            assert verdict.failure is not None
            assert (verdict.failure.output, verdict.failure.element) == (number, at)
            found += 1
    assert found > 140


def _is_open(call: OpCall, number: int) -> bool:
    """Whether nothing is claimed of the middle element."""
    found = answers(call)
    expectation = expectations(call, found)[number]
    assert expectation is not None
    at = tuple(size // 2 for size in expectation.true.shape)
    return bool(expectation.npu.unbounded[at])


def test_an_error_of_a_few_ulp_more_than_the_budget_is_a_matter_of_precision() -> None:
    call = OpCall("aten.exp.default", (torch.linspace(-3, 3, 50),))
    (bits,) = ideal(call)
    assert bits is not None
    for ulps, ok in ((1, True), (5, False)):
        moved = bits.copy()
        moved[20] += ulps
        verdict = judge(call, [moved], None, ARRAY)
        assert verdict.ok is ok
        assert verdict.blame == ("none" if ok else "precision")


def test_a_correctly_rounded_op_may_not_be_one_ulp_off() -> None:
    x = torch.linspace(1, 3, 50)
    for op, args in (("add.Tensor", (x, 1.7)), ("div.Tensor", (x, 3.3)), ("sqrt.default", (x,))):
        call = OpCall(f"aten.{op}", args)
        (bits,) = ideal(call)
        assert bits is not None
        bits = bits.copy()
        bits[7] ^= 1
        assert not judge(call, [bits], None, ARRAY).ok


def test_the_sign_of_a_zero_counts_where_bits_are_moved_or_multiplied() -> None:
    x = torch.tensor([0.0, -0.0, 1.0])
    negative = tensor_bits(torch.tensor([-0.0, -0.0, 1.0]))
    assert not judge(OpCall("aten.clone.default", (x,)), [negative], None, ARRAY).ok
    assert judge(OpCall("aten.add.Tensor", (x, x)), [tensor_bits(x * 2)], None, ARRAY).ok
    other = [np.array([1 << 31, 0, 0], np.uint32)]
    assert not judge(OpCall("aten.mul.Tensor", (x, 0.0)), other, None, ARRAY).ok
    assert judge(OpCall("aten.clamp.default", (x, 0.0, 0.0)), other, None, ARRAY).ok


def test_the_side_outside_the_bound_is_blamed_when_rtl_and_cmodel_differ() -> None:
    call = OpCall("aten.add.Tensor", (torch.arange(6.0).reshape(2, 3), 1))
    (good,) = ideal(call)
    assert good is not None
    wrong = good.copy()
    wrong[1, 2] ^= 1 << 24
    for cmodel, rtl, blame in ((good, wrong, "rtl"), (wrong, good, "cmodel")):
        verdict = judge(call, [cmodel], [rtl], ARRAY)
        assert (verdict.blame, verdict.rtl_mismatches) == (blame, 1)
        assert verdict.failure is not None
        assert verdict.failure.expected_bits == hex(good[1, 2])
        assert verdict.failure.actual_bits == hex(wrong[1, 2])


def test_positions_of_equal_values_are_open_and_others_are_not() -> None:
    x = torch.tensor([3.0, 1.0, 3.0, 2.0])
    call = OpCall("aten.topk.default", (x, 3))
    values = tensor_bits(torch.tensor([3.0, 3.0, 2.0]))
    wrong = ([0, 2, 1], [0, 0, 3], [0, 1, 3], [0, 4, 3])
    for positions in ([0, 2, 3], [2, 0, 3], *wrong):
        verdict = judge(call, [values, np.array(positions, np.uint64)], None, ARRAY)
        assert verdict.ok is (positions not in wrong)


def test_a_sort_has_the_positions_of_a_stable_one() -> None:
    x = torch.tensor([1.0, 2.0, 1.0, 3.0, 1.0, -0.0, 0.0, math.nan, math.nan])
    for descending in (False, True):
        values, stable = torch.sort(x, stable=True, descending=descending)
        sort = OpCall("aten.sort.default", (x, 0, descending))
        argsort = OpCall("aten.argsort.default", (x, 0, descending))
        swapped = stable.clone()
        equal = (values[1:] == values[:-1]).nonzero()[0, 0]
        swapped[equal], swapped[equal + 1] = stable[equal + 1], stable[equal]
        for positions, ok in ((stable, True), (swapped, False), (stable.roll(1), False)):
            bits = tensor_bits(positions)
            assert judge(argsort, [bits], None, ARRAY).ok is ok
            assert judge(sort, [tensor_bits(values), bits], None, ARRAY).ok is ok


def test_the_position_of_one_element_holds_its_value() -> None:
    x = torch.tensor([[1.0, 2.0, 1.0, 3.0, 1.0]])
    call = OpCall("aten.kthvalue.default", (x, 2, 1))
    for position in range(5):
        made = [tensor_bits(torch.tensor([1.0])), np.array([position], np.uint64)]
        assert judge(call, made, None, ARRAY).ok is (position in (0, 2, 4))


def test_an_infinite_loss_is_required() -> None:
    call = OpCall(
        "aten.nll_loss_forward.default",
        (torch.tensor([[-math.inf, 0.0]]), torch.tensor([0]), None, 1, -100),
    )
    for loss, ok in ((math.inf, True), (3.0, False), (-math.inf, False), (math.nan, False)):
        made = [tensor_bits(torch.tensor(x)) for x in (loss, 1.0)]
        assert judge(call, made, None, ARRAY).ok is ok


def test_a_sum_of_many_elements_is_judged() -> None:
    x = torch.ones(1 << 23)
    call = OpCall("aten.sum.default", (x,))
    for found, ok in ((2.0**23, True), (2.0**22, False)):
        assert judge(call, [tensor_bits(torch.tensor(found))], None, ARRAY).ok is ok


def test_an_op_of_nothing_is_judged() -> None:
    loss = OpCall(
        "aten.nll_loss_backward.default",
        *[(torch.zeros(0), torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), None, 0, -100)],
        {"total_weight": torch.tensor(0.0)},
    )
    assert judge(loss, [tensor_bits(torch.zeros(0, 3))], None, ARRAY).failure is None
    norm = OpCall("aten.native_layer_norm.default", (torch.zeros(3, 0), [0], None, None, 1e-5))
    nothing, rows = (tensor_bits(torch.zeros(3, width)) for width in (0, 1))
    judge(norm, [nothing, rows, rows], None, ARRAY)


def test_every_rule_has_a_call_that_tries_it() -> None:
    tried = {base_name(call.op) for call in calls(torch.float32)}
    assert tried <= RULES.keys()
    assert supports("aten.add_.Tensor")
    assert not supports("aten.fft_fft.default")


def test_every_op_that_is_lowered_has_a_rule() -> None:
    assert [op for op in LOWERINGS if not supports(op)] == []


def test_the_budgets_hold_what_is_measured() -> None:
    """docs/accuracy.json counts ULP of the result's format, its rounding included."""
    measured = json.loads((Path(__file__).parents[1] / "docs/accuracy.json").read_text())
    types = {"fp16": torch.float16, "bf16": torch.bfloat16}
    compared = 0
    for row in measured:
        name = row["function"].removesuffix("_erf").removesuffix("_tanh")
        if row["format"] == "fp32":
            allowed = ULPS[name]
        else:
            dtype = types[row["format"]]
            relative = SHORT.get(name, {}).get(dtype, 4 * U)
            allowed = 0.5 + relative / unit(dtype) + 0.01
        assert row["max_ulp"] <= allowed, row
        compared += 1
    assert compared >= 3 * 17


def test_the_bound_of_a_sum_knows_in_which_parts_it_is_lowered() -> None:
    assert (reductions.LONGEST, reductions.PART) == (long_sums.LONGEST_SUM, long_sums._PART)
