# SPDX-License-Identifier: Apache-2.0
"""Turns a BuildSpec into a simulator binary, once.

Two kinds of folder under the build root:

- `<label>-<variant>-<key>/`: a finished simulator; the key is the hash of sources in order,
  parameters, flags, and tool versions. It is filled beside its final place and renamed, so a folder
  with that name is complete. Never changed afterwards.
- `family-<key>/`: the generated C++ of builds with the same parameters and flags, whatever their
  RTL, under one lock: never two builders in one folder.
- `objects/`: compiled files by content, for all builds: after an edit only the C++ that changed is
  compiled.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from driver.errors import InfrastructureError, InputError
from tb.sim.objects import ObjectStore, Unit, run_compiler
from tb.sim.spec import (
    HDL_FOLDER,
    REPOSITORY,
    SIM_FOLDER,
    TOP,
    BuildSpec,
    BuiltModel,
    Variant,
    digest,
    read_filelist,
    variant_named,
)
from tb.sim.toolchain import Compiler, Verilator, find_compiler, find_header, find_verilator

log = logging.getLogger(__name__)

_LOCK_TIMEOUT_S = 1800
_PROGRESS_AFTER_S = 10.0
_PREFIX = f"V{TOP}"
_BINARY = "npu_sim"
_MANIFEST = "build.json"

_FAST = ("-O3", "-march=native")
_SLOW = ("-O0",)
_RUNTIME = ("-O2", "-march=native")
_OWN = ("-O2", "-march=native", "-Wall", "-Wextra", "-Werror")
_OUTPUT_SPLIT = 20000
"""Size of one generated C++ file, in Verilator's node count: smaller compiles less after an edit,
larger optimises across more."""


def _verilator_flags(variant: Variant) -> list[str]:
    state = "unique" if variant.random_init else "fast"
    flags = ["--cc", "--make", "json", "--no-timing", "--quiet", "-O3"]
    flags += ["--x-assign", state, "--x-initial", state]
    flags += ["--assert" if variant.assertions else "--no-assert"]
    flags += ["--timescale-override", "1ns/1ps", "--output-split", str(_OUTPUT_SPLIT)]
    # Lint is a gate of its own; here a warning must not stand between an edit and its run.
    flags += ["-Wno-lint", "-Wno-style", "-Wno-fatal"]
    if variant.trace:
        flags += [f"--trace-{variant.trace}", "--trace-structs"]
    if variant.vpi:
        flags.append("--vpi")
    return flags


def _compile_flags(variant: Variant, verilator: Verilator) -> tuple[str, ...]:
    """Flags of every C++ file; order and content are part of each object's key."""
    shim = SIM_FOLDER / "fst"
    flags = ["-std=c++20", "-DVERILATOR=1", "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0"]
    flags += ["-DVM_TIMING=0", f"-DVM_TRACE={int(bool(variant.trace))}"]
    flags += [f"-DVM_TRACE_{kind}={int(variant.trace == kind.lower())}" for kind in ("FST", "VCD")]
    flags += ["-DVM_TRACE_SAIF=0", "-I."]
    flags += ["-isystem", str(verilator.include), "-isystem", str(verilator.include / "vltstd")]
    if variant.trace == "fst":
        # Also the fallback of a system header: -idirafter is searched last.
        flags += ["-idirafter", str(shim)]
    return tuple(flags)


