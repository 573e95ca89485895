# SPDX-License-Identifier: Apache-2.0
"""Every error code by every rule that leads to it."""

from __future__ import annotations

import pytest
from cmodel_cases import (
    CASES,
    DESC_A,
    DESC_C,
    GOOD,
    MATMUL_DESC,
    A,
    B,
    C,
    Case,
    assert_refused,
    malformed,
    prepared,
)
from cmodel_util import SmallDevice

from driver.isa import ErrorCode, Opcode, Packet
from golden._cmodel import CModel


def test_every_case_is_refused_with_its_code_and_writes_nothing() -> None:
    for case in CASES:
        assert_refused(case)
    assert len(CASES) > 500
    elsewhere = {ErrorCode.BAD_INDEX, ErrorCode.NOT_LOADED, ErrorCode.BAD_IMAGE}
    assert {case.code for case in CASES} == set(ErrorCode) - {ErrorCode.NONE} - elsewhere


@pytest.mark.parametrize("packet", GOOD, ids=lambda p: Opcode(p.opcode).name)
def test_the_packets_that_the_cases_break_are_good(packet: Packet) -> None:
    device = prepared(Case("good", ErrorCode.NONE, packet))
    assert device.model.execute(packet.pack()) == ErrorCode.NONE
    assert device.model.last_fault == ""


def test_bus_errors_concern_only_bytes_of_elements() -> None:
    gaps = malformed(DESC_A, strides=(120, 40, 10))  # 4 bytes of each 40 are used
    device = prepared(Case("", ErrorCode.NONE, MATMUL_DESC, gaps))
    device.model.poison(A + 4, 36, True, True)
    device.model.poison(A - 64, 64, True, True)
    device.model.poison(B, 160, False, True)
    device.model.poison(C, 120, True, False)
    assert device.model.execute(MATMUL_DESC.pack()) == ErrorCode.NONE
    device.model.poison(A + 40, 1, True, False)
    assert device.model.execute(MATMUL_DESC.pack()) == ErrorCode.BUS_READ
    device.model.clear_poison()
    assert device.model.execute(MATMUL_DESC.pack()) == ErrorCode.NONE


def test_a_descriptor_must_lie_in_memory_to_its_last_byte() -> None:
    device = prepared(Case("", ErrorCode.NONE, MATMUL_DESC))
    packet = MATMUL_DESC.pack()
    for limit, code in [(DESC_C + 64, 0), (DESC_C + 63, ErrorCode.OUT_OF_RANGE)]:
        assert CModel(device.memory, device.BASE, limit).execute(packet) == code


def test_poison_of_no_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        SmallDevice().model.poison(A, 0, True, True)
