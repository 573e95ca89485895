# SPDX-License-Identifier: Apache-2.0
"""All ops of a model that the NPU does not have, found before anything runs: each is lowered on
buffers that have no address. Needs neither tensors nor torch's answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from driver.capture import Capsule, Op, TensorRef
from driver.capture.single import recorded_stream
from driver.config import HwConfig
from driver.errors import UnsupportedOp
from driver.lower import lower
from driver.runtime import UNBOUNDED_BYTES, Buffer, TensorView
from golden.judge import supports
from tb.ops.images import BufferKey, buffer_of
from tb.ops.placing import recorded_argument, recorded_view
from tb.ops.recorded import prove

_SHOWN_MODULES = 2


def refusal(capsule: Capsule, op: Op, hw: HwConfig) -> UnsupportedOp | None:
    """Why the NPU cannot run an op; None when it can."""
    buffers: defaultdict[BufferKey, Buffer] = defaultdict(lambda: Buffer(UNBOUNDED_BYTES))

    def view(ref: TensorRef) -> TensorView:
        return recorded_view(op.op, ref, buffers[buffer_of(ref)])

    try:
        if not supports(op.op):
            raise UnsupportedOp(op.op, "op", op.op, "an op that golden can judge")
        args = [recorded_argument(op.op, value, view) for value in op.inputs]
        named = {name: recorded_argument(op.op, value, view) for name, value in op.kwargs.items()}
        results = [None if ref is None else view(ref) for ref in op.outputs]
        lower(op.op, args, named, results, hw, recorded_stream(capsule, op))
    except UnsupportedOp as error:
        return error
    return None


def check_all(capsule: Capsule, ops: Iterator[Op], hw: HwConfig) -> None:
    """Raise one UnsupportedOp that names every op among `ops` that the NPU cannot run, with its
    type, how often, why and where."""
    found: Counter[tuple[str, str, str]] = Counter()
    modules: dict[tuple[str, str, str], dict[str, None]] = {}
    for op in ops:
        try:
            error = refusal(capsule, op, hw)
        except Exception:
            prove(
                capsule, op
            )  # a call that torch refuses is the capsule's fault, not the lowering's
            raise
        if error is not None:
            prove(capsule, op)  # a call that torch refuses as well is no lack of the NPU's
            dtype = next((ref.dtype for ref in op.operands()), "no tensors")
            why = "" if error.value == op.op else f", {error.field} {error.value}"
            key = op.op, dtype, why
            found[key] += 1
            modules.setdefault(key, {})[op.module or capsule.name] = None
    if found:
        raise _UnsupportedOps(
            capsule.name,
            [_text(*item, [*modules[item[0]]]) for item in found.most_common()],
            found.total(),
        )


def _text(key: tuple[str, str, str], times: int, modules: list[str]) -> str:
    op, dtype, why = key
    more = len(modules) - _SHOWN_MODULES
    where = ", ".join(modules[:_SHOWN_MODULES]) + (f" and {more} more" if more > 0 else "")
    return f"{op} ({dtype}{why}) ×{times} in {where}"


class _UnsupportedOps(UnsupportedOp):
    """Several ops at once; all of them are in the text."""

    def __init__(self, model: str, texts: list[str], total: int) -> None:
        self.texts = texts
        expected = "ops that the NPU has, or --allow-cpu"
        super().__init__(model, "ops", f"{total} that the NPU cannot run", expected)

    def __str__(self) -> str:
        listed = "; ".join(self.texts)
        return f"{self.file}: ops: got {self.value}: {listed}; expected {self.expected}"