@dataclass(frozen=True)
class _Plan:
    """A BuildSpec with its sources read and its tools found."""

    spec: BuildSpec
    variant: Variant
    verilator: Verilator
    compiler: Compiler
    sources: tuple[Path, ...]
    own_sources: tuple[Path, ...]
    link_flags: tuple[str, ...]

    @property
    def arguments(self) -> list[str]:
        """Verilator's, without the sources and the output folder."""
        parameters = [f"-G{name}={value}" for name, value in self.spec.parameters]
        flags = _verilator_flags(self.variant)
        return [*flags, "--top-module", TOP, "--prefix", _PREFIX, *parameters]

    @property
    def compile_flags(self) -> tuple[str, ...]:
        return _compile_flags(self.variant, self.verilator)

    def family_key(self) -> str:
        tools = [self.verilator.version, self.compiler.identity]
        return digest([*tools, *self.arguments, "--", *self.compile_flags, *self.link_flags])[:16]

    def key(self) -> str:
        own = sorted([*self.own_sources, *_own_headers()])
        files = [*self.sources, *own]
        names = [os.path.relpath(path, REPOSITORY) for path in files]
        constants = [*_FAST, *_SLOW, *_RUNTIME, *_OWN]
        return digest(
            [self.family_key(), *constants, *names, *(path.read_bytes() for path in files)]
        )[:16]


def _own_headers() -> list[Path]:
    return sorted([*(SIM_FOLDER / "core").glob("*.h"), *(SIM_FOLDER / "fst").glob("*.h")])


def _own_sources(variant: Variant) -> tuple[Path, ...]:
    core = sorted((SIM_FOLDER / "core").glob("*.cpp"))
    if variant.vpi:
        return (SIM_FOLDER / "cocotb_main.cpp", *core)
    return (SIM_FOLDER / "main.cpp", *(path for path in core if path.stem != "cocotb_loop"))


def _link_flags(variant: Variant) -> tuple[str, ...]:
    flags = ["-pthread"]
    if variant.trace == "fst":
        flags += ["-llz4"] if find_header("lz4.h") else []
        flags += ["-lz"] if find_header("zlib.h") else []
    if variant.vpi:
        import cocotb_tools.config  # noqa: PLC0415 - only builds for cocotb need cocotb

        library = cocotb_tools.config.libs_dir
        flags += [f"-L{library}", f"-Wl,-rpath,{library}", "-Wl,--export-dynamic"]
        flags += ["-Wl,--no-as-needed", "-lcocotbvpi_verilator"]
    return tuple(flags)


def _plan(spec: BuildSpec) -> _Plan:
    variant = variant_named(spec.variant)
    for path in (REPOSITORY, spec.build_root, spec.filelist):
        if any(character.isspace() for character in str(path)):
            raise InputError("command line", "path", path, "a path without spaces")
    sources = [*read_filelist(spec.filelist), *spec.bench]
    if variant.vpi:
        sources.insert(0, HDL_FOLDER / "pins.vlt")
    return _Plan(
        spec=spec,
        variant=variant,
        verilator=find_verilator(),
        compiler=find_compiler(),
        sources=tuple(sources),
        own_sources=_own_sources(variant),
        link_flags=_link_flags(variant),
    )


class _Progress:
    """Says what a long build is doing, once it has taken ten seconds, then every ten."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._start = time.monotonic()
        self._next = _PROGRESS_AFTER_S

    def __call__(self, doing: str) -> None:
        elapsed = time.monotonic() - self._start
        if elapsed >= self._next:
            self._next = elapsed + _PROGRESS_AFTER_S
            log.info("building %s: %s, %.0f s", self._label, doing, elapsed)


def _verilate(plan: _Plan, folder: Path) -> None:
    """Generate C++ into `folder`. InputError when Verilator refuses the sources."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # Relative names: the messages of assertions do not depend on where the project lies.
    names = [os.path.relpath(path, REPOSITORY) for path in plan.sources]
    command = [str(plan.verilator.binary), *plan.arguments, "-Mdir", str(folder), *names]
    environment = {**os.environ, "VERILATOR_ROOT": str(plan.verilator.root)}
    try:
        done = subprocess.run(
            command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise InfrastructureError(f"verilator does not start: {error}") from error
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("%Error")]
        if not errors:
            raise InfrastructureError(f"verilator ended with status {done.returncode}")
        raise InputError("rtl", "verilator", errors[0], "sources that elaborate")


def _header_key(folder: Path) -> str:
    return digest(path.read_bytes() for path in sorted(folder.glob("*.h")))


