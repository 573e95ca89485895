# SPDX-License-Identifier: Apache-2.0
"""A wrong expression in a source of the RTL, which an argument of the simulator activates.

The expression becomes `(npu_mutants_pkg::NAME ? (wrong) : (right))`, so that one build serves all
mutants of a table and the sound RTL beside them. The variable is set from the arguments once, when
the simulation begins: $test$plusargs in the expression itself would compare strings in every
evaluation, which took more than half of a run's time. Knows no table, no bench and no test.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from driver.errors import InputError
from tb.sim.spec import FILELIST, read_filelist

_PACKAGE = "npu_mutants_pkg"
WAIVERS = Path(__file__).with_name("mutants.vlt")
"""Goes before the sources of a build with mutants."""


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
    """The texts of these files, by name, in the order of the file list. The first of them begins
    with the package of the variables. InputError as `write_sources`."""
    listed = {path.name: path for path in read_filelist(FILELIST)}
    texts: dict[str, str] = {}
    for plusarg, mutant in mutants.items():
        text = texts.get(mutant.file) or listed[mutant.file].read_text(encoding="utf-8")
        found = text.count(mutant.text)
        if found != 1:
            places = f"{found} places of {mutant.text!r}"
            raise InputError(listed[mutant.file], f"mutant {plusarg}", places, "one place")
        choice = f"({chosen(plusarg)} ? ({mutant.wrong}) : ({mutant.right}))"
        before, _, rest = mutant.place.partition("«")
        after = rest.partition("»")[2]
        texts[mutant.file] = text.replace(mutant.text, f"{before}{choice}{after}")
    ordered = {name: texts[name] for name in listed if name in texts}
    first = next(iter(ordered))
    return ordered | {first: _package(mutants) + ordered[first]}


def chosen(plusarg: str) -> str:
    """The variable that says whether the mutant is active, as SystemVerilog names it."""
    return f"{_PACKAGE}::{_variable(plusarg)}"


def _variable(plusarg: str) -> str:
    return re.sub(r"\W", "_", plusarg)


def _package(plusargs: Iterable[str]) -> str:
    """A bit for each argument."""
    lines = (f'  bit {_variable(name)} = $test$plusargs("{name}") != 0;\n' for name in plusargs)
    return f"package {_PACKAGE};\n{''.join(lines)}endpackage\n\n"


def _store(path: Path, text: str) -> Path:
    """Write it in one step: another process may be reading."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        file.write(text)
    return Path(file.name).replace(path)
