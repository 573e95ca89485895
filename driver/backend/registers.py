# SPDX-License-Identifier: Apache-2.0
"""Checks of a register access before it is made: where no bus can answer that it was wrong."""

from __future__ import annotations

from driver.errors import RegisterError
from driver.isa import csr

COMMAND_WORDS = csr.ARRAYS["CMD_WORD"]
_VALUES = range(1 << 32)


def check_register(offset: int, value: int = 0) -> None:
    """RegisterError unless there is a register at `offset` that a value of 32 bits goes to."""
    if offset not in csr.REGISTERS:
        raise RegisterError(offset, "the offset of a register (docs/registers.md)")
    if value not in _VALUES:
        raise RegisterError(offset, f"a 32-bit value, got {value}")
