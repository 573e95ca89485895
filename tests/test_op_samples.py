# SPDX-License-Identifier: Apache-2.0
"""Every op of the op table, in every type, layout, size and kind of values, on the cmodel.

The table of samples (tb/ops/samples) is the list; an op without a sample is a failure here. What
an op may answer is golden's to say. The same samples run on the RTL as TEST=ops.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch
from judged_call import CONFIG

from driver.errors import UnsupportedOp
from driver.isa import DType
from driver.lower import LOWERINGS
from golden.judge import judge, supports
from tb.ops.case import Case
from tb.ops.pair import DevicePair
from tb.ops.samples import SAMPLES
from tb.ops.samples.model import Sample, T
from tb.ops.samples.variants import SHAPES, SampleCall, variants

SEED = 7


def case_of(variant: SampleCall) -> Case:
    args, kwargs = variant.arguments(SEED)
    return Case(0, variant.sample.op, args, "sample", kwargs=kwargs)


def problem_with(
    pair: DevicePair, variant: SampleCall, rule: str | None = None
) -> tuple[str | None, int]:
    """(what is wrong with the NPU's answer, elements compared)."""
    case = case_of(variant)
    result = pair.run(case, SEED, rule)
    if result.cmodel.fault is not None:
        return f"{variant}: {result.cmodel.fault}", 0
    if result.overwritten:
        return f"{variant}: an operand is overwritten at {result.overwritten[0]:#x}", 0
    made = [view for view in result.results if view is not None]
    if not any(view.count for view in made):
        return (f"{variant}: packets for nothing" if result.packets else None), 0
    verdict = judge(case.call, result.cmodel.bits, None, CONFIG.array_size)
    if verdict.undecided:
        return None, 0  # special values of which no bound is known: red in a run, not counted here
    if verdict.failure is not None:
        found = verdict.failure
        return f"{variant}: {verdict.blame} {found.element}: {found.detail}", 0
    return None, verdict.elements_compared


@pytest.mark.broad
@pytest.mark.parametrize("op", sorted(SAMPLES))
def test_samples_are_answered_within_their_bounds(pair: DevicePair, op: str) -> None:
    wrong: list[str] = []
    compared = 0
    for variant in variants(SAMPLES[op]):
        problem, elements = problem_with(pair, variant)
        compared += elements
        wrong += [problem] if problem else []
    assert not wrong, "\n".join([f"{len(wrong)} wrong", *wrong[:8]])
    assert compared > 0


WIDE = {"any": "wide", "positive": "wide positive"}
INCONSISTENT = "aten._scaled_dot_product_flash_attention_for_cpu_backward.default"
"""Its operands are results of each other: with others, its exponential overflows."""


def widened(value: object) -> object:
    """The same argument with numbers of every size."""
    if isinstance(value, list):
        return [widened(item) for item in value]
    if isinstance(value, T) and value.dtype is None and value.values in WIDE:
        return replace(value, values=WIDE[value.values])
    return value


@pytest.mark.broad
@pytest.mark.parametrize("op", sorted(set(SAMPLES) - {INCONSISTENT}))
def test_numbers_of_every_size_are_answered_within_their_bounds(pair: DevicePair, op: str) -> None:
    """torch's formulas overflow, and float64's cancel, where small operands do not show it."""
    wrong: list[str] = []
    for number, sample in enumerate(SAMPLES[op]):
        kwargs = {name: widened(value) for name, value in sample.kwargs.items()}
        spread = replace(sample, args=tuple(map(widened, sample.args)), kwargs=kwargs)
        for dtype in sample.dtypes:
            for name in ("dense", "rows of 33", "17") if spread.free else ("dense",):
                problem, _ = problem_with(pair, SampleCall(name, spread, dtype, number))
                wrong += [problem] if problem else []
    assert not wrong, "\n".join([f"{len(wrong)} wrong", *wrong[:8]])


CHOICES = [(op, rule.name) for op, row in LOWERINGS.items() for rule in row.rules[1:]]


@pytest.mark.parametrize(("op", "rule"), CHOICES)
def test_each_of_several_rules_answers_within_the_bounds(
    pair: DevicePair, op: str, rule: str
) -> None:
    """Every sample by every rule that computes it; the first of an op is what a run takes."""
    wrong: list[str] = []
    compared = 0
    for variant in variants(SAMPLES[op]):
        try:
            problem, elements = problem_with(pair, variant, rule)
        except UnsupportedOp as error:
            assert (error.field, error.value) == ("rule", rule)
            continue
        compared += elements
        wrong += [problem] if problem else []
    assert wrong == []
    assert compared > 0


def test_every_op_of_the_table_has_a_sample_and_a_judge() -> None:
    assert set(LOWERINGS) - set(SAMPLES) == set()
    assert set(SAMPLES) - set(LOWERINGS) == set()
    assert [op for op in LOWERINGS if not supports(op)] == []


def test_what_a_sample_says_is_refused_is_refused(pair: DevicePair) -> None:
    refused = [
        SampleCall("dense", sample, dtype, number)
        for samples in SAMPLES.values()
        for number, sample in enumerate(samples)
        for dtype in sample.refused
    ]
    for variant in refused:
        case = case_of(variant)
        with pytest.raises(UnsupportedOp):
            pair.run(case, SEED)


def test_the_suite_covers_types_layouts_and_sizes() -> None:
    everything = [variant for samples in SAMPLES.values() for variant in variants(samples)]
    names = Counter(variant.name for variant in everything)
    assert {*SHAPES, "strided", "broadcast", "special"} == set(names)
    assert min(names.values()) > 200
    types = {str(variant.dtype).removeprefix("torch.") for variant in everything}
    assert len(types) == len(DType) + 1  # bool and uint8 are one type to the NPU
    assert len(everything) > 5000


def test_a_layout_is_what_its_name_says() -> None:
    sample = Sample("aten.add.Tensor", (T(), T()))
    tensors = {v.name: v.arguments(1)[0] for v in variants((sample,)) if v.dtype == torch.float32}
    first, second = tensors["strided"]
    assert not first.is_contiguous()
    assert first.permute(2, 1, 0).is_contiguous()
    assert second.storage_offset() and second.stride(-1) == 2
    assert [t.stride().index(0) for t in tensors["broadcast"]] == [0, 1]
    assert tensors["empty"][0].numel() == 0 and tensors["scalar"][0].dim() == 0
    special = tensors["special"][0]
    assert special.isnan().any() and special.isinf().any()
    assert ((special != 0) & (special.abs() < torch.finfo(torch.float32).tiny)).any()


def test_a_variant_is_the_same_alone_and_in_the_suite() -> None:
    one, two = (list(variants(SAMPLES["aten.add.Tensor"]))[9].arguments(3)[0] for _ in range(2))
    other = list(variants(SAMPLES["aten.add.Tensor"]))[9].arguments(4)[0]
    assert torch.equal(one[0], two[0]) and not torch.equal(one[0], other[0])
