# SPDX-License-Identifier: Apache-2.0
"""The directed matrix products alone: the short way to see that the hardware works."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from driver.config import HwConfig
from driver.results import RunSpec
from driver.test_info import TestInfo
from tb.ops.case import Entry
from tb.ops.directed import directed_cases

INFO = TestInfo(
    name="smoke",
    summary="directed matrix products only",
    kind="ops",
    backends=("rtl", "cmodel"),
)


def cases(spec: RunSpec, config: HwConfig) -> Iterator[Entry]:
    """The directed cases, numbered as in TEST=matmul."""
    yield from directed_cases(config.array_size, spec.seed, count())
