# SPDX-License-Identifier: Apache-2.0
"""Serves devices to remote backends (docs/remote.md): one device per client, opened for it alone.

Nothing that a client sends is believed: every frame has a limit of bytes and of time, its accesses
are checked before the first is made, and a client that breaks the rules loses only its own session.
"""

from __future__ import annotations

import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from driver.backend.accesses import Access, AccessResult, perform_one
from driver.backend.handshake import (
    CHALLENGE_BYTES,
    Hello,
    Welcome,
    is_loopback,
    parsed,
    proves,
    to_remote,
)
from driver.backend.protocol import Feature, InspectableBackend
from driver.backend.registry import backend_info, open_backend
from driver.backend.shared_memory import PAGE_BYTES
from driver.backend.wire import (
    HANDSHAKE_BYTES,
    Frame,
    FrameKind,
    FrameStream,
    ProtocolError,
    pack_results,
    reply_bytes,
    unpack_accesses,
)
from driver.config import CONFIG_FILE, HwConfig
from driver.errors import BackendDied, InputError, NpuError, printable

Note = Callable[[str], None]
_MOST_IDLE_S = 1e6
_POLL_S = 0.2
_MORE_HANDSHAKES = 8
"""Connections that may be in their handshake while all devices are in use."""
_SENDING_S = 60.0
_ENDING_S = 0.5
_PASSED_ON = frozenset(set(Feature) - {Feature.MAPPED_MEMORY})
"""Features that a client has too."""


@dataclass(frozen=True)
class ServerSettings:
    """What is served, to whom, within which limits. InputError for what would not be safe."""

    backend: str
    config: HwConfig
    config_file: Path = CONFIG_FILE
    """Where that is from: `backend` may be of it, and a simulator is built from it."""
    host: str = "127.0.0.1"
    port: int = 0
    """0: any free one."""
    token: bytes | None = None
    certificate: Path | None = None
    key: Path | None = None
    max_clients: int = 4
    max_frame_bytes: int = 16 << 20
    handshake_s: float = 10.0
    frame_s: float = 60.0
    """Longest time from the first to the last byte of a frame."""
    idle_s: float = 3600.0
    """Longest time between two requests of a client."""

    def __post_init__(self) -> None:
        if not 0 < self.idle_s <= _MOST_IDLE_S:
            raise InputError("serve", "idle-s", self.idle_s, f"up to {_MOST_IDLE_S:g} s")
        if (self.certificate is None) != (self.key is None):
            raise InputError("serve", "certificate and key", "one of them", "both or none")
        if is_loopback(self.host):
            return
        if self.token is None or self.certificate is None:
            expected = "an address of this machine such as 127.0.0.1, or token, certificate and key"
            raise InputError("serve", "host", self.host, expected)


class BackendServer:
    """Listens from the start on; `serve` answers until `stop`."""

    def __init__(self, settings: ServerSettings, note: Note = lambda text: None) -> None:
        self._settings = settings
        self._note = note
        self._tls = _tls_context(settings)
        self._devices = threading.BoundedSemaphore(settings.max_clients)
        self._connections = threading.BoundedSemaphore(settings.max_clients + _MORE_HANDSHAKES)
        self._stopping = threading.Event()
        self._sessions: dict[threading.Thread, socket.socket] = {}
        self._lock = threading.Lock()
        self._open().close()  # builds a simulator now
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        try:
            self._listener = socket.create_server((settings.host, settings.port), family=family)
        except OSError as error:
            where = f"{settings.host}:{settings.port}"
            raise InputError("serve", "host and port", where, f"a free one: {error}") from error
        self._listener.settimeout(_POLL_S)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that clients connect to."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    def serve(self) -> None:
        """Answer clients, each in a thread of its own, until `stop`."""
        while not self._stopping.is_set():
            try:
                connection, peer = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                self._stopping.wait(_POLL_S)  # no file descriptor is left, for example
                continue
            if not self._connections.acquire(blocking=False):
                connection.close()
                continue
            thread = threading.Thread(
                target=self._session, args=(connection, f"{peer[0]}:{peer[1]}"), daemon=True
            )
            with self._lock:
                self._sessions[thread] = connection
            thread.start()

    def stop(self) -> None:
        """End all sessions and close their devices."""
        self._stopping.set()
        self._listener.close()
        with self._lock:
            sessions = dict(self._sessions)
        for connection in sessions.values():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in sessions:
            if thread is not threading.current_thread():
                thread.join(_SENDING_S)

    # ------------------------------------------------------------------ one client
    def _session(self, connection: socket.socket, peer: str) -> None:
        try:
            self._talk(self._shake_hands(connection), peer)
        except (OSError, NpuError) as error:
            self._note(printable(f"{peer}: {error}"))
        except Exception as error:  # a fault of the server must not end the other sessions
            self._note(printable(f"{peer}: internal error: {type(error).__name__}: {error}"))
        finally:
            with self._lock:
                current = self._sessions.pop(threading.current_thread())
            _end(current)
            self._connections.release()

    def _shake_hands(self, connection: socket.socket) -> FrameStream:
        connection.settimeout(self._settings.handshake_s)  # of the TLS handshake as a whole
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
            with self._lock:
                self._sessions[threading.current_thread()] = connection
        stream = FrameStream(connection)
        with _errors_sent(stream):
            self._check_hello(stream)
        return stream

    def _talk(self, stream: FrameStream, peer: str) -> None:
        settings = self._settings
        try:
            with _errors_sent(stream), self._opened() as backend:
                self._note(f"{peer}: opened {settings.backend}")
                self._welcome(stream, backend)
                _Session(stream, backend, settings).answer_all()
        except ConnectionResetError:
            self._note(f"{peer}: closed")

    def _check_hello(self, stream: FrameStream) -> None:
        limits = self._settings
        challenge = secrets.token_bytes(CHALLENGE_BYTES)
        stream.send(Frame(FrameKind.CHALLENGE, 0, challenge), limits.handshake_s)
        frame = stream.receive(HANDSHAKE_BYTES, limits.handshake_s, limits.handshake_s)
        if frame.kind is not FrameKind.HELLO:
            raise ProtocolError(f"a frame {frame.kind.name}, expected HELLO")
        hello = parsed(Hello, frame.payload)
        if not proves(hello.proof, limits.token, challenge):
            raise InputError("client", "token", "another or none", "that of the server")
        memory = limits.config.memory
        if (hello.memory_base, hello.memory_limit) != (memory.base, memory.limit):
            raise InputError(
                "client",
                "memory",
                f"{hello.memory_base:#x} to {hello.memory_limit:#x}",
                f"{memory.base:#x} to {memory.limit:#x}, as configuration {limits.config.name}",
            )

    def _open(self) -> InspectableBackend:
        settings = self._settings
        return open_backend(settings.backend, settings.config, file=settings.config_file)

    @contextmanager
    def _opened(self) -> Iterator[InspectableBackend]:
        if not self._devices.acquire(blocking=False):
            number = self._settings.max_clients
            raise InputError("client", "device", "one more", f"at most {number} at the same time")
        try:
            backend = self._open()
            try:
                yield backend
            finally:
                backend.close()
        finally:
            self._devices.release()

    def _welcome(self, stream: FrameStream, backend: InspectableBackend) -> None:
        info = backend_info(self._settings.backend, backend)
        welcome = Welcome(
            backend=info.name,
            version=info.version,
            features=tuple(name for name in info.features if name in _PASSED_ON),
            max_frame_bytes=self._settings.max_frame_bytes,
        )
        payload = welcome.model_dump_json().encode()
        stream.send(Frame(FrameKind.WELCOME, 0, payload), _SENDING_S)


