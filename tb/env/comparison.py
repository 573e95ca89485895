# SPDX-License-Identifier: Apache-2.0
"""Compares a device with the model: registers when they are read, memory that either has written.
The first difference ends the test.

Knows no pins: the scoreboard of the UVM bench and the bench on a backend use the same rules.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field

from driver.backend.shared_memory import PAGE_BYTES
from driver.isa import COMPLETION_BYTES, COMPLETION_TIMING_BYTES, csr
from golden.backend import CmodelBackend
from tb.env.history import CommandHistory
from tb.env.memory import BenchMemory
from tb.env.tally import Compared
from tb.env.verdict import Mismatch

log = logging.getLogger(__name__)

_MAX_LOGGED = 8
STEADY_REGISTERS = frozenset(
    {
        csr.ID,
        csr.VERSION,
        csr.CONFIG,
        csr.PROGRAM_RAM,
        csr.PROGRAM_DIGEST_LO,
        csr.PROGRAM_DIGEST_HI,
        csr.CMD_PUSH,
        csr.PERF_CTRL,
        csr.IRQ_ENABLE,
        csr.RING_BASE_LO,
        csr.RING_BASE_HI,
        csr.RING_CTRL,
        csr.RING_TAIL,
        csr.CPL_BASE_LO,
        csr.CPL_BASE_HI,
        csr.CPL_CTRL,
        csr.RING1_BASE_LO,
        csr.RING1_BASE_HI,
        csr.RING1_CTRL,
        csr.RING1_TAIL,
        csr.CPL1_BASE_LO,
        csr.CPL1_BASE_HI,
        csr.CPL1_CTRL,
        *csr.ARRAYS["CMD_WORD"],
    }
)
"""Registers that software alone changes: equal at any time."""
IDLE_REGISTERS = frozenset(
    {
        csr.CTRL,
        csr.STATUS,
        csr.ERROR_CODE,
        csr.ERROR_SEQ,
        csr.COMPLETED,
        csr.COMPLETED1,
        csr.RING_HEAD,
        csr.RING1_HEAD,
        csr.COMMANDS_LO,
        csr.COMMANDS_HI,
    }
)
"""Registers that commands change, and CTRL, which tells that a reset waits for them: equal when
none is queued."""
TIMED_REGISTERS = frozenset(
    {
        csr.CYCLE_LO,
        csr.CYCLE_HI,
        csr.IRQ_STATUS,
        csr.BUSY_CYCLES_LO,
        csr.BUSY_CYCLES_HI,
        csr.ACTIVE_CYCLES_LO,
        csr.ACTIVE_CYCLES_HI,
        csr.OPERAND_STALL_LO,
        csr.OPERAND_STALL_HI,
        csr.RESULT_STALL_LO,
        csr.RESULT_STALL_HI,
        csr.READ_BEATS_LO,
        csr.READ_BEATS_HI,
        csr.WRITE_BEATS_LO,
        csr.WRITE_BEATS_HI,
        *csr.ARRAYS["ENGINE_BUSY"],
        *csr.ARRAYS["ENGINE_WAIT"],
        *csr.ARRAYS["COMMAND_WAIT"],
    }
)
"""Registers that depend on when something happens, which the model does not know. The tests
Interrupts and CommandCounters hold them to what packets and the bus allow, the unit bench of the
command processor to what its engines did (tb/unit/ctrl/batch.hpp)."""


@dataclass
class DeviceComparison:
    """What was compared, and what differed."""

    model: CmodelBackend
    memory: BenchMemory
    records: range
    """Addresses of the completion records, as the bench brings them up."""
    moved_records: list[range] = field(default_factory=list)
    """Where a test has put others."""
    compared: Counter[Compared] = field(default_factory=Counter)
    """Registers, and bytes of memory and of the host's reads."""
    idle: bool = False
    """Set by the test while nothing is queued."""
    history: CommandHistory = field(init=False)
    """What the test queued."""

    def __post_init__(self) -> None:
        self.history = CommandHistory(self.memory.read)

    @property
    def total(self) -> int:
        """The number of all comparisons."""
        return self.compared.total()

    def compare_register(self, offset: int, value: int) -> None:
        """What the device answered. Registers that depend on time are compared while idle only.
        Mismatch."""
        if not (offset in STEADY_REGISTERS or (self.idle and offset in IDLE_REGISTERS)):
            return
        self.compared["registers"] += 1
        expected = self.model.read_csr(offset)
        if value != expected:
            name = next((f" {one}" for one, at in csr.OFFSETS.items() if at == offset), "")
            raise Mismatch(f"register {offset:#05x}{name}: device {value:#x}, model {expected:#x}")

    def compare_bytes(self, what: Compared, address: int, actual: bytes) -> None:
        """Byte for byte, but for the timing fields of completion records. Mismatch, which names the
        command whose result differs."""
        expected = self.model.read_memory(address, len(actual))
        self.compared[what] += len(actual)
        if actual == expected:
            return
        wrong = [
            at
            for at, (left, right) in enumerate(zip(actual, expected, strict=True), start=address)
            if left != right and not self._is_timing(at)
        ]
        count = f"(of {len(wrong)} bytes that differ)"
        texts = [
            f"{what}, byte {at:#x}: device {actual[at - address]:#04x}, "
            f"model {expected[at - address]:#04x} {count}"
            for at in wrong[:_MAX_LOGGED]
        ]
        for text in texts:
            log.error("%s", text)
        if texts:
            raise Mismatch(" ".join([texts[0], self.history.writer_of(wrong[0])]).strip())

    def compare_records(self) -> None:
        """Those of the last commands, before others take their places."""
        found = self.memory.read(self.records.start, len(self.records))
        self.compare_bytes("records", self.records.start, found)

    def compare_memory(self) -> None:
        """All pages that the device or the model wrote."""
        for page in sorted(self.memory.dirty_pages() | set(self.model.dirty_pages())):
            self.compare_bytes("memory", page, self.memory.read(page, PAGE_BYTES))

    def _is_timing(self, address: int) -> bool:
        return any(
            address in records
            and (address - records.start) % COMPLETION_BYTES in COMPLETION_TIMING_BYTES
            for records in (self.records, *self.moved_records)
        )
