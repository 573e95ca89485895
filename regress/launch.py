# SPDX-License-Identifier: Apache-2.0
"""`python -I -S launch.py PARENT COMMAND…`: a command whose processes all end when PARENT does.

It is the first program of every child, so that no moment is left in which the parent can be killed
unnoticed: it asks the kernel for a signal at the parent's end, then looks whether the parent is
still there, and only then starts the command, in its own process group. At the signal the whole
group is killed. Its exit status is the command's. Imports nothing of the project: it must be fast.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_NOT_STARTED = 3


def _end_group(_number: int, _frame: object) -> None:
    os.killpg(0, signal.SIGKILL)


def _heard(_number: int, _frame: object) -> None:
    """The command has got the signal too, and decides."""


def _bind_to(parent: int, number: signal.Signals) -> None:
    """Have the kernel send `number` when the parent ends; end now when it has ended before."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(_NOT_STARTED)


def _become(launcher: int, command: list[str]) -> None:
    """Turn this process into the command, which ends with the launcher however that ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    _bind_to(launcher, signal.SIGKILL)
    try:
        os.execvp(command[0], command)  # noqa: S606 (a list: no shell)
    except OSError as error:
        os.write(2, f"error: {command[0]} does not start: {error.strerror}\n".encode())
        os._exit(_NOT_STARTED)


def main(arguments: list[str]) -> int:
    """The exit status of the command; this process ends by the signal that ended the command."""
    signal.signal(signal.SIGTERM, _end_group)
    signal.signal(signal.SIGINT, _heard)
    _bind_to(int(arguments[0]), signal.SIGTERM)
    launcher = os.getpid()
    child = os.fork()
    if child == 0:
        _become(launcher, arguments[1:])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL cannot be set, and need not be
            signal.signal(-code, signal.SIG_DFL)
        os.kill(launcher, -code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