@dataclass(frozen=True)
class _Session:
    """The requests of one client on its device."""

    stream: FrameStream
    backend: InspectableBackend
    settings: ServerSettings

    def answer_all(self) -> None:
        """Until the client closes the connection, or the device dies. ProtocolError when the client
        breaks the rules."""
        limits = self.settings
        while True:
            frame = self.stream.receive(limits.max_frame_bytes, limits.idle_s, limits.frame_s)
            if frame.kind is not FrameKind.REQUEST:
                raise ProtocolError(f"a frame {frame.kind.name}, expected REQUEST")
            accesses = unpack_accesses(frame.payload)
            self._check_reply(accesses)
            try:
                results = self._results(accesses)
            except NpuError as error:
                _send_error(self.stream, frame.number, error)
                if isinstance(error, BackendDied):
                    return
                continue
            reply = Frame(FrameKind.REPLY, frame.number, pack_results(results))
            self.stream.send(reply, _SENDING_S)

    def _check_reply(self, accesses: Sequence[Access]) -> None:
        memory = self.settings.config.memory
        pages = -(-(memory.limit - memory.base) // PAGE_BYTES)
        size_bytes = sum(reply_bytes(access, pages) for access in accesses)
        if size_bytes > self.settings.max_frame_bytes:
            limit = self.settings.max_frame_bytes
            raise ProtocolError(f"a reply of {size_bytes} bytes, expected at most {limit}")

    def _results(self, accesses: Sequence[Access]) -> list[AccessResult]:
        try:
            return [perform_one(self.backend, access) for access in accesses]
        except NpuError:
            raise
        except Exception as error:
            text = f"internal error of the backend: {type(error).__name__}: {error}"
            raise BackendDied(printable(text)) from error


@contextmanager
def _errors_sent(stream: FrameStream) -> Iterator[None]:
    """Tell the client why its session ends."""
    try:
        yield
    except NpuError as error:
        _send_error(stream, 0, error)
        raise


def _end(connection: socket.socket) -> None:
    """Close it; what was sent before arrives, although the client may still be sending."""
    deadline = time.monotonic() + _ENDING_S
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(_ENDING_S)
        while time.monotonic() < deadline and connection.recv(1 << 16):
            pass
    with suppress(OSError):
        connection.close()


def _send_error(stream: FrameStream, number: int, error: NpuError) -> None:
    payload = to_remote(error).model_dump_json().encode()
    with suppress(OSError):
        stream.send(Frame(FrameKind.ERROR, number, payload), _SENDING_S)


def _tls_context(settings: ServerSettings) -> ssl.SSLContext | None:
    if settings.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.certificate, settings.key)
    except OSError as error:  # ssl.SSLError is one
        what = f"{settings.certificate} and {settings.key}"
        raise InputError("serve", "certificate and key", what, f"a pair in PEM: {error}") from error
    return context
