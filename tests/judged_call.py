# SPDX-License-Identifier: Apache-2.0
"""One ATen call on the cmodel, judged as an op of a capsule is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driver.config import load_config
from driver.lower import LOWERINGS
from driver.lower.builder import ProgramBuilder
from driver.lower.registry import Lowering, LoweringRule
from driver.runtime import TensorView
from golden.backend import CmodelBackend
from golden.judge import judge
from golden.verdict import Verdict
from tb.ops.case import Case
from tb.ops.pair import DevicePair, PairResult

CONFIG = load_config(Path(__file__).parents[1] / "sim_config.yaml", "small")


def scratch_in(
    monkeypatch: pytest.MonkeyPatch, op: str, place: Callable[[TensorView], TensorView]
) -> None:
    """Break a lowering: it uses a place of its first operand as scratch, behind right packets."""
    table: Any = LOWERINGS
    (rule,) = LOWERINGS[op].rules

    def spoiled(b: ProgramBuilder, out: TensorView, self: TensorView, *rest: Any) -> None:
        rule.function(b, out, self, *rest)
        b.fill(place(self), 4)

    monkeypatch.setitem(table, op, Lowering((LoweringRule("scratch", spoiled, None),), 1))


def open_pair() -> DevicePair:
    """A cmodel of its own, without RTL."""
    return DevicePair(CONFIG, CmodelBackend(CONFIG, threads=1), None)


def run(pair: DevicePair, op: str, *args: Any, **kwargs: Any) -> tuple[PairResult, Verdict]:
    """The call's packets and what the judge says; an assertion where the device refuses them."""
    case = Case(0, op, args, "test", kwargs=kwargs)
    result = pair.run(case, 1)
    assert result.cmodel.fault is None, result.cmodel.fault
    assert not result.overwritten, f"an operand is overwritten: {op}"
    return result, judge(case.call, result.cmodel.bits, None, CONFIG.array_size)


def passes(pair: DevicePair, op: str, *args: Any, **kwargs: Any) -> int:
    """Assert that NPU and torch keep to the bounds; how many elements were compared."""
    _, verdict = run(pair, op, *args, **kwargs)
    assert verdict.failure is None, f"{op}: {verdict.failure}"
    return verdict.elements_compared
