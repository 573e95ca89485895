# SPDX-License-Identifier: Apache-2.0
"""The judge of any op: RTL against cmodel bit for bit, each output within its bounds, and blame.

Bounds are golden.bounds'. When answers to a matrix product or a convolution differ a third opinion
decides: the element computed anew, by integers only, from the op's original tensors. It shares no
code with the cmodel. For other ops golden.packets has a third opinion on each packet. Knows values
and bits; not packets, files or simulators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from driver.custom_ops import CUSTOM_OPS
from driver.errors import InputError, UnsupportedOp
from driver.isa import DType
from driver.results import Blame, Failure
from driver.runtime.torch_types import NPU_TYPES
from golden.bounds import RULES, Expectation, Rule
from golden.bounds.expectation import Subject, ulp
from golden.calls import OpCall, Result, answers, base_name
from golden.comparison import compare, first, joined, reach
from golden.formats import FLOAT_FORMATS, UINTS, Bits, Floats, Mask, Values, decode
from golden.products import Product
from golden.tensors import tensor_bits, values_of
from golden.verdict import Verdict, of_missing, of_other_shape, without_rule

_NOTHING_COMPARED = "nothing was compared: no bound is known for any of the {} elements"
_GROSS = 16
"""So many bounds away, a result is not a matter of precision."""


@dataclass(frozen=True)
class _Output:
    """One result with everything known about it. `number` counts the op's outputs."""

    number: int
    answer: torch.Tensor
    cmodel: Bits
    rtl: Bits | None
    npu: Values
    torch: Values
    expectation: Expectation
    product: Product | None
    array_size: int

    @property
    def dtype(self) -> DType:
        """The NPU's type of it."""
        return NPU_TYPES[self.answer.dtype]

    @property
    def differing(self) -> Mask:
        """Elements whose bits differ between RTL and cmodel."""
        if self.rtl is None:
            return np.zeros(self.cmodel.shape, np.bool_)
        return np.asarray(self.rtl != self.cmodel)

    @property
    def made(self) -> Values:
        """The values of the RTL, of the cmodel where there is none."""
        if self.rtl is None:
            return self.npu
        return decode(self.rtl, self.dtype).reshape(self.npu.shape)

    @property
    def bad_npu(self) -> Mask:
        return ~self.expectation.admits_npu(self.npu)

    @property
    def bad_torch(self) -> Mask:
        return ~self.expectation.admits_torch(self.torch)

    def by_integers(self, index: tuple[int, ...]) -> int | None:
        """The right bits of an element; None where only bounds are known."""
        specified = self.expectation.specified
        if specified is None:
            return None
        return specified.bits(int(np.ravel_multi_index(index, self.cmodel.shape)))

    def tile(self, index: tuple[int, ...]) -> tuple[int, int]:
        """Row and column of the ArraySize tile."""
        place = index if self.product is None else self.product.place(index)
        row, column = (0, 0, *place)[-2:]
        return row // self.array_size, column // self.array_size


def rule_of(op: str) -> Rule | None:
    """The rule for an overload, of the table or of a custom op."""
    custom = CUSTOM_OPS.get(op)
    return RULES.get(base_name(op)) if custom is None else custom.bound


def supports(op: str) -> bool:
    """Whether there is a rule for this overload ("aten.add.Tensor")."""
    return rule_of(op) is not None


def expectations(call: OpCall, found: tuple[Result, ...]) -> tuple[Expectation | None, ...]:
    """What is admissible for each output, given torch's answers."""
    rule = rule_of(call.op)
    if rule is None:
        raise UnsupportedOp(call.op, "op", call.op, "an op of golden.bounds.table")
    with np.errstate(over="ignore", invalid="ignore"):
        expected = rule(Subject(call, found))
    if not isinstance(expected, tuple) or len(expected) != len(found):
        raise InputError(call.op, "bound", expected, f"a rule that expects {len(found)} results")
    return expected


def judge(
    call: OpCall,
    cmodel: Sequence[Bits | None],
    rtl: Sequence[Bits | None] | None,
    array_size: int,
) -> Verdict:
    """Judge the results of `call` in the order of its outputs, each with its sizes.

    An output that is no tensor is None. `array_size` is the side of the tiles in failures.
    UnsupportedOp when there is no rule for the op.
    """
    return _judged(call, answers(call), cmodel, rtl, array_size)


