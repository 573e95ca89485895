# SPDX-License-Identifier: Apache-2.0
"""One op to try: an ATen call with its real tensors, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from driver.capture import Capsule, Op, TensorRef, Value
from driver.capture.single import recorded_stream
from driver.capture.tensors import to_torch
from driver.isa import DType
from driver.random_stream import FIRST_STREAM, RandomStream
from golden.calls import OpCall
from tb.ops.outputs import Output, Place, outputs_of


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

    @cached_property
    def call(self) -> OpCall:
        """What the judge is asked about."""
        return OpCall(self.op, self.args, dict(self.kwargs), self.stream, self.result)

    @cached_property
    def outputs(self) -> tuple[Output | None, ...]:
        """The call's results. UnsupportedOp when golden has no answer to it."""
        return outputs_of(self.call)

    def tensors(self) -> Iterator[tuple[Place, torch.Tensor]]:
        """Every tensor of the arguments, those in lists included, with the argument it is in."""
        places: list[tuple[Place, Any]] = [*enumerate(self.args), *self.kwargs.items()]
        for place, value in places:
            for item in value if isinstance(value, list | tuple) else (value,):
                if isinstance(item, torch.Tensor):
                    yield place, item

    def check(self) -> None:
        """Raise UnsupportedOp when golden has no answer to the call."""
        _ = self.outputs

    def operands(self) -> tuple[torch.Tensor, ...]:
        """The tensors that a row names: the two factors of a matrix product, else all."""
        product = self.call.product
        return tuple(x for _, x in self.tensors()) if product is None else (product.a, product.b)

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
