# SPDX-License-Identifier: Apache-2.0
"""Commands that overlap on the pins, against the model, which runs one at a time."""

from __future__ import annotations

from driver.test_info import TestInfo

MODULE = "tb.tests._overlap"
TESTS = (
    "Dependent",
    "DependentStalls",
    "FailsInTheMiddle",
    "BusErrorInStream",
    "BusErrorInStreamStalls",
    "Mixed",
    "MixedStalls",
    "TwoQueues",
    "TwoQueuesStalls",
    "OneDependence",
    "OneDependenceStalls",
    "SyncsOfBothQueues",
    "ResetsInTheMiddle",
    "RefusedLoads",
    "QueuesTakeTurns",
    "ResetForgetsPrograms",
    "LoadsAlone",
    "RecordsRefused",
    "BothQueuesFail",
    "ResetsWithBothQueues",
    "SyncsBesideErrors",
)
"""Each runs in a simulator of its own."""
INFO = TestInfo(
    name="overlap",
    summary="streams of commands that depend on each other, with stalls and with errors",
    kind="cocotb",
    backends=("rtl",),
    checks=TESTS,
)
