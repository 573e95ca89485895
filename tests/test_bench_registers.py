# SPDX-License-Identifier: Apache-2.0
"""Which registers the bench of the bus compares, and what no register answers."""

from __future__ import annotations

import pytest

from driver.isa import csr
from tb.checks import check_row
from tb.env.comparison import IDLE_REGISTERS, STEADY_REGISTERS, TIMED_REGISTERS


def test_every_register_is_compared_at_a_time_or_named_as_timed() -> None:
    groups = (STEADY_REGISTERS, IDLE_REGISTERS, TIMED_REGISTERS)
    assert sum(map(len, groups)) == len(frozenset().union(*groups))
    assert frozenset().union(*groups) == csr.REGISTERS


@pytest.mark.parametrize(
    ("compared", "failure", "expected"),
    [(3, None, None), (0, None, "nothing was compared"), (0, "wrong", "wrong")],
)
def test_a_check_that_compared_nothing_fails(
    compared: int, failure: str | None, expected: str | None
) -> None:
    row = check_row(0, "mem", "bus of 128 bits", compared, failure)
    assert row.status == ("pass" if expected is None else "fail")
    assert (row.failure and row.failure.detail) == expected
