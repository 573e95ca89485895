# SPDX-License-Identifier: Apache-2.0
"""The cases of TEST=ops while every channel of the DRAM holds back at random: the same digest."""

from __future__ import annotations

from driver.test_info import TestInfo
from tb.tests.ops import cases

__all__ = ["DRAM_STALL", "INFO", "cases"]

INFO = TestInfo(
    name="ops_stalls",
    summary="every op on a DRAM that stalls at random: the bits of TEST=ops",
    kind="ops",
    backends=("rtl",),
)

DRAM_STALL = 96
"""Chance out of 256 that a channel holds back for a cycle."""
