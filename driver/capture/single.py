# SPDX-License-Identifier: Apache-2.0
"""Capsules of exactly one ATen call: what a failing op was given, and smaller versions of it.

Owns making such capsules. Refuses to know why somebody wants one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from driver.capture.capsule import Capsule, content_hash
from driver.capture.format import Document, Op
from driver.capture.recorder import capture
from driver.errors import InputError


@dataclass(frozen=True)
class Call:
    """An ATen call with its real arguments, and where it came from."""

    op: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    module: str = ""
    source: str = ""
    parameters: frozenset[int] = frozenset()
    """Positions of arguments that are a model's parameters."""


class _Caller(torch.nn.Module):
    """Makes one call. Its parameters are buffers, so that the capsule says what they are."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call
        for position in call.parameters:
            self.register_buffer(f"arg{position}", call.args[position])

    def forward(self, *_tensors: torch.Tensor) -> Any:
        return overload(self._call.op)(*self._call.args, **self._call.kwargs)


def overload(name: str) -> Any:
    """The ATen op of a name such as aten.mm.default. InputError when torch has none."""
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise InputError("op", "name", name, "an op of this torch")
    return found


def single_call(name: str, calls: Sequence[Call], seed: int = 0) -> Capsule:
    """A capsule of these calls, one op each, with the module paths and sources they came with.

    InputError when torch refuses a call, or takes it apart into other ops.
    """
    steps = torch.nn.ModuleList(_Caller(call) for call in calls)
    inputs = [arg for call in calls for arg in call.args if isinstance(arg, torch.Tensor)]
    try:
        capsule = capture(_Sequence(steps), inputs, name=name, seed=seed)
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        raise InputError(name, "call", str(error).split("\n")[0], "a call torch accepts") from error
    made, wanted = [op.op for op in capsule.ops], [call.op for call in calls]
    if made != wanted:
        raise InputError(name, "ops", " ".join(made), f"{' '.join(wanted)} as such")
    ops = [_as_it_was(op, call) for op, call in zip(capsule.ops, calls, strict=True)]
    return _with_ops(capsule, tuple(ops))


class _Sequence(torch.nn.Module):
    def __init__(self, steps: torch.nn.ModuleList) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, *_tensors: torch.Tensor) -> list[Any]:
        return [step() for step in self.steps]


def _as_it_was(op: Op, call: Call) -> Op:
    return op.model_copy(update={"module": call.module, "source": call.source or op.source})


def _with_ops(capsule: Capsule, ops: tuple[Op, ...]) -> Capsule:
    """The capsule with other ops of the same tensors, signed anew."""
    fields = {**dict(capsule.document), "ops": ops, "hash": "0" * 64}
    unsigned = Document(**fields)
    fields["hash"] = content_hash(unsigned.model_dump(mode="json"))
    return Capsule(Document(**fields), capsule.data)
