# SPDX-License-Identifier: Apache-2.0
"""Files that others wrote: only regular ones, and only up to a size. Opening a FIFO would wait for
ever, reading /dev/zero would never end."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from driver.errors import InputError

TEXT_LIMIT: Final = 1 << 30
"""Bytes of the longest text that is read into memory."""

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_regular(path: Path, expected: str) -> int:
    """The size of a regular file in bytes. InputError when it is missing or no regular file."""
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        problem = getattr(error, "strerror", None) or str(error)
        raise InputError(path, "file", problem, expected) from error
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
        raise InputError(path, "file", kind, expected)
    return found.st_size


def read_regular(path: Path, expected: str, limit: int = TEXT_LIMIT) -> bytes:
    """All bytes of a regular file. InputError when it is missing, too long or no regular file."""
    size = check_regular(path, expected)
    if size > limit:
        raise InputError(path, "file", f"{size} bytes", f"{expected} of at most {limit} bytes")
    try:
        # Without O_NONBLOCK a FIFO that has come in its place since would still hang.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return file.read(limit)
    except OSError as error:
        raise InputError(path, "file", error.strerror, expected) from error
