# SPDX-License-Identifier: Apache-2.0
"""Qwen2.5-0.5B whole: prefill of 16 tokens, then greedy tokens, 24 layers and lm_head each."""

from __future__ import annotations

from collections.abc import Iterator

from driver.config import HwConfig
from driver.results import RunSpec
from driver.test_info import TestInfo
from tb.ops.capsules import model_entries
from tb.ops.runner import Runnable
from tb.tests._tokens import conclude

__all__ = ["INFO", "cases", "conclude"]

INFO = TestInfo(
    name="qwen",
    summary="Qwen2.5-0.5B, bf16: prefill of 16, then greedy tokens, 4 in all",
    kind="ops",
    backends=("rtl", "cmodel"),
    workloads=("qwen",),
    takes_modes=True,
    config="qwen",
)


def cases(spec: RunSpec, config: HwConfig) -> Iterator[Runnable]:
    """All ops in program order."""
    yield from model_entries(spec)
