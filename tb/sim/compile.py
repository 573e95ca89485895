# SPDX-License-Identifier: Apache-2.0
"""Compiles what Verilator generated, its run-time library and our main program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tb.sim.objects import ObjectStore, Unit
from tb.sim.plan import OWN, PREFIX, RUNTIME, SLOW, BuildPlan, own_headers
from tb.sim.progress import BuildProgress
from tb.sim.rewrite.layout import Dependence
from tb.sim.spec import digest

_PRECOMPILE_FROM = 4
"""From so many files on, precompiling the headers costs less than it saves."""
_PRECOMPILED = "precompiled.h"
_TRACE = f"{PREFIX}__Trace"
_SMALL_TRACE = 32 * 1024
_SMALL_FAST = 16 * 1024
"""Bytes. Less than of what is not optimised: an edit of one of them compiles them all again."""


@dataclass(frozen=True)
class GeneratedModel:
    """What Verilator wrote, with its header rewritten (tb/sim/rewrite/layout.py)."""

    folder: Path
    dependence: Dependence


@dataclass(frozen=True)
class _FileKind:
    """Generated files that are compiled alike. One precompiled header serves all kinds, because
    their flags are the same: what is not optimised like the rest says so in its text."""

    name: str
    categories: tuple[str, ...]
    """Of Verilator's list of files."""
    trace: bool = False
    """Of those, the files that write waves (tb/sim/rewrite/traces.py)."""
    level: str = ""
    """Pragmas that replace the optimisation of the rest."""
    merged_below: int = 64 * 1024
    """Bytes; smaller files are compiled as one: their headers cost more than they do."""

    def files(self, generated: Path, sources: dict[str, list[str]]) -> list[Path]:
        """The files to compile: the small ones are in a new one, the first."""
        names = [Path(name).name for kind in self.categories for name in sources.get(kind, [])]
        mine = [generated / name for name in names if name.startswith(_TRACE) == self.trace]
        return merge_small(mine, generated / f"{PREFIX}__small_{self.name}.cpp", self.merged_below)

    def units(
        self, model: GeneratedModel, sources: dict[str, list[str]], flags: tuple[str, ...]
    ) -> list[Unit]:
        """`flags` end with the include of the model's header: a precompiled one has to be first."""
        if self.level:
            name = f"{PREFIX}__level_{self.name}.h"
            (model.folder / name).write_text(self.level)
            flags = (*flags, "-include", name)
        found = []
        for path in self.files(model.folder, sources):
            seen = digest([model.dependence.of(path), self.level])
            found.append(Unit(Path(path.name), flags, seen, model.folder))
        return found


_FAST = _FileKind("fast", ("classes_fast", "support_fast"), merged_below=_SMALL_FAST)
_OTHERS = (
    _FileKind("slow", ("classes_slow", "support_slow"), level=SLOW),
    _FileKind("trace", ("support_fast",), trace=True, merged_below=_SMALL_TRACE),
    _FileKind("trace_slow", ("support_slow",), trace=True, level=SLOW, merged_below=_SMALL_TRACE),
)


def merge_small(files: Sequence[Path], together: Path, below: int | None) -> list[Path]:
    """The files to compile instead of `files`: those of fewer bytes than `below` (None: all) are
    one, written to `together`, because headers take longer to compile than they do."""
    if not files:
        return []
    small = [path for path in files if below is None or path.stat().st_size < below]
    together.write_text("".join(path.read_text() for path in small))
    return [together, *(path for path in files if path not in small)]


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
    progress: BuildProgress,
    stage: ProfileStage | None = None,
) -> list[Path]:
    """The objects of the whole simulator; with `stage`, of a step of a profile-guided build."""
    generated, dependence = model.folder, model.dependence
    sources = json.loads((generated / f"{PREFIX}.json").read_text())["sources"]
    flags = plan.compile_flags
    own = (*flags, *plan.optimisation, "-w")
    shared = (*own, "-include", _PRECOMPILED)
    (generated / _PRECOMPILED).write_text(f'#include "{PREFIX}__pch.h"\n')
    units = [unit for kind in _OTHERS for unit in kind.units(model, sources, shared)]
    if stage is None:
        units = [*_FAST.units(model, sources, shared), *units]
    if store.missing(units) >= _PRECOMPILE_FROM:
        header = generated / f"{PREFIX}__pch.h"
        store.precompiled_header(header, _PRECOMPILED, own, dependence.whole)
        progress("precompiled headers")
    if stage is not None:
        staged = _FAST.units(model, sources, (*own, "-include", f"{PREFIX}__pch.h"))
        units = [*map(stage.unit, staged), *units]
    runtime = (*flags, *RUNTIME, "-w")
    headers = _header_key(own_headers())
    version = digest([plan.verilator.version, headers])
    units += [Unit(Path(name), runtime, version, generated) for name in sources["global"]]
    pins = _header_key([generated / f"{PREFIX}.h", generated / f"{PREFIX}__Dpi.h"])
    ports = digest([pins, headers, *plan.link_flags])  # which say what headers the system has
    units += [Unit(path, (*flags, *OWN), ports, generated) for path in plan.own_sources]

    return store.compile(units, progress.compiled)


def _header_key(headers: list[Path]) -> str:
    return digest(path.read_bytes() for path in headers)
