# SPDX-License-Identifier: Apache-2.0
"""One decoder layer of Qwen2.5-0.5B at full size: 16 and 32 tokens, fp32 and bf16."""

from __future__ import annotations

from collections.abc import Iterator

from driver.config import HwConfig
from driver.results import RunSpec
from driver.test_info import TestInfo
from tb.ops.capsules import model_entries
from tb.ops.runner import Runnable

INFO = TestInfo(
    name="qwen_layer",
    summary="every op of a decoder layer of Qwen2.5-0.5B: 16 and 32 tokens, fp32 and bf16",
    kind="ops",
    backends=("rtl", "cmodel"),
    workloads=("qwen_layer", "qwen_layer_32", "qwen_layer_bf16", "qwen_layer_bf16_32"),
    takes_modes=True,
)


def cases(spec: RunSpec, config: HwConfig) -> Iterator[Runnable]:
    """All ops, model by model."""
    yield from model_entries(spec)
