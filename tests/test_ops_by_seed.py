# SPDX-License-Identifier: Apache-2.0
"""TEST=ops runs one variant of each op in each type: other ones with each seed."""

from __future__ import annotations

from pathlib import Path

from driver.config import load_config
from driver.results import RunSpec
from tb.ops.case import Case
from tb.ops.samples import SAMPLES
from tb.ops.samples.variants import variants
from tb.tests.ops import cases

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
CONFIG = load_config(CONFIG_FILE, "small")
OP = "aten.tanh.default"


def chosen(seed: int) -> list[Case]:
    spec = RunSpec(
        test="ops", config="small", config_file=CONFIG_FILE, seed=seed, backend="cmodel",
        waves="none", out=Path("unused"), capsules={}, op_filter=None, name_filter=OP,
        timeout_s=60.0,
    )  # fmt: skip
    return [entry.make() for entry in cases(spec, CONFIG)]


def test_seeds_run_other_variants_of_the_same_types() -> None:
    first, second = chosen(1), chosen(2)
    assert len(first) == len({v.dtype for v in variants(SAMPLES[OP])}) > 1
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
