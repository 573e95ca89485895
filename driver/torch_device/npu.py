# SPDX-License-Identifier: Apache-2.0
"""The module torch.npu: devices, memory, random numbers, streams and events.

What it shares with torch.accelerator is that: `torch.npu.synchronize` and its like are torch's own.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import accelerator

from driver.backend import backend_names
from driver.errors import InputError
from driver.isa import ISA_VERSION
from driver.torch_device import _core, fallback
from driver.torch_device import check as checking
from driver.torch_device import custom_ops as customs
from driver.torch_device import debug as debugging
from driver.torch_device.pool import POOL

DeviceLike = torch.device | str | int | None
Stream = torch.Stream
Event = torch.Event
check = checking.Check
WrongResult = checking.WrongResult
NothingChecked = checking.NothingChecked
allow_cpu_fallback = fallback.allow_cpu_fallback
debug = debugging
cpu_fallbacks = fallback.cpu_fallbacks
custom_op = customs.custom_op
register_cpu_fallback = fallback.register_cpu_fallback
unregister_cpu_fallback = fallback.unregister_cpu_fallback
list_cpu_fallbacks = fallback.list_cpu_fallbacks

default_generators: tuple[torch.Generator, ...] = ()
"""One per device; filled when the device is registered."""

current_stream = accelerator.current_stream
empty_cache = accelerator.empty_cache
max_memory_allocated = accelerator.max_memory_allocated
max_memory_reserved = accelerator.max_memory_reserved
memory_allocated = accelerator.memory_allocated
memory_reserved = accelerator.memory_reserved
memory_stats = accelerator.memory_stats
reset_accumulated_memory_stats = accelerator.reset_accumulated_memory_stats
reset_peak_memory_stats = accelerator.reset_peak_memory_stats
synchronize = accelerator.synchronize


def _index(device: DeviceLike) -> int:
    """The number of a device; of the current one for None and "npu". ValueError for others."""
    if isinstance(device, int):
        return device
    chosen = torch.device("npu" if device is None else device)
    if chosen.type != "npu":
        raise ValueError(f"expected a device npu, got {chosen}")
    return current_device() if chosen.index is None else chosen.index


# ---------------------------------------------------------------------- devices
def is_available() -> bool:
    """Whether there is a device: always, as none is looked for before it is opened."""
    return POOL.settings.count > 0


def device_count() -> int:
    """How many there are: NPU_DEVICES."""
    return POOL.settings.count


def current_device() -> int:
    """The number of the device that "npu" means in this thread."""
    return accelerator.current_device_index()


def set_device(device: DeviceLike) -> None:
    """Make it the current one of this thread."""
    accelerator.set_device_index(_index(device))


def device(device: DeviceLike) -> AbstractContextManager[Any]:
    """Make it the current one inside a `with` block."""
    return accelerator.device_index(_index(device))


_initialized = True
"""What torch.utils.checkpoint asks before it keeps the state of the device's random numbers."""


def is_initialized() -> bool:
    """Whether a device has been opened."""
    return bool(POOL.opened)


def init() -> None:
    """Open the current device now instead of at its first tensor."""
    POOL[current_device()].memory_report()


def _is_in_bad_fork() -> bool:
    return POOL.forked


def get_device_name(device: DeviceLike = None) -> str:
    """What is behind the device: its backend and configuration."""
    _index(device)
    return f"npu-cosim {POOL.settings.backend} {POOL.settings.config}"


def get_backend_name() -> str:
    """The backend of the devices: "cmodel" unless NPU_BACKEND or `set_backend` says another."""
    return POOL.settings.backend


def list_backends() -> tuple[str, ...]:
    """The names that `set_backend` takes, besides remote://host:port."""
    return backend_names()


def set_backend(name: str) -> None:
    """Put another backend behind all devices, opened anew at their next tensor.

    RuntimeError while tensors are on a device: their memory would be gone. That of a device whose
    backend died is gone already: its tensors raise RuntimeError when they are used. InputError for
    an unknown name.
    """
    if not isinstance(name, str):
        raise InputError("torch.npu", "backend", name, "a backend's name")
    gc.collect()
    for index, opened in POOL.opened.items():
        used = memory_allocated(index)
        if used and not opened.is_dead:
            raise RuntimeError(
                f"npu:{index}: {used} bytes of tensors are on it: "
                "copy them to the host and delete them before set_backend"
            )
    POOL.use_backend(name)


