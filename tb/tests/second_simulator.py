# SPDX-License-Identifier: Apache-2.0
"""The RTL by CXXRTL against the same by Verilator: bits and cycles, and the tests of the bench."""

from __future__ import annotations

from driver.test_info import TestInfo

INFO = TestInfo(
    name="second_simulator",
    summary="smoke and ops by CXXRTL and Verilator: same bits, same cycles; bus and overlap",
    kind="pytest",
    backends=("rtl",),
)
