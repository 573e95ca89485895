# SPDX-License-Identifier: Apache-2.0
"""The unit benches: arithmetic on the host's vectors, blocks of the RTL at every bus width."""

from __future__ import annotations

from driver.test_info import TestInfo

INFO = TestInfo(
    name="units",
    summary="unit benches: arithmetic, memory, command processor, gather, matrix and vector engine",
    kind="unit",
    backends=("rtl",),
)
