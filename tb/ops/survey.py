# SPDX-License-Identifier: Apache-2.0
"""Every op of a capsule on the cmodel, judged; what is refused or wrong is counted, not raised."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from driver.capture import Capsule, Op
from driver.survey import Kind, Trouble
from tb.ops.capsules import capsule_cases, is_free
from tb.ops.rows import CpuOp
from tb.ops.session import Session

Reason = tuple[Kind, str, str, str]
"""Kind, op, type of the first operand, text."""
_LONG = 160


@dataclass
class Survey:
    """What was found of one capsule."""

    npu: int = 0
    free: int = 0
    _counts: Counter[Reason] = field(default_factory=Counter)
    _modules: dict[Reason, dict[str, None]] = field(default_factory=dict)

    def add(self, op: Op, kind: Kind, dtype: str, text: str) -> None:
        """One op that is not on the NPU."""
        reason = (kind, op.op, dtype, " ".join(text.split())[:_LONG])
        self._counts[reason] += 1
        self._modules.setdefault(reason, {})[op.module] = None

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What is not on the NPU, most frequent first."""
        return tuple(
            Trouble(
                kind=kind,
                op=op,
                dtype=dtype,
                text=text,
                modules=tuple(self._modules[kind, op, dtype, text]),
                count=count,
            )
            for (kind, op, dtype, text), count in self._counts.most_common()
        )


def survey(session: Session, capsule: Capsule) -> Survey:
    """Run and judge every op on the operands that torch had. The session must allow the CPU."""
    found = Survey(free=sum(is_free(op) for op in capsule.ops))
    computing = [op for op in capsule.ops if not is_free(op)]
    for op, entry in zip(computing, capsule_cases(capsule, iter(range(1 << 30))), strict=True):
        try:
            outcome = session.run(entry.make())
        except Exception as error:  # one op's crash is a finding, the others go on
            found.add(op, "crash", "", f"{type(error).__name__}: {error}")
            continue
        if isinstance(outcome, CpuOp):
            found.add(op, "refused", outcome.row.dtype, outcome.reason.partition(", ")[2])
        elif outcome.status == "fail":
            detail = "" if outcome.failure is None else outcome.failure.detail
            found.add(op, "wrong", outcome.dtype, f"{outcome.blame}: {detail}")
        else:
            found.npu += 1
    return found
