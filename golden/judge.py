# SPDX-License-Identifier: Apache-2.0
"""Judges any op: RTL against cmodel bit for bit, each output within the bounds of golden.bounds.

Matrix products have a judge of their own, golden.scoreboard. Knows values and bits; not packets,
files or simulators: which packet of several went wrong is golden.packets' to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from driver.errors import UnsupportedOp
from driver.isa import DType
from golden.bounds import RULES, Expectation
from golden.bounds.expectation import Subject, ulp
from golden.calls import OpCall, Result, answers, base_name, values_of
from golden.formats import FLOAT_FORMATS, Floats, Values, decode
from golden.problem import Mask
from golden.reference import NPU_TYPES
from golden.scoreboard import NOTHING_COMPARED, Bits, Blame, Finding, Verdict, tensor_bits
from golden.tolerance import Comparison, Interval, reach_of, unclaimed, zeros_in

_NOTHING = Comparison(0, 0, 0, 0, 0, 0.0, 0.0, 0.0, (), np.empty(0))
_GROSS = 16
"""So many bounds away, a result is not a matter of precision."""


def supports(op: str) -> bool:
    """Whether there is a rule for this overload ("aten.add.Tensor")."""
    return base_name(op) in RULES


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

    @property
    def dtype(self) -> DType:
        """The NPU's type of it."""
        return NPU_TYPES[self.answer.dtype]

    @property
    def bad_npu(self) -> Mask:
        return ~_admits(self.expectation, self.expectation.npu, self.npu)

    @property
    def bad_torch(self) -> Mask:
        return ~_admits(self.expectation, self.expectation.torch, self.torch)


def judge(
    call: OpCall,
    cmodel: Sequence[Bits | None],
    rtl: Sequence[Bits | None] | None,
    array_size: int,
) -> Verdict:
    """Judge the results of `call` in the order of its outputs, each with its sizes.

    An output that is no tensor is None. `array_size` is the side of the tiles in findings.
    UnsupportedOp when there is no rule for the op.
    """
    outputs = _outputs(call, cmodel, rtl)
    parts = [_compare(output) for output in outputs]
    comparison = _joined(parts)
    mismatches = sum(int(np.count_nonzero(_differing(output))) for output in outputs)
    found = _found(outputs, comparison, array_size)
    blame, finding = found or (Blame.NONE, None)
    reaches: list[Floats | None] = [None] * len(cmodel)
    for output, part in zip(outputs, parts, strict=True):
        reaches[output.number] = part.reach
    return Verdict(blame, mismatches, comparison, finding, tuple(reaches))


def _found(
    outputs: Sequence[_Output], comparison: Comparison, array_size: int
) -> tuple[Blame, Finding] | None:
    """The first thing that is wrong: between the models, against torch, or nothing to go by."""
    for output in outputs:
        mask = _differing(output)
        if mask.any():
            return _between_models(output, _first(mask), array_size)
    for output in outputs:
        bad = output.bad_npu | output.bad_torch
        if bad.any():
            return _against_torch(output, bad, array_size)
    if comparison.unbounded and not comparison.elements_compared:
        output = next(output for output in outputs if output.cmodel.size)
        detail = NOTHING_COMPARED.format(comparison.unbounded)
        first = (0,) * output.cmodel.ndim
        return Blame.PRECISION, _finding(output, first, array_size, detail)
    return None


def expectations(call: OpCall, found: tuple[Result, ...]) -> tuple[Expectation | None, ...]:
    """What is admissible for each output, given torch's answers."""
    rule = RULES.get(base_name(call.op))
    if rule is None:
        raise UnsupportedOp(call.op, "op", call.op, "an op of golden.bounds.table")
    with np.errstate(over="ignore", invalid="ignore"):
        return rule(Subject(call, found))


def _outputs(
    call: OpCall, cmodel: Sequence[Bits | None], rtl: Sequence[Bits | None] | None
) -> list[_Output]:
    found = answers(call)
    expected = expectations(call, found)
    outputs = []
    for number, (answer, expectation) in enumerate(zip(found, expected, strict=True)):
        bits = cmodel[number]
        if answer is None or expectation is None or bits is None:
            continue
        shape = tuple(answer.shape)
        bits = bits.reshape(shape)
        raw = None if rtl is None else rtl[number]
        other = None if raw is None else raw.reshape(shape)
        npu = decode(bits, NPU_TYPES[answer.dtype]).reshape(shape)
        outputs.append(_Output(number, answer, bits, other, npu, values_of(answer), expectation))
    return outputs


def _admits(expectation: Expectation, interval: Interval, values: Values) -> Mask:
    inside = interval.admits(values)
    if expectation.signed_zeros and values.dtype == np.float64:
        zero = (values == 0) & (expectation.true == 0)
        inside &= ~zero | (np.signbit(values) == np.signbit(expectation.true))
    return np.asarray(inside)


def _differing(output: _Output) -> Mask:
    if output.rtl is None:
        return np.zeros(output.cmodel.shape, np.bool_)
    return np.asarray(output.rtl != output.cmodel)


def _distance(output: _Output) -> tuple[Floats, Floats]:
    """(|NPU − torch|, what it may be) per element; 0 and infinity where not both are finite."""
    known = (output.npu, output.torch, output.expectation.true)
    npu, other, true = (values.astype(np.float64) for values in known)
    interval = output.expectation.npu
    with np.errstate(invalid="ignore", over="ignore"):
        comparable = np.isfinite(npu) & np.isfinite(other) & ~unclaimed(interval) & ~interval.nan
        error = np.where(comparable, np.abs(npu - other), 0.0)
        reach = np.maximum(interval.high - true, true - interval.low)
        allowed = np.where(comparable, reach + np.abs(other - true), np.inf)
    return error, allowed


