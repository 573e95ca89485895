# SPDX-License-Identifier: Apache-2.0
"""What the tests of the block benches share."""

from __future__ import annotations

from functools import cache

from tb.unit.block import BlockResult, run_block


@cache
def ten_rounds(name: str) -> BlockResult:
    """What a bench found at the default's bus width: several tests look at one run."""
    return run_block(name, 256, seed=1, rounds=10)
