# SPDX-License-Identifier: Apache-2.0
"""The RTL at work for a measurement: the fastest build, one command or queue at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from driver.backend.rtl import RtlBackend
from driver.config import load_config
from driver.isa import DType, Opcode, Packet, csr
from driver.isa.codec import flag_word
from driver.runtime.device import Device
from tb.bench.measure import process_cpu_seconds
from tb.sim.spec import REPOSITORY

_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class Counters:
    """The device's own count of one or several commands, from doorbell to done."""

    busy_cycles: int
    read_beats: int
    write_beats: int


class DeviceBench:
    """A device in its simulator. `cpu_seconds` is the simulator's clock of work."""

    def __init__(self, device: Device, backend: RtlBackend) -> None:
        self.device = device
        self.array_size = device.config.array_size
        self._backend = backend

    def cpu_seconds(self) -> float:
        """CPU time of the simulator so far."""
        return process_cpu_seconds(self._backend.simulator.pid)

    def run(self, *packets: Packet) -> Counters:
        """Run these commands, with nothing else in the queue."""
        self._backend.write_csr(csr.PERF_CTRL, 1)
        self.device.submit(packets, _TIMEOUT_S)
        values = (csr.BUSY_CYCLES_LO, csr.READ_BEATS_LO, csr.WRITE_BEATS_LO)
        return Counters(*(self._backend.read_csr(offset) for offset in values))


@contextlib.contextmanager
def rtl_bench(variant: str = "fast", config_name: str = "default") -> Iterator[DeviceBench]:
    """A configuration in the build `variant`: by default without assertions and random state."""
    config = load_config(REPOSITORY / "sim_config.yaml", config_name)
    with (
        RtlBackend(config, variant=variant, config_file=REPOSITORY / "sim_config.yaml") as backend,
        Device(backend, config) as device,
    ):
        yield DeviceBench(device, backend)


def square_matmul(bench: DeviceBench, size: int) -> Packet:
    """An fp32 product of two random matrices in device memory."""
    generator = np.random.default_rng(1)
    a, b = (generator.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    source, weights = bench.device.upload(a), bench.device.upload(b, "weights")
    target = bench.device.alloc(a.nbytes)
    flags = flag_word(DType.FP32, DType.FP32)
    params = (size, size, size, 1, 0, 0, 0, 0)
    addresses = (source.address, weights.address, target.address)
    return Packet(Opcode.MATMUL, flags, *addresses, params)
