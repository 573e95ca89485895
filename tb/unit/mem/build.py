# SPDX-License-Identifier: Apache-2.0
"""Turns the memory bench into a program, once per bus width. Knows nothing of what it finds.

A finished program lies in `build/unit/mem<bus>-<key>/`; the key is the hash of sources, flags and
tools. The folder is filled beside its final place and renamed, so it is complete or absent.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from driver.errors import InfrastructureError, InputError
from tb.sim.objects import ObjectStore, Unit, run_compiler
from tb.sim.spec import FILELIST, REPOSITORY, digest, read_filelist
from tb.sim.toolchain import Compiler, Verilator, find_compiler, find_verilator

BUILD_ROOT = REPOSITORY / "build" / "unit"
BUS_WIDTHS = (128, 256, 512)

_FOLDER = Path(__file__).parent
_TOP = "mem_bench"
_RTL_FOLDERS = ("pkg", "common", "mem", "move")
_LOCK_TIMEOUT_S = 900
_VERILATE = ("--cc", "--make", "json", "--no-timing", "--quiet", "-O3", "--assert")
_RANDOM_STATE = ("--x-assign", "unique", "--x-initial", "unique", "-Wno-lint", "-Wno-style")
_DEFINES = ("-DVERILATOR=1", "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0")
_COMPILE = ("-std=c++20", "-O2", "-march=native", *_DEFINES, "-DVM_TIMING=0", "-I.")


@dataclass(frozen=True)
class _Plan:
    bus_bits: int
    sources: tuple[Path, ...]
    verilator: Verilator
    compiler: Compiler

    def key(self) -> str:
        """Decides everything about the program."""
        files = [*self.sources, *sorted(_FOLDER.glob("*.?pp"))]
        tools = [self.verilator.version, self.compiler.identity, str(self.bus_bits)]
        flags = [*_VERILATE, *_RANDOM_STATE, *_COMPILE]
        return digest([*tools, *flags, *(path.read_bytes() for path in files)])[:16]


def _sources(instead: Mapping[str, Path]) -> tuple[Path, ...]:
    """The RTL under test and the bench's top; `instead` replaces files by name."""
    listed = [path for path in read_filelist(FILELIST) if path.parent.name in _RTL_FOLDERS]
    unknown = set(instead) - {path.name for path in listed}
    if unknown:
        raise InputError("command line", "file", min(unknown), "a file of rtl/mem or rtl/move")
    return (*(instead.get(path.name, path) for path in listed), _FOLDER / f"{_TOP}.sv")


def _verilate(plan: _Plan, folder: Path) -> None:
    names = ["--top-module", _TOP, "--prefix", f"V{_TOP}", "-Mdir", str(folder)]
    arguments = [*_VERILATE, *_RANDOM_STATE, *names, f"-GBusBits={plan.bus_bits}"]
    sources = [os.path.relpath(path, REPOSITORY) for path in plan.sources]
    done = subprocess.run(
        [str(plan.verilator.binary), *arguments, *sources],
        cwd=REPOSITORY,
        env={**os.environ, "VERILATOR_ROOT": str(plan.verilator.root)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("%Error")]
        raise InputError("rtl", "verilator", (errors or ["no message"])[0], "correct sources")


def _units(plan: _Plan, folder: Path) -> list[Unit]:
    generated = json.loads((folder / f"V{_TOP}.json").read_text())["sources"]
    include = plan.verilator.include
    system = ("-isystem", str(include), "-isystem", str(include / "vltstd"))
    headers = digest(path.read_bytes() for path in sorted(folder.glob("*.h")))
    groups = ("classes_fast", "classes_slow", "support_fast", "support_slow")
    model = [Path(Path(name).name) for group in groups for name in generated.get(group, [])]
    own = digest([headers, *(path.read_bytes() for path in sorted(_FOLDER.glob("*.hpp")))])
    quiet = (*_COMPILE, *system, "-w")
    bus = f"-DBUS_BITS={plan.bus_bits}"
    strict = (*_COMPILE, *system, f"-I{_FOLDER}", bus, "-Wall", "-Wextra", "-Werror")
    runtime = plan.verilator.version
    return [
        *(Unit(path, quiet, headers, folder) for path in model),
        *(Unit(Path(name), quiet, runtime, folder) for name in generated["global"]),
        Unit(_FOLDER / "main.cpp", strict, own, folder),
    ]


def _build_locked(plan: _Plan, folder: Path) -> None:
    unfinished = folder.with_name(f".{folder.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    _verilate(plan, unfinished)
    store = ObjectStore(folder.parent / "objects", plan.compiler, jobs=2)
    objects = store.compile(_units(plan, unfinished), lambda done, total: None)
    linker = replace(plan.compiler, command=plan.compiler.command[-1:])
    run_compiler(linker, ["-o", _TOP, *(str(path) for path in objects), "-pthread"], unfinished)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)


def build_bench(
    bus_bits: int, instead: Mapping[str, Path] | None = None, root: Path = BUILD_ROOT
) -> Path:
    """The bench's program for one bus width, built now unless it exists.

    `instead` maps names of RTL files to files that take their place.
    InputError: no such width or file, sources that do not elaborate. InfrastructureError: no tools,
    a builder that never ends.
    """
    if bus_bits not in BUS_WIDTHS:
        raise InputError("command line", "bus", bus_bits, f"one of {BUS_WIDTHS}")
    plan = _Plan(bus_bits, _sources(instead or {}), find_verilator(), find_compiler())
    folder = root / f"mem{bus_bits}-{plan.key()}"
    program = folder / _TOP
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / "lock", timeout=_LOCK_TIMEOUT_S):
            if not program.is_file():
                _build_locked(plan, folder)
    except Timeout as error:
        raise InfrastructureError(f"another build holds {root} for too long") from error
    except OSError as error:
        raise InfrastructureError(f"build of {_TOP} failed: {error}") from error
    return program