def get_backend_info(device: DeviceLike = None) -> dict[str, str | int | bool | tuple[str, ...]]:
    """What is behind a device, which is opened for that: the backend's name, version and features
    (driver.backend.Feature), the version of the instruction set, the hardware's configuration.
    """
    opened = POOL[_index(device)]
    return {
        "name": opened.info.name,
        "version": opened.info.version,
        "features": opened.info.features,
        "isa_version": ISA_VERSION,
        "config": opened.config_name,
        "array_size": opened.array_size,
        "has_clock": opened.has_clock,
    }


# ---------------------------------------------------------------------- capsules
def capture(
    path: str | Path, *, max_ops: int = 100_000, max_bytes: int = 1 << 30
) -> AbstractContextManager[Any]:
    """Record what the devices run inside a `with` block as a capsule in the folder `path`.

    `max_bytes`: of all distinct tensor contents. The block gives a report. Raises InputError for a
    path that is no place for a capsule, and in the block at the op that exceeds a limit; after it
    WrongResult when the recorded values are not right, and NothingChecked when no op ran.
    """
    from driver.torch_device.capture_book import CaptureLimits  # noqa: PLC0415 (heavy)
    from driver.torch_device.recording import Capture  # noqa: PLC0415

    return Capture(path, CaptureLimits(max_ops, max_bytes))


def is_bf16_supported() -> bool:
    """Whether the NPU computes in bfloat16."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Types that torch.autocast may compute in."""
    return [torch.bfloat16, torch.float16]


# ---------------------------------------------------------------------- memory
def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Free and all bytes of the region that tensors lie in; free ones may be in several holes."""
    from driver.torch_device.hardware import REGION  # noqa: PLC0415 (the op table)

    POOL[_index(device)].free_released()
    (use,) = (x for x in POOL[_index(device)].memory_report() if x.region == REGION)
    return use.free_bytes, use.size_bytes


def memory_summary(device: DeviceLike = None) -> str:
    """Use and fragmentation of the device's memory, a line per region."""
    index, text = _index(device), debugging.size_text
    POOL[index].free_released()
    lines = [f"npu:{index}, {get_device_name(index)}"]
    lines += [
        f"  {use.region:<12} {text(use.used_bytes)} ({use.used_bytes} bytes) of "
        f"{text(use.size_bytes)} used in {use.allocations} blocks, peak {text(use.peak_bytes)}, "
        f"largest hole {text(use.largest_hole_bytes)}, fragmentation {use.fragmentation:.0%}"
        for use in POOL[index].memory_report()
    ]
    return "\n".join(lines)


# ---------------------------------------------------------------------- random numbers
def manual_seed(seed: int) -> None:
    """Seed the current device's generator."""
    default_generators[current_device()].manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed every device's generator, as torch.manual_seed does."""
    for generator in default_generators:
        generator.manual_seed(seed)


def seed() -> int:
    """Seed the current device's generator with a number that nothing determines."""
    return default_generators[current_device()].seed()


def seed_all() -> None:
    """The same for every device."""
    for generator in default_generators:
        generator.seed()


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return default_generators[current_device()].initial_seed()


def get_rng_state(device: DeviceLike = None) -> torch.Tensor:
    """Seed and number of the next random op: 16 bytes."""
    return default_generators[_index(device)].get_state()


def set_rng_state(state: torch.Tensor, device: DeviceLike = None) -> None:
    """Go on from a state of `get_rng_state`."""
    default_generators[_index(device)].set_state(state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices' generators."""
    return [generator.get_state() for generator in default_generators]


def set_rng_state_all(states: Iterable[torch.Tensor]) -> None:
    """Go on from states of `get_rng_state_all`."""
    for generator, state in zip(default_generators, states, strict=True):
        generator.set_state(state)


# ---------------------------------------------------------------------- streams
def default_stream(device: DeviceLike = None) -> torch.Stream:
    """The only stream of the device."""
    return accelerator.current_stream(_index(device))


def stream(stream: torch.Stream | None) -> AbstractContextManager[Any]:
    """Submit the ops of a `with` block to this stream; all streams of a device are one."""
    return nullcontext() if stream is None else stream


def fill_generators() -> None:
    """Make the generators of all devices."""
    global default_generators  # noqa: PLW0603 (torch reads this name)
    count = POOL.settings.count
    default_generators = tuple(_core.default_generator(device) for device in range(count))
