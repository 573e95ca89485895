# SPDX-License-Identifier: Apache-2.0
"""The directed matrix products while every channel of the DRAM holds back at random."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from driver.config import HwConfig
from driver.results import RunSpec
from driver.test_info import TestInfo
from tb.ops.case import Entry
from tb.ops.directed import directed_cases

INFO = TestInfo(
    name="stalls",
    summary="directed matrix products on a DRAM that stalls at random: the bits may not change",
    kind="ops",
    backends=("rtl",),
)

DRAM_STALL = 96
"""Chance out of 256 that a channel holds back for a cycle."""


def cases(spec: RunSpec, config: HwConfig) -> Iterator[Entry]:
    """The directed cases, numbered as in TEST=matmul."""
    yield from directed_cases(config.array_size, spec.seed, count())
