# SPDX-License-Identifier: Apache-2.0
"""Two layers of Qwen2.5-0.5B and its lm_head: prefill of 16 tokens, then a token from the cache."""

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
    name="qwen_small",
    summary="two layers of Qwen2.5-0.5B, bf16: prefill of 16, then a token from the cache, chained",
    kind="ops",
    backends=("rtl", "cmodel"),
    workloads=("qwen_small",),
    takes_modes=True,
    config="qwen",
    modes=("chained",),
)


def cases(spec: RunSpec, config: HwConfig) -> Iterator[Runnable]:
    """All ops in program order."""
    yield from model_entries(spec)