def _compare(output: _Output) -> Comparison:
    bad_npu, bad_torch = output.bad_npu, output.bad_torch
    error, allowed = _distance(output)
    with np.errstate(divide="ignore"):
        ratio = np.divide(error, allowed, out=np.zeros_like(error), where=error > 0)
    bad = bad_npu | bad_torch
    true, interval = output.expectation.true, output.expectation.npu
    reach = reach_of(interval, output.torch)
    if not error.size:
        return replace(_NOTHING, reach=reach)
    largest = int(np.argmax(error))
    open_ = int(np.count_nonzero(unclaimed(interval)))
    return Comparison(
        elements_compared=error.size - open_,
        unbounded=open_,
        zeros=zeros_in(true, interval),
        npu_violations=int(np.count_nonzero(bad_npu)),
        torch_violations=int(np.count_nonzero(bad_torch)),
        max_error=float(error.flat[largest]),
        bound=float(allowed.flat[largest]),
        worst_ratio=float(ratio.max()),
        worst_index=_first(bad) if bad.any() else _first(ratio == ratio.max()),
        reach=reach,
    )


def _joined(parts: Sequence[Comparison]) -> Comparison:
    """Counts of all outputs; the worst figures are those of the worst output."""
    if not parts:
        return _NOTHING
    worst = max(
        parts, key=lambda part: (part.npu_violations + part.torch_violations, part.worst_ratio)
    )
    return replace(
        worst,
        elements_compared=sum(part.elements_compared for part in parts),
        unbounded=sum(part.unbounded for part in parts),
        zeros=sum(part.zeros for part in parts),
        npu_violations=sum(part.npu_violations for part in parts),
        torch_violations=sum(part.torch_violations for part in parts),
    )


def _first(mask: Mask) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def _between_models(
    output: _Output, index: tuple[int, ...], array_size: int
) -> tuple[Blame, Finding]:
    """RTL and cmodel differ: the op's bounds may rule one of them out. Else the RTL is suspected;
    golden.packets decides by the packet that differs first."""
    assert output.rtl is not None
    other = decode(output.rtl, output.dtype).reshape(output.npu.shape)
    limits = output.expectation
    rtl_good = bool(_admits(limits, limits.npu, other)[index])
    if rtl_good and output.bad_npu[index]:
        detail = "the RTL is within the op's bound, the cmodel is not"
        return Blame.CMODEL, _finding(output, index, array_size, detail, swapped=True)
    which = "is as well" if rtl_good else "is not"
    detail = f"RTL and cmodel differ; the cmodel is within the op's bound, the RTL {which}"
    if output.bad_npu[index]:
        detail = "RTL and cmodel differ, and neither is within the op's bound"
    return Blame.RTL, _finding(output, index, array_size, detail)


def _against_torch(output: _Output, bad: Mask, array_size: int) -> tuple[Blame, Finding]:
    """RTL and cmodel agree, and one of the bounds is broken at every element of `bad`."""
    wrong = output.bad_npu
    index = _first(wrong) if wrong.any() else _first(bad)
    counts = (
        f"NPU outside in {np.count_nonzero(wrong)}, torch in {np.count_nonzero(output.bad_torch)}"
    )
    interval = output.expectation.npu
    low, high = (float(side[index]) for side in (interval.low, interval.high))
    admitted = "NaN" if interval.nan[index] else f"{low!r} to {high!r}"
    detail = f"the NPU may say {admitted}, torch says {float(output.torch[index])!r} ({counts})"
    gross = _is_gross(output, index) if wrong.any() else False
    blame = Blame.LOWERING if gross else Blame.PRECISION
    if gross:
        detail = f"the packets compute something else than the op: {detail}"
    return blame, _finding(output, index, array_size, detail)


def _is_gross(output: _Output, index: tuple[int, ...]) -> bool:
    """Whether the NPU is many bounds away from the truth: no rounding explains it."""
    true, npu = float(output.expectation.true[index]), float(output.npu[index])
    if output.dtype not in FLOAT_FORMATS or not (np.isfinite(true) and np.isfinite(npu)):
        return True
    interval = output.expectation.npu
    reach = max(float(interval.high[index]) - true, true - float(interval.low[index]))
    return abs(npu - true) > _GROSS * max(reach, float(ulp(np.asarray(true), output.dtype)))


def _finding(
    output: _Output, index: tuple[int, ...], array_size: int, detail: str, *, swapped: bool = False
) -> Finding:
    """The finding about one element: what the cmodel has is expected, unless `swapped`.

    Where no RTL ran, or both agree, torch's answer is expected.
    """
    sides = [(int(output.cmodel[index]), float(output.npu[index]))]
    if output.rtl is None or int(output.rtl[index]) == sides[0][0]:
        expected, actual = _torch_side(output, index), sides[0]
    else:
        one = np.reshape(output.rtl[index], (1,))
        expected, actual = sides[0], (int(one[0]), float(decode(one, output.dtype)[0]))
    if swapped:
        expected, actual = actual, expected
    rows = (0, 0, *index)[-2:]
    return Finding(
        element=index,
        tile=(rows[0] // array_size, rows[1] // array_size),
        expected_bits=expected[0],
        actual_bits=actual[0],
        expected=expected[1],
        actual=actual[1],
        detail=detail,
        output=output.number,
    )


def _torch_side(output: _Output, index: tuple[int, ...]) -> tuple[int, float]:
    """(bits, value) of torch's answer."""
    bits = tensor_bits(output.answer)[index]
    return int(bits), float(output.torch[index])
