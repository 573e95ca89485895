# SPDX-License-Identifier: Apache-2.0
"""The Verilated npu_top as a Backend: builds or finds the simulator, then drives its pins.

The simulator runs in a process of its own; its memory is shared, so reading and writing memory
costs no simulated time. Time passes only in register accesses, reset, run and wait_interrupt.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from driver.backend.ports import describe
from driver.backend.protocol import Feature
from driver.backend.shared_memory import FaultRange, SharedMemory
from driver.backend.simulator import DramSetting, Simulator, Status, StopReason, Verb
from driver.config import CONFIG_FILE, HwConfig
from driver.errors import (
    ERROR_PREFIX,
    DeviceHung,
    InfrastructureError,
    ProcessRefused,
    RegisterError,
    SimulatorTimeout,
    Standstill,
)
from driver.isa import DeviceState, csr

log = logging.getLogger(__name__)

CSR_CYCLES = 10_000
"""Longest register access, in cycles."""
RESET_CYCLES = 8
_SLICE_S = 1.0
"""A long run is asked for in slices, so that a stopped process is noticed within seconds."""
_REGISTER_BYTES = 4
_WORD = 1 << 32
_SEEDS = (1 << 31) - 2
_IDLE_S = 3600


def build_simulator(config_file: Path, config: str, variant: str) -> Path:
    """The simulator of a configuration, built by the bench in a process of its own."""
    command = [sys.executable, "-m", "tb.sim.build", "--sim-config", str(config_file)]
    command += ["--config", config, "--variant", variant, "--json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    last = ""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stderr:  # progress, or the error; the result is one line, after it
            last = line.strip() or last
            if not last.startswith(ERROR_PREFIX):  # which is raised below
                log.info("%s", last)
        result = process.stdout.read()
    if process.returncode == 0:
        return Path(json.loads(result)["binary"])
    if process.returncode == ProcessRefused.exit_code:
        raise ProcessRefused(last.removeprefix(ERROR_PREFIX))
    raise InfrastructureError(
        f"simulator build: {last.removeprefix(ERROR_PREFIX) or process.returncode}"
    )


class RtlBackend:
    """The device under test in its simulator. See driver.backend.Backend for the verbs."""

    features: ClassVar = frozenset(Feature)

    def __init__(
        self,
        config: HwConfig,
        *,
        binary: Path | None = None,
        variant: str = "check",
        config_file: Path = CONFIG_FILE,
        sim_log: Path | None = None,
        seed: int = 0,
        stall: int = 0,
        arguments: Sequence[str] = (),
    ) -> None:
        """Start `binary`, or the build `variant` of the configuration, and leave it out of reset.

        `seed` decides the power-up state and the DRAM's stalls; `stall` is the chance out of 256
        that a channel of the DRAM holds back for a cycle; the process writes to `sim_log`.
        """
        if binary is None:
            binary = build_simulator(config_file, config.name, variant)
        self._config = config
        self.run_cpu_s = 0.0
        """CPU time that the simulator has spent in run() and wait_interrupt()."""
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if sim_log is None:
            self._folder = tempfile.TemporaryDirectory(prefix="npu-log-")
            sim_log = Path(self._folder.name) / "sim.log"
        size_bytes = config.memory.limit - config.memory.base
        descriptor = SharedMemory.create(config.memory.base, size_bytes)
        state = ["+verilator+rand+reset+2", f"+verilator+seed+{seed % _SEEDS + 1}"]
        try:
            self.shared = SharedMemory(descriptor)
            self.simulator = Simulator(
                binary, descriptor, sim_log, [f"--idle-seconds={_IDLE_S}", *state, *arguments]
            )
        finally:
            os.close(descriptor)
        self.set_dram(config.dram.latency_cycles, stall, seed)
        self.reset()

    def __enter__(self) -> RtlBackend:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def memory(self) -> NDArray[np.uint8]:
        """Device memory as one array; index 0 is address MemBase."""
        return self.shared.bytes

    @property
    def cycle(self) -> int:
        """Clock cycles since the simulator started."""
        return self.shared.cycle

    def read_csr(self, offset: int) -> int:
        """The 32-bit register at `offset`. RegisterError outside the map."""
        return self._access(Verb.CSR_READ, offset, CSR_CYCLES)

    def write_csr(self, offset: int, value: int) -> None:
        """Write a 32-bit register. RegisterError outside the map, or when value does not fit."""
        if not 0 <= value < _WORD:
            raise RegisterError(offset, f"a value of 32 bits, got {value:#x}")
        self._access(Verb.CSR_WRITE, offset, value, CSR_CYCLES)

    def _access(self, verb: Verb, offset: int, *arguments: int) -> int:
        if not 0 <= offset < self._config.registers.size_bytes or offset % _REGISTER_BYTES:
            raise RegisterError(offset, "an aligned offset inside the registers")
        status, (data, response, *_) = self.simulator.request(verb, offset, *arguments)
        if status is Status.CSR_TIMEOUT:
            what = f"register {offset:#05x}: no answer to {verb.name} within {CSR_CYCLES} cycles"
            raise DeviceHung(what, self._standstill())
        if response != 0:
            raise RegisterError(offset, f"a register, the device answered {response}")
        return data

    def read_memory(self, address: int, size_bytes: int) -> bytes:
        """Bytes of device memory, in zero simulated time. AddressError outside the memory."""
        offset = self.shared.offset(address, size_bytes)
        return self.shared.bytes[offset : offset + size_bytes].tobytes()

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Write device memory, in zero simulated time. AddressError outside the memory."""
        source = np.frombuffer(data, np.uint8)
        offset = self.shared.offset(address, len(source))
        self.shared.bytes[offset : offset + len(source)] = source

    def run(
        self, cycles: int, timeout_s: float, *, until_irq: bool = False, quiet_cycles: int = 0
    ) -> StopReason:
        """Let time pass. Ends after `cycles`, after `timeout_s` of wall clock, on irq, or when no
        port has transferred anything for `quiet_cycles`; 0 does not look at that."""
        deadline = time.monotonic() + timeout_s
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            slice_s = min(_SLICE_S, left_s)
            limits = (cycles, int(slice_s * 1000), int(until_irq), quiet_cycles)
            _, (done, reason, _, cpu_ns) = self.simulator.request(Verb.RUN, *limits, busy_s=slice_s)
            cycles -= done
            self.run_cpu_s += cpu_ns / 1e9
            if reason != StopReason.WALL_CLOCK or left_s <= _SLICE_S:
                return StopReason(reason)

    def wait_interrupt(self, timeout_s: float) -> int:
        """Run until irq is high; IRQ_STATUS then.

        DeviceHung when twice in a row no port has transferred anything for the configuration's
        hang_cycles, and no engine has worked and no command ended in between. SimulatorTimeout
        after `timeout_s`, or after the configuration's wait_cycles.
        """
        limits = self._config.timeouts
        before, deadline = self.cycle, time.monotonic() + timeout_s
        progress: tuple[int, int] | None = None
        while True:
            left = max(0, limits.wait_cycles - (self.cycle - before))
            left_s = max(0.0, deadline - time.monotonic())
            reason = self.run(left, left_s, until_irq=True, quiet_cycles=limits.hang_cycles)
            if reason is StopReason.IRQ:
                return self.read_csr(csr.IRQ_STATUS)
            if reason is not StopReason.QUIET:
                passed = f"{self.cycle - before} cycles"
                which = "its cycle limit" if reason is StopReason.CYCLES else f"{timeout_s:g} s"
                raise SimulatorTimeout(f"no interrupt after {passed}: stopped by {which}")
            standstill = self._standstill()
            last, progress = progress, self._progress()
            if progress == last:
                state = DeviceState(self.read_csr(csr.STATUS) & csr.STATUS_STATE_MASK).name
                known = replace(standstill, state=state, completed=progress[1])
                raise DeviceHung("no interrupt", known)

    def _progress(self) -> tuple[int, int]:
        """What moves although no port does: a vector program may generate and reduce numbers for
        long without reading or writing memory."""
        return self.read_csr(csr.ACTIVE_CYCLES_LO), self.read_csr(csr.COMPLETED)

    def _standstill(self) -> Standstill:
        """What the ports of the device do, without asking its registers."""
        _, (waiting, reads, writes, moved_at) = self.simulator.request(Verb.PORTS)
        ports = describe(waiting, reads, writes)
        return Standstill(self.cycle, self.cycle - moved_at, ports)

    def reset(self) -> None:
        """Pull rst_n for a few cycles. Memory keeps its bytes."""
        self.simulator.request(Verb.RESET, RESET_CYCLES)

    def set_dram(self, latency_cycles: int, stall: int = 0, seed: int = 0) -> None:
        """Timing of the DRAM; the seed takes effect at the next reset."""
        self.simulator.request(Verb.SET, DramSetting.LATENCY, latency_cycles)
        self.simulator.request(Verb.SET, DramSetting.STALL, stall)
        self.simulator.request(Verb.SET, DramSetting.SEED, seed % _WORD)

    def set_faults(self, ranges: list[FaultRange]) -> None:
        """Replace the address ranges that answer the device with a bus error."""
        self.shared.set_faults(ranges)

    def dirty_pages(self) -> list[int]:
        """Addresses of the 4 KiB pages that the device wrote since clear_dirty(), ascending."""
        return self.shared.dirty_pages()

    def clear_dirty(self) -> None:
        """Forget which pages were written."""
        self.shared.clear_dirty()

    def last_writer(self, address: int) -> int | None:
        """Cycle of the device's last write to the byte; None when the log knows of none."""
        return self.shared.last_writer(address)

    def record_waves(
        self, path: Path, first_cycle: int = 0, end_cycle: int = (1 << 64) - 1
    ) -> None:
        """Record cycles [first, end) into `path`; once per process, in a build with waves."""
        self.simulator.request(
            Verb.WAVES, first_cycle, end_cycle, payload=str(path.absolute()).encode()
        )

    def stop_waves(self) -> None:
        """Complete the file."""
        self.simulator.request(Verb.WAVES)

    def close(self) -> None:
        """End the simulator. Any number of calls is fine; no other verb may follow."""
        self.simulator.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
