# SPDX-License-Identifier: Apache-2.0
"""The same packets on two devices: the RTL and the cmodel, memories alike byte for byte.

Owns placing operands and reading results; leaves the verdict to golden.scoreboard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from driver.backend import InspectableBackend
from driver.capture.tensors import storage_view
from driver.config import HwConfig
from driver.device import Device
from driver.errors import DeviceFault
from driver.isa import COMPLETION_BYTES, COMPLETION_TIMING_BYTES, DTYPE_BYTES, CompletionRecord
from driver.lower import Program, TensorView, lower
from driver.lower.views import dense, size_bytes
from golden.reference import NPU_TYPES, MatmulCall
from golden.scoreboard import UINTS, Bits
from tb.ops.case import Case

_PAGE_BYTES = 4096
_MAX_STRAY = 8

Place = Callable[[int, str], int]
"""(bytes, region) → address, the same on both devices."""


@dataclass(frozen=True)
class Outcome:
    """What one device made of a case."""

    bits: Bits
    """[batch, M, N] of the result."""
    records: list[CompletionRecord]
    fault: DeviceFault | None


@dataclass(frozen=True)
class Trial:
    """What both made of it. `rtl` is None where no RTL runs."""

    cmodel: Outcome
    rtl: Outcome | None
    result: TensorView
    bytes_compared: int
    """Bytes on all pages that either device wrote."""
    stray: tuple[int, ...]
    """Addresses outside the result at which the memories differ (the first few)."""


class DevicePair:
    """Devices brought up alike; every allocation and write goes to both."""

    def __init__(
        self, config: HwConfig, cmodel: InspectableBackend, rtl: InspectableBackend | None
    ) -> None:
        self._backends = [cmodel] if rtl is None else [cmodel, rtl]
        self._devices = [Device(backend, config) for backend in self._backends]
        self._cmodel, self._rtl = cmodel, rtl

    def close(self) -> None:
        """Release both."""
        for device in self._devices:
            device.close()

    def reset(self) -> None:
        """Registers, queues and sequence numbers of both start over; memory keeps its bytes."""
        for device in self._devices:
            device.reset()

    def run(self, case: Case, call: MatmulCall, seed: int) -> Trial:
        """Place the case's operands, run its packets on both devices, compare the memories.

        OutOfMemory when the operands do not fit; SimulatorDied and SimulatorTimeout as they come.
        """
        with self._placed(case, call, seed) as (program, result):
            for backend in self._backends:
                backend.clear_dirty()
            outcomes = [self._submit(device, program, result) for device in self._devices]
            compared, stray = self._compare(
                range(result.address, result.address + size_bytes(result))
            )
        shape = (call.a.shape[0] if call.a.dim() == 3 else 1, call.a.shape[-2], call.b.shape[-1])
        shaped = [replace(outcome, bits=outcome.bits.reshape(shape)) for outcome in outcomes]
        return Trial(
            cmodel=shaped[0],
            rtl=shaped[1] if self._rtl is not None else None,
            result=result,
            bytes_compared=compared,
            stray=stray,
        )

    def _submit(self, device: Device, program: Program, result: TensorView) -> Outcome:
        fault = None
        records: list[CompletionRecord] = []
        try:
            records = device.submit(program.packets)
        except DeviceFault as error:
            fault = error
            device.recover()
        bits = device.download(result.address, result.sizes, UINTS[DTYPE_BYTES[result.dtype]])
        return Outcome(bits, records, fault)

    # ------------------------------------------------------------------ placing
    @contextmanager
    def _placed(
        self, case: Case, call: MatmulCall, seed: int
    ) -> Iterator[tuple[Program, TensorView]]:
        """Operands, result and descriptors in memory; freed afterwards."""
        held: list[int] = []

        def place(size_bytes: int, region: str) -> int:
            addresses = {device.alloc(size_bytes, region) for device in self._devices}
            assert len(addresses) == 1, "allocators out of step"
            held.append(addresses.pop())
            return held[-1]

        try:
            operands = self._operands(case, place)
            result = self._result(call, place, seed)
            scalars = {k: v for k, v in case.kwargs.items() if isinstance(v, int | float)}
            program = lower(
                case.op, operands, result, lambda size: place(size, "activations"), scalars
            )
            for address, data in program.descriptors:
                self._write(address, np.frombuffer(data, np.uint8))
            yield program, result
        finally:
            for address in held:
                for device in self._devices:
                    device.free(address)

    def _operands(self, case: Case, place: Place) -> list[TensorView]:
        """One view per tensor argument; tensors that share a storage share it in memory too."""
        placed: dict[int, int] = {}
        views: list[TensorView] = []
        for position, tensor in case.tensors():
            storage = storage_view(tensor)
            key = tensor.untyped_storage().data_ptr()
            if key not in placed:
                region = "weights" if position in case.weights else "activations"
                placed[key] = place(storage.size, region)
                self._write(placed[key], storage)
            address = placed[key] + tensor.storage_offset() * tensor.element_size()
            dtype = NPU_TYPES[tensor.dtype]
            views.append(TensorView(address, dtype, tuple(tensor.shape), tuple(tensor.stride())))
        return views

    def _result(self, call: MatmulCall, place: Place, seed: int) -> TensorView:
        """A dense result on random bytes: an element that nobody writes does not look right."""
        view = dense(0, call.result, call.sizes)
        address = place(size_bytes(view), "activations")
        noise = np.random.default_rng(seed).integers(0, 256, size_bytes(view), np.uint8)
        self._write(address, noise)
        return replace(view, address=address)

    def _write(self, address: int, data: NDArray[np.uint8]) -> None:
        for device in self._devices:
            device.write(address, data)

    # ------------------------------------------------------------------ comparing
    def _compare(self, result: range) -> tuple[int, tuple[int, ...]]:
        """(bytes compared, differing addresses outside `result`) over all pages written, which are
        alike afterwards.

        The timing fields of completion records are what a functional model cannot know.
        """
        if self._rtl is None:
            return 0, ()
        base = self._devices[0].config.memory.base
        pages = sorted({*self._cmodel.dirty_pages(), *self._rtl.dirty_pages()})
        stray: list[int] = []
        for page in pages:
            window = slice(page - base, page - base + _PAGE_BYTES)
            differing = np.flatnonzero(self._rtl.memory[window] != self._cmodel.memory[window])
            addresses = (int(at) + page for at in differing)
            stray += [at for at in addresses if at not in result and not self._is_timing(at)]
            # Alike again: what one op got wrong must not be held against the next.
            self._rtl.memory[window] = self._cmodel.memory[window]
        return len(pages) * _PAGE_BYTES, tuple(stray[:_MAX_STRAY])

    def is_record(self, address: int) -> bool:
        """Whether the byte is part of a completion record."""
        return address in self._devices[0].completion_records

    def _is_timing(self, address: int) -> bool:
        records = self._devices[0].completion_records
        return (
            self.is_record(address)
            and (address - records.start) % COMPLETION_BYTES in COMPLETION_TIMING_BYTES
        )
