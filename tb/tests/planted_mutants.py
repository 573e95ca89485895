# SPDX-License-Identifier: Apache-2.0
"""RTL that is wrong on purpose: each line of tb.mutants, a latch, a clock gate that never stops."""

from __future__ import annotations

from driver.test_info import TestInfo

INFO = TestInfo(
    name="planted_mutants",
    summary="wrong RTL, planted: caught, blamed and reproduced; seen by netlist and power report",
    kind="pytest",
    backends=("rtl",),
)
