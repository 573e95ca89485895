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
from driver.filelist import FILELIST, read_filelist

_PACKAGE = "npu_mutants_pkg"
WAIVERS = Path(__file__).with_name("mutants.vlt")
"""Goes before the sources of a build with mutants."""


@dataclass(frozen=True, order=True)
class Site:
    """The expression `right` at bytes [start, end) of a source, and what stands there instead."""

    file: Path
    start: int
    end: int
    right: str
    wrong: str


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

    def site(self, name: str) -> Site:
        """Where it is. InputError, which says `name`, unless its text is at exactly one place."""
        file = next(path for path in read_filelist(FILELIST) if path.name == self.file)
        source, text = file.read_bytes(), self.text.encode()
        found = source.count(text)
        if found != 1:
            places = f"{found} places of {self.text!r}"
            raise InputError(file, f"mutant {name}", places, "one place")
        start = source.index(text) + len(self.place.partition("«")[0].encode())
        return Site(file, start, start + len(self.right.encode()), self.right, self.wrong)


def sites_of(mutants: Mapping[str, Mutant]) -> dict[str, Site]:
    """The same keys, each with its place. InputError as `Mutant.site`."""
    return {name: mutant.site(name) for name, mutant in mutants.items()}


def write_sources(sites: Mapping[str, Site], folder: Path) -> dict[str, Path]:
    """The sources that mutants are in, rewritten into `folder`: by file name. The keys are the
    plusargs; none may be the beginning of another, as $test$plusargs compares beginnings."""
    folder.mkdir(parents=True, exist_ok=True)
    return {name: _store(folder / name, text) for name, text in rewritten(sites).items()}


def rewritten(sites: Mapping[str, Site]) -> dict[str, bytes]:
    """The texts of these files, by name, in the order of the file list. The first of them begins
    with the package of the variables. Sites may contain each other."""
    by_file: dict[Path, dict[str, Site]] = {}
    for plusarg, site in sites.items():
        by_file.setdefault(site.file, {})[plusarg] = site
    ordered = [path for path in read_filelist(FILELIST) if path in by_file]
    texts = {path.name: _with_choices(path.read_bytes(), by_file[path]) for path in ordered}
    first = ordered[0].name
    return texts | {first: _package(sites) + texts[first]}


def _with_choices(source: bytes, sites: Mapping[str, Site]) -> bytes:
    """What is before and behind each expression is inserted; no text is replaced. At the same place
    one that ends comes before one that begins, and of those that begin the longest first."""
    inserted: list[tuple[int, bool, int, bytes]] = []
    for plusarg, site in sites.items():
        choice = f"({chosen(plusarg)} ? ({site.wrong}) : ("
        inserted.append((site.start, True, -site.end, choice.encode()))
        inserted.append((site.end, False, 0, b"))"))
    parts = []
    done = 0
    for place, _, _, text in sorted(inserted):
        parts += [source[done:place], text]
        done = place
    return b"".join([*parts, source[done:]])


def chosen(plusarg: str) -> str:
    """The variable that says whether the mutant is active, as SystemVerilog names it."""
    return f"{_PACKAGE}::{_variable(plusarg)}"


def _variable(plusarg: str) -> str:
    return re.sub(r"\W", "_", plusarg)


def _package(plusargs: Iterable[str]) -> bytes:
    """A bit for each argument."""
    lines = (f'  bit {_variable(name)} = $test$plusargs("{name}") != 0;\n' for name in plusargs)
    return f"package {_PACKAGE};\n{''.join(lines)}endpackage\n\n".encode()


def _store(path: Path, text: bytes) -> Path:
    """Write it in one step: another process may be reading."""
    with tempfile.NamedTemporaryFile("wb", dir=path.parent, delete=False) as file:
        file.write(text)
    return Path(file.name).replace(path)
