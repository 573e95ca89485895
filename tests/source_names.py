# SPDX-License-Identifier: Apache-2.0
"""The names that the project's sources declare: classes, and the terms of docs/glossary.md."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGES = ("driver", "golden", "tb", "regress", "workloads")
_CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)
_PLACES = re.compile(r"((?:`\w+`(?:, )?)+) \(([^)]+)\)")

REPEATED: Mapping[str, str] = {}
"""Class names that several files may declare, with the reason. It stays empty if possible."""


def class_files(root: Path) -> dict[str, list[str]]:
    """Every public class at the top level of a module → the files that declare it."""
    found: dict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            for name in _CLASS.findall(file.read_text(encoding="utf-8")):
                found[name].append(str(file.relative_to(root)))
    return dict(found)


def repetitions(classes: Mapping[str, list[str]], allowed: Mapping[str, str]) -> list[str]:
    """Class names that are declared twice, and entries of `allowed` that are not needed."""
    twice = {name: files for name, files in classes.items() if len(files) > 1}
    problems = [
        f"class {name} is declared in {' and '.join(files)}: give each a name of its own"
        for name, files in twice.items()
        if name not in allowed
    ]
    stale = [name for name in allowed if name not in twice]
    return problems + [f"REPEATED[{name!r}] in tests/source_names.py: remove it" for name in stale]


def glossary_problems(page: str, root: Path) -> list[str]:
    """Names in the glossary that the file beside them does not declare. `page`: its text."""
    classes = class_files(root)
    return [
        f"docs/glossary.md: `{name}` is not in {file}" + _hint(classes.get(name, []))
        for name, file in named_in_code(page)
        if not _declares(root / file, name)
    ]


def named_in_code(page: str) -> Iterator[tuple[str, str]]:
    """Each (name, file) of the last column of the glossary's tables."""
    for line in page.splitlines():
        if line.startswith("| ") and line.count(" | ") == 2:
            for names, file in _PLACES.findall(line.rpartition(" | ")[2]):
                for name in re.findall(r"\w+", names):
                    yield name, file


def _declares(file: Path, name: str) -> bool:
    pattern = rf"^\s*(?:def|class|module|addrmap) {name}\b|^{name}\b[^=\n]*= "
    return file.is_file() and bool(
        re.search(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)
    )


def _hint(files: list[str]) -> str:
    return f"; it is in {files[0]}" if files else ""
