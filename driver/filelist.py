# SPDX-License-Identifier: Apache-2.0
"""File lists: which sources a design consists of, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from driver.errors import InputError
from driver.regular import read_regular

_REPOSITORY = Path(__file__).resolve().parents[1]
FILELIST = _REPOSITORY / "rtl" / "filelist.f"
"""Of the project's own NPU."""


_READ = re.compile(r'`include\s+"([^"]+)"|\$readmem[bh]\s*\(\s*"([^"]+)"')
"""How a source names another file: its text, or the contents of a memory."""


def read_by(sources: Iterable[Path]) -> list[Path]:
    """The files that sources include or read, and what these include, wherever a source's folder
    has them: they decide what a design is as the sources do."""
    listed = list(sources)
    folders = sorted({source.parent for source in listed})
    found: dict[Path, None] = {}
    waiting = listed
    while waiting:
        names = _READ.findall(waiting.pop().read_text(errors="replace"))
        paths = ((folder / (a or b)).resolve() for a, b in names for folder in folders)
        fresh = [path for path in paths if path.is_file() and path not in found]
        found |= dict.fromkeys(fresh)
        waiting += fresh
    return sorted(found)


def read_filelist(path: Path) -> list[Path]:
    """The sources of a file list, in order: one path per line, relative to the list's folder or,
    as tools that are started at the top expect, to the repository."""
    try:
        lines = read_regular(path, "a readable file list").decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(
            path, f"byte {error.start}", "not UTF-8", "a file list in UTF-8"
        ) from error
    sources: list[Path] = []
    for number, line in enumerate(lines, start=1):
        text = line.split("//")[0].split("#")[0].strip()
        if not text:
            continue
        if "\0" in text:
            raise InputError(path, f"line {number}", text, "an existing source file")
        source = (path.parent / text).resolve()
        if not source.is_file():
            source = (_REPOSITORY / text).resolve()
        if not source.is_file():
            raise InputError(path, f"line {number}", text, "an existing source file")
        sources.append(source)
    return sources
