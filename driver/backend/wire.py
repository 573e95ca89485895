# SPDX-License-Identifier: Apache-2.0
"""The messages between a remote backend and its server: frames, and the accesses in them.

Little endian, by struct; nothing that is received is run. A frame longer than the receiver's limit
is refused before memory is taken for it.
"""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

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
from driver.backend.shared_memory import FAULT_SLOTS, BusError, FaultRange
from driver.errors import InfrastructureError

PROTOCOL_VERSION = 1
_MAGIC = b"NPUR"
_HEAD = struct.Struct("<4sHHII")
_PART_BYTES = 1 << 20
_COUNT = struct.Struct("<I")
_FAULT = struct.Struct("<QQBBB")
_PAGE = struct.Struct("<Q")
MAX_WAIT_S = 86_400.0
MAX_ACCESSES = 4096
"""In one frame."""
HANDSHAKE_BYTES = 4096
"""Longest frame before the client has proved that it knows the token."""


class FrameKind(IntEnum):
    """What a frame holds."""

    CHALLENGE = 1
    """Server: random bytes."""
    HELLO = 2
    """Client: JSON of driver.backend.handshake.Hello."""
    WELCOME = 3
    """Server: JSON of driver.backend.handshake.Welcome."""
    REQUEST = 4
    """Client: accesses."""
    REPLY = 5
    """Server: their results."""
    ERROR = 6
    """Server: JSON of driver.backend.handshake.RemoteError, for the request of that number."""


class ProtocolError(InfrastructureError):
    """The other side sent what the protocol does not allow."""


@dataclass(frozen=True)
class Frame:
    """One message. A reply and an error have the number of their request."""

    kind: FrameKind
    number: int
    payload: bytes


class FrameStream:
    """Frames over a connected socket. TimeoutError and OSError are the socket's own."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, frame: Frame, timeout_s: float) -> None:
        """The whole frame, within the time."""
        head = _HEAD.pack(_MAGIC, PROTOCOL_VERSION, frame.kind, frame.number, len(frame.payload))
        self._connection.settimeout(timeout_s)
        self._connection.sendall(head + frame.payload)

    def receive(self, limit_bytes: int, wait_s: float, frame_s: float) -> Frame:
        """The next frame, of which the first byte comes within `wait_s` and the last `frame_s`
        later. ConnectionResetError at the end of the stream, ProtocolError for other bytes.
        """
        first = self._take(1, time.monotonic() + wait_s)
        deadline = time.monotonic() + frame_s
        head = first + self._take(_HEAD.size - 1, deadline)
        magic, version, kind, number, size_bytes = _HEAD.unpack(head)
        if magic != _MAGIC:
            raise ProtocolError("the other side does not speak the protocol of npu-cosim serve")
        if version != PROTOCOL_VERSION:
            raise ProtocolError(
                f"protocol version {version} on the other side, expected {PROTOCOL_VERSION}"
            )
        if kind not in set(FrameKind):
            raise ProtocolError(f"a frame of unknown kind {kind}")
        if size_bytes > limit_bytes:
            raise ProtocolError(f"a frame of {size_bytes} bytes, expected at most {limit_bytes}")
        return Frame(FrameKind(kind), number, self._take(size_bytes, deadline))

    def _take(self, count: int, deadline: float) -> bytes:
        data = bytearray()  # grows with what comes, not with what is announced
        while len(data) < count:
            self._connection.settimeout(max(deadline - time.monotonic(), 1e-3))
            part = self._connection.recv(min(count - len(data), _PART_BYTES))
            if not part:
                raise ConnectionResetError("the connection was closed")
            data += part
            if time.monotonic() > deadline:
                raise TimeoutError("a frame did not end in time")
        return bytes(data)


# ---------------------------------------------------------------------- accesses
class Reader:
    """Takes values from received bytes. ProtocolError where there are too few."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, form: struct.Struct) -> tuple[Any, ...]:
        """The next numbers."""
        return form.unpack(self.bytes(form.size))

    def bytes(self, count: int) -> bytes:
        """The next bytes."""
        if self._at + count > len(self._data):
            raise ProtocolError("a frame that ends too early")
        self._at += count
        return self._data[self._at - count : self._at]

    def end(self) -> None:
        """Check that nothing is left."""
        if self._at != len(self._data):
            raise ProtocolError("a frame with bytes after its end")


@dataclass(frozen=True)
class _Code:
    """How one class of access is written: its numbers by `form`, then bytes of its own."""

    form: struct.Struct
    pack: Callable[..., bytes]
    unpack: Callable[[Reader, struct.Struct], Access]


def _simple(kind: type, form: str, *fields: str) -> _Code:
    numbers = struct.Struct(form)
    return _Code(
        numbers,
        lambda access: numbers.pack(*(getattr(access, field) for field in fields)),
        lambda reader, own: kind(*reader.take(own)),
    )