def _judged(
    call: OpCall,
    found: tuple[Result, ...],
    cmodel: Sequence[Bits | None],
    rtl: Sequence[Bits | None] | None,
    array_size: int,
) -> Verdict:
    refused = of_missing(found, cmodel, len(call.written())) or of_other_shape(found, cmodel)
    if refused is not None:
        return refused
    expected = expectations(call, found)
    refused = without_rule(found, cmodel, expected)
    if refused is not None:
        return refused
    outputs = _outputs(call, list(zip(found, expected, strict=True)), cmodel, rtl, array_size)
    parts = [compare(output.expectation, output.npu, output.torch) for output in outputs]
    comparison = joined(parts)
    blame, failure = _found(outputs) or ("none", None)
    mismatches = sum(int(np.count_nonzero(output.differing)) for output in outputs)
    if mismatches:  # told is what the RTL made
        made = [compare(one.expectation, one.made, one.torch) for one in outputs]
        worst = max(made, key=lambda part: part.max_error)
        comparison = replace(comparison, max_error=worst.max_error, bound=worst.bound)
    reaches: list[Floats | None] = [None] * len(cmodel)
    for output in outputs:
        reaches[output.number] = reach(output.expectation, output.torch)
    return Verdict(
        blame=blame,
        rtl_mismatches=mismatches,
        comparison=comparison,
        failure=failure,
        reaches=tuple(reaches),
        by_integers=any(output.expectation.specified for output in outputs),
        reference_outside_bound=blame != "none" and not mismatches and _is_torchs(outputs),
        undecided=failure is not None and not mismatches and comparison.violations == 0,
    )


_NORMS = (
    *("native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit"),
    *("_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training"),
    *("_batch_norm_with_update", "_batch_norm_with_update_functional"),
)
"""Ops whose results but the first are statistics."""


def judge_results(call: OpCall, made: Sequence[Result], array_size: int) -> Verdict | None:
    """`judge` of an NPU's results as tensors; None where torch's answer is of another type."""
    found = answers(call)
    bits = _comparable(call, found, made)
    return None if bits is None else _judged(call, found, bits, None, array_size)


def _comparable(
    call: OpCall, found: Sequence[Result], made: Sequence[Result]
) -> list[Bits | None] | None:
    """Their bits in the types of torch's answers; None where one is of another.

    The fp32 statistics of a 16-bit norm are rounded to torch's type: what is admissible is an
    interval of that type's numbers.
    """
    bits: list[Bits | None] = []
    for number, (answer, result) in enumerate(zip(found, made, strict=False)):
        if answer is None or result is None or answer.dtype is result.dtype:
            bits.append(None if result is None else tensor_bits(result))
        elif number and base_name(call.op) in _NORMS and result.dtype is torch.float32:
            bits.append(tensor_bits(result.to(answer.dtype)))
        else:
            return None
    return bits


def _outputs(
    call: OpCall,
    expected: Sequence[tuple[Result, Expectation | None]],
    cmodel: Sequence[Bits | None],
    rtl: Sequence[Bits | None] | None,
    array_size: int,
) -> list[_Output]:
    outputs = []
    for number, (answer, expectation) in enumerate(expected):
        bits = cmodel[number]
        if answer is None or expectation is None or bits is None:
            continue
        shape = tuple(answer.shape)
        bits = bits.reshape(shape)
        raw = None if rtl is None else rtl[number]
        other = None if raw is None else raw.reshape(shape)
        npu = decode(bits, NPU_TYPES[answer.dtype]).reshape(shape)
        known = (answer, bits, other, npu, values_of(answer), expectation)
        outputs.append(_Output(number, *known, call.product, array_size))
    return outputs


def _found(outputs: Sequence[_Output]) -> tuple[Blame, Failure] | None:
    """The first thing that is wrong: between the models, against torch, or nothing to go by."""
    for output in outputs:
        if output.differing.any():
            return _between_models(output, first(output.differing))
    for output in outputs:
        wrong, bad = output.bad_npu, output.bad_npu | output.bad_torch
        if bad.any():
            gross = _gross(output) & wrong
            worst = next(mask for mask in (gross, wrong, bad) if mask.any())
            return _against_torch(output, first(worst), gross=bool(gross.any()))
    for output in filter(_is_open, outputs):
        detail = _NOTHING_COMPARED.format(output.cmodel.size)
        return "precision", _failure(output, (0,) * output.cmodel.ndim, detail)
    return None


def _is_open(output: _Output) -> bool:
    """Whether there are elements, and no bound is known for any."""
    return bool(output.cmodel.size and output.expectation.npu.not_compared.all())


def _is_torchs(outputs: Sequence[_Output]) -> bool:
    return any(o.bad_torch.any() for o in outputs) and not any(o.bad_npu.any() for o in outputs)


