# SPDX-License-Identifier: Apache-2.0
"""One NPU as its user sees it: memory to allocate, arrays to move, programs and packets to run.

Sleeps on the interrupt; no command is polled for. Knows packets, not ops. Safe to call from several
threads: one lock per device for whatever moves bytes or submits, one for its map of memory.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from driver.backend import Backend
from driver.backend.accesses import ReadRegister, TakeInterrupt, perform
from driver.config import HwConfig
from driver.errors import (
    BackendDied,
    DeviceFault,
    DeviceHung,
    InfrastructureError,
    SimulatorTimeout,
    SubmittedCommand,
)
from driver.isa import (
    COMPLETION_BYTES,
    PACKET_BYTES,
    CompletionRecord,
    Packet,
    csr,
)
from driver.isa.image import OWN_LINES
from driver.runtime.buffer import DEFAULT_REGION, Buffer
from driver.runtime.control import request
from driver.runtime.identity import check_identity, loadable_lines
from driver.runtime.loading import loaded
from driver.runtime.memory import Allocator, RegionUse
from driver.runtime.program import Program, packed, unpacked
from driver.runtime.resident import CommandSegment, resident_programs
from driver.runtime.ring import (
    CommandPort,
    CommandRegisters,
    CommandRing,
    CompletionRing,
    log2_entries,
)
from driver.runtime.second_queue import QueueOwner, SecondQueue, read_error

_LOG = logging.getLogger(__name__)
_SEQ_MASK = 0xFFFF_FFFF
_ALL_IRQS = csr.IRQ_ENABLE_COMPLETE_MASK | csr.IRQ_ENABLE_EMPTY_MASK | csr.IRQ_ENABLE_ERROR_MASK
DEFAULT_RING_ENTRIES = 256
Packets = Callable[[], Sequence[Packet]]


class Device:
    """A backend brought up: rings in device memory, interrupts on, sequence numbers in step.

    InputError when ring_entries is no power of two; InfrastructureError when the hardware behind
    the backend is not the one that `config` describes.
    """

    def __init__(
        self, backend: Backend, config: HwConfig, ring_entries: int = DEFAULT_RING_ENTRIES
    ) -> None:
        self._backend = backend
        self._config = config
        log2_entries(ring_entries)
        self._lock = threading.RLock()
        check_identity(backend, config)
        self._allocator = Allocator(config.memory)
        ring = self._allocator.alloc(ring_entries * PACKET_BYTES)
        records = self._allocator.alloc(ring_entries * COMPLETION_BYTES)
        self._ring = CommandRing(backend, ring, ring_entries)
        self._command_registers = CommandRegisters(backend)
        self._completions = CompletionRing(backend, records, ring_entries)
        lines = loadable_lines(backend)[:-OWN_LINES]
        self._resident = resident_programs(lines, config.memory, self._allocator, self.write)
        self._next_seq = 0
        self._fault: DeviceFault | None = None
        self._left: str | None = None
        """Why a submission was left before its commands had ended."""
        self._second: SecondQueue | None = None
        self.reset()

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def backend(self) -> Backend:
        """The registers and memory underneath."""
        return self._backend

    @property
    def config(self) -> HwConfig:
        """The configuration that the device was opened with."""
        return self._config

    @property
    def completion_records(self) -> range:
        """Addresses of the completion ring: what the device writes besides results."""
        return self._completions.addresses

    @property
    def own_memory(self) -> tuple[range, range]:
        """Addresses of the command ring, which the host writes, and of the completion ring."""
        return self._ring.addresses, self._completions.addresses

    @property
    def next_seq(self) -> int:
        """The sequence number that the next command gets."""
        return self._next_seq

    def cycles(self) -> int:
        """The device's cycle counter. A model without a clock counts accesses of the host."""
        with self._lock:
            low = self._backend.read_csr(csr.CYCLE_LO)
            return low | self._backend.read_csr(csr.CYCLE_HI) << 32

    @property
    def programs_loaded(self) -> int:
        """How many times a vector program has been loaded."""
        return self._resident.loads

    def close(self) -> None:
        """Release the backend."""
        self._backend.close()

    # ------------------------------------------------------------------ memory
    def alloc(self, size_bytes: int, region: str = DEFAULT_REGION, name: str = "") -> Buffer:
        """`size_bytes` fresh bytes. OutOfMemory, InputError as the allocator's."""
        return Buffer(size_bytes, region, name, self._allocator.alloc(size_bytes, region))

    def free(self, buffer: Buffer) -> None:
        """Give back an allocation: AddressError when it is none. Used again as `submit` says."""
        self._allocator.free(buffer.address)

    def memory_report(self) -> tuple[RegionUse, ...]:
        """Use and fragmentation per region, the device's own rings included."""
        return self._allocator.report()

    def upload(self, array: NDArray[Any], region: str = DEFAULT_REGION) -> Buffer:
        """Allocate and fill with the array's elements, dense in row-major order."""
        buffer = self.alloc(array.nbytes, region)
        try:
            self.write(buffer.address, array)
        except BaseException:
            self.free(buffer)
            raise
        return buffer

    def write(self, address: int, array: NDArray[Any]) -> None:
        """Store the array's elements from `address` on, dense in row-major order."""
        flat = np.ascontiguousarray(array).reshape(-1)
        with self._lock:
            self._backend.write_memory(address, flat.view(np.uint8).data)

    def download(self, address: int, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """The dense row-major array at `address`. bf16 travels as uint16."""
        element = np.dtype(dtype)
        size_bytes = int(np.prod(shape, dtype=np.int64)) * element.itemsize
        with self._lock:
            data = self._backend.read_memory(address, size_bytes)
        return np.frombuffer(data, dtype=element).reshape(shape).copy()

    # ------------------------------------------------------------------ commands
    def execute(
        self,
        program: Program,
        addresses: Sequence[int] | None = None,
        timeout_s: float | None = None,
    ) -> list[CompletionRecord]:
        """Run a program on operands at `addresses`, by default those of its own buffers; the
        completion records. Its sections have memory only meanwhile. Errors as `submit`, and
        OutOfMemory.
        """
        with self._lock, loaded(self, program, addresses) as bound:
            return self._run(self._ring, bound.packet_bytes, lambda: bound.packets, timeout_s)

    def submit(
        self, packets: Sequence[Packet], timeout_s: float | None = None
    ) -> list[CompletionRecord]:
        """Run packets through the ring, however many; their completion records, in order.

        DeviceFault at the first that fails (nothing after it has run; see `recover`), again at any
        later submit until then. DeviceHung when the device makes no progress; SimulatorTimeout when
        no interrupt comes for `timeout_s`, by default the configuration's wait_s. After these two,
        or an interrupt by the user, commands may still run: InfrastructureError until `reset`, and
        nobody gets memory that is freed meanwhile.
        """
        return self._run(self._ring, packed(packets), lambda: packets, timeout_s)

    def run(self, packets: bytes, timeout_s: float | None = None) -> None:
        """As `submit`, for packets as bytes and without their completion records."""
        with self._lock:
            self._finish(
                self._ring, packets, lambda: unpacked(packets), timeout_s, self._completions.check
            )

    def submit_registers(
        self, packets: Sequence[Packet], timeout_s: float | None = None
    ) -> list[CompletionRecord]:
        """As `submit`, through the command registers; no ring fetch in their timing."""
        return self._run(self._command_registers, packed(packets), lambda: packets, timeout_s)

    def second_queue(self, entries: int = DEFAULT_RING_ENTRIES) -> SecondQueue:
        """The second command queue, with a ring of `entries` when it is first asked for."""
        with self._lock:
            if self._second is None:
                log2_entries(entries)
                ring = self.alloc(entries * (PACKET_BYTES + COMPLETION_BYTES)).address
                places = (ring, ring + entries * PACKET_BYTES, entries)
                owner = QueueOwner(self._lock, self._stop, self._check_left, self._allocator)
                self._second = SecondQueue(self._backend, places, owner)
                self._second.fault = self._fault
            return self._second

    def recover(self) -> None:
        """Leave the error state: what is still queued is dropped, sequence numbers go on."""
        with self._lock:
            self._check_left()
            request(self._backend, self._config.timeouts, csr.CTRL_ERROR_ACK_MASK)
            self._resume()

    def reset(self) -> None:
        """Soft reset and bring-up: sequence numbers start at 0, memory keeps its bytes."""
        with self._lock:
            self._leave("a reset that did not end")
            request(self._backend, self._config.timeouts, csr.CTRL_SOFT_RESET_MASK)
            self._completions.start()
            self._ring.start()
            if self._second is not None:
                self._second.start()
            self._resume()
            self._left = None
            self._allocator.release(self)

    def _leave(self, why: str) -> None:
        self._left = why
        self._allocator.hold(self)

    def _check_left(self) -> None:
        if self._left is not None:
            what = f"commands may still run that were left by {self._left}"
            raise InfrastructureError(f"{what}: reset the device first")

    def _resume(self) -> None:
        self._ring.resync()
        self._backend.write_csr(csr.IRQ_STATUS, _ALL_IRQS)
        self._backend.write_csr(csr.IRQ_ENABLE, _ALL_IRQS)
        self._next_seq = self._backend.read_csr(csr.COMPLETED)
        self._fault = None
        if self._second is not None:
            self._second.resume()
        self._resident.clear()

    def _stop(self, fault: DeviceFault) -> None:
        """Both queues stand still until `recover`."""
        _LOG.info("%s", fault)
        self._fault = fault
        if self._second is not None:
            self._second.fault = fault

    def _run(
        self, port: CommandPort, data: bytes, packets: Packets, timeout_s: float | None
    ) -> list[CompletionRecord]:
        records: list[CompletionRecord] = []

        def read(first_seq: int, data: bytes) -> None:
            records.extend(self._completions.records(first_seq, data))

        with self._lock:
            loads = self._finish(port, data, packets, timeout_s, read)
        return [record for at, record in enumerate(records) if at not in loads]

    def _finish(
        self,
        port: CommandPort,
        data: bytes,
        packets: Packets,
        timeout_s: float | None,
        ended: Callable[[int, bytes], None],
    ) -> set[int]:
        """Run `data`: what `packets` gives, as bytes; the packets themselves only errors need.

        `ended` is told of commands that have: the number of the first, and their records. Which
        of them are LOADs that packets needed is returned.
        """
        if self._fault is not None:
            raise self._fault.with_traceback(None)
        self._check_left()
        limit_s = self._config.timeouts.wait_s if timeout_s is None else timeout_s
        loads: set[int] = set()
        count = 0
        try:
            for segment in self._resident.segments(data):
                given = partial(unpacked, segment.data) if segment.loads else packets
                try:
                    self._finish_segment(port, segment, given, limit_s, ended)
                except (DeviceFault, BackendDied):
                    raise  # nothing runs any more
                except BaseException as error:
                    self._leave(type(error).__name__)
                    raise
                loads.update(count + load for load in segment.loads)
                count += len(segment.data) // PACKET_BYTES
        except BaseException:
            self._resident.clear()  # some LOADs may not have run
            raise
        return loads

    def _finish_segment(
        self,
        port: CommandPort,
        segment: CommandSegment,
        packets: Packets,
        limit_s: float,
        ended: Callable[[int, bytes], None],
    ) -> None:
        data = segment.data
        count, queued, done, view = len(data) // PACKET_BYTES, 0, 0, memoryview(data)
        while done < count:
            # No more in flight than completion records that can wait to be read.
            room = self._completions.entries - (queued - done)
            queued += port.push(view[queued * PACKET_BYTES : (queued + room) * PACKET_BYTES])
            irq, completed, slots = self._wait(packets, done, queued, limit_s)
            if irq & csr.IRQ_STATUS_ERROR_MASK:
                fault = self._read_fault(packets, done, segment)
                self._stop(fault)
                raise fault
            finished = (completed - self._next_seq) & _SEQ_MASK
            ended(self._next_seq, slots[: finished * COMPLETION_BYTES])
            self._next_seq = completed
            done += finished

    def _wait(
        self, packets: Packets, done: int, queued: int, limit_s: float
    ) -> tuple[int, int, bytes]:
        """IRQ_STATUS, cleared; then COMPLETED, and the slots of the records of all in flight.

        One message to the backend. What it clears came before COMPLETED is read, so that no
        interrupt is lost. COMPLETED counts a command that failed in between as well: the error
        that came after the interrupt is looked for once more.
        """
        reads = self._completions.reads(self._next_seq, queued - done)
        after = (ReadRegister(csr.COMPLETED), ReadRegister(csr.IRQ_STATUS))
        try:
            found = perform(self._backend, (TakeInterrupt(limit_s), *after, *reads))
        except DeviceHung as error:
            completed = error.standstill.completed
            ended = 0 if completed is None else (completed - self._next_seq) & _SEQ_MASK
            commands = packets()
            at = min(done + ended, len(commands) - 1)
            seq = (self._next_seq + at - done) & _SEQ_MASK
            command = SubmittedCommand(seq, at, len(commands), commands[at])
            raise error.in_command(command) from error
        except SimulatorTimeout as error:
            commands = packets()
            where = f"packet {done} of {len(commands)}, {commands[done]}"
            raise SimulatorTimeout(f"command {self._next_seq} ({where}): {error}") from error
        irq, completed, later = cast("list[int]", found[:3])
        slots = cast("list[bytes]", found[3:])
        return irq | later & csr.IRQ_STATUS_ERROR_MASK, completed, b"".join(slots)

    def _read_fault(self, packets: Packets, done: int, segment: CommandSegment) -> DeviceFault:
        code, seq, queue = read_error(self._backend)
        if queue == 1 and self._second is not None:
            return self._second.fault_of(code, seq)
        index = done + ((seq - self._next_seq) & _SEQ_MASK)
        commands = packets()
        packet = commands[index] if index < len(commands) else None
        return DeviceFault(code, seq, packet, number=segment.number_of(index))
