# SPDX-License-Identifier: Apache-2.0
"""The same packets on two devices: the RTL and the cmodel, memories alike byte for byte.

Owns running packets and comparing memories; leaves the verdict to golden.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.backend import InspectableBackend
from driver.config import HwConfig
from driver.errors import DeviceFault
from driver.isa import COMPLETION_BYTES, COMPLETION_TIMING_BYTES, CompletionRecord, Packet
from driver.runtime import Buffer, Device, TensorView
from driver.runtime.buffer import DEFAULT_REGION
from golden.formats import Bits
from tb.ops.case import Case
from tb.ops.placing import Placed, elements, outside, placed

_PAGE_BYTES = 4096
_MAX_STRAY = 8


@dataclass(frozen=True)
class DeviceResult:
    """What one device made of some packets."""

    bits: tuple[Bits | None, ...]
    """Each result with its sizes."""
    records: list[CompletionRecord]
    fault: DeviceFault | None


@dataclass(frozen=True)
class PairResult:
    """What both devices made of some packets. `rtl` is None where no RTL runs."""

    cmodel: DeviceResult
    rtl: DeviceResult | None
    results: tuple[TensorView | None, ...]
    packets: tuple[Packet, ...]
    bytes_compared: int
    """Bytes on all pages that either device wrote."""
    stray: tuple[int, ...]
    """Addresses outside the results at which the memories differ (the first few)."""
    overwritten: tuple[int, ...] = ()
    """Addresses that the cmodel changed, of no result's element, no temporary and nothing of the
    device's own (the first few)."""
    compulsory_bytes: int = 0
    """The least that the op has to move."""


