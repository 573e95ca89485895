# SPDX-License-Identifier: Apache-2.0
"""Every error code of VECTOR, GATHER and SCATTER by every rule that leads to it."""

from __future__ import annotations

import numpy as np
import pytest
from cmodel_cases import B, prepared
from cmodel_cases import assert_refused as refused
from cmodel_vector_cases import CASES, GOOD, Case

from driver.isa import ErrorCode


def indices(device: object) -> None:
    """The prepared memory is full of 0x11, which no table is large enough for."""
    device.store(B, np.zeros(6, np.uint32))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", GOOD)
def test_the_packets_that_the_cases_break_are_good(name: str) -> None:
    device = prepared(GOOD[name])
    indices(device)
    assert device.model.execute(GOOD[name].packet.pack()) == ErrorCode.NONE, device.model.last_fault


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_broken_rule_is_refused_with_its_code_and_writes_nothing(case: Case) -> None:
    refused(case, indices)


def test_every_code_is_met() -> None:
    assert {case.code for case in CASES} == set(ErrorCode) - {
        *(ErrorCode.NONE, ErrorCode.BAD_OPCODE, ErrorCode.BAD_INDEX, ErrorCode.BAD_IMAGE)
    }
