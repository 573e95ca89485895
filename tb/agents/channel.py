# SPDX-License-Identifier: Apache-2.0
"""AXI's answers; watches one valid/ready channel without running Python while it is idle."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from cocotb.triggers import RisingEdge

OKAY, SLVERR, DECERR = 0, 2, 3
"""Responses of AXI."""


async def accepted(dut: Any, prefix: str, fields: Sequence[str]) -> AsyncIterator[dict[str, int]]:
    """Every transfer of the channel, e.g. `accepted(dut, "s_axi_aw", ["id", "addr"])`.

    A coroutine that RisingEdge(clk) wakes sees the values from before the edge: valid and ready
    there are a transfer.
    """
    valid, ready = getattr(dut, f"{prefix}valid"), getattr(dut, f"{prefix}ready")
    handles = {field: getattr(dut, f"{prefix}{field}") for field in fields}
    while True:
        if not valid.value:
            await RisingEdge(valid)
        await RisingEdge(dut.clk)
        if valid.value and ready.value and dut.rst_n.value:
            yield {field: int(handle.value) for field, handle in handles.items()}