class DevicePair:
    """Devices brought up alike; every allocation and write goes to both."""

    def __init__(
        self, config: HwConfig, cmodel: InspectableBackend, rtl: InspectableBackend | None
    ) -> None:
        self._backends = [cmodel] if rtl is None else [cmodel, rtl]
        self._devices = [Device(backend, config) for backend in self._backends]
        self._cmodel, self._rtl = cmodel, rtl
        self._base = config.memory.base
        self._other = np.zeros_like(cmodel.memory) if rtl is None else rtl.memory
        """What the cmodel's memory was before a run: the RTL's, which runs after it, or a copy."""
        self.config = config
        """Of the hardware."""

    def close(self) -> None:
        """Release both."""
        for device in self._devices:
            device.close()

    def reset(self) -> None:
        """Registers, queues and sequence numbers of both start over; memory keeps its bytes."""
        for device in self._devices:
            device.reset()

    # ------------------------------------------------------------------ memory
    def alloc(self, size_bytes: int, region: str = DEFAULT_REGION) -> Buffer:
        """The same address on both."""
        first, *others = (device.alloc(size_bytes, region) for device in self._devices)
        assert all(other.base == first.base for other in others), "allocators out of step"
        return first

    def free(self, buffer: Buffer) -> None:
        """Give back an allocation on both."""
        for device in self._devices:
            device.free(buffer)

    def write(self, address: int, array: NDArray[Any]) -> None:
        """Put bytes into both memories."""
        for device in self._devices:
            device.write(address, array)
        if self._rtl is None:
            data = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
            self._other[address - self._base : address - self._base + data.size] = data

    def elements(self, view: TensorView) -> Bits:
        """A tensor in the cmodel's memory."""
        return elements(self._cmodel.memory, self._base, view)

    def contents(self, address: int, size_bytes: int) -> NDArray[np.uint8]:
        """A window on the cmodel's memory, not a copy."""
        start = address - self._base
        return self._cmodel.memory[start : start + size_bytes]

    def read(self, address: int, size_bytes: int) -> bytes:
        """Bytes of the cmodel's memory."""
        return self.contents(address, size_bytes).tobytes()

    # ------------------------------------------------------------------ running
    def run(self, case: Case, seed: int, rule: str | None = None) -> PairResult:
        """Place the case's operands, run its packets on both devices, compare the memories.

        `rule`: the name of the lowering rule to use, by default the best one.

        OutOfMemory when the operands do not fit; SimulatorDied and SimulatorTimeout as they come.
        """
        with placed(self, case, seed, rule) as here:
            return self.execute(here)

    def execute(self, here: Placed) -> PairResult:
        """Run packets that are in memory already, on both devices."""
        packets, results = here.packets, here.results
        written = [view for view in results if view is not None]
        self._clear()
        cmodel = self._submit(self._devices[0], self._cmodel, packets, results)
        overwritten = self._overwritten(written, here.temporaries)
        rtl = None
        if self._rtl is not None:
            rtl = self._submit(self._devices[1], self._rtl, packets, results)
        compared, stray = self._compare(written)
        return PairResult(
            cmodel=cmodel,
            rtl=rtl,
            results=results,
            packets=packets,
            bytes_compared=compared,
            stray=stray,
            overwritten=overwritten,
            compulsory_bytes=here.compulsory_bytes,
        )

    def model_only(self, packets: Sequence[Packet]) -> None:
        """Run packets on the cmodel alone; its results go into the RTL's memory as well.

        Sequence numbers part: `reset` before the RTL runs again. DeviceFault as it comes.
        """
        self._clear()
        self._devices[0].submit(packets)
        self._compare([])

    def _submit(
        self,
        device: Device,
        backend: InspectableBackend,
        packets: Sequence[Packet],
        results: Sequence[TensorView | None],
    ) -> DeviceResult:
        fault = None
        records: list[CompletionRecord] = []
        try:
            records = device.submit(packets)
        except DeviceFault as error:
            fault = error
            device.recover()
        bits = tuple(
            None if view is None else elements(backend.memory, self._base, view) for view in results
        )
        return DeviceResult(bits, records, fault)

    # ------------------------------------------------------------------ comparing
    def _clear(self) -> None:
        for backend in self._backends:
            backend.clear_dirty()

    def _compare(self, results: list[TensorView]) -> tuple[int, tuple[int, ...]]:
        """(bytes compared, differing addresses outside `results`) over all pages written, which
        are alike afterwards.

        The timing fields of completion records are what a functional model cannot know.
        """
        if self._rtl is None:
            self._make_alike(self._cmodel.dirty_pages())
            return 0, ()
        pages = {*self._cmodel.dirty_pages(), *self._rtl.dirty_pages()}
        stray = self._different(sorted(pages))
        # What one op got wrong must not be held against the next.
        self._make_alike(np.unique(stray // _PAGE_BYTES * _PAGE_BYTES))
        stray = outside(stray[~self._is_timing(stray)], results)
        return len(pages) * _PAGE_BYTES, tuple(int(at) for at in stray[:_MAX_STRAY])

    def _overwritten(
        self, results: list[TensorView], temporaries: Sequence[range]
    ) -> tuple[int, ...]:
        """Addresses that the cmodel changed and that are not its to write; before the RTL runs."""
        dense = (range(v.address, v.address + v.extent_bytes) for v in results if v.is_dense)
        spans = (*self._devices[0].own_memory, *temporaries, *dense)
        pages = (
            page
            for page in self._cmodel.dirty_pages()
            if not any(one.start <= page and page + _PAGE_BYTES <= one.stop for one in spans)
        )
        found = self._different(pages)
        for span in spans:
            found = found[(found < span.start) | (found >= span.stop)]
        return tuple(int(at) for at in outside(found, results)[:_MAX_STRAY])

    def _different(self, pages: Iterable[int]) -> NDArray[np.uint64]:
        """Addresses on these pages at which the cmodel's memory is not what it was, or not what
        the RTL's is once that has run."""
        found = [np.empty(0, np.uint64)]
        for page in pages:
            window = self._window(page)
            differing = np.flatnonzero(self._other[window] != self._cmodel.memory[window])
            if len(differing):
                found.append(differing.astype(np.uint64) + np.uint64(page))
        return np.concatenate(found)

    def _make_alike(self, pages: Iterable[int]) -> None:
        """The other memory takes these pages of the cmodel's."""
        for page in pages:
            window = self._window(int(page))
            self._other[window] = self._cmodel.memory[window]

    def _window(self, page: int) -> slice:
        return slice(page - self._base, page - self._base + _PAGE_BYTES)

    def is_record(self, address: int) -> bool:
        """Whether the byte is part of a completion record."""
        return address in self._devices[0].completion_records

    def _is_timing(self, addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which addresses lie in the timing fields of completion records."""
        records, timing = self._devices[0].completion_records, list(COMPLETION_TIMING_BYTES)
        inside = (addresses >= records.start) & (addresses < records.stop)
        field = (addresses - records.start) % COMPLETION_BYTES
        return inside & np.isin(field, timing)
