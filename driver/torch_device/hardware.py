# SPDX-License-Identifier: Apache-2.0
"""One device behind "npu": its memory, and rows of the op table, queued for it.

The only module here that knows `driver.runtime` and `driver.lower`. Knows no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from driver.backend import BackendInfo, Feature, backend_info, open_backend
from driver.config import load_config
from driver.errors import InfrastructureError, OutOfMemory
from driver.isa import DType, Opcode
from driver.lower import LOWERINGS, Arg
from driver.random_stream import RandomStream
from driver.runtime import Buffer, Device, TensorView
from driver.runtime.memory import RegionUse
from driver.runtime.views import dense_strides
from driver.torch_device import _core, debug
from driver.torch_device.programs import ProgramCache, RememberedProgram, Results, RowCall
from driver.torch_device.settings import CONFIG_FILE, DeviceSettings
from driver.torch_device.work_queue import WorkQueue

REGION = "activations"
COPY_ROW = "aten.copy_.default"
_WHOLE = Buffer(0, REGION, "device memory", base=0)
"""All tensors lie in it, at their addresses."""


class OpenDevice:
    """One device: memory, and the rows of the op table queued for it."""

    def __init__(self, settings: DeviceSettings, index: int) -> None:
        """`index`: its number."""
        config = load_config(CONFIG_FILE, settings.config)
        if not settings.fusion:
            config = config.model_copy(update={"fusion": False})
        self._config = config
        self._backend = open_backend(settings.backend, config, **settings.options)
        self._info = backend_info(settings.backend, self._backend)
        mapped = Feature.MAPPED_MEMORY in self._info.features
        self._memory = self._backend.memory if mapped else None
        try:
            self._device = Device(self._backend, config)
        except BaseException:
            self._backend.close()
            raise
        self._base = config.memory.base
        self.index = index
        self._programs = ProgramCache(config)
        self.queue = WorkQueue(self._device, index, self.free_released)
        """What it has been asked to do."""

    @property
    def has_clock(self) -> bool:
        """Whether `cycles` counts clock cycles."""
        return Feature.CLOCK in self._info.features

    @property
    def info(self) -> BackendInfo:
        """What is behind the device."""
        return self._info

    @property
    def config_name(self) -> str:
        """Of the hardware's configuration."""
        return self._config.name

    @property
    def array_size(self) -> int:
        """Side of the matrix engine's tiles."""
        return self._config.array_size

    def allocate(self, size_bytes: int) -> int:
        """The address of fresh memory; that of tensors which are gone is used before it fails.

        OutOfMemory with the region's numbers.
        """
        self.queue.check()
        try:
            return self._device.alloc(size_bytes, REGION).address
        except OutOfMemory:
            self.free_released()
            return self._device.alloc(size_bytes, REGION).address

    def free_released(self) -> None:
        """Free the memory of tensors that are gone, instead of keeping it for others of their
        size."""
        self.free(_core.take_released(self.index))

    def free(self, addresses: Iterable[int]) -> None:
        """Give back what was allocated, for use by what is queued later."""
        for address in addresses:
            self._device.free(Buffer(0, REGION, base=address))

    def memory_report(self) -> tuple[RegionUse, ...]:
        """Use and fragmentation per region, the device's own rings included."""
        return self._device.memory_report()

    @contextmanager
    def host_bytes(
        self, address: int, size_bytes: int, *, reads: bool = True, writes: bool = False
    ) -> Iterator[NDArray[np.uint8]]:
        """Device memory for the host while a `with` block lasts, once all that was queued has run.

        It is the memory itself if the backend maps it into this process, otherwise a copy, which
        `writes` stores when the block ends. Without `reads` the block writes every byte. Errors as
        WorkQueue.wait.
        """
        self.queue.wait()
        if self._memory is not None:
            start = address - self._base
            yield self._memory[start : start + size_bytes]
            return
        if reads:
            copy = self._device.download(address, (size_bytes,), np.uint8)
        else:
            copy = np.zeros(size_bytes, np.uint8)
        yield copy
        if writes:
            self._device.write(address, copy)

    def cycles(self) -> int:
        """The device's cycle counter. The cmodel has no clock: it counts accesses of the host."""
        self.queue.wait()
        return self._device.cycles()

    def run(
        self,
        row: str,
        args: Sequence[Arg],
        kwargs: Mapping[str, Arg],
        results: Results,
        stream: RandomStream | None = None,
    ) -> RememberedProgram | None:
        """Queue a row of the op table into `results`, which may share memory with arguments.

        The program, if that alone was queued and equal calls get it again. UnsupportedOp when the
        NPU cannot; then nothing was.
        """
        self.queue.check()
        found, addresses = self._programs.find(RowCall(row, args, kwargs, results, stream))
        if found.writes_safely(addresses):
            if debug.prints(debug.PACKETS):
                for packet in found.program.packets:
                    debug.line("PACKET", f"{Opcode(packet.opcode).name} for {row}")
            operands = [addresses[at] for at in found.begins]
            if found.is_numbered and stream is not None:
                operands.append(stream.op)
            _core.enqueue(self.index, found.queued, operands)
            return found if found.is_replayed else None
        fresh: list[TensorView | None] = []
        try:
            for view in results:
                fresh.append(None if view is None else self._like(view))
            self.run(row, args, kwargs, fresh, stream)
            for view, made in zip(results, fresh, strict=True):
                if view is not None and made is not None:
                    self.run(COPY_ROW, (view, made), {}, (view,))
        finally:
            self.free([made.address for made in fresh if made is not None])
        return None

    def _like(self, view: TensorView) -> TensorView:
        """Fresh memory for the same elements."""
        dense = view.reshaped(view.sizes, dense_strides(view.sizes))
        return replace(dense, offset_bytes=self.allocate(max(dense.extent_bytes, 1)))

    def forget_programs(self) -> None:
        """Lower every op anew: the op table has changed."""
        self._programs = ProgramCache(self._config)

    @property
    def is_dead(self) -> bool:
        """Whether the backend is gone, with all tensors; it is asked if that is not known."""
        if not self.queue.is_dead:
            try:
                self._device.cycles()
            except InfrastructureError:
                return True
        return self.queue.is_dead

    def close(self) -> bool:
        """Release the backend, after what is queued. False: an error of that was never raised."""
        sound = self.queue.close()
        self._device.close()
        return sound


def has_row(op: str) -> bool:
    """Whether the op table computes this overload."""
    return op in LOWERINGS


def view_of(
    address: int, dtype: DType, sizes: tuple[int, ...], strides: tuple[int, ...], boolean: bool
) -> TensorView:
    """Elements at an address as rows take them."""
    return TensorView(_WHOLE, address, dtype, sizes, strides, boolean)
