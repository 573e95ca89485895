# SPDX-License-Identifier: Apache-2.0
"""One ATen call on the cmodel, judged as an op of a capsule is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from driver.config import load_config
from golden.backend import CmodelBackend
from golden.judge import Verdict, judge
from tb.ops.case import Case
from tb.ops.pair import DevicePair, PairResult

CONFIG = load_config(Path(__file__).parents[1] / "sim_config.yaml", "small")


def open_pair() -> DevicePair:
    """A cmodel of its own, without RTL."""
    return DevicePair(CONFIG, CmodelBackend(CONFIG, threads=1), None)


def run(pair: DevicePair, op: str, *args: Any, **kwargs: Any) -> tuple[PairResult, Verdict]:
    """The call's packets and what the judge says; an assertion where the device refuses them."""
    case = Case(0, op, args, "test", kwargs=kwargs)
    result = pair.run(case, 1)
    assert result.cmodel.fault is None, result.cmodel.fault
    return result, judge(case.call, result.cmodel.bits, None, CONFIG.array_size)


def passes(pair: DevicePair, op: str, *args: Any, **kwargs: Any) -> int:
    """Assert that NPU and torch keep to the bounds; how many elements were compared."""
    _, verdict = run(pair, op, *args, **kwargs)
    assert verdict.failure is None, f"{op}: {verdict.failure}"
    return verdict.elements_compared
