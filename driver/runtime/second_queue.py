# SPDX-License-Identifier: Apache-2.0
"""The second command queue of a device: packets that run beside those of `Device.submit`.

Nothing orders commands of the two queues but the host: wait for those that write before giving the
other queue those that read (docs/isa.md, "Two queues").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import cast

from driver.backend import Backend
from driver.backend.accesses import ReadRegister, TakeInterrupt, perform
from driver.backend.queues import SECOND_QUEUE
from driver.errors import DeviceFault, InfrastructureError, InputError
from driver.isa import PACKET_BYTES, CompletionRecord, ErrorCode, Opcode, Packet, csr
from driver.runtime.memory import Allocator
from driver.runtime.program import packed
from driver.runtime.ring import CommandRing, CompletionRing
from driver.runtime.vector_programs import FIRST_PLACEHOLDER

_SEQ_MASK = 0xFFFF_FFFF
_IRQS = csr.IRQ_ENABLE_EMPTY1_MASK | csr.IRQ_ENABLE_ERROR_MASK


@dataclass(frozen=True)
class QueueOwner:
    """What the device has for both queues."""

    lock: AbstractContextManager[object]
    stop: Callable[[DeviceFault], None]
    """Tells it of a command that failed."""
    check: Callable[[], None]
    """InfrastructureError until a submission that was left has been followed by a reset."""
    memory: Allocator


class SecondQueue:
    """Made by `Device.second_queue`. Safe to call from several threads: the device's lock.

    Example:
        queue = npu.second_queue()
        queue.push(copies)            # returns at once
        npu.submit(products)          # at the same time
        records = queue.wait()        # of the copies
    """

    def __init__(
        self,
        backend: Backend,
        places: tuple[int, int, int],
        owner: QueueOwner,
    ) -> None:
        """`places`: addresses of its ring and records, and their entries."""
        ring, records, entries = places
        self._backend = backend
        self._ring = CommandRing(backend, ring, entries, SECOND_QUEUE)
        self._records = CompletionRing(backend, records, entries, SECOND_QUEUE)
        self._owner = owner
        self.fault: DeviceFault | None = None
        """Why both queues stand still, if they do."""
        self._next_seq = 0
        self._packets: list[Packet] = []
        self._dropped = 0
        """Packets that a reset or an error acknowledged by the host took away, not told yet."""
        self.start()

    @property
    def completion_records(self) -> range:
        """Addresses of its completion ring."""
        return self._records.addresses

    def start(self) -> None:
        """Bring it up after a reset of the device."""
        self._records.start()
        self._ring.start()
        self.resume()

    def resume(self) -> None:
        """Go on after a reset or an error: nothing is queued."""
        self._ring.resync()
        self._next_seq = self._backend.read_csr(SECOND_QUEUE.completed)
        self.fault = None
        self._owner.memory.release(self)
        self._dropped += len(self._packets)
        self._packets = []

    def push(self, packets: Sequence[Packet]) -> None:
        """Queue packets and return at once.

        InputError: more than the ring holds since the last `wait`, or a vector program that is no
        boot program (the driver loads programs through the first queue alone); nothing is queued.
        DeviceFault: a command of either queue has failed, see `Device.recover`.
        InfrastructureError: as that of `Device.submit`.
        """
        with self._owner.lock:
            if self.fault is not None:
                raise self.fault.with_traceback(None)
            self._owner.check()
            room = self._records.entries - 1 - len(self._packets)
            if len(packets) > room:
                raise InputError("second queue", "packets", len(packets), f"at most {room} more")
            _check_programs(packets)
            data = memoryview(packed(packets))
            self._packets += packets
            while data:
                data = data[self._ring.push(data) * PACKET_BYTES :]

    def wait(self, timeout_s: float) -> list[CompletionRecord]:
        """The completion records of all packets since the last `wait`, when they have finished.

        DeviceFault: one has failed, or one of the first queue. DeviceHung, SimulatorTimeout: no
        interrupt comes for `timeout_s`; until they have finished, or a reset, memory that is freed
        is not given out. InfrastructureError: `Device.recover` or `Device.reset` has
        dropped packets since the last `wait`; those pushed after it are waited for next.
        """
        with self._owner.lock:
            if self.fault is not None:
                self._packets = []  # told
                raise self.fault.with_traceback(None)
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                raise InfrastructureError(f"second queue: a reset dropped {dropped} packets")
            count = len(self._packets)
            try:
                self._until_done(count, timeout_s)
            except DeviceFault:
                self._packets = []
                raise
            except BaseException:  # they still run
                self._owner.memory.hold(self)
                raise
            self._owner.memory.release(self)
            reads = self._records.reads(self._next_seq, count)
            data = b"".join(cast("list[bytes]", perform(self._backend, reads)))
            records = self._records.records(self._next_seq, data)
            self._next_seq = (self._next_seq + count) & _SEQ_MASK
            self._packets = []
            return records

    def fault_of(self, code: ErrorCode, seq: int) -> DeviceFault:
        """The fault of its command `seq`."""
        at = (seq - self._next_seq) & _SEQ_MASK
        packet = self._packets[at] if at < len(self._packets) else None
        return DeviceFault(code, seq, packet, number=at)

    def _until_done(self, count: int, timeout_s: float) -> None:
        """The first queue is idle: the lock is held. Its interrupts are off meanwhile."""
        enabled = self._backend.read_csr(csr.IRQ_ENABLE)
        self._backend.write_csr(csr.IRQ_ENABLE, _IRQS)
        try:
            irq = self._backend.read_csr(csr.IRQ_STATUS)
            while not irq & csr.IRQ_STATUS_ERROR_MASK and self._finished() < count:
                # What this clears came before COMPLETED is read again, so that none is lost.
                after = ReadRegister(csr.IRQ_STATUS)
                first, later = perform(self._backend, (TakeInterrupt(timeout_s), after))
                irq = cast("int", first) | cast("int", later)
        finally:
            self._backend.write_csr(csr.IRQ_ENABLE, enabled)
        if irq & csr.IRQ_STATUS_ERROR_MASK:
            code, seq, queue = read_error(self._backend)
            fault = self.fault_of(code, seq) if queue == 1 else DeviceFault(code, seq)
            self._owner.stop(fault)
            raise fault

    def _finished(self) -> int:
        return (self._backend.read_csr(SECOND_QUEUE.completed) - self._next_seq) & _SEQ_MASK


def read_error(backend: Backend) -> tuple[ErrorCode, int, int]:
    """What the error registers say: code, sequence number, and number of the queue."""
    found, seq = backend.read_csr(csr.ERROR_CODE), backend.read_csr(csr.ERROR_SEQ)
    queue = (found & csr.ERROR_CODE_QID_MASK) >> csr.ERROR_CODE_QID_LSB
    return ErrorCode(found & csr.ERROR_CODE_CODE_MASK), seq, queue


def _check_programs(packets: Sequence[Packet]) -> None:
    for packet in packets:
        if (
            packet.opcode == Opcode.VECTOR
            and max(packet.params[:1], default=0) >= FIRST_PLACEHOLDER
        ):
            raise InputError("second queue", "program", packet.params[0], "a boot program's line")
