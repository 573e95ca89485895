# SPDX-License-Identifier: Apache-2.0
"""All ops of a model that the NPU does not have, found before anything runs: each is lowered on
addresses that nothing lies at. Needs neither tensors nor torch's answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from driver.capture import Capsule, Constant, Op, TensorRef, Value
from driver.capture.single import recorded_stream
from driver.errors import UnsupportedOp
from driver.lower import Arg, TensorView, lower
from golden.judge import supports
from tb.ops.recorded import prove

_APART = 1 << 40
"""Bytes between two tensors: no two overlap."""
_SHOWN_MODULES = 2


@dataclass
class _Addresses:
    """A place for each buffer and each temporary, where nothing lies."""

    _next: Iterator[int] = field(default_factory=lambda: count(_APART, _APART))
    _of: dict[object, int] = field(default_factory=dict)

    def view(self, op: str, ref: TensorRef) -> TensorView:
        if ref.npu_dtype is None:
            raise UnsupportedOp(op, "dtype", ref.dtype, "a type that the NPU holds")
        key = ref.storage if ref.buffer is None else ref.buffer
        base = self._of.setdefault(key, next(self._next))
        address = base + ref.offset * ref.element_bytes
        return TensorView(address, ref.npu_dtype, ref.sizes, ref.strides, ref.dtype == "bool")

    def argument(self, op: str, value: Value) -> Arg:
        if isinstance(value, tuple):
            return tuple(self.argument(op, item) for item in value)
        if isinstance(value, TensorRef):
            return self.view(op, value)
        if not isinstance(value, Constant):
            return value
        try:
            return float(value.value) if value.kind == "float" else value.value
        except ValueError as error:
            raise UnsupportedOp(op, "float", value.value, "a number") from error

    def temporary(self, size_bytes: int) -> int:
        return next(self._next)


def refusal(capsule: Capsule, op: Op) -> UnsupportedOp | None:
    """Why the NPU cannot run an op; None when it can."""
    places = _Addresses()
    try:
        if not supports(op.op):
            raise UnsupportedOp(op.op, "op", op.op, "an op that golden can judge")
        args = [places.argument(op.op, value) for value in op.inputs]
        named = {name: places.argument(op.op, value) for name, value in op.kwargs.items()}
        results = [None if ref is None else places.view(op.op, ref) for ref in op.outputs]
        stream = recorded_stream(capsule, op)
        lower(op.op, args, named, results, places.temporary, stream)
    except UnsupportedOp as error:
        return error
    return None


def check_all(capsule: Capsule, ops: Iterator[Op]) -> None:
    """Raise one UnsupportedOp that names every op among `ops` that the NPU cannot run, with its
    type, how often, why and where."""
    found: Counter[tuple[str, str, str]] = Counter()
    modules: dict[tuple[str, str, str], dict[str, None]] = {}
    for op in ops:
        error = refusal(capsule, op)
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
