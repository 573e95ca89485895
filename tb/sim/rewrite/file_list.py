# SPDX-License-Identifier: Apache-2.0
"""Replaces files of the generated model, in its folder and in Verilator's list of them, and text
in files."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tb.sim.plan import PREFIX

_WORD = re.compile(r"\w+", re.ASCII)


class NewFile(NamedTuple):
    """A file of C++; `kind`: under which it is listed, as classes_fast."""

    kind: str
    name: str
    text: str


def replace_files(generated: Path, gone: Collection[str], new: Iterable[NewFile]) -> None:
    """Remove the files with the names `gone`, and write `new` ones."""
    listed = generated / f"{PREFIX}.json"
    made = json.loads(listed.read_text())
    sources = made["sources"]
    for name in gone:
        (generated / name).unlink()
    for kind, files in sources.items():
        sources[kind] = [name for name in files if Path(name).name not in gone]
    for file in new:
        (generated / file.name).write_text(file.text)
        sources[file.kind].append(file.name)
    listed.write_text(json.dumps(made))


def replace_text(files: Iterable[Path], pattern: re.Pattern[str], by: str) -> int:
    """Replace a pattern in all these files; how often."""
    found = 0
    for path in sorted(files):
        text, count = pattern.subn(by, path.read_text())
        if count:
            path.write_text(text)
        found += count
    return found


def needed_by(body: str, declarations: Mapping[str, str]) -> str:
    """Those of the `declarations`, by name, that `body` needs, in their order."""
    words = {*_WORD.findall(body)}
    return "".join(text for name, text in declarations.items() if name in words)