# ---------------------------------------------------------------------- between RTL and cmodel
def _between_models(output: _Output, index: tuple[int, ...]) -> tuple[Blame, Failure]:
    assert output.rtl is not None
    right = output.by_integers(index)
    if right is None:
        blame, detail = _by_bounds(output, index)
    else:
        blame, detail = _by_chain(right, int(output.cmodel[index]), int(output.rtl[index]))
    return blame, _failure(output, index, detail, swapped=blame == "cmodel")


def _by_chain(right: int, cmodel: int, rtl: int) -> tuple[Blame, str]:
    if right == rtl:
        return "cmodel", "the RTL agrees with the integer-only chain, the cmodel does not"
    if right == cmodel:
        return "rtl", "the cmodel agrees with the integer-only chain, the RTL does not"
    return "rtl", (
        f"the chain on the original tensors gives {right:#x}, the cmodel agrees with neither: "
        "the packets are suspect as well"
    )


def _by_bounds(output: _Output, index: tuple[int, ...]) -> tuple[Blame, str]:
    """The op's bounds may rule one of the two out. Else the RTL is suspected; golden.packets
    decides by the packet that differs first."""
    assert output.rtl is not None
    rtl_good = bool(output.expectation.admits_npu(output.made)[index])
    if rtl_good and output.bad_npu[index]:
        return "cmodel", "the RTL is within the op's bound, the cmodel is not"
    if output.bad_npu[index]:
        return "rtl", "RTL and cmodel differ, and neither is within the op's bound"
    which = "is as well" if rtl_good else "is not"
    return "rtl", f"RTL and cmodel differ; the cmodel is within the op's bound, the RTL {which}"


# ---------------------------------------------------------------------- against torch
def _against_torch(
    output: _Output, index: tuple[int, ...], *, gross: bool
) -> tuple[Blame, Failure]:
    """RTL and cmodel agree, and one of the bounds is broken at `index`; `gross`: by far."""
    bad_npu = output.bad_npu
    outside = f"NPU outside in {np.count_nonzero(bad_npu)}"
    outside += f", torch in {np.count_nonzero(output.bad_torch)}"
    right, answer = output.by_integers(index), output.torch[index]
    if right is None:
        wrong = gross
        interval = output.expectation.npu
        low, high = (float(side[index]) for side in (interval.low, interval.high))
        admitted = "NaN" if interval.nan[index] else f"{low!r} to {high!r}"
        detail = (
            f"the NPU says {float(output.npu[index])!r} and may say {admitted}, "
            f"torch says {float(answer)!r} ({outside})"
        )
        if wrong:
            detail = f"the packets compute something else than the op: {detail}"
    else:
        wrong = right != int(output.cmodel[index])
        detail = f"torch says {answer}, outside the derived bound ({outside})"
        if wrong:
            detail = (
                "the packets compute something else than the op: the chain on its tensors differs"
            )
    blame: Blame = "lowering" if wrong else "precision"
    return blame, _failure(output, index, detail, right=right)


def _gross(output: _Output) -> Mask:
    """Elements in which the NPU is many bounds away from the truth: no rounding explains it."""
    true, npu, interval = output.expectation.true, output.npu, output.expectation.npu
    if output.dtype not in FLOAT_FORMATS:
        return np.ones(true.shape, np.bool_)
    with np.errstate(over="ignore", invalid="ignore"):
        bound = np.maximum(interval.high - true, true - interval.low)
        far = np.abs(npu - true) > _GROSS * np.maximum(bound, ulp(true, output.dtype))
    return np.asarray(far | ~np.isfinite(true) | ~np.isfinite(npu))


def _failure(
    output: _Output,
    index: tuple[int, ...],
    detail: str,
    *,
    right: int | None = None,
    swapped: bool = False,
) -> Failure:
    """The failure about one element: what the cmodel has is expected, unless `swapped`.

    Where no RTL ran, or both agree, `right` is expected, or torch's answer.
    """
    actual = int(output.cmodel[index])
    if output.rtl is None or int(output.rtl[index]) == actual:
        expected = int(tensor_bits(output.answer)[index]) if right is None else right
    else:
        expected, actual = actual, int(output.rtl[index])
    if swapped:
        expected, actual = actual, expected
    return Failure(
        element=index,
        tile=output.tile(index),
        expected_bits=f"{expected:#x}",
        actual_bits=f"{actual:#x}",
        expected=_value(output, expected),
        actual=_value(output, actual),
        cycle=None,
        detail=detail,
        output=output.number,
    )


def _value(output: _Output, bits: int) -> float:
    raw = np.array([bits], UINTS[output.cmodel.itemsize])
    return float(decode(raw, output.dtype)[0])
