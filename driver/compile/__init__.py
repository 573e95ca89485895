# SPDX-License-Identifier: Apache-2.0
"""Compilation between the lowering and the device: fewer passes, and an order of little waiting."""

from driver.compile.cost import VectorTraffic, vector_traffic
from driver.compile.decoding import written_buffers
from driver.compile.fusing import fused
from driver.compile.passes import Command, OtherCommand, VectorPass
from driver.compile.programs import fused_program, joined, queued

__all__ = [
    "Command",
    "OtherCommand",
    "VectorPass",
    "VectorTraffic",
    "fused",
    "fused_program",
    "joined",
    "queued",
    "vector_traffic",
    "written_buffers",
]
