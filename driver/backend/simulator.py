# SPDX-License-Identifier: Apache-2.0
"""A simulator in a process of its own, and the socket protocol that drives it.

tb/sim/core/protocol.h is the other end. Knows processes, verbs and time limits; not registers.
Whatever happens to the process, the caller gets SimulatorDied, SimulatorTimeout or what the RTL did
within seconds, and no process stays behind: it ends when its socket does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

from driver.backend.rtl_errors import rtl_error
from driver.errors import InfrastructureError, SimulatorDied, SimulatorTimeout, VerdictError

VERSION = 2
_MAGIC = 0x5355504E
_HEAD = struct.Struct("<IHHII4Q")
_VALUES = 4

ANSWER_S = 60.0
"""Longest silence of a simulator that is not hung, beyond the time that a verb itself asks for. On
a machine with eight jobs per core one has been without a processor for more than ten seconds."""
_EXIT_S = 5.0
_LOG_LINES = 3
_LOG_TAIL_BYTES = 4096


class Verb(IntEnum):
    """Requests; arguments and results as in protocol.h."""

    HELLO = 0
    CSR_READ = 1
    CSR_WRITE = 2
    RUN = 3
    RESET = 4
    SET = 5
    WAVES = 6
    QUIT = 7
    PORTS = 8


class DramSetting(IntEnum):
    """Of the simulated DRAM."""

    LATENCY = 0
    STALL = 1
    SEED = 2


class StopReason(IntEnum):
    """Why a run ended."""

    IRQ = 0
    CYCLES = 1
    WALL_CLOCK = 2
    QUIET = 3


class Status(IntEnum):
    """Of a reply."""

    OK = 0
    BAD_REQUEST = 1
    CSR_TIMEOUT = 2
    FINISHED = 3


class Simulator:
    """A running simulator process. Requests from several threads take turns."""

    def __init__(
        self, binary: Path, memory_descriptor: int, log: Path, arguments: Sequence[str] = ()
    ) -> None:
        """Start `binary` on the memory file; its output goes to `log`."""
        self.log = log
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._log_start = log.stat().st_size if log.exists() else 0
        with tempfile.TemporaryDirectory(prefix="npu-") as folder:
            path = Path(folder) / "s"  # a folder of mode 0700: no other user can connect
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(str(path))
                listener.listen(1)
                command = [str(binary), f"--socket={path}", f"--shared-fd={memory_descriptor}"]
                self._process = self._start([*command, *arguments], memory_descriptor)
                self._connection = self._accept(listener)
        self.request(Verb.HELLO)

    def _start(self, command: list[str], memory_descriptor: int) -> subprocess.Popen[bytes]:
        try:
            with self.log.open("ab") as output:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=[memory_descriptor],
                    start_new_session=True,
                )
        except OSError as error:
            raise InfrastructureError(f"simulator does not start: {error}") from error

    def _accept(self, listener: socket.socket) -> socket.socket:
        listener.settimeout(0.1)
        try:
            for _ in range(int(ANSWER_S / 0.1)):
                with contextlib.suppress(TimeoutError):
                    return listener.accept()[0]
                if self._process.poll() is not None:
                    break
        except BaseException:  # Ctrl-C: no other place would end the process
            self._kill(0.0)
            raise
        raise self._died("did not connect")

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def request(
        self, verb: Verb, *values: int, payload: bytes = b"", busy_s: float = 0.0
    ) -> tuple[Status, tuple[int, ...]]:
        """Send one verb, wait for its reply. `busy_s` is how long the verb itself may take."""
        arguments = (*values, *([0] * (_VALUES - len(values))))
        head = _HEAD.pack(_MAGIC, VERSION, verb, len(payload), 0, *arguments)
        with self._lock:
            if self._connection is None:
                raise SimulatorDied("the simulator has been closed, or died before")
            try:
                self._connection.settimeout(busy_s + ANSWER_S)
                self._connection.sendall(head + payload)
                reply = _HEAD.unpack(self._receive(self._connection, _HEAD.size))
                text = self._receive(self._connection, reply[3])
            except TimeoutError as error:
                raise self._hung(verb, busy_s + ANSWER_S) from error
            except OSError as error:
                raise self._died(f"closed the connection during {verb.name}") from error
            except BaseException:  # Ctrl-C: the reply that is still to come would be the next one's
                self._kill(0.0)
                raise
        status = Status(reply[2])
        if status is Status.BAD_REQUEST:
            raise InfrastructureError(f"simulator refused {verb.name}: {text.decode()}")
        if status is Status.FINISHED:
            raise self._died(f"ended by $finish during {verb.name}")
        return status, tuple(reply[5:])

    @staticmethod
    def _receive(connection: socket.socket, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = connection.recv(count - len(data))
            if not part:
                raise ConnectionResetError
            data += part
        return data

    def last_log_lines(self) -> str:
        """The end of the log, as one line."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
                text = file.read().decode(errors="replace")
        except OSError:
            return "no log"
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " | ".join(lines[-_LOG_LINES:]) or "empty log"

    def _died(self, what: str) -> SimulatorDied | VerdictError:
        status = self._kill(_EXIT_S)
        by_rtl = rtl_error(self.log, self._log_start)
        if by_rtl is not None:
            return by_rtl
        return SimulatorDied(f"simulator {what} ({status}); {self.log}: {self.last_log_lines()}")

    def _hung(self, verb: Verb, waited_s: float) -> SimulatorTimeout:
        self._kill(0.0)
        return SimulatorTimeout(
            f"simulator gave no answer to {verb.name} for {waited_s:.0f} s and was killed; "
            f"{self.log}: {self.last_log_lines()}"
        )

    def _kill(self, patience_s: float) -> str:
        """End the process group and drop the connection. How the process ended, in words."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        try:
            code = self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            return "killed by us"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"

    def close(self) -> None:
        """End the process, the gentle way first. Any number of calls is fine."""
        if self._connection is None:
            return
        with contextlib.suppress(InfrastructureError):
            self.request(Verb.QUIT)
        with self._lock:
            self._kill(_EXIT_S)
