# SPDX-License-Identifier: Apache-2.0
"""Compares the device with the model: every read on the pins, and at the end all memory written."""

from __future__ import annotations

from pyuvm import ConfigDB, uvm_component, uvm_subscriber

from tb.agents.axil import AxilItem
from tb.agents.command import CommandItem
from tb.agents.host import HostItem
from tb.env.comparison import DeviceComparison
from tb.env.tally import Compared, check_tally
from tb.env.verdict import located


class _ReadCheck(uvm_subscriber):
    """Compares reads on one port as they happen."""

    def build_phase(self) -> None:
        self.board: Scoreboard = self.get_parent()
        self.where = ConfigDB().get(self, "", "where")

    def write(self, item: AxilItem | HostItem) -> None:
        if item.write or item.response:
            return
        with located(self.where):
            self._compare(item)

    def _compare(self, item: AxilItem | HostItem) -> None:
        if isinstance(item, HostItem):
            self.board.found.compare_bytes("host reads", item.address, item.data)
        else:
            self.board.found.compare_register(item.offset, item.data)


class _CommandCount(uvm_subscriber):
    """Counts commands that the monitor saw being queued."""

    def build_phase(self) -> None:
        self.total = 0

    def write(self, item: CommandItem) -> None:
        self.total += len(item.packets)


class Scoreboard(uvm_component):
    """Ends the test where anything differs; fails it in the end if nothing was compared."""

    def build_phase(self) -> None:
        self.axil = _ReadCheck("axil", self)
        self.host = _ReadCheck("host", self)
        self.commands = _CommandCount("commands", self)
        model, memory, records = (
            ConfigDB().get(self, "", name) for name in ("model", "memory", "records")
        )
        self.found = DeviceComparison(model, memory, records)
        self.compares: tuple[Compared, ...] = ("registers",)
        self.host_reads_expected = 0
        """Bytes that the test read through the port without an error."""

    def check_phase(self) -> None:
        """The verdict. Traffic of the test that was not seen is an error of the bench."""
        check_tally(self.found.compared, self.compares, self.host_reads_expected)
