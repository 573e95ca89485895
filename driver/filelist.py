# SPDX-License-Identifier: Apache-2.0
"""File lists: which sources a design consists of, in order."""

from __future__ import annotations

from pathlib import Path

from driver.errors import InputError

_REPOSITORY = Path(__file__).resolve().parents[1]
FILELIST = _REPOSITORY / "rtl" / "filelist.f"
"""Of the project's own NPU."""


def read_filelist(path: Path) -> list[Path]:
    """The sources of a file list, in order: one path per line, relative to the list's folder or,
    as tools that are started at the top expect, to the repository."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise InputError(path, "file", error.strerror, "a readable file list") from error
    sources: list[Path] = []
    for number, line in enumerate(lines, start=1):
        text = line.split("//")[0].split("#")[0].strip()
        if not text:
            continue
        source = (path.parent / text).resolve()
        if not source.is_file():
            source = (_REPOSITORY / text).resolve()
        if not source.is_file():
            raise InputError(path, f"line {number}", text, "an existing source file")
        sources.append(source)
    return sources