def _wait(kind: type[WaitInterrupt | TakeInterrupt]) -> _Code:
    def unpack(reader: Reader, form: struct.Struct) -> Access:
        (seconds,) = reader.take(form)
        if not math.isfinite(seconds) or not 0 <= seconds <= MAX_WAIT_S:
            raise ProtocolError(f"a wait of {seconds} s, expected 0 to {MAX_WAIT_S:g}")
        return kind(seconds)

    form = struct.Struct("<d")
    return _Code(form, lambda access: form.pack(allowed_wait(access.timeout_s)), unpack)


def allowed_wait(seconds: float) -> float:
    """The nearest wait that servers accept; 0 for no number."""
    return min(max(0.0, seconds), MAX_WAIT_S)


def _write_memory() -> _Code:
    form = struct.Struct("<QI")

    def unpack(reader: Reader, own: struct.Struct) -> Access:
        address, size_bytes = reader.take(own)
        return WriteMemory(address, reader.bytes(size_bytes))

    return _Code(form, lambda x: form.pack(x.address, len(x.data)) + bytes(x.data), unpack)


def _set_faults() -> _Code:
    def pack(access: SetFaults) -> bytes:
        return _COUNT.pack(len(access.ranges)) + b"".join(
            _FAULT.pack(f.begin, f.end, f.on_read, f.on_write, f.response) for f in access.ranges
        )

    def unpack(reader: Reader, own: struct.Struct) -> Access:
        (count,) = reader.take(own)
        if count > FAULT_SLOTS:
            raise ProtocolError(f"{count} fault ranges, expected at most {FAULT_SLOTS}")
        ranges = []
        for _ in range(count):
            begin, end, on_read, on_write, response = reader.take(_FAULT)
            if begin > end or response not in set(BusError):
                raise ProtocolError(f"a fault range {begin:#x} to {end:#x}, bus error {response}")
            ranges.append(FaultRange(begin, end, bool(on_read), bool(on_write), BusError(response)))
        return SetFaults(tuple(ranges))

    return _Code(_COUNT, pack, unpack)


_CODES: dict[type, tuple[int, _Code]] = {
    ReadRegister: (1, _simple(ReadRegister, "<I", "offset")),
    WriteRegister: (2, _simple(WriteRegister, "<II", "offset", "value")),
    ReadMemory: (3, _simple(ReadMemory, "<QI", "address", "size_bytes")),
    WriteMemory: (4, _write_memory()),
    WaitInterrupt: (5, _wait(WaitInterrupt)),
    TakeInterrupt: (6, _wait(TakeInterrupt)),
    Reset: (7, _simple(Reset, "<")),
    SetFaults: (8, _set_faults()),
    ReadDirtyPages: (9, _simple(ReadDirtyPages, "<")),
    ClearDirtyPages: (10, _simple(ClearDirtyPages, "<")),
}
_BY_NUMBER = dict(_CODES.values())
_KIND = struct.Struct("<B")


def pack_accesses(accesses: Sequence[Access]) -> bytes:
    """The payload of a request."""
    parts = [_COUNT.pack(len(accesses))]
    for access in accesses:
        number, code = _CODES[type(access)]
        parts += [_KIND.pack(number), code.pack(access)]
    return b"".join(parts)


def unpack_accesses(payload: bytes) -> list[Access]:
    """The accesses of a request. ProtocolError when it holds anything else."""
    reader = Reader(payload)
    (count,) = reader.take(_COUNT)
    if count > MAX_ACCESSES:
        raise ProtocolError(f"{count} accesses in one frame, expected at most {MAX_ACCESSES}")
    accesses: list[Access] = []
    for _ in range(count):
        (number,) = reader.take(_KIND)
        code = _BY_NUMBER.get(number)
        if code is None:
            raise ProtocolError(f"an access of unknown kind {number}")
        accesses.append(code.unpack(reader, code.form))
    reader.end()
    return accesses


def reply_bytes(access: Access, dirty_pages: int) -> int:
    """Longest result of an access on a device with so many pages."""
    if isinstance(access, ReadMemory):
        return access.size_bytes
    if isinstance(access, ReadDirtyPages):
        return _COUNT.size + dirty_pages * _PAGE.size
    return _COUNT.size


def pack_results(results: Sequence[AccessResult]) -> bytes:
    """The payload of a reply."""
    parts = []
    for result in results:
        if isinstance(result, int):
            parts.append(_COUNT.pack(result))
        elif isinstance(result, list):
            parts += [_COUNT.pack(len(result)), *(_PAGE.pack(page) for page in result)]
        elif result is not None:
            parts.append(result)
    return b"".join(parts)


def unpack_results(accesses: Sequence[Access], payload: bytes) -> list[AccessResult]:
    """The results of these accesses. ProtocolError when the reply is of others."""
    reader = Reader(payload)
    results: list[AccessResult] = []
    for access in accesses:
        match access:
            case ReadRegister() | WaitInterrupt() | TakeInterrupt():
                results.append(reader.take(_COUNT)[0])
            case ReadMemory(_, size_bytes):
                results.append(reader.bytes(size_bytes))
            case ReadDirtyPages():
                (count,) = reader.take(_COUNT)
                results.append([reader.take(_PAGE)[0] for _ in range(count)])
            case _:
                results.append(None)
    reader.end()
    return results
