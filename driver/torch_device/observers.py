# SPDX-License-Identifier: Apache-2.0
"""What looks at ops as they run: check mode, a capture. While one does, ops run one by one.

Light, as every process that imports torch has it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from driver.random_stream import RandomStream
from driver.torch_device import debug

Results = Sequence[torch.Tensor | None]
Finish = Callable[[], None]
"""To be called once the row has run."""
FinishWhole = Callable[[Any], None]
"""To be called with what the smaller ops made."""

_WHERE = ("device", "generator", "pin_memory")
"""Keywords that say where, not what."""


@dataclass(frozen=True)
class RowRun:
    """A row of the op table that is about to run."""

    row: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    results: Results
    """The tensors that it will write; they may be among the arguments."""
    stream: RandomStream | None = None
    """What a random op draws."""

    def keywords(self, names: Collection[str]) -> dict[str, Any]:
        """What a record of the call says by name, of these arguments of the schema: the type of
        what a factory makes, too, as torch's default may be another by then."""
        said = {
            name: value
            for name, value in self.kwargs.items()
            if name in names and name not in _WHERE
        }
        made = self.results[0] if self.results else None
        factory = not any(isinstance(value, torch.Tensor) for value in self.args)
        if made is not None and factory and "dtype" in names:
            said.setdefault("dtype", made.dtype)
        return said


class Observer(Protocol):
    """Sees every row of every device, in all threads: autograd runs backward ops in its own."""

    def begin(self, run: RowRun) -> Finish | None:
        """Keep what is needed of the operands; None when the end of the row is of no interest."""
        ...

    def not_seen(self, what: str) -> None:
        """Values changed by something else than a row: `what` computed them, on the host."""
        ...

    def take_apart(
        self, op: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> FinishWhole | None:
        """An op without a row is about to run as smaller ones, whose rows are seen. None when the
        end of it is of no interest."""
        ...


OBSERVERS: list[Observer] = []
"""Those that look at this process now."""


def op_by_op() -> bool:
    """Whether each op has to be seen as it runs, not queued as a call that is known."""
    return bool(OBSERVERS) or debug.prints(debug.OPS)


def begin(
    row: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    results: Results,
    stream: RandomStream | None = None,
) -> Finish | None:
    """Before a row runs. None when nothing looks at it."""
    if not OBSERVERS:
        return None
    run = RowRun(row, args, kwargs, results, stream)
    wanted = [finish for one in OBSERVERS if (finish := one.begin(run)) is not None]

    def finish_all() -> None:
        for finish in wanted:
            finish()

    return finish_all


def not_seen(what: str) -> None:
    """Tell the observers of values that no row computes."""
    for observer in OBSERVERS:
        observer.not_seen(what)


def take_apart(
    op: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> FinishWhole:
    """Before an op runs as smaller ones."""
    wanted = [
        finish for one in OBSERVERS if (finish := one.take_apart(op, args, kwargs)) is not None
    ]

    def finish_all(made: Any) -> None:
        for finish in wanted:
            finish(made)

    return finish_all
