# SPDX-License-Identifier: Apache-2.0
"""The host's port s_axi: items, driver on cocotbext-axi, passive monitor, agent."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import repeat
from typing import Any, TypeVar

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiBus, AxiMaster
from pyuvm import (
    ConfigDB,
    uvm_agent,
    uvm_analysis_port,
    uvm_driver,
    uvm_monitor,
    uvm_sequence_item,
    uvm_sequencer,
)

from tb.agents.channel import accepted
from tb.env.verdict import Mismatch

_Burst = TypeVar("_Burst")
_Beat = tuple[int, int]
"""Data and strobes."""
_ADDRESS = ["id", "addr", "len", "size", "burst"]
_INCR = 1
_PAUSES = (1, 3, 400)
"""Cycles. The longest is enough to fill every buffer on the way to the host."""
_LONGEST_RUN = 60


class HostItem(uvm_sequence_item):
    """A run of bytes written to, or (data None) read from device memory."""

    def __init__(self, address: int, data: bytes | None = None, size_bytes: int = 0) -> None:
        super().__init__("host")
        self.address = address
        self.write = data is not None
        self.data = data or b""
        self.size_bytes = size_bytes or len(self.data)
        self.response = 0


def _pauses(rng: random.Random) -> Iterator[bool]:
    """Whether nothing is taken, cycle by cycle, for ever."""
    while True:
        yield from repeat(True, rng.choice(_PAUSES))
        yield from repeat(False, rng.randint(1, _LONGEST_RUN))


class HostDriver(uvm_driver):
    """Performs items one after the other, each as the bursts that cocotbext-axi makes of it."""

    def build_phase(self) -> None:
        dut = ConfigDB().get(self, "", "dut")
        bus = AxiBus.from_prefix(dut, "s_axi")
        self.master = AxiMaster(bus, dut.clk, dut.rst_n, reset_active_level=False)

    def answer_slowly(self, rng: random.Random) -> None:
        """Take answers in runs of cycles only, with pauses of up to some hundred between them."""
        for channel in (self.master.read_if.r_channel, self.master.write_if.b_channel):
            channel.set_pause_generator(_pauses(rng))

    async def hold_data(self, cycles: int) -> None:
        """No data to write goes out for so many cycles; addresses do."""
        await self._hold(self.master.write_if.w_channel, cycles)

    async def hold_addresses(self, cycles: int) -> None:
        """No address to write to goes out for so many cycles; data do."""
        await self._hold(self.master.write_if.aw_channel, cycles)

    async def _hold(self, channel: Any, cycles: int) -> None:
        channel.pause = True
        await ClockCycles(self.master.write_if.clock, cycles)
        channel.pause = False

    async def run_phase(self) -> None:
        while True:
            item: HostItem = await self.seq_item_port.get_next_item()
            if item.write:
                done = await self.master.write(item.address, item.data)
            else:
                done = await self.master.read(item.address, item.size_bytes)
                item.data = bytes(done.data)
            item.response = int(done.resp)
            self.seq_item_port.item_done()


def _oldest(waiting: defaultdict[int, deque[_Burst]], identity: int, channel: str) -> _Burst:
    """The burst that an answer is of. Mismatch: there is none, or not all of its data went out."""
    if not waiting[identity]:
        raise Mismatch(f"s_axi: an answer on {channel} with id {identity} that no burst waits for")
    return waiting[identity].popleft()


class HostMonitor(uvm_monitor):
    """Reports each burst beat by beat as the bytes it wrote or read, when it is answered.

    Supports INCR bursts, the only kind that the driver makes; others are an error of the bench.
    """

    def build_phase(self) -> None:
        self.ap = uvm_analysis_port("ap", self)
        self.dut: Any = ConfigDB().get(self, "", "dut")
        self._bus_bytes = len(self.dut.s_axi_wdata) // 8
        self._writes: deque[dict[str, int]] = deque()
        self._sent: deque[list[_Beat]] = deque()
        self._written: defaultdict[int, deque[list[HostItem]]] = defaultdict(deque)
        self._reads: defaultdict[int, deque[dict[str, int]]] = defaultdict(deque)

    async def run_phase(self) -> None:
        for task in (self._addresses(), self._data(), self._read_addresses(), self._read_data()):
            cocotb.start_soon(task)
        async for answer in accepted(self.dut, "s_axi_b", ["id", "resp"]):
            for item in _oldest(self._written, answer["id"], "B"):
                item.response = answer["resp"]
                self.ap.write(item)

    async def _addresses(self) -> None:
        async for burst in accepted(self.dut, "s_axi_aw", _ADDRESS):
            assert burst["burst"] == _INCR
            self._writes.append(burst)
            self._match()

    async def _data(self) -> None:
        beats: list[_Beat] = []
        async for beat in accepted(self.dut, "s_axi_w", ["data", "strb", "last"]):
            beats.append((beat["data"], beat["strb"]))
            if beat["last"]:
                self._sent.append(beats)
                self._match()
                beats = []

    def _match(self) -> None:
        """Addresses with their data, whichever of the two came first."""
        while self._writes and self._sent:
            burst, beats = self._writes.popleft(), self._sent.popleft()
            items = [
                item
                for address, (data, strobes) in zip(self._beat_addresses(burst), beats, strict=True)
                for item in self._enabled(address, data, strobes)
            ]
            self._written[burst["id"]].append(items)

    async def _read_addresses(self) -> None:
        async for burst in accepted(self.dut, "s_axi_ar", _ADDRESS):
            assert burst["burst"] == _INCR
            self._reads[burst["id"]].append(burst)

    async def _read_data(self) -> None:
        beats: defaultdict[int, list[int]] = defaultdict(list)
        async for beat in accepted(self.dut, "s_axi_r", ["id", "data", "resp", "last"]):
            beats[beat["id"]].append(beat["data"])
            if not beat["last"]:
                continue
            burst = _oldest(self._reads, beat["id"], "R")
            addresses = self._beat_addresses(burst)
            for address, data in zip(addresses, beats.pop(beat["id"]), strict=True):
                first = address % self._bus_bytes
                end = first - first % (1 << burst["size"]) + (1 << burst["size"])
                item = HostItem(address, size_bytes=end - first)
                item.data = data.to_bytes(self._bus_bytes, "little")[first:end]
                item.response = beat["resp"]
                self.ap.write(item)

    def _beat_addresses(self, burst: dict[str, int]) -> list[int]:
        """First byte of each beat; the first may be unaligned."""
        step = 1 << burst["size"]
        aligned = burst["addr"] - burst["addr"] % step
        rest = [aligned + step * beat for beat in range(1, burst["len"] + 1)]
        return [burst["addr"], *rest]

    def _enabled(self, address: int, data: int, strobes: int) -> list[HostItem]:
        """The bytes of a beat that are written, as runs."""
        base = address - address % self._bus_bytes
        raw = data.to_bytes(self._bus_bytes, "little")
        items: list[HostItem] = []
        lane = 0
        while lane < self._bus_bytes:
            end = lane
            while end < self._bus_bytes and strobes >> end & 1:
                end += 1
            if end > lane:
                items.append(HostItem(base + lane, raw[lane:end]))
            lane = end + 1
        return items


class HostAgent(uvm_agent):
    """Sequencer, driver and monitor of s_axi."""

    def build_phase(self) -> None:
        self.sequencer = uvm_sequencer("sequencer", self)
        self.driver = HostDriver("driver", self)
        self.monitor = HostMonitor("monitor", self)

    def connect_phase(self) -> None:
        self.driver.seq_item_port.connect(self.sequencer.seq_item_export)
