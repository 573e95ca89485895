# SPDX-License-Identifier: Apache-2.0
"""Ops in which the host reads one element of a tensor. They need no packet."""

from __future__ import annotations

from driver.lower.builder import ProgramBuilder
from driver.lower.registry import LoweringTable, Results
from driver.runtime.views import TensorView

TABLE = LoweringTable()


@TABLE.op("_local_scalar_dense", outputs=None)
def local_scalar_dense(b: ProgramBuilder, out: Results, self: TensorView) -> None:
    """The only element of a tensor, as a number. The result is the operand, where it lies."""
    if self.count != 1:
        raise b.unsupported("self", f"{self.count} elements", "one element")
