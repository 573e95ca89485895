# SPDX-License-Identifier: Apache-2.0
"""What the tests of the block benches share."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tb.unit.block import BlockResult, run_block


def other_width(*values: int) -> Any:
    """Parameters of a bench at a bus width that is not the default's: a build of its own, so the
    ci tier runs it."""
    return pytest.param(*values, marks=pytest.mark.broad)


@cache
def ten_rounds(name: str, bus_bits: int) -> BlockResult:
    """What a bench found with seed 1: several tests look at one run."""
    return run_block(name, bus_bits, seed=1, rounds=10)
