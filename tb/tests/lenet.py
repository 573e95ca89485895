# SPDX-License-Identifier: Apache-2.0
"""LeNet whole: 64 digits that it has not been trained on, every op, and the digits it sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from driver.capture import Capsule
from driver.config import HwConfig
from driver.results import RunSpec
from driver.test_info import TestInfo
from tb.ops.capsules import model_entries
from tb.ops.chain import ModelOutput
from tb.ops.runner import ModelCheck, Runnable
from workloads.lenet import held_out

INFO = TestInfo(
    name="lenet",
    summary="LeNet trained on digits, 64 classified: every op isolated, then the model chained",
    kind="ops",
    backends=("rtl", "cmodel"),
    workloads=("lenet",),
    takes_modes=True,
    modes=("isolated", "chained"),
)


def cases(spec: RunSpec, config: HwConfig) -> Iterator[Runnable]:
    """All ops, isolated and then chained."""
    yield from model_entries(spec)


def conclude(capsule: Capsule, finals: Sequence[ModelOutput]) -> ModelCheck:
    """The classes must be torch's; how many of them are right is a figure."""
    (scores,) = finals
    npu, torch = (np.argmax(values, -1).ravel() for values in (scores.npu, scores.torch))
    labels = held_out()[1].numpy()
    same, right = int((npu == torch).sum()), int((npu == labels).sum())
    text = (
        f"classes: {same} of {len(npu)} as torch predicts them, "
        f"accuracy {right}/{len(labels)} = {right / len(labels):.1%}"
    )
    return ModelCheck(same == len(npu) == len(labels), text)
