# SPDX-License-Identifier: Apache-2.0
"""One op to try: an ATen call with its real tensors, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from driver.capture import Capsule, Op
from driver.capture.tensors import to_torch
from driver.isa import DType
from driver.results import OpRow
from golden.reference import MatmulCall, matmul_call


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
    """Result type, where the call itself does not say it."""
    weights: frozenset[int] = frozenset()
    """Positions in `args` that are parameters: they live in the weights region."""

    def call(self) -> MatmulCall:
        """What the op asks for. UnsupportedOp when it is none of the NPU's."""
        return matmul_call(self.op, self.args, self.kwargs, result=self.result)

    def tensors(self) -> Iterator[tuple[int, torch.Tensor]]:
        """The positional tensor arguments with their positions."""
        for position, value in enumerate(self.args):
            if isinstance(value, torch.Tensor):
                yield position, value


@dataclass(frozen=True)
class Entry:
    """A numbered op of a test, made only when it is run: a capsule's operands can be large."""

    index: int
    make: Callable[[], Case | CpuOp]


@dataclass(frozen=True)
class CpuOp:
    """An op that runs on CPU torch, and why."""

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


def recorded_case(capsule: Capsule, op: Op, index: int) -> Case:
    """An op of a capsule as a case of its own."""
    parameters = frozenset(
        position
        for position, value in enumerate(op.inputs)
        if hasattr(value, "storage")
        and capsule.document.storages[value.storage].parameter is not None
    )
    return Case(
        index=index,
        op=op.op,
        args=tuple(to_torch(capsule, value) for value in op.inputs),
        kwargs={key: to_torch(capsule, value) for key, value in op.kwargs.items()},
        module=module_path(capsule.name, op.module),
        source=op.source,
        weights=parameters,
    )


def module_path(capsule: str, module: str) -> str:
    """Which model, and where in it."""
    return f"{capsule}:{module}" if module else capsule
