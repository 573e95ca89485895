# SPDX-License-Identifier: Apache-2.0
"""Compares the device with the model: every read on the pins, and at the end all memory written."""

from __future__ import annotations

from collections import Counter

from pyuvm import ConfigDB, uvm_component, uvm_subscriber

from driver.backend.shared_memory import PAGE_BYTES
from driver.isa import COMPLETION_BYTES, COMPLETION_TIMING_BYTES, csr
from golden.backend import CmodelBackend
from tb.agents.axil import AxilItem
from tb.agents.command import CommandItem
from tb.agents.host import HostItem
from tb.env.memory import BenchMemory
from tb.env.tally import Compared, check_tally
from tb.env.verdict import Mismatch

_MAX_REPORTED = 8
STEADY_REGISTERS = frozenset(
    {
        csr.ID,
        csr.VERSION,
        csr.CONFIG,
        csr.IRQ_ENABLE,
        csr.RING_BASE_LO,
        csr.RING_BASE_HI,
        csr.RING_CTRL,
        csr.RING_TAIL,
        csr.CPL_BASE_LO,
        csr.CPL_BASE_HI,
        csr.CPL_CTRL,
        *(csr.CMD_WORD + 4 * index for index in range(csr.CMD_WORD_COUNT)),
    }
)
"""Registers that software alone changes: equal at any time. The rest is compared when idle."""
IDLE_REGISTERS = frozenset(
    {csr.STATUS, csr.ERROR_CODE, csr.ERROR_SEQ, csr.COMPLETED, csr.RING_HEAD, csr.COMMANDS_LO}
)


class _ReadCheck(uvm_subscriber):
    """Compares reads on one port as they happen."""

    def build_phase(self) -> None:
        self.model: CmodelBackend = ConfigDB().get(self, "", "model")
        self.board: Scoreboard = self.get_parent()

    def write(self, item: AxilItem | HostItem) -> None:
        if item.write or item.response:
            return
        if isinstance(item, HostItem):
            expected = self.model.read_memory(item.address, len(item.data))
            self.board.compare_bytes("host reads", item.address, item.data, expected)
        elif item.offset in STEADY_REGISTERS or (self.board.idle and item.offset in IDLE_REGISTERS):
            self.board.compared["registers"] += 1
            expected_value = self.model.read_csr(item.offset)
            if item.data != expected_value:
                self.board.report(
                    f"register {item.offset:#05x}: device {item.data:#x}, model {expected_value:#x}"
                )


class _CommandCount(uvm_subscriber):
    """Counts commands that the monitor saw being queued."""

    def build_phase(self) -> None:
        self.total = 0

    def write(self, item: CommandItem) -> None:
        self.total += len(item.packets)


class Scoreboard(uvm_component):
    """Fails the test in its check phase if anything differed, or if nothing was compared."""

    def build_phase(self) -> None:
        self.axil = _ReadCheck("axil", self)
        self.host = _ReadCheck("host", self)
        self.commands = _CommandCount("commands", self)
        self.model: CmodelBackend = ConfigDB().get(self, "", "model")
        self.memory: BenchMemory = ConfigDB().get(self, "", "memory")
        self.records: range = ConfigDB().get(self, "", "records")
        self.compared: Counter[Compared] = Counter()
        """Registers, and bytes of memory and of the host's reads."""
        self.compares: tuple[Compared, ...] = ("registers",)
        self.host_reads_expected = 0
        """Bytes that the test read through the window without an error."""
        self.idle = False
        """Set by the test while nothing is queued."""
        self.mismatches: list[str] = []

    @property
    def total(self) -> int:
        """The number of all comparisons."""
        return self.compared.total()

    def report(self, text: str) -> None:
        """Record a difference."""
        self.mismatches.append(text)
        self.logger.error(text)

    def compare_bytes(self, what: Compared, address: int, actual: bytes, expected: bytes) -> None:
        """Byte for byte, but for the timing fields of completion records."""
        assert len(actual) == len(expected)
        self.compared[what] += len(actual)
        if actual == expected:
            return
        wrong = [
            at
            for at, (left, right) in enumerate(zip(actual, expected, strict=True), start=address)
            if left != right and not self._is_timing(at)
        ]
        for at in wrong[:_MAX_REPORTED]:
            self.report(
                f"{what}, byte {at:#x}: device {actual[at - address]:#04x}, "
                f"model {expected[at - address]:#04x} (of {len(wrong)} bytes that differ)"
            )

    def compare_memory(self) -> None:
        """All pages that the device or the model wrote."""
        for page in sorted(self.memory.dirty_pages() | set(self.model.dirty_pages())):
            actual = self.memory.read(page, PAGE_BYTES)
            expected = self.model.read_memory(page, PAGE_BYTES)
            self.compare_bytes("memory", page, actual, expected)

    def check_phase(self) -> None:
        """The verdict. Traffic of the test that was not seen is an error of the bench."""
        if self.mismatches:
            raise Mismatch(f"{len(self.mismatches)} mismatches, {self.mismatches[0]}")
        check_tally(self.compared, self.compares, self.host_reads_expected)

    def _is_timing(self, address: int) -> bool:
        offset = (address - self.records.start) % COMPLETION_BYTES
        return address in self.records and offset in COMPLETION_TIMING_BYTES
