# SPDX-License-Identifier: Apache-2.0
"""A device on another machine, behind `npu-cosim serve`, as a Backend.

Writes are collected and go with the next access that has a result, or with a doorbell; several
accesses at once (`exchange`) are one message. An error of a collected write is raised by the next
call. A broken connection takes the device's memory with it: every later call raises BackendDied.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NoReturn, cast

from driver.backend.accesses import (
    Access,
    AccessResult,
    ClearDirtyPages,
    ReadDirtyPages,
    ReadMemory,
    ReadRegister,
    Reset,
    SetFaults,
    TakeInterrupt,
    WaitInterrupt,
    WriteMemory,
    WriteRegister,
)
from driver.backend.handshake import (
    Hello,
    RemoteError,
    Welcome,
    from_remote,
    is_loopback,
    parsed,
    proof,
)
from driver.backend.registers import check_register
from driver.backend.settings import ClientSettings
from driver.backend.shared_memory import FaultRange
from driver.backend.wire import (
    HANDSHAKE_BYTES,
    MAX_ACCESSES,
    Frame,
    FrameKind,
    FrameStream,
    ProtocolError,
    allowed_wait,
    pack_accesses,
    unpack_results,
)
from driver.config import HwConfig
from driver.errors import (
    AddressError,
    BackendDied,
    InfrastructureError,
    InputError,
    NpuError,
    SimulatorTimeout,
)
from driver.isa import csr

_DOORBELLS = frozenset((csr.RING_TAIL, csr.RING1_TAIL, csr.CMD_PUSH, csr.CTRL))
"""Registers whose write starts something: it is sent at once."""
_OVERHEAD_BYTES = 64
"""More than an access takes besides its data, in a request or a reply."""
_UNANSWERED = 64
"""Requests sent without waiting; their replies are awaited then."""
_COLLECTED_BYTES = 1 << 20
_NUMBERS = 1 << 32


class RemoteBackend:
    """A device that a server has opened for this client alone. It ends with the connection.

    BackendDied when there is no server; InputError when it refuses the token, has no device left,
    or has another memory map than `config`.
    """

    def __init__(
        self, config: HwConfig, *, address: tuple[str, int], settings: ClientSettings | None = None
    ) -> None:
        self._settings = settings or ClientSettings.from_environment()
        host, port = address
        self._name = f"remote://[{host}]:{port}" if ":" in host else f"remote://{host}:{port}"
        self._memory = range(config.memory.base, config.memory.limit)
        self._lock = threading.RLock()
        self._writes: list[Access] = []
        self._write_bytes = 0
        self._number = 0
        self._unanswered = 0
        self._gone: str | None = None
        self._failed: NpuError | None = None
        self.messages = 0
        """Requests sent so far."""
        self.waits = 0
        """How often a reply was awaited: each is a round trip."""
        self._socket = self._connect(address)
        self._stream = FrameStream(self._socket)
        try:
            welcome = self._shake_hands(config)
        except BaseException:
            self._socket.close()
            raise
        self._frame_bytes = welcome.max_frame_bytes
        self.version = f"{welcome.backend} {welcome.version}"
        self.features = frozenset(welcome.features)

    def _connect(self, address: tuple[str, int]) -> socket.socket:
        host, ca_file = address[0], self._settings.ca_file
        try:
            connection = socket.create_connection(address, self._settings.connect_s)
        except OSError as error:
            raise BackendDied(f"{self._name}: cannot connect: {error}") from error
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if ca_file is None and is_loopback(host):
            return connection
        try:
            context = ssl.create_default_context(cafile=ca_file)
            return context.wrap_socket(connection, server_hostname=host)
        except ssl.SSLError as error:
            connection.close()
            raise InfrastructureError(f"{self._name}: no TLS connection: {error}") from error
        except OSError as error:
            connection.close()
            if ca_file is not None and not ca_file.is_file():
                expected = "a file of certificates"
                raise InputError("remote backend", "CA file", ca_file, expected) from error
            raise BackendDied(f"{self._name}: no TLS connection: {error}") from error

    def _shake_hands(self, config: HwConfig) -> Welcome:
        wait_s = self._settings.connect_s
        try:
            challenge = self._stream.receive(HANDSHAKE_BYTES, wait_s, wait_s)
            self._refuse_error(challenge)
            hello = Hello(
                proof=proof(self._settings.token, challenge.payload),
                memory_base=config.memory.base,
                memory_limit=config.memory.limit,
            )
            payload = hello.model_dump_json().encode()
            self._stream.send(Frame(FrameKind.HELLO, 0, payload), wait_s)
            answer = self._stream.receive(HANDSHAKE_BYTES, self._settings.answer_s, wait_s)
            self._refuse_error(answer)
            return parsed(Welcome, answer.payload)
        except OSError as error:
            raise BackendDied(f"{self._name}: no answer to the handshake: {error}") from error
        except ProtocolError as error:
            raise ProtocolError(f"{self._name}: {error}") from error

    def _refuse_error(self, frame: Frame) -> None:
        if frame.kind is FrameKind.ERROR:
            raise from_remote(parsed(RemoteError, frame.payload), self._name)

    # ------------------------------------------------------------------ Backend verbs
    def read_csr(self, offset: int) -> int:
        """See Backend."""
        check_register(offset)
        return cast("int", self._one(ReadRegister(offset)))

    def write_csr(self, offset: int, value: int) -> None:
        """See Backend. Collected, unless it is a doorbell."""
        check_register(offset, value)
        self._collect(WriteRegister(offset, value), _OVERHEAD_BYTES)
        if offset in _DOORBELLS:
            self.flush()

    def read_memory(self, address: int, size_bytes: int) -> bytes:
        """See Backend."""
        self._check_range(address, size_bytes)
        return cast("bytes", self._one(ReadMemory(address, size_bytes)))

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """See Backend. Collected: the bytes are copied."""
        own = bytes(data)
        self._check_range(address, len(own))
        self._collect(WriteMemory(address, own), len(own) + _OVERHEAD_BYTES)

    def wait_interrupt(self, timeout_s: float) -> int:
        """See Backend."""
        return cast("int", self._one(WaitInterrupt(timeout_s)))

    def reset(self) -> None:
        """See Backend."""
        self._one(Reset())

    def close(self) -> None:
        """See Backend. The server closes the device."""
        with self._lock:
            if self._gone is None:
                with suppress(NpuError):
                    self.flush()
                self._gone = f"{self._name} has been closed"
            with suppress(OSError):
                self._socket.close()

    # ------------------------------------------------------------------ inspection
    def dirty_pages(self) -> list[int]:
        """See InspectableBackend."""
        return cast("list[int]", self._one(ReadDirtyPages()))

    def clear_dirty(self) -> None:
        """See InspectableBackend."""
        self._one(ClearDirtyPages())

    def set_faults(self, ranges: list[FaultRange]) -> None:
        """See InspectableBackend."""
        self._one(SetFaults(tuple(ranges)))

    # ------------------------------------------------------------------ messages
    def exchange(self, accesses: Sequence[Access]) -> list[AccessResult]:
        """See BatchingBackend. One round trip, unless they are longer than a frame."""
        with self._lock:
            first = len(self._writes)
            every = [*self._writes, *accesses]
            self._writes, self._write_bytes = [], 0
            results: list[list[AccessResult]] = [[] for _ in every]
            for frame in _frames(every, self._frame_bytes):
                found = self._ask([part for _, part in frame])
                for (index, _), result in zip(frame, found, strict=True):
                    results[index].append(result)
            return [_joined(parts) for parts in results[first:]]

    def flush(self) -> None:
        """Send the collected writes; do not wait for the server."""
        with self._lock:
            writes, self._writes, self._write_bytes = self._writes, [], 0
            for frame in _frames(writes, self._frame_bytes):
                self._send([part for _, part in frame])
            if self._unanswered >= _UNANSWERED:
                self._await([])

    def _one(self, access: Access) -> AccessResult:
        return self.exchange([access])[0]

    def _collect(self, access: Access, size_bytes: int) -> None:
        with self._lock:
            self._check_alive()
            self._writes.append(access)
            self._write_bytes += size_bytes
            if self._write_bytes > _COLLECTED_BYTES or len(self._writes) >= MAX_ACCESSES:
                self.flush()

    def _check_alive(self) -> None:
        if self._gone is not None:
            raise BackendDied(self._gone)

    def _check_range(self, address: int, size_bytes: int) -> None:
        begin, end = self._memory.start, self._memory.stop
        if size_bytes < 0 or not begin <= address <= end - size_bytes:
            raise AddressError(address, size_bytes, f"an access inside [{begin:#x}, {end:#x})")

    def _ask(self, accesses: list[Access]) -> list[AccessResult]:
        self._send(accesses)
        return self._await(accesses)

    def _send(self, accesses: list[Access]) -> None:
        self._check_alive()
        self._number = (self._number + 1) % _NUMBERS
        frame = Frame(FrameKind.REQUEST, self._number, pack_accesses(accesses))
        self.messages += 1
        self._unanswered += 1
        try:
            self._stream.send(frame, self._settings.answer_s)
        except BaseException as error:  # an interrupt too leaves half a frame
            self._lose("sending", error)

    def _await(self, accesses: list[Access]) -> list[AccessResult]:
        """The results of the last request; the replies to those before it come first."""
        waits = [x.timeout_s for x in accesses if isinstance(x, WaitInterrupt | TakeInterrupt)]
        wait_s = self._settings.answer_s + sum(map(allowed_wait, waits))
        self.waits += 1
        results: list[AccessResult] = []
        while self._unanswered:
            frame = self._receive(wait_s)
            expected = (self._number - self._unanswered + 1) % _NUMBERS
            if frame.kind is FrameKind.ERROR and frame.number == 0 != expected:
                self._end_by(frame)  # of no request: the server has ended the session
            if frame.number != expected:
                self._lose("a reply", ProtocolError(f"to request {frame.number}, not {expected}"))
            self._unanswered -= 1
            try:
                self._refuse_error(frame)
                results = unpack_results([] if self._unanswered else accesses, frame.payload)
            except ProtocolError as error:
                self._lose("a reply", error)
            except NpuError as error:
                self._failed = self._failed or error
        failed, self._failed = self._failed, None
        if isinstance(failed, BackendDied):
            self._gone = str(failed)
        if failed is not None:
            raise failed
        return results

    def _receive(self, wait_s: float) -> Frame:
        try:
            frame = self._stream.receive(self._frame_bytes, wait_s, self._settings.answer_s)
        except BaseException as error:  # an interrupt too: the rest of the reply would be misread
            self._lose("receiving", error)
        if frame.kind not in (FrameKind.REPLY, FrameKind.ERROR):
            self._lose("receiving", ProtocolError(f"a frame {frame.kind.name}"))
        return frame

    def _end_by(self, frame: Frame) -> NoReturn:
        try:
            self._refuse_error(frame)
        except NpuError as error:
            self._lose("receiving", error)
        raise AssertionError("an ERROR frame holds an error")

    def _lose(self, doing: str, error: BaseException) -> NoReturn:
        with suppress(OSError):
            self._socket.close()
        why = str(error) or type(error).__name__
        lost = f"its memory and {self._unanswered} unanswered requests are lost"
        self._gone = f"{self._name}: the connection broke while {doing} ({why}); {lost}"
        if isinstance(error, TimeoutError):
            raise SimulatorTimeout(self._gone) from error
        if isinstance(error, Exception):
            raise BackendDied(self._gone) from error
        raise error


def _frames(accesses: Sequence[Access], limit: int) -> Iterator[list[tuple[int, Access]]]:
    """The accesses in frames whose request and reply keep the limit, each with its index: one that
    is longer is cut into several of the same index."""
    frame: list[tuple[int, Access]] = []
    used = _OVERHEAD_BYTES
    for index, access in enumerate(accesses):
        for part in _parts(access, limit - 2 * _OVERHEAD_BYTES):
            size_bytes = _size(part) + _OVERHEAD_BYTES
            if frame and (used + size_bytes > limit or len(frame) >= MAX_ACCESSES):
                yield frame
                frame, used = [], _OVERHEAD_BYTES
            frame.append((index, part))
            used += size_bytes
    if frame:
        yield frame


def _size(access: Access) -> int:
    if isinstance(access, ReadMemory):
        return access.size_bytes
    return len(access.data) if isinstance(access, WriteMemory) else 0


def _parts(access: Access, limit: int) -> Iterator[Access]:
    if _size(access) <= limit:
        yield access
    elif isinstance(access, ReadMemory):
        for at in range(0, access.size_bytes, limit):
            yield ReadMemory(access.address + at, min(limit, access.size_bytes - at))
    elif isinstance(access, WriteMemory):
        for at in range(0, len(access.data), limit):
            yield WriteMemory(access.address + at, access.data[at : at + limit])


def _joined(parts: list[AccessResult]) -> AccessResult:
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    return b"".join(part for part in parts if isinstance(part, bytes))