def _units(plan: _Plan, generated: Path) -> list[Unit]:
    """Everything to compile, with what each file depends on."""
    sources = json.loads((generated / f"{_PREFIX}.json").read_text())["sources"]
    headers = _header_key(generated)
    flags = plan.compile_flags
    units: list[Unit] = []
    for kind, level in (("fast", _FAST), ("slow", _SLOW)):
        precompiled = ("-include", f"{_PREFIX}__pch.h.{kind}", "-w")
        for group in (f"classes_{kind}", f"support_{kind}"):
            for name in sources.get(group, []):
                source = Path(Path(name).name)
                units.append(Unit(source, (*flags, *level, *precompiled), headers, generated))
    for name in sources["global"]:
        units.append(Unit(Path(name), (*flags, *_RUNTIME, "-w"), plan.verilator.version, generated))
    ports = digest(
        path.read_bytes()
        for path in [generated / f"{_PREFIX}.h", generated / f"{_PREFIX}__Dpi.h", *_own_headers()]
    )
    units += [Unit(path, (*flags, *_OWN), ports, generated) for path in plan.own_sources]
    return units


def _compile(plan: _Plan, generated: Path, store: ObjectStore, progress: _Progress) -> list[Path]:
    headers = _header_key(generated)
    for kind, level in (("fast", _FAST), ("slow", _SLOW)):
        name = f"{_PREFIX}__pch.h.{kind}"
        flags = (*plan.compile_flags, *level, "-w")
        store.precompiled_header(generated / f"{_PREFIX}__pch.h", name, flags, headers)
        progress("precompiling headers")

    def report(done: int, total: int) -> None:
        progress(f"compiled {done} of {total} changed files")

    return store.compile(_units(plan, generated), report)


def _finish(plan: _Plan, objects: Sequence[Path], built: BuiltModel) -> None:
    """Link beside the final folder, then rename."""
    unfinished = built.folder.with_name(f".{built.folder.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    linker = replace(plan.compiler, command=plan.compiler.command[-1:])
    arguments = ["-o", _BINARY, *(str(path) for path in objects), *plan.link_flags]
    run_compiler(linker, arguments, unfinished)
    (unfinished / _MANIFEST).write_text(built.to_json() + "\n")
    unfinished.rename(built.folder)


def build(spec: BuildSpec) -> BuiltModel:
    """The simulator of `spec`, built now unless it exists.

    InputError: sources that do not elaborate, a path with a space, an unknown variant.
    InfrastructureError: no Verilator, no compiler, a full disk, another builder that never ends.
    """
    plan = _plan(spec)
    key = plan.key()
    root = spec.build_root
    folder = root / f"{spec.label}-{spec.variant}-{key}"
    built = BuiltModel(folder / _BINARY, folder, key, spec.variant, True, 0, 0)
    if folder.is_dir():
        return built
    family = root / f"family-{plan.family_key()}"
    try:
        family.mkdir(parents=True, exist_ok=True)
        with FileLock(family / "lock", timeout=_LOCK_TIMEOUT_S):
            if folder.is_dir():
                return built
            return _build_locked(plan, family, built)
    except Timeout as error:
        raise InfrastructureError(f"another build holds {family} for too long") from error
    except OSError as error:
        raise InfrastructureError(f"build of {folder.name} failed: {error}") from error


def _build_locked(plan: _Plan, family: Path, built: BuiltModel) -> BuiltModel:
    progress = _Progress(f"{plan.spec.label} ({plan.spec.variant})")
    generated = family / "generated"
    _verilate(plan, generated)
    progress("verilated")
    store = ObjectStore(family.parent / "objects", plan.compiler, plan.spec.jobs)
    objects = _compile(plan, generated, store, progress)
    finished = replace(
        built, cached=False, objects_compiled=store.compiled, objects_reused=store.reused
    )
    _finish(plan, objects, finished)
    store.drop_old()
    return finished


if __name__ == "__main__":
    from tb.sim.cli import main

    sys.exit(main())
