# SPDX-License-Identifier: Apache-2.0
"""Every error that this project raises on purpose, and the exit code each one leaves.

0 pass · 1 a verdict failed · 2 bad input · 3 infrastructure (simulator died, timeout).
The text of every error is one line, so that the command line can print it as it is.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from driver.isa import ERROR_TEXT, ErrorCode, Packet

ERROR_PREFIX = "error: "
"""Begins the line in which a process of ours says what went wrong; other lines are progress."""
ENVIRONMENT = "environment"
"""What an InputError names as its file where a variable of the environment is wrong."""
_MAX_VALUE_CHARACTERS = 120
_FULL = (errno.ENOSPC, errno.EDQUOT)


def printable(text: str) -> str:
    """`text` with control characters, which a terminal would obey, as escapes: "\\x1b"."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shorten(text: str, width: int) -> str:
    """`text` in at most `width` characters, cut out of its middle: both ends say something."""
    if len(text) <= width:
        return text
    if width < 1:
        return ""
    tail = width // 2
    return f"{text[: width - tail - 1]}…{text[len(text) - tail :] if tail else ''}"


def readable(value: object, write: Callable[[object], str] = repr) -> str:
    """A value as `write` gives it; an integer that Python refuses to write in decimal as such."""
    try:
        return write(value)
    except ValueError:
        return f"{type(value).__name__} with more digits than Python writes"


def _one_line(value: object) -> str:
    """`value` as printable text without line breaks, cut when it is long; never nothing."""
    text = printable(" ".join(readable(value, str).split()))
    return shorten(text, _MAX_VALUE_CHARACTERS) or "an empty text"


class NpuError(Exception):
    """Base of all typed errors; `exit_code` is the process's exit status if it is not handled."""

    exit_code: ClassVar[int] = 3


class VerdictError(NpuError, RuntimeError):
    """A comparison failed: the device under test, or the model of it, is wrong.

    A RuntimeError, as that of any device of torch: training loops catch it.
    """

    exit_code = 1


class InputError(NpuError):
    """The user's input is wrong. The text is `file: field: got value, expected ...`."""

    exit_code = 2

    def __init__(self, file: object, field: str, value: object, expected: str) -> None:
        self.file = str(file)
        self.field = field
        self.value = value
        self.expected = expected
        super().__init__(file, field, value, expected)

    def __str__(self) -> str:
        place = printable(f"{self.file}: {self.field}")
        expected = printable(" ".join(self.expected.split()))
        return f"{place}: got {_one_line(self.value)}, expected {expected}"


class ProcessRefused(NpuError):
    """A process of ours (build, bench, measurement) refused its input; the text is its own line."""

    exit_code = 2


class OutOfMemory(InputError):
    """A tensor does not fit into its region of device memory. Sizes in bytes."""

    def __init__(
        self,
        region: str,
        size_bytes: int,
        used_bytes: int,
        free_bytes: int,
        largest_hole_bytes: int,
    ) -> None:
        self.region = region
        self.size_bytes = size_bytes
        self.used_bytes = used_bytes
        self.free_bytes = free_bytes
        self.largest_hole_bytes = largest_hole_bytes
        super().__init__(
            "device memory",
            region,
            f"{size_bytes} bytes to allocate",
            f"at most {largest_hole_bytes} (largest hole; {used_bytes} bytes used, "
            f"{free_bytes} free)",
        )

    def __reduce__(self) -> tuple[type[OutOfMemory], tuple[str, int, int, int, int]]:
        sizes = (self.used_bytes, self.free_bytes, self.largest_hole_bytes)
        return type(self), (self.region, self.size_bytes, *sizes)


class UnsupportedOp(InputError):
    """The NPU has no way to run this op with these arguments; it is refused."""

    def __init__(self, op: str, field: str, value: object, expected: str) -> None:
        self.op = op
        super().__init__(op, field, value, expected)


class AddressError(NpuError):
    """The host touched memory outside the device's, or freed what it never allocated."""

    exit_code = 2

    def __init__(self, address: int, size_bytes: int, expected: str) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self.expected = expected
        super().__init__(address, size_bytes, expected)

    def __str__(self) -> str:
        return f"address {self.address:#x}, {self.size_bytes} bytes: expected {self.expected}"


class RegisterError(NpuError):
    """A register access that the device answers with SLVERR, or that does not fit 32 bits."""

    exit_code = 2

    def __init__(self, offset: int, expected: str) -> None:
        self.offset = offset
        self.expected = expected
        super().__init__(offset, expected)

    def __str__(self) -> str:
        return f"register {self.offset:#05x}: expected {self.expected}"


