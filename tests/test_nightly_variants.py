# SPDX-License-Identifier: Apache-2.0
"""Which jobs get a profile-guided simulator: those that run longer than it takes to make."""

from __future__ import annotations

import pytest

from regress.nightly.prepare import BUILD_STEP, CAPSULE_STEP, PrepareStep, profiled, steps_of
from regress.nightly.variants import EXTRA_S, SAVED, profiled_simulators
from regress.results.model import PlannedJob
from tb.sim.spec import VARIANTS
from tb.tests import infos

ENOUGH_S = EXTRA_S / SAVED


def job(config: str, seed: int = 1) -> PlannedJob:
    return PlannedJob(test="lenet", config=config, seed=seed, backend="rtl")


def test_a_simulator_is_profiled_when_its_jobs_together_run_long_enough() -> None:
    items = [job("small"), job("default", 1), job("default", 2)]
    seconds = {"small": 0.9 * ENOUGH_S, "default": 0.6 * ENOUGH_S}
    chosen = profiled_simulators(items, lambda item: seconds[item.config])
    assert chosen == {("default", "rtl")}


def test_a_job_without_a_record_counts_nothing() -> None:
    assert profiled_simulators([job("default")], lambda _item: None) == frozenset()


def test_a_profiled_step_is_another_build_that_exists() -> None:
    for plain in ("check", "behavioural"):
        step = profiled(PrepareStep(BUILD_STEP, "default", plain))
        assert VARIANTS[step.how].profiled
    for other in (
        PrepareStep(BUILD_STEP, "default", "cocotb"),
        PrepareStep(CAPSULE_STEP, "lenet", "1"),
    ):
        assert profiled(other) == other


@pytest.mark.parametrize("test", ["smoke", "bus", "qwen_lora"])
def test_jobs_of_every_kind_of_test_run_in_a_build_with_assertions(test: str) -> None:
    tests = {info.name: info for info in infos()}
    item = PlannedJob(test=test, config="default", seed=1, backend="rtl")
    built = [step.how for step in steps_of(item, tests) if step.kind == BUILD_STEP]
    assert len(built) == 1
    assert VARIANTS[built[0]].assertions
