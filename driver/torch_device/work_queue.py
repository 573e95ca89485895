# SPDX-License-Identifier: Apache-2.0
"""The work of one device in the order in which the program asked for it, run by one thread.

The C++ core collects the commands of ops in a batch. A batch that is full, or that a caller waits
for, goes to the thread, between bytes that the host stores and places where time is noted. The
limits of a batch are counts, never times: the same program makes the same batches.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Condition, Thread, current_thread
from threading import enumerate as threads
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from driver.errors import DeviceFault, OutOfMemory
from driver.isa import PACKET_BYTES
from driver.runtime import Buffer, Device
from driver.torch_device import _core
from driver.torch_device.keyboard_interrupt import raise_pending

_MAX_WAITING_BATCHES = 2
"""Batches that may wait or run while the next one is written."""
_CONTENTS_BYTES = 1 << 18
"""Memory for the descriptors and constants of one batch."""
_COPIED_BYTES = 1 << 20
"""More than that is stored when the queue is empty, instead of copied until its turn."""


_INTERRUPT_POLL_S = 0.2
"""How often a program that waits for the device looks for Ctrl-C."""


class QueuedOp(NamedTuple):
    """An op of a batch."""

    first: int
    """The number of its first packet."""
    name: str
    thread: int
    """That queued it."""
    position: int
    """Among all that was queued and stored."""
    begin: int
    """The position of the first op of the call of torch that it is a part of."""
    written: Sequence[int]
    """Addresses of what it writes to."""


@dataclass(frozen=True)
class QueuedCommands:
    """Bytes to store, then commands to run."""

    packets: bytes
    address: int
    contents: bytes
    ops: Sequence[QueuedOp]

    def op_of(self, packet: int) -> int:
        """The number of the op that has this packet."""
        return max(at for at, op in enumerate(self.ops) if op.first <= packet)

    def since(self, position: int) -> QueuedCommands:
        """Those of the ops from this position on."""
        ops = [op for op in self.ops if op.position >= position]
        begin = ops[0].first if ops else len(self.packets) // PACKET_BYTES
        ops = [op._replace(first=op.first - begin) for op in ops]
        packets = self.packets[begin * PACKET_BYTES :]
        return QueuedCommands(packets, self.address, self.contents, ops)


@dataclass(frozen=True, eq=False)
class QueuedBytes:
    """Bytes that the host stores after all commands before them."""

    address: int
    data: NDArray[np.uint8]


@dataclass(frozen=True)
class QueuedMark:
    """Where the cycle counter is noted."""

    mark: _core.Mark


Batch = tuple[bytes, int, bytes, Sequence[tuple[int, str, int, int, int, list[int]]]]
"""The fields of QueuedCommands, as the core hands them over."""
Item = Batch | QueuedBytes | QueuedMark


@dataclass(frozen=True)
class _HeardFault:
    """A fault that the program has heard of."""

    fault: DeviceFault
    thread: int | None
    """That heard of it first."""
    cut: int
    """The position of the next op then: what was queued before may need what did not run."""


class ContentsMemory:
    """Device memory for the contents of batches: one block per batch that may wait, run or grow.

    They take turns. The blocks are allocated before any command is queued, so none uses them.
    """

    def __init__(self, device: Device, free_released: Callable[[], None]) -> None:
        self._device = device
        self._free_released = free_released
        self._blocks = [device.alloc(_CONTENTS_BYTES) for _ in range(_MAX_WAITING_BATCHES + 1)]
        self._next = 0
        self._large: Buffer | None = None

    def free_after(self, size_bytes: int, items: Sequence[Item]) -> int:
        """How many of the waiting items must be done before there are so many bytes."""
        if size_bytes > _CONTENTS_BYTES:
            return len(items)
        block = self._blocks[self._next].address
        users = [at for at, item in enumerate(items, 1) if _contents_of(item) == block]
        return max(users, default=0)

    def take(self, size_bytes: int) -> Buffer:
        """The next block; nothing that is queued uses it. OutOfMemory."""
        if size_bytes > _CONTENTS_BYTES:
            if self._large is not None:
                self._device.free(self._large)
                self._large = None
            try:
                self._large = self._device.alloc(size_bytes)
            except OutOfMemory:
                self._free_released()
                self._large = self._device.alloc(size_bytes)
            return self._large
        block = self._blocks[self._next]
        self._next = (self._next + 1) % len(self._blocks)
        return block


def _contents_of(item: Item) -> int | None:
    """Where the contents of a batch are stored, if it has any."""
    return item[1] if isinstance(item, tuple) and item[2] else None


class WorkQueue:
    """One device's queue. Every method may be called from any thread."""

    def __init__(self, device: Device, index: int, free_released: Callable[[], None]) -> None:
        """`index`: the device's number in the C++ core. `free_released` frees the memory that is
        kept of tensors that are gone."""
        self._device = device
        self._index = index
        self._changed = Condition()
        self._items: deque[Item] = deque()
        """What is not done; the first one runs."""
        self._taken = partial(_core.take_batch, index)
        self._done = 0
        self._failed: tuple[DeviceFault, QueuedOp] | None = None
        """What the program has not heard of: until then nothing runs."""
        self._lost = 0
        self._heard: _HeardFault | None = None
        """The last one that it has heard of."""
        self._unreported: WeakKeyDictionary[Thread, DeviceFault] = WeakKeyDictionary()
        """Threads whose ops did not run, with the fault: it was raised in another thread."""
        self._dead: BaseException | None = None
        self._is_reported = False
        self._closed = False
        self._contents = ContentsMemory(device, free_released)
        self._thread = Thread(target=self._work, name=f"npu:{index}", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ the program's side
    def is_idle(self) -> bool:
        """Whether nothing is waiting or running."""
        with self._changed:
            self._hand_over()
            return self._done == self._queued

    def submit(self, needed_bytes: int = 0) -> None:
        """Hand the batch over; the next one gets memory for so many bytes of contents.

        Waits while two batches are ahead of it. OutOfMemory.
        """
        with self._changed:
            self._make_room()
            self._hand_over()
            if needed_bytes:
                while busy := self._contents.free_after(needed_bytes, self._items):
                    self._wait_until(self._done + busy)
                    self._hand_over()  # what other threads have begun since: it has memory
                memory = self._contents.take(needed_bytes)
                _core.set_contents_memory(self._index, memory.address, memory.size_bytes)

    def wait(self) -> None:
        """Until all that was queued has run. What went wrong since the last wait is raised."""
        with self._changed:
            self._hand_over()
            self._wait_until(self._queued)
            self._raise()

    def raise_fault(self) -> None:
        """What has gone wrong since the last wait, of what has run."""
        with self._changed:
            self._raise()

    def hear(self) -> None:
        """Wait until all that was queued has run. A fault that another thread was told of is raised
        if this thread's ops did not run because of it: what it queues next may need them."""
        with self._changed:
            self._hand_over()
            self._wait_until(self._queued)
            self._raise_earlier(self._unreported.pop(current_thread(), None))

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Store bytes after everything that is queued; `data` may change afterwards."""
        with self._changed:
            self._make_room()
            self._hand_over()
            if data.nbytes > _COPIED_BYTES:
                self._wait_until(self._queued)
            if self._done < self._queued:
                self._append(QueuedBytes(address, data.copy()))
            elif self._dead is None:
                self._device.write(address, data)

    def record(self, mark: _core.Mark) -> None:
        """Note the cycle counter after everything that is queued."""
        with self._changed:
            self._make_room()
            self._hand_over()
            self._append(QueuedMark(mark))

    def check(self) -> None:
        """Raise why the device can run nothing any more, if it cannot."""
        if self._dead is not None:
            self._is_reported = True
            raise self._dead.with_traceback(None)

    @property
    def is_dead(self) -> bool:
        """Whether it can run nothing any more."""
        return self._dead is not None

    def close(self) -> bool:
        """End the thread, after what is queued. An error that was never raised goes to stderr:
        False."""
        reported = self._is_reported
        sound = True
        try:
            self.wait()
        except BaseException as error:  # no caller is left who could handle it
            if not reported:
                sound = False
                sys.stderr.write(f"npu:{self._index}: {type(error).__name__}: {error}\n")
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        return sound

    @property
    def _queued(self) -> int:
        """How many items there were so far."""
        return self._done + len(self._items)

    def _make_room(self) -> None:
        self._wait_until(self._queued - _MAX_WAITING_BATCHES + 1)

    def _wait_until(self, done: int) -> None:
        self._changed.notify_all()  # a writer may have been interrupted before it notified
        while self._done < done:
            self._changed.wait(_INTERRUPT_POLL_S)
            raise_pending()

    def _hand_over(self) -> None:
        # From the core into the queue without a step of Python's in between, after which Ctrl-C
        # could come and the batch would be lost.
        self._items.extend(iter(self._taken, None))
        self._changed.notify_all()

    def _append(self, item: QueuedBytes | QueuedMark) -> None:
        self._items.append(item)
        self._changed.notify_all()

    def _raise(self) -> None:
        self.check()
        earlier = self._unreported.pop(current_thread(), None) if self._unreported else None
        if self._failed is not None:
            (fault, op), lost = self._failed, self._lost
            place = (op.begin, op.position, op.thread, op.written)
            cut = _core.mark_lost(self._index, *place, _lost_text(fault))
            self._heard = _HeardFault(fault, current_thread().ident, cut)
            self._failed, self._lost = None, 0
            ops = "1 op" if lost == 1 else f"{lost} ops"
            after = f" ({ops} queued after it did not run)" if lost else ""
            raise fault.of(fault.op + after)
        self._raise_earlier(earlier)

    @staticmethod
    def _raise_earlier(fault: DeviceFault | None) -> None:
        if fault is not None:
            raise fault.of(f"{fault.op} (what this thread had queued behind it did not run)")

    # ------------------------------------------------------------------ the thread's side
    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._items and not self._closed:
                    self._changed.wait()
                if not self._items:
                    return
                item = self._items[0]
            try:
                self._run(item)
            except BaseException as error:  # raised again where the program waits
                self._dead = error
                _core.forget_calls()  # so that the next call of any op comes here and gets it
            with self._changed:
                self._items.popleft()
                self._done += 1
                self._changed.notify_all()

    def _run(self, item: Item) -> None:
        if self._dead is not None:
            return
        match item:
            case QueuedBytes():
                self._device.write(item.address, item.data)
            case QueuedMark():
                item.mark.reach(self._device.cycles())
            case _:
                packets, address, contents, ops = item
                made = [QueuedOp(*op) for op in ops]
                self._run_commands(QueuedCommands(packets, address, contents, made))

    def _run_commands(self, item: QueuedCommands) -> None:
        if (failed := self._failed) is not None:  # what comes after may need it
            self._lost += len(item.ops)
            self._mark_unreported(failed[0], item.ops)
            return
        if (heard := self._heard) is not None and item.ops[0].position < heard.cut:
            skipped = [op for op in item.ops if op.position < heard.cut]
            unaware = [op for op in skipped if op.thread != heard.thread]
            self._mark_unreported(heard.fault, unaware)
            item = item.since(heard.cut)
            if not item.ops:
                return
        if item.contents:
            self._device.write(item.address, np.frombuffer(item.contents, np.uint8))
        limit_s = self._device.config.timeouts.wait_s * len(item.ops)
        try:
            self._device.run(item.packets, limit_s)
        except DeviceFault as fault:
            self._device.recover()  # the op is lost, the device is not
            at = item.op_of(fault.number)
            self._lost = len(item.ops) - 1 - at
            named = fault.of(item.ops[at].name)
            self._failed = named, item.ops[at]
            self._mark_unreported(named, item.ops[at:])

    def _mark_unreported(self, fault: DeviceFault, ops: Sequence[QueuedOp]) -> None:
        """Each of the program's threads that queued one of these ops gets the fault, whichever
        waits first. Those that torch has for backward passes are not among them: they wait for
        nothing.
        """
        queued = {op.thread for op in ops}
        own = (t for t in threads() if t.ident in queued and not t.name.startswith("Dummy-"))
        self._unreported.update(dict.fromkeys(own, fault))


def _lost_text(fault: DeviceFault) -> str:
    """What a tensor says that was made by an op that did not run."""
    return (
        f"this tensor was not computed: {fault.op} failed ({fault.code.name}), and what was queued "
        "after it did not run; make the tensor anew"
    )
