# SPDX-License-Identifier: Apache-2.0
"""Rules that hold for files as text: licence line, length, and what RTL may not contain."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from regress.paths import ROOT

MAX_LINES = 400
MAX_COLUMNS = 100
_SPDX = "SPDX-License-Identifier: Apache-2.0"
_HEAD_LINES = 3
_SUFFIXES = frozenset(
    (".py", ".pyi", ".sv", ".svh", ".vlt", ".rdl", ".cpp", ".hpp", ".h", ".c", ".sh", ".toml")
)
_UNFORMATTED = frozenset((".sv", ".svh", ".sh"))
_NAMES = frozenset(("Makefile", "CMakeLists.txt", ".clang-format", "run", "sim_config.yaml"))
_SKIPPED = frozenset(("build", "out", "__pycache__"))
_KEPT_HIDDEN = frozenset((".ci", ".clang-format"))

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_SYSTEM_TASK = re.compile(
    r"\$(?:display|write|strobe|monitor|finish|stop|random|urandom|readmem[bh]|value\$plusargs"
    r"|test\$plusargs|f(?:open|close|display|write|strobe|monitor|scanf|gets|read|flush))\b"
)
_FORBIDDEN = (
    (re.compile(r"`(?:ifn?def|elsif|else|undef)\b"), "conditional compilation"),
    (re.compile(r'\b(?:import|export)\s*"DPI'), "DPI"),
    (_SYSTEM_TASK, "simulation-only system task"),
)
_TYPEDEF = re.compile(r"\btypedef\b[^;{]*(?:\{[^{}]*\})?\s*\b(\w+)\s*;")
_INLINE_PRAGMA = re.compile(r"verilator\s+(?:lint_off|lint_on|tracing_off|public\w*)")


def source_files(root: Path = ROOT) -> list[Path]:
    """Every file of the project with source text, sorted."""
    return sorted(_walk(root))


def _walk(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name not in _KEPT_HIDDEN:
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED:
                    yield from _walk(Path(entry.path))
            elif Path(entry.name).suffix in _SUFFIXES or entry.name in _NAMES:
                yield Path(entry.path)


def licence_problems(files: Iterable[Path], root: Path = ROOT) -> list[str]:
    """Files whose first lines do not name the licence."""
    return [
        f"{file.relative_to(root)}: no `{_SPDX}` in its first {_HEAD_LINES} lines"
        for file in files
        if not any(_SPDX in line for line in _lines(file)[:_HEAD_LINES])
    ]


def length_problems(
    files: Iterable[Path], generated: Iterable[str], root: Path = ROOT
) -> list[str]:
    """Files of more than MAX_LINES lines that no generator wrote."""
    exempt = {root / path for path in generated}
    counted = ((file, len(_lines(file))) for file in files if file not in exempt)
    return [
        f"{file.relative_to(root)}: {lines} lines, at most {MAX_LINES}: split it"
        for file, lines in counted
        if lines > MAX_LINES
    ]


def width_problems(files: Iterable[Path], generated: Iterable[str], root: Path = ROOT) -> list[str]:
    """Lines that are too wide, in the languages that have no formatter here."""
    exempt = {root / path for path in generated}
    return [
        f"{file.relative_to(root)}:{number}: {len(line)} columns, at most {MAX_COLUMNS}"
        for file in files
        if file.suffix in _UNFORMATTED and file not in exempt
        for number, line in enumerate(_lines(file), start=1)
        if len(line) > MAX_COLUMNS
    ]


def _rtl_files(files: Iterable[Path], generated: Iterable[str], root: Path) -> Iterator[Path]:
    """The hand-written synthesizable code among `files`."""
    exempt = {root / path for path in generated}
    for file in files:
        own = file not in exempt and file.is_relative_to(root / "rtl")
        if own and file.suffix in (".sv", ".svh"):
            yield file


def rtl_problems(files: Iterable[Path], generated: Iterable[str], root: Path = ROOT) -> list[str]:
    """Constructs that hand-written synthesizable code may not hold, by file and line."""
    problems: list[str] = []
    for file in _rtl_files(files, generated, root):
        text = file.read_text(encoding="utf-8")
        place = f"{file.relative_to(root)}"
        code = _COMMENT.sub(_blank, text)
        for pattern, what in _FORBIDDEN:
            where = code if what == "DPI" else _STRING.sub(_blank, code)
            problems += _found(place, where, pattern, what)
        problems += _found(place, text, _INLINE_PRAGMA, "inline lint pragma (use rtl/lint)")
    return problems


def type_name_problems(
    files: Iterable[Path], generated: Iterable[str], root: Path = ROOT
) -> list[str]:
    """Types of an RTL package whose name another package or a module gives to a type as well."""
    places: dict[str, list[Path]] = {}
    for file in _rtl_files(files, generated, root):
        for name in _TYPEDEF.findall(_COMMENT.sub(_blank, file.read_text(encoding="utf-8"))):
            places.setdefault(name, []).append(file.relative_to(root))
    return [
        f"{package}: {name} is also a type of {other}"
        for name, declared in places.items()
        for package in declared
        if package.stem.endswith("_pkg")
        for other in declared
        if other != package
    ]


def _found(place: str, text: str, pattern: re.Pattern[str], what: str) -> list[str]:
    return [
        f"{place}:{text.count(chr(10), 0, match.start()) + 1}: {what}: {match[0]}"
        for match in pattern.finditer(text)
    ]


def _blank(match: re.Match[str]) -> str:
    """As many lines, nothing on them."""
    return "\n" * match[0].count("\n") or " "


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()
