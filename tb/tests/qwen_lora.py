# SPDX-License-Identifier: Apache-2.0
"""LoRA by peft on Qwen2.5-0.5B, trained on PyTorch's device "npu" as a user's program trains it.

On the cmodel the whole model, next to CPU torch. On the RTL two layers of full width with a
vocabulary of bytes, next to the cmodel: every gradient and every weight of each step, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driver.config import HwConfig
from driver.results import RunSpec
from driver.test_info import TestInfo

if TYPE_CHECKING:
    from tb.programs.lora_checks import LoraProgram

INFO = TestInfo(
    name="qwen_lora",
    summary="20 AdamW steps of LoRA on Qwen2.5-0.5B through device npu: beside torch, bit for bit",
    kind="program",
    backends=("rtl", "cmodel"),
    config="training",
    has_model=True,
)


def program(spec: RunSpec, config: HwConfig) -> LoraProgram:
    """The training that fits the backend."""
    from tb.programs.lora_checks import LoraProgram  # noqa: PLC0415 (transformers and peft take seconds)
    from workloads._lora import TWO_LAYERS, WHOLE  # noqa: PLC0415

    return LoraProgram(spec, WHOLE if spec.backend == "cmodel" else TWO_LAYERS)
