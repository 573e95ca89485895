# SPDX-License-Identifier: Apache-2.0
"""The judge on the results that a capsule of an NPU's run holds: the values that a program saw."""

from __future__ import annotations

from driver.capture import Capsule, Op
from driver.capture.single import recorded_stream
from driver.capture.tensors import as_tensor, to_torch
from golden.calls import OpCall
from golden.judge import judge_results, supports
from golden.verdict import Verdict


def judge_record(capsule: Capsule, op: Op, array_size: int = 1) -> Verdict | None:
    """The verdict on the recorded results of an op, for its recorded operands.

    `array_size`: side of the tiles that a failure names. None where golden has no bound for such a
    call, or the NPU has other types than torch's answer.
    """
    if not supports(op.op):
        return None
    call = OpCall(
        op.op,
        [to_torch(capsule, value) for value in op.inputs],
        {name: to_torch(capsule, value) for name, value in op.kwargs.items()},
        recorded_stream(capsule, op),
    )
    made = [None if ref is None else as_tensor(capsule, ref) for ref in op.outputs]
    return judge_results(call, [*made, *[None] * len(call.written())], array_size)
