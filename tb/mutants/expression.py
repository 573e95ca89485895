# SPDX-License-Identifier: Apache-2.0
"""A wrong expression in a source of the RTL, which an argument of the simulator activates.

The source becomes `($test$plusargs("NAME") ? (wrong) : (right))`, so that one build serves all
mutants of a table and the sound RTL beside them. Knows no table, no bench and no test.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from driver.errors import InputError
from tb.sim.spec import FILELIST, read_filelist


@dataclass(frozen=True)
class Mutant:
    """One wrong expression: `place` is text of `file` with the right expression between « and »."""

    file: str
    place: str
    wrong: str
    seen: str = ""
    """Part of the failure that must be reported."""

    @property
    def right(self) -> str:
        """The expression that is replaced."""
        return self.place.partition("«")[2].partition("»")[0]

    @property
    def text(self) -> str:
        """`place` as it stands in the file."""
        return self.place.replace("«", "").replace("»", "")


def write_sources(mutants: Mapping[str, Mutant], folder: Path) -> dict[str, Path]:
    """The sources that mutants are in, rewritten into `folder`: by file name. The keys are the
    plusargs; none may be the beginning of another, as $test$plusargs compares beginnings.

    InputError: a mutant whose text is not at exactly one place of its file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return {name: _store(folder / name, text) for name, text in rewritten(mutants).items()}


def rewritten(mutants: Mapping[str, Mutant]) -> dict[str, str]:
    """The texts of these files, by name. InputError as `write_sources`."""
    listed = {path.name: path for path in read_filelist(FILELIST)}
    texts: dict[str, str] = {}
    for plusarg, mutant in mutants.items():
        text = texts.get(mutant.file) or listed[mutant.file].read_text(encoding="utf-8")
        found = text.count(mutant.text)
        if found != 1:
            places = f"{found} places of {mutant.text!r}"
            raise InputError(listed[mutant.file], f"mutant {plusarg}", places, "one place")
        choice = f'($test$plusargs("{plusarg}") ? ({mutant.wrong}) : ({mutant.right}))'
        before, _, rest = mutant.place.partition("«")
        after = rest.partition("»")[2]
        texts[mutant.file] = text.replace(mutant.text, f"{before}{choice}{after}")
    return texts


def _store(path: Path, text: str) -> Path:
    """Write it in one step: another process may be reading."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        file.write(text)
    return Path(file.name).replace(path)