class DeviceFault(VerdictError):
    """A command stopped the queue. `packet` is the command, where the driver still knows it."""

    def __init__(
        self,
        code: ErrorCode,
        seq: int,
        packet: Packet | None = None,
        op: str = "",
        number: int = 0,
    ) -> None:
        self.code = code
        self.seq = seq
        self.packet = packet
        self.op = op
        """The op that the command belongs to, where it was queued by one."""
        self.number = number
        """Which of the packets that were submitted together."""
        super().__init__(code, seq, packet, op, number)

    def of(self, op: str) -> DeviceFault:
        """The same, of this op."""
        return DeviceFault(self.code, self.seq, self.packet, op, self.number)

    def __str__(self) -> str:
        text = f"device fault {self.code.name} ({ERROR_TEXT[self.code]}) in command {self.seq}"
        text += f" of {self.op}" if self.op else ""
        return text if self.packet is None else f"{text}: {_one_line(self.packet)}"


@dataclass(frozen=True)
class Standstill:
    """A device without progress: the clock cycle in which that was noticed, how long its ports had
    transferred nothing by then, what each port waits for, and STATUS.state and COMPLETED (None
    when the registers do not answer)."""

    cycle: int
    quiet_cycles: int = 0
    ports: tuple[str, ...] = ()
    state: str | None = None
    completed: int | None = None


@dataclass(frozen=True)
class SubmittedCommand:
    """Packet `index` of `count` that were submitted together, with its sequence number."""

    seq: int
    index: int
    count: int
    packet: Packet


class DeviceHung(VerdictError):
    """The device makes no progress: no interrupt comes, or a register access gets no answer.

    `command` is the one that does not end, where the driver knows it.
    """

    def __init__(
        self, what: str, standstill: Standstill, command: SubmittedCommand | None = None
    ) -> None:
        self.what = what
        self.standstill = standstill
        self.command = command
        super().__init__(what, standstill, command)

    def in_command(self, command: SubmittedCommand) -> DeviceHung:
        """The same, with the command that does not end."""
        return DeviceHung(self.what, self.standstill, command)

    def __str__(self) -> str:
        at, command = self.standstill, self.command
        text = f"device hung at cycle {at.cycle}: {self.what}"
        if command is not None:
            text += f" in command {command.seq} (packet {command.index} of {command.count}, "
            text += f"{_one_line(command.packet)})"
        if at.quiet_cycles:
            text += f"; nothing transferred for {at.quiet_cycles} cycles"
        if at.state is not None:
            text += f"; state {at.state}, {at.completed} commands completed"
        return "; ".join((text, *at.ports))


class AssertionFailed(VerdictError):
    """An assertion of the RTL, or of a checker around it, failed and ended the simulator.

    `place` is its file and line, `scope` its instance and name; `log` is the simulator's.
    """

    def __init__(
        self, place: tuple[str, int], scope: str, message: str, cycle: int, log: str
    ) -> None:
        self.file, self.line = place
        self.scope = scope
        self.message = message
        self.cycle = cycle
        self.log = log
        super().__init__(place, scope, message, cycle, log)

    def __str__(self) -> str:
        return (
            f"assertion {self.scope} ({self.file}:{self.line}) failed in cycle {self.cycle}: "
            f"{_one_line(self.message)}; see {self.log}"
        )


class NeverSettles(VerdictError):
    """Nets of the RTL that feed themselves never come to rest, and the simulator gave up. `log` is
    the simulator's."""

    def __init__(self, log: str) -> None:
        self.log = log
        super().__init__(log)

    def __str__(self) -> str:
        return (
            "the RTL has a loop of combinational logic that never settles: `make lint` with its "
            f"CONFIG names the nets; see {self.log}"
        )


class InfrastructureError(NpuError, RuntimeError):
    """Neither the input nor the device is to blame: the machinery around them failed.

    A RuntimeError, as VerdictError is.
    """

    exit_code = 3


def unwritable(
    path: object, field: str, error: Exception, expected: str = "a place that can be written"
) -> NpuError:
    """What to raise where `path` could not be written: a full disk is no mistake of the input."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else error
    if isinstance(error, OSError) and error.errno in _FULL:
        return InfrastructureError(f"{path}: {text}")
    return InputError(path, field, text, expected)


class Interrupted(InfrastructureError):
    """The user, or a time limit, ended it before its end."""

    exit_code = 130


class BackendDied(InfrastructureError):
    """A device is gone, with all in its memory. A new one has to be opened."""


class SimulatorDied(BackendDied):
    """The simulator's process ended, or closed its connection, while it was needed."""


class SimulatorTimeout(InfrastructureError):
    """A wall-clock limit, or the cycle limit of one wait, has passed."""
