# SPDX-License-Identifier: Apache-2.0
"""The registers of each of the two command queues, and where a model stands in them."""

from __future__ import annotations

from dataclasses import dataclass

from driver.isa import csr


@dataclass(frozen=True)
class QueueRegisters:
    """Offsets. Fields of the control registers are those of RING_CTRL and CPL_CTRL."""

    base: int
    control: int
    head: int
    tail: int
    records: int
    records_control: int
    completed: int


FIRST_QUEUE = QueueRegisters(
    csr.RING_BASE_LO,
    csr.RING_CTRL,
    csr.RING_HEAD,
    csr.RING_TAIL,
    csr.CPL_BASE_LO,
    csr.CPL_CTRL,
    csr.COMPLETED,
)
SECOND_QUEUE = QueueRegisters(
    csr.RING1_BASE_LO,
    csr.RING1_CTRL,
    csr.RING1_HEAD,
    csr.RING1_TAIL,
    csr.CPL1_BASE_LO,
    csr.CPL1_CTRL,
    csr.COMPLETED1,
)
QUEUES = (FIRST_QUEUE, SECOND_QUEUE)


@dataclass
class QueueState:
    """Of a queue in a model, after a reset."""

    registers: QueueRegisters
    number: int
    head: int = 0
    seq: int = 0
    """Of its next command."""


def writable_fields() -> dict[int, int]:
    """Offset → bits that keep what software writes, of both queues."""
    fields: dict[int, int] = {}
    for queue in QUEUES:
        fields |= {
            queue.base: csr.RING_BASE_LO_ADDR_MASK,
            queue.base + 4: 0xFFFF_FFFF,
            queue.control: csr.RING_CTRL_ENABLE_MASK | csr.RING_CTRL_LOG2_ENTRIES_MASK,
            queue.tail: csr.RING_TAIL_INDEX_MASK,
            queue.records: csr.CPL_BASE_LO_ADDR_MASK,
            queue.records + 4: 0xFFFF_FFFF,
            queue.records_control: csr.CPL_CTRL_ENABLE_MASK | csr.CPL_CTRL_LOG2_ENTRIES_MASK,
        }
    return fields
