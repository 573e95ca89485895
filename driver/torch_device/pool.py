# SPDX-License-Identifier: Apache-2.0
"""The devices of this process, opened when they are first used, and what the C++ core asks of them.

Light, for every process that imports torch has it: the op table is imported with the first device.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

import torch

from driver.backend import check_name
from driver.backend.named import MOST_DEVICES
from driver.config import load_configs
from driver.errors import InfrastructureError, InputError, OutOfMemory
from driver.torch_device import _core, keyboard_interrupt
from driver.torch_device.debug import size_text
from driver.torch_device.settings import CONFIG_FILE, DeviceSettings

if TYPE_CHECKING:
    from driver.torch_device.hardware import OpenDevice


_LAST_OBJECTS_S = 0.02
"""What torch's own threads get at the end, to free objects of Python's."""
_PRIVATE = range(MOST_DEVICES, 31)
"""Numbers of devices that no tensor can be on; a pointer has five bits for them."""


class DevicePool:
    """The devices by number, each opened at its first use."""

    def __init__(self, settings: DeviceSettings, refused: InputError | None = None) -> None:
        """`refused`: what is wrong with the environment, raised where a device is wanted."""
        self.settings = settings
        self._refused = refused
        self.forked = False
        """Whether this process was forked from one that had devices open."""
        self._open: dict[int, OpenDevice] = {}
        self._private: dict[int, OpenDevice] = {}
        self._lock = RLock()
        os.register_at_fork(after_in_child=self._abandon)
        atexit.register(self._end)

    @classmethod
    def from_environment(cls) -> DevicePool:
        """Those that the environment asks for. A wrong variable is an error of the first tensor on
        them: a program without one goes on."""
        try:
            return cls(DeviceSettings.from_environment())
        except InputError as error:
            return cls(DeviceSettings(MOST_DEVICES), error)  # each number gets the error

    def __getitem__(self, index: int) -> OpenDevice:
        found = self._open.get(index) or self._private.get(index)
        if found is not None:
            return found
        if self._refused is not None:
            raise self._refused.with_traceback(None)
        if self.forked:
            raise InfrastructureError(
                "npu: devices cannot be used in a process that was forked from one that uses "
                'them; start it with the method "spawn"'
            )
        if torch.utils.data.get_worker_info() is not None:  # a device for each of them
            raise InfrastructureError(
                "npu: a worker of a DataLoader cannot use a device: let the dataset return CPU "
                "tensors, and move each batch in the program"
            )
        with self._lock:
            if index not in self._open:
                from driver.torch_device.hardware import OpenDevice  # noqa: PLC0415 (see above)

                keyboard_interrupt.install()
                self._open[index] = OpenDevice(self.settings, index)
            return self._open[index]

    @property
    def opened(self) -> Mapping[int, OpenDevice]:
        """The devices in use."""
        return self._open

    def wait_for_all(self) -> None:
        """Until all that was queued has run. Errors as WorkQueue.wait."""
        for device in self._open.values():
            device.queue.wait()

    def use_backend(self, name: str) -> None:
        """Open the devices anew, empty, with this backend. InputError for an unknown name."""
        check_name(name, "torch.npu")
        with self._lock:
            self.close()
            self.settings = replace(self.settings, backend=name)

    def open_private(self, settings: DeviceSettings) -> OpenDevice:
        """A device that no tensor can be on: for rows that the program does not ask for."""
        from driver.torch_device.hardware import OpenDevice  # noqa: PLC0415 (see above)

        with self._lock:
            index = min(set(_PRIVATE) - set(self._private))
            self._private[index] = OpenDevice(settings, index)
            return self._private[index]

    def close_private(self, device: OpenDevice) -> None:
        """Release it."""
        self._release(device)
        del self._private[device.index]

    @staticmethod
    def _release(device: OpenDevice) -> bool:
        sound = device.close()
        _core.take_batch(device.index)
        _core.forget_memory(device.index)
        return sound

    def close(self) -> bool:
        """Release all that were opened; they open anew, empty, when they are used again. False: an
        error of one of them was never raised."""
        sound = [self._release(device) for device in self._open.values()]
        self._open.clear()
        _core.forget_calls()  # they were lowered for those devices
        return all(sound)

    def _end(self) -> None:
        """At the end of the process, which fails when its last ops did.

        torch's thread of a backward pass may still hold objects of Python's, and ends the process
        when it frees them without an interpreter: it gets the time to do so before.
        """
        opened = bool(self._open)
        sound = self.close()
        if opened:
            time.sleep(_LAST_OBJECTS_S)
        if not sound:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)  # nothing else changes the status here

    def _abandon(self) -> None:
        self.forked = bool(self._open)
        self._open = {}


POOL = DevicePool.from_environment()
"""The devices of this process."""


@contextmanager
def torch_memory_errors(device: int) -> Iterator[None]:
    """torch.OutOfMemoryError in place of this project's OutOfMemory."""
    try:
        yield
    except OutOfMemory as error:
        raise torch.OutOfMemoryError(f"npu:{device}: {error}{_more_memory(error)}") from error


def _more_memory(error: OutOfMemory) -> str:
    """Which configuration has most of it, where another one has more."""
    sizes = {
        name: config.memory.regions.named()[error.region].size_bytes
        for name, config in load_configs(CONFIG_FILE).items()
    }
    most = max(sizes, key=lambda name: sizes[name])
    if sizes[most] <= sizes[POOL.settings.config]:
        return ""
    return f"; NPU_CONFIG={most} has {size_text(sizes[most])}"


# ---------------------------------------------------------------------- what the C++ core calls
def allocate(device: int, size_bytes: int) -> int:
    """The address of fresh memory. torch.OutOfMemoryError with the region's numbers."""
    with torch_memory_errors(device):
        return POOL[device].allocate(size_bytes)


def free_released(device: int) -> None:
    """Free the memory of tensors that are gone."""
    if device in POOL.opened:
        POOL[device].free_released()


def copy_bytes(device: int, to: int, source: int, size_bytes: int) -> None:
    """Copy within one device's memory."""
    memory = POOL[device]
    with (
        memory.host_bytes(source, size_bytes) as given,
        memory.host_bytes(to, size_bytes, reads=False, writes=True) as target,
    ):
        target[:] = given


def submit(device: int, needed_bytes: int) -> None:
    """Hand the device's batch of commands over; see WorkQueue."""
    POOL[device].queue.submit(needed_bytes)


def wait(device: int) -> None:
    """Until all that was queued has run. Raises what went wrong."""
    if device in POOL.opened:
        POOL[device].queue.wait()


def is_idle(device: int) -> bool:
    """Whether all that was queued has run."""
    return device not in POOL.opened or POOL[device].queue.is_idle()


def raise_fault(device: int) -> None:
    """Raise what went wrong so far; wait for nothing."""
    if device in POOL.opened:
        POOL[device].queue.raise_fault()


def hear(device: int) -> None:
    """Wait, and raise what another thread has heard of and this one has not."""
    if device in POOL.opened:
        POOL[device].queue.hear()


def record(device: int, mark: _core.Mark) -> None:
    """Note the device's cycle counter after all that is queued."""
    POOL[device].queue.record(mark)
