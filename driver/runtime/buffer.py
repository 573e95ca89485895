# SPDX-License-Identifier: Apache-2.0
"""Buffers: what an operand, a result or a temporary lies in, before and after it has an address."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_REGION = "activations"
UNBOUNDED_BYTES = 1 << 62
"""Size, in bytes, of memory whose end is not known: no view leaves it."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """A run of bytes in one region of device memory. Two buffers are equal only if they are one.

    A buffer without a base is a symbol: programs are lowered on it, and bound to an address later.
    """

    size_bytes: int
    region: str = DEFAULT_REGION
    name: str = ""
    """What it holds, or who owns it: for texts."""
    base: int | None = None
    """Address of the first byte, a multiple of 64; None before it is placed."""

    @property
    def address(self) -> int:
        """`base` of a placed buffer."""
        assert self.base is not None, f"buffer {self.name or id(self)} is not placed"
        return self.base
