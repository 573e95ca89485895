# SPDX-License-Identifier: Apache-2.0
"""Every op of one capsule, in program order."""

from __future__ import annotations

from collections.abc import Iterator

from driver.config import HwConfig
from driver.errors import InputError
from driver.results import RunSpec
from driver.test_info import TestInfo
from tb.ops.capsules import model_entries
from tb.ops.runner import Runnable

INFO = TestInfo(
    name="replay",
    summary="the ops of a capsule of yours: npu-cosim replay FOLDER",
    kind="ops",
    backends=("rtl", "cmodel"),
)


def cases(spec: RunSpec, config: HwConfig) -> Iterator[Runnable]:
    """The ops of spec.capsules["capsule"]."""
    if "capsule" not in spec.capsules:
        raise InputError("command line", "capsule", "nothing", "npu-cosim replay FOLDER")
    yield from model_entries(spec)
