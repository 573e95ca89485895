# SPDX-License-Identifier: Apache-2.0
"""Memory that a row must leave as it was: what it only reads, and what lies beside its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from driver.capture.book import storage_key
from driver.torch_device.tensors import in_place, is_npu, spanned, storage_bytes

Tensor = torch.Tensor


class KeptMemory:
    """The bytes before the row runs. Copies: of an operand what it spans, of memory that a result
    is a part of all."""

    def __init__(self, operands: Mapping[str, Any], written: Sequence[Tensor]) -> None:
        """`operands`: the row's arguments by name. `written`: its results, and what else it
        writes to."""
        self._written = written
        keys = {storage_key(x) for x in written}
        self._read = [
            (name, x, span_copy(x))
            for name, value in operands.items()
            for x in tree_leaves(value)
            if is_npu(x) and x.numel() and storage_key(x) not in keys
        ]
        self._around = {
            storage_key(x): storage_bytes(x)
            for x in written
            if x.untyped_storage().nbytes() > x.numel() * x.element_size()
        }

    def changed(self) -> str | None:
        """What the row did besides its work; None where it did nothing else."""
        for name, x, before in self._read:
            if not _same_bytes(span_copy(x), before):
                return f"it overwrites its argument {name}, a tensor of {list(x.shape)}"
        for key, before in self._around.items():
            there = [x for x in self._written if storage_key(x) == key]
            if bool(((storage_bytes(there[0]) != before) & _beside(there, before)).any()):
                sizes = " and ".join(str(list(x.shape)) for x in there)
                return (
                    f"it writes beside its result of {sizes}, into the memory that it is a part of"
                )
        return None


def span_copy(tensor: Tensor) -> Tensor:
    """A copy of the memory that a tensor of at least one element spans, as one line."""
    with in_place(tensor.detach()) as there:
        return there.as_strided((spanned(there),), (1,)).clone()


def _same_bytes(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.resolve_conj().view(torch.uint8), other.resolve_conj().view(torch.uint8))


def _beside(parts: Iterable[Tensor], memory: Tensor) -> Tensor:
    """Which bytes of the memory are none of the elements."""
    beside = torch.ones(memory.shape, dtype=torch.bool)
    for x in parts:
        width = x.element_size()
        strides = [step * width for step in x.stride()]
        place = x.storage_offset() * width
        beside.as_strided((*x.shape, width), (*strides, 1), place).fill_(False)
    return beside
