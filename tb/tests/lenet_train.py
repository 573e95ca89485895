# SPDX-License-Identifier: Apache-2.0
"""Training: an epoch of LeNet on handwritten digits, and some steps of the LeNet that tutorials
show (relu, max_pool, batches of 4). Every op of forward, backward and Adam, on the NPU's own
weights, gradients and moments from the first step to the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from driver.capture import Capsule
from driver.config import HwConfig
from driver.results import Curve, RunSpec
from driver.test_info import TestInfo
from tb.ops.capsules import model_entries
from tb.ops.chain import ModelOutput
from tb.ops.runner import ModelCheck, Runnable
from workloads.lenet_train import divided

_EPOCH = "lenet_train"
"""The workload that is scored on digits at its end."""

INFO = TestInfo(
    name="lenet_train",
    summary="an epoch of training LeNet on digits, every op judged; loss and weights beside torch",
    kind="ops",
    backends=("rtl", "cmodel"),
    workloads=(_EPOCH, "lenet_tutorial"),
    takes_modes=True,
    modes=("chained",),
)

ACCURACY = 0.9
"""Of the digits that the epoch did not see, torch has so many right: else the training shows
nothing."""
APART = 3
"""So many digits more or less than torch may be right: weights differ in their last bits."""
_ENDS = 4
"""Steps at either end of the epoch whose mean losses are compared."""
LOSS_BUDGET = 1e-3
"""How far a loss may be from torch's. The chain's own budget is what the bounds of all ops before
explain at worst; this one is recorded: with seed 1 the largest distance is 4.7e-6."""


def cases(spec: RunSpec, config: HwConfig) -> Iterator[Runnable]:
    """All steps of both trainings."""
    yield from model_entries(spec)


def conclude(capsule: Capsule, finals: Sequence[ModelOutput]) -> ModelCheck:
    """Losses beside torch's, and for the epoch the accuracy on digits that it did not see."""
    losses, scores, *parameters = finals
    curve = Curve(
        model=capsule.name,
        name="loss",
        npu=tuple(losses.npu.ravel().tolist()),
        torch=tuple(losses.torch.ravel().tolist()),
    )
    apart = float(np.max(np.abs(losses.npu - losses.torch)))
    moved = max(float(np.max(np.abs(x.npu - x.torch))) for x in parameters)
    text = (
        f"{capsule.name}: {losses.npu.size} steps, loss {losses.npu.flat[0]:.4f} to "
        f"{losses.npu.flat[-1]:.4f}, at most {apart:.1e} from torch's ({LOSS_BUDGET:g} admitted), "
        f"weights at most {moved:.1e}"
    )
    wrong = [] if apart <= LOSS_BUDGET else ["a loss is too far from torch's"]  # a NaN is too
    if capsule.name == _EPOCH:
        wanted = divided()[3].numpy()
        right, torchs = (
            int((np.argmax(x, -1) == wanted).sum()) for x in (scores.npu, scores.torch)
        )
        text += f"; accuracy {right}/{len(wanted)} = {right / len(wanted):.1%}, torch's {torchs}"
        if not np.mean(losses.npu[-_ENDS:]) < np.mean(losses.npu[:_ENDS]):
            wrong.append("the loss does not fall")
        if abs(right - torchs) > APART:
            wrong.append(f"right digits differ from torch's by more than {APART}")
        if torchs < ACCURACY * len(wanted):
            wrong.append(f"torch itself has less than {ACCURACY:.0%} right")
    return ModelCheck(not wrong, "; ".join((text, *wrong)), (curve,))
