# SPDX-License-Identifier: Apache-2.0
"""One op to try: an ATen call with its real tensors, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from driver.capture import Capsule, Op, TensorRef, Value
from driver.capture.single import recorded_stream
from driver.capture.tensors import to_torch
from driver.errors import UnsupportedOp
from driver.isa import DType
from driver.random_stream import FIRST_STREAM, RandomStream
from driver.results import OpRow

_LONG = 200
"""Characters of an error's text that nobody reads."""
Place = int | str
"""Which argument: its position, or its keyword."""


@dataclass(frozen=True)
class Case:
    """An ATen call. `index` is its number in the test: what `--op` picks."""

    index: int
    op: str
    args: tuple[Any, ...]
    module: str
    source: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    result: DType | None = None
    """Result type of a matrix product, where the call itself does not say it."""
    weights: frozenset[int] = frozenset()
    """Positions in `args` that hold parameters: they live in the weights region."""
    stream: RandomStream = FIRST_STREAM
    """What a random op draws."""

    def tensors(self) -> Iterator[tuple[Place, torch.Tensor]]:
        """Every tensor of the arguments, those in lists included, with the argument it is in."""
        places: list[tuple[Place, Any]] = [*enumerate(self.args), *self.kwargs.items()]
        for place, value in places:
            for item in value if isinstance(value, list | tuple) else (value,):
                if isinstance(item, torch.Tensor):
                    yield place, item

    def dtype(self) -> str:
        """Type of the first tensor, as torch names it; empty without any."""
        found = next(self.tensors(), None)
        return "" if found is None else str(found[1].dtype).removeprefix("torch.")

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Sizes of the tensors."""
        return tuple(tuple(tensor.shape) for _, tensor in self.tensors())


@dataclass(frozen=True)
class Entry:
    """A numbered op of a test, made only when it is run: a capsule's operands can be large."""

    index: int
    make: Callable[[], Case]
    capsule: Capsule | None = None
    """Where the op was recorded, if it was."""


@dataclass(frozen=True)
class CpuOp:
    """An op that ran on CPU torch because the user allowed it, and why it had to."""

    index: int
    op: str
    module: str
    source: str
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    reason: str

    def row(self) -> OpRow:
        """Its line in the result: nothing was compared."""
        return OpRow(
            index=self.index,
            op=self.op,
            module=self.module,
            source=self.source,
            where="cpu",
            dtype=self.dtype,
            shapes=self.shapes,
            elements_compared=0,
            rtl_vs_cmodel_mismatches=None,
            torch_max_error=None,
            torch_bound=None,
            cycles=None,
            macs=None,
            utilisation=None,
            status="pass",
            blame="none",
            failure=None,
        )


def refused(case: Case, error: UnsupportedOp, *, allow_cpu: bool) -> CpuOp:
    """A case that the NPU cannot run: accounted for where that is allowed, else the error that
    names op, type and module."""
    if not allow_cpu:
        where = f"{case.op} ({case.dtype() or 'no tensors'}) in {case.module}"
        known = error.expected if len(error.expected) < _LONG else "an op of driver/lower's table"
        expected = f"{known}, or --allow-cpu"
        raise UnsupportedOp(where, error.field, error.value, expected) from error
    return CpuOp(
        index=case.index,
        op=case.op,
        module=case.module,
        source=case.source,
        dtype=case.dtype(),
        shapes=case.shapes(),
        reason=f"NOT ON THE NPU, {error.field}: {error.value}",
    )


def recorded_case(capsule: Capsule, op: Op, index: int) -> Case:
    """An op of a capsule as a case of its own."""
    storages = capsule.document.storages
    parameters = frozenset(
        position
        for position, value in enumerate(op.inputs)
        if any(storages[ref.storage].parameter is not None for ref in _refs(value))
    )
    return Case(
        index=index,
        op=op.op,
        args=tuple(to_torch(capsule, value) for value in op.inputs),
        kwargs={key: to_torch(capsule, value) for key, value in op.kwargs.items()},
        module=module_path(capsule.name, op.module),
        source=op.source,
        weights=parameters,
        stream=recorded_stream(capsule, op),
    )


def _refs(value: Value) -> Iterator[TensorRef]:
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, TensorRef):
            yield item


def module_path(capsule: str, module: str) -> str:
    """Which model, and where in it."""
    return f"{capsule}:{module}" if module else capsule
