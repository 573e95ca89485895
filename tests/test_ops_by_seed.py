# SPDX-License-Identifier: Apache-2.0
"""TEST=ops runs one variant of each op in each type: other ones with each seed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
import torch

from driver.config import load_config
from driver.results import RunSpec
from golden.bounds import RULES
from golden.bounds.expectation import Subject
from golden.calls import OpCall, answers, base_name
from tb.ops.case import Case
from tb.ops.samples import SAMPLES
from tb.ops.samples.variants import variants
from tb.tests.ops import cases

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
CONFIG = load_config(CONFIG_FILE, "small")
OP = "aten.tanh.default"
_SMALL = ("special", "one element", "scalar")
_FEW = 4
_SEEDS = 12


def chosen(seed: int) -> list[Case]:
    spec = RunSpec(
        test="ops", config="small", config_file=CONFIG_FILE, seed=seed, backend="cmodel",
        waves="none", out=Path("unused"), capsules={}, op_filter=None, name_filter=OP,
        timeout_s=60.0,
    )  # fmt: skip
    return [entry.make() for entry in cases(spec, CONFIG)]


def few_results(seed: int, names: Collection[str] | None = None) -> Iterator[tuple[str, OpCall]]:
    """Samples with a few elements to compare, by name; all of them or these."""
    for op, samples in SAMPLES.items():
        for variant in variants(samples):
            if variant.name in _SMALL and (names is None or str(variant) in names):
                args, kwargs = variant.arguments(seed)
                yield str(variant), Case(0, op, args, "sample", kwargs=kwargs).call


@pytest.mark.broad
def test_a_sample_has_something_to_compare_in_every_seed() -> None:
    """A run in which nothing was compared is red: then no values that the seed draws may be such
    that no bound is known."""
    found = set()
    for name, call in few_results(1):
        made = answers(call)
        if 0 < sum(x.numel() for x in made if isinstance(x, torch.Tensor)) <= _FEW:
            found.add(name)
    assert len(found) > 3000
    nothing = []
    for seed in range(1, _SEEDS + 1):
        for name, call in few_results(seed, found):
            expected = RULES[base_name(call.op)](Subject(call, answers(call)))
            if all(one.npu.not_compared.all() for one in expected if one is not None):
                nothing.append(f"seed {seed}: {name}")
    assert nothing == []


def test_seeds_run_other_variants_of_the_same_types() -> None:
    first, second = chosen(1), chosen(2)
    types = {v.dtype for v in variants(SAMPLES[OP])}
    assert len(first) == len(types) + 1 > 2
    assert first[-1].module.startswith("special ")
    assert [case.index for case in first] == [case.index for case in second]
    assert all(a.module != b.module for a, b in zip(first, second, strict=True))


def test_as_many_seeds_as_variants_run_all_of_them() -> None:
    every = list(variants(SAMPLES[OP]))
    wanted = {
        f"{v.name} {str(v.dtype).removeprefix('torch.')}"
        for v in every
        if v.name != "empty"
        and not any(t.shape is not None and 0 in t.shape for t in v.sample.tensors())
    }
    assert {case.module for seed in range(1, len(every) + 1) for case in chosen(seed)} == wanted
