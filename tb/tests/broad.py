# SPDX-License-Identifier: Apache-2.0
"""The broad Python tests: those with the marker `broad`, which `npu-cosim test` leaves out."""

from __future__ import annotations

from driver.test_info import TestInfo

INFO = TestInfo(
    name="broad",
    summary="Python tests marked broad: whole models, long sweeps, several simulators",
    kind="pytest",
    backends=("cmodel",),
)
