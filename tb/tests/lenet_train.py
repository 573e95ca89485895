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
from driver.results import Curve, RunSpec, TestInfo
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
    modes=("chained",),
)

ACCURACY = 0.95
"""Of the digits that the epoch did not see, so many are right."""
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
    falls = np.mean(losses.npu[-4:]) < np.mean(losses.npu[:4])
    ok = bool(apart <= LOSS_BUDGET and falls)
    text = (
        f"{capsule.name}: {losses.npu.size} steps, loss {losses.npu.flat[0]:.4f} to "
        f"{losses.npu.flat[-1]:.4f}, at most {apart:.1e} from torch's ({LOSS_BUDGET:g} admitted), "
        f"weights at most {moved:.1e}"
    )
    if capsule.name == _EPOCH:
        wanted = divided()[3].numpy()
        right = int((np.argmax(scores.npu, -1) == wanted).sum())
        ok = ok and right >= ACCURACY * len(wanted)
        text += f"; accuracy {right}/{len(wanted)} = {right / len(wanted):.1%}"
    return ModelCheck(ok, text, (curve,))
