# SPDX-License-Identifier: Apache-2.0
"""Compiles what Verilator generated, its run-time library and our main program."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tb.sim.layout import Dependence
from tb.sim.objects import ObjectStore, Unit
from tb.sim.plan import FAST, OWN, PREFIX, RUNTIME, SLOW, BuildPlan, own_headers
from tb.sim.spec import digest

_SMALL_BYTES = 64 * 1024
"""Generated files below this are compiled as one: their headers cost more than they do."""
_PRECOMPILE_FROM = 4
"""From so many files on, precompiling the headers costs less than it saves."""


@dataclass(frozen=True)
class GeneratedModel:
    """What Verilator wrote, with its header rewritten (tb/sim/layout.py)."""

    folder: Path
    dependence: Dependence


@dataclass(frozen=True)
class ProfileStage:
    """One of the two compilations of a profile-guided build, of the files that run in every cycle.

    The compiler looks for the counts of `NAME.cpp` in `folder`/NAME.gcda.
    """

    flags: tuple[str, ...]
    folder: Path

    def unit(self, unit: Unit) -> Unit:
        """`unit` in this stage: its counts are a part of what decides the object."""
        name = unit.source.name
        place = ("-dumpdir", f"{self.folder}/", "-dumpbase", name, "-dumpbase-ext", ".cpp")
        counts = self.folder / f"{unit.source.stem}.gcda"
        seen = digest([unit.context, counts.read_bytes() if counts.is_file() else b""])
        return Unit(unit.source, (*unit.flags, *self.flags, *place), seen, unit.folder)


def compile_all(
    plan: BuildPlan,
    model: GeneratedModel,
    store: ObjectStore,
    progress: Callable[[str], None],
    stage: ProfileStage | None = None,
) -> list[Path]:
    """The objects of the whole simulator; with `stage`, of a step of a profile-guided build."""
    generated, dependence = model.folder, model.dependence
    sources = json.loads((generated / f"{PREFIX}.json").read_text())["sources"]
    flags = plan.compile_flags
    units: list[Unit] = []
    for kind, level in (("fast", FAST), ("slow", SLOW)):
        names = [*sources.get(f"classes_{kind}", []), *sources.get(f"support_{kind}", [])]
        files = _merged(generated, kind, [generated / Path(name).name for name in names])
        own = (*flags, *level, "-w")
        if stage is not None and kind == "fast":
            units += [
                stage.unit(unit) for unit in _units(f"{PREFIX}__pch.h", own, files, dependence)
            ]
        else:
            units += _model_units(kind, own, files, dependence, store)
        progress("precompiled headers")
    runtime = (*flags, *RUNTIME, "-w")
    headers = _header_key(own_headers())
    version = digest([plan.verilator.version, headers])
    units += [Unit(Path(name), runtime, version, generated) for name in sources["global"]]
    pins = _header_key([generated / f"{PREFIX}.h", generated / f"{PREFIX}__Dpi.h"])
    ports = digest([pins, headers])
    units += [Unit(path, (*flags, *OWN), ports, generated) for path in plan.own_sources]

    def report(done: int, total: int) -> None:
        progress(f"compiled {done} of {total} changed files")

    return store.compile(units, report)


def _header_key(headers: list[Path]) -> str:
    return digest(path.read_bytes() for path in headers)


def _merged(generated: Path, kind: str, files: list[Path]) -> list[Path]:
    """`files`, the small ones in one new file."""
    small = [path for path in files if path.stat().st_size < _SMALL_BYTES]
    together = generated / f"{PREFIX}__small_{kind}.cpp"
    together.write_text("".join(path.read_text() for path in small))
    return [together, *(path for path in files if path not in small)]


def _units(
    header: str, flags: tuple[str, ...], files: list[Path], dependence: Dependence
) -> list[Unit]:
    flags = (*flags, "-include", header)
    return [Unit(Path(path.name), flags, dependence.of(path), path.parent) for path in files]


def _model_units(
    kind: str,
    flags: tuple[str, ...],
    files: list[Path],
    dependence: Dependence,
    store: ObjectStore,
) -> list[Unit]:
    """With a precompiled header where enough of the files have changed."""
    header = files[0].parent / f"{PREFIX}__pch.h"
    name = f"{header.name}.{kind}"
    header.with_name(name).write_text(f'#include "{header.name}"\n')
    units = _units(name, flags, files, dependence)
    if store.missing(units) >= _PRECOMPILE_FROM:
        store.precompiled_header(header, name, flags, dependence.whole)
    return units
