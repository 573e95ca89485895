# SPDX-License-Identifier: Apache-2.0
"""Bytes that no client of ours sends: the server refuses them, stays up, and takes no more memory
and time than its limits; a client is as careful with its server."""

from __future__ import annotations

import errno
import json
import random
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from backend_host import CONFIG
from remote_host import connect, serving
from tls_pair import make_pair

from driver.backend.accesses import (
    Access,
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
from driver.backend.handshake import RemoteError, from_remote
from driver.backend.remote import RemoteBackend
from driver.backend.server import BackendServer
from driver.backend.settings import ClientSettings
from driver.backend.shared_memory import FaultRange
from driver.backend.wire import (
    MAX_ACCESSES,
    PROTOCOL_VERSION,
    FrameKind,
    ProtocolError,
    pack_accesses,
    unpack_accesses,
    unpack_results,
)
from driver.errors import InfrastructureError, NpuError
from driver.isa import DEVICE_ID, csr

LIMIT = 2 << 20
BASE, END = CONFIG.memory.base, CONFIG.memory.limit
EVERY: list[Access] = [
    ReadRegister(csr.ID),
    WriteRegister(csr.IRQ_ENABLE, 7),
    ReadMemory(BASE, 64),
    WriteMemory(BASE, bytes(range(64))),
    WaitInterrupt(0.0),
    TakeInterrupt(0.0),
    Reset(),
    SetFaults((FaultRange(BASE, BASE + 64),)),
    ReadDirtyPages(),
    ClearDirtyPages(),
]


@pytest.fixture(scope="module")
def server() -> Iterator[BackendServer]:
    with serving(
        max_frame_bytes=LIMIT, handshake_s=1.0, frame_s=0.5, idle_s=2.0, max_clients=4
    ) as opened:
        yield opened


def head(kind: int, size: int, *, magic: bytes = b"NPUR", version: int = PROTOCOL_VERSION) -> bytes:
    return struct.pack("<4sHHII", magic, version, kind, 1, size)


def request(payload: bytes) -> bytes:
    return head(FrameKind.REQUEST, len(payload)) + payload


HELLO = json.dumps({"proof": "", "memory_base": BASE, "memory_limit": END}).encode()
GREETED = head(FrameKind.HELLO, len(HELLO)) + HELLO


def answer(server: BackendServer, data: bytes) -> bytes:
    """What the server sends until it closes the connection, or is silent and the client leaves."""
    with socket.create_connection(server.address, 5) as connection:
        connection.settimeout(8)
        received = b""
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                received += part
        except ConnectionError:
            pass
        except OSError as error:  # the server has closed it before
            assert error.errno == errno.ENOTCONN
        return received


def check_alive(server: BackendServer) -> None:
    backend = connect(server)
    assert backend.read_csr(csr.ID) == DEVICE_ID
    backend.close()


MALFORMED = {
    "nothing": b"",
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "other magic": head(FrameKind.HELLO, 4, magic=b"NPUX") + b"1234",
    "other version": head(FrameKind.HELLO, len(HELLO), version=99) + HELLO,
    "unknown kind": head(77, 0),
    "request before hello": request(pack_accesses(EVERY)),
    "hello that is no json": head(FrameKind.HELLO, 4) + b"\xff\xfe{}",
    "hello with more": head(FrameKind.HELLO, len(HELLO) + 9) + HELLO[:-1] + b', "x": 12}',
    "hello too long": head(FrameKind.HELLO, 1 << 31),
    "two hellos": GREETED + GREETED,
    "request too long": GREETED + head(FrameKind.REQUEST, LIMIT + 1),
    "request of 4 GiB": GREETED + head(FrameKind.REQUEST, 0xFFFF_FFFF),
    "reply too long": GREETED + request(pack_accesses([ReadMemory(BASE, LIMIT + 1)])),
    "many replies": GREETED + request(pack_accesses([ReadMemory(BASE, LIMIT // 8)] * 9)),
    "too many accesses": GREETED + request(struct.pack("<I", MAX_ACCESSES + 1)),
    "count of 4 billion": GREETED + request(struct.pack("<I", 0xFFFF_FFFF)),
    "unknown access": GREETED + request(struct.pack("<IB", 1, 200)),
    "cut access": GREETED + request(pack_accesses(EVERY)[:-7]),
    "bytes after": GREETED + request(pack_accesses(EVERY) + b"x"),
    "wait of nan": GREETED + request(struct.pack("<IBd", 1, 5, float("nan"))),
    "wait without end": GREETED + request(struct.pack("<IBd", 1, 6, float("inf"))),
    "write longer than frame": GREETED + request(struct.pack("<IBQI", 1, 4, BASE, 1 << 30)),
    "faults without end": GREETED + request(struct.pack("<IBI", 1, 8, 1 << 30)),
    "fault of no kind": GREETED + request(struct.pack("<IBIQQBBB", 1, 8, 1, 0, 1, 1, 1, 77)),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_message_ends_only_its_own_session(server: BackendServer, name: str) -> None:
    other = connect(server)
    received = answer(server, MALFORMED[name])
    assert received[:4] == b"NPUR", "the challenge"
    if name not in ("nothing", "http", "other magic"):
        assert b'"kind":"InfrastructureError"' in received, received
    assert other.read_csr(csr.ID) == DEVICE_ID
    other.close()
    check_alive(server)


ODD_BUT_WELL_FORMED: list[list[Access]] = [
    [],
    [ReadRegister(0xFFFF_FFFF)],
    [WriteRegister(3, 0xFFFF_FFFF)],
    [ReadMemory((1 << 64) - 1, 64)],
    [ReadMemory(END, 1)],
    [WriteMemory((1 << 64) - 1, b"beyond")],
    [SetFaults((FaultRange((1 << 64) - 1, 0),))],
    [SetFaults((FaultRange(0, (1 << 64) - 1),)), ReadMemory(BASE, 1)],
]


@pytest.mark.parametrize("number", range(len(ODD_BUT_WELL_FORMED)))
def test_odd_values_are_answered(server: BackendServer, number: int) -> None:
    received = answer(server, GREETED + request(pack_accesses(ODD_BUT_WELL_FORMED[number])))
    assert received.count(b"NPUR") == 3, "challenge, welcome, reply or error"
    check_alive(server)


def mutated(rng: random.Random) -> bytes:
    """A request that was right, with some bytes changed, cut or doubled."""
    data = bytearray(pack_accesses(rng.sample(EVERY, rng.randrange(1, len(EVERY) + 1))))
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + rng.randrange(1, 9)]
            case 2:
                data[at:at] = rng.randbytes(rng.randrange(1, 9))
            case _:
                data[at : at + 4] = struct.pack("<I", rng.choice((0, 1, 0x7FFF_FFFF, 0xFFFF_FFFF)))
        data = data or bytearray(b"\0")
    return bytes(data)


def test_accesses_of_any_bytes_are_accesses_or_a_protocol_error() -> None:
    rng = random.Random(4)
    outcomes = {"read": 0, "refused": 0}
    for round_ in range(3000):
        data = mutated(rng) if round_ % 2 else rng.randbytes(rng.randrange(100))
        try:
            accesses = unpack_accesses(data)
        except ProtocolError:
            outcomes["refused"] += 1
        else:
            outcomes["read"] += 1
            assert len(pack_accesses(accesses)) == len(data)
    assert min(outcomes.values()) > 100, outcomes


def test_every_access_survives_the_wire() -> None:
    assert unpack_accesses(pack_accesses(EVERY)) == EVERY
    with pytest.raises(ProtocolError):
        unpack_results([ReadMemory(0, 8)], b"1234567")
    with pytest.raises(ProtocolError):
        unpack_results([ReadRegister(0)], b"12345")


def test_random_messages_neither_end_the_server_nor_fill_its_memory(server: BackendServer) -> None:
    rng = random.Random(7)
    tracemalloc.start()
    try:
        for round_ in range(150):
            match round_ % 3:
                case 0:
                    data = rng.randbytes(rng.randrange(1, 300))
                case 1:
                    data = GREETED + request(mutated(rng))
                case _:
                    size = rng.choice((0, 1, 40, LIMIT, LIMIT + 1, 1 << 31))
                    data = GREETED + head(rng.randrange(9), size) + rng.randbytes(40)
            answer(server, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * LIMIT
    check_alive(server)


def test_a_frame_that_does_not_end_is_cut_off(server: BackendServer) -> None:
    """One byte now and then does not keep a session: not in the handshake, not after it."""
    for begun, limit_s in ((b"", 1.0), (GREETED, 0.5)):
        with socket.create_connection(server.address, 5) as connection:
            connection.sendall(begun)
            started = time.monotonic()
            with pytest.raises(ConnectionError):
                for byte in head(FrameKind.REQUEST, 1000) + bytes(1000):
                    connection.sendall(bytes([byte]))
                    time.sleep(0.1)
            assert time.monotonic() - started < limit_s + 5
    check_alive(server)


def test_a_tls_handshake_that_does_not_end_is_cut_off(tmp_path: Path) -> None:
    certificate, key = make_pair(tmp_path)
    with (
        serving(certificate=certificate, key=key, handshake_s=0.5) as server,
        socket.create_connection(server.address, 5) as connection,
    ):
        started = time.monotonic()
        with pytest.raises(ConnectionError):
            for byte in b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(60):
                connection.sendall(bytes([byte]))
                time.sleep(0.1)
        assert time.monotonic() - started < 5


def test_silent_connections_do_not_keep_others_out(server: BackendServer) -> None:
    silent = [socket.create_connection(server.address, 5) for _ in range(20)]
    deadline = time.monotonic() + 10
    while True:
        try:
            check_alive(server)
            break
        except NpuError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    for connection in silent:
        connection.close()


# ---------------------------------------------------------------------- a hostile server
def served_by(answers: Callable[[socket.socket], None]) -> InfrastructureError:
    """The error of a client whose server sends such bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def talk() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(5)
                answers(connection)

        thread = threading.Thread(target=talk)
        thread.start()
        settings = ClientSettings(connect_s=0.5, answer_s=0.5)
        try:
            with pytest.raises(InfrastructureError) as caught:
                backend = RemoteBackend(CONFIG, address=listener.getsockname(), settings=settings)
                backend.read_csr(csr.ID)
        finally:
            thread.join(10)
        return caught.value


WELCOME = json.dumps(
    {"backend": "x", "version": "1", "features": [], "max_frame_bytes": 1 << 16}
).encode()
CHALLENGE = head(FrameKind.CHALLENGE, 32) + bytes(32)
WELCOMED = head(FrameKind.WELCOME, len(WELCOME)) + WELCOME


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n" + bytes(40),
        head(FrameKind.CHALLENGE, 1 << 31),
        CHALLENGE + head(FrameKind.WELCOME, 3) + b"abc",
        CHALLENGE + WELCOMED + head(FrameKind.REPLY, 1 << 31),
        CHALLENGE + WELCOMED + head(FrameKind.REPLY, 5) + b"12345",
        CHALLENGE + WELCOMED + head(FrameKind.HELLO, 0),
        CHALLENGE + WELCOMED + head(FrameKind.ERROR, 2) + b"{}",
    ],
)
def test_a_server_that_breaks_the_protocol_is_one_error(data: bytes) -> None:
    def answers(connection: socket.socket) -> None:
        connection.sendall(data)
        with suppress(ConnectionError):
            while connection.recv(4096):
                pass

    error = served_by(answers)
    assert str(error).startswith("remote://127.0.0.1:")
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    "error",
    [
        RemoteError(kind="RegisterError"),
        RemoteError(kind="DeviceHung", numbers=(1, 2), texts=("x",)),
        RemoteError(kind="SystemExit", texts=("x",)),
    ],
)
def test_an_error_of_unknown_form_is_no_other_one(error: RemoteError) -> None:
    assert isinstance(from_remote(error, "remote://x:1"), ProtocolError)
