# SPDX-License-Identifier: Apache-2.0
"""What is said of a language model's run: the tokens that it chose, beside torch's."""

from __future__ import annotations

from collections.abc import Sequence

from driver.capture import Capsule
from tb.ops.chain import ModelOutput
from tb.ops.runner import ModelCheck


def conclude(capsule: Capsule, finals: Sequence[ModelOutput]) -> ModelCheck:
    """Greedy tokens must be torch's: each is the largest of 151,936 scores."""
    (tokens,) = finals
    npu, torch = ([int(token) for token in values.ravel()] for values in (tokens.npu, tokens.torch))
    said = f"greedy tokens {npu}" + ("" if npu == torch else f", torch has {torch}")
    return ModelCheck(bool(npu) and npu == torch, said)
