# SPDX-License-Identifier: Apache-2.0
"""What the ports of a simulated device wait for, in words; tb/hdl/npu_port_watch.sv counts it."""

from __future__ import annotations

PORTS = ("s_axil", "s_axi", "m_axi")
CHANNELS = ("AW", "W", "B", "AR", "R")
_COUNT_BITS = 16
_COUNT_MASK = (1 << _COUNT_BITS) - 1


def describe(waiting: int, open_reads: int, open_writes: int) -> tuple[str, ...]:
    """A text for each port that waits; the arguments are tb_top's signals of these names.

    An open read has not had its last beat of data, an open write no response.
    """
    texts: list[str] = []
    for index, port in enumerate(PORTS):
        parts = [
            f"{channel} offered and not accepted"
            for bit, channel in enumerate(CHANNELS, index * len(CHANNELS))
            if waiting >> bit & 1
        ]
        reads, writes = (
            word >> index * _COUNT_BITS & _COUNT_MASK for word in (open_reads, open_writes)
        )
        for count, what in ((reads, "read"), (writes, "write")):
            if count:
                parts.append(f"{count} open {what}{'s' * (count > 1)}")
        if parts:
            texts.append(f"{port}: {', '.join(parts)}")
    return tuple(texts)
