# SPDX-License-Identifier: Apache-2.0
"""Turns one arithmetic bench into a program, once. Knows nothing of vectors or results.

A finished program lies in `build/unit/<test>-<key>/`; the key is the hash of its sources, flags and
tools. The folder is filled beside its final place and renamed, so it is complete or absent.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from driver.errors import InfrastructureError, InputError
from tb.sim.objects import ObjectStore, Unit, run_compiler
from tb.sim.spec import FILELIST, REPOSITORY, digest, read_filelist
from tb.sim.toolchain import Compiler, Verilator, find_compiler, find_verilator

BUILD_ROOT = REPOSITORY / "build" / "unit"
FPU_FOLDER = REPOSITORY / "rtl" / "fpu"

_FOLDER = Path(__file__).parent
_HDL = _FOLDER / "hdl"
_CPP = _FOLDER / "fp"
_SHARED = ("bench.cpp", "testfloat.cpp")
_LOCK_TIMEOUT_S = 900
_VERILATE = ("--cc", "--make", "json", "--no-timing", "--quiet", "-O3", "--x-assign", "fast")
_DEFINES = ("-DVERILATOR=1", "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0")
_COMPILE = ("-std=c++20", "-O3", "-march=native", *_DEFINES, "-DVM_TIMING=0", "-I.")


def _packages(instead: Path | None) -> tuple[Path, ...]:
    """The packages of rtl/fpu in the file list's order; `instead` replaces its namesake."""
    listed = [path for path in read_filelist(FILELIST) if path.parent == FPU_FOLDER]
    if instead is None:
        return tuple(listed)
    names = [path.name for path in listed]
    if instead.name not in names:
        raise InputError(instead, "name", instead.name, f"one of {', '.join(names)}")
    return tuple(instead if path.name == instead.name else path for path in listed)


def _verilate(test: str, packages: tuple[Path, ...], verilator: Verilator, folder: Path) -> None:
    sources = [*map(str, packages), str(_HDL / f"{test}.sv")]
    names = ["--top-module", test, "--prefix", f"V{test}", "-Mdir", str(folder)]
    done = subprocess.run(
        [str(verilator.binary), *_VERILATE, "-Wall", "-Wno-fatal", *names, *sources],
        cwd=REPOSITORY,
        env={**os.environ, "VERILATOR_ROOT": str(verilator.root)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("%Error")]
        raise InputError("rtl/fpu", "verilator", (errors or ["no message"])[0], "correct sources")


def _units(test: str, verilator: Verilator, folder: Path) -> list[Unit]:
    generated = json.loads((folder / f"V{test}.json").read_text())["sources"]
    system = ("-isystem", str(verilator.include), "-isystem", str(verilator.include / "vltstd"))
    headers = digest(path.read_bytes() for path in sorted(folder.glob("*.h")))
    model = [
        Path(Path(name).name)
        for group in ("classes_fast", "classes_slow", "support_fast", "support_slow")
        for name in generated.get(group, [])
    ]
    runtime = [Path(name) for name in generated["global"]]
    own = [_CPP / f"{test}.cpp", *(_CPP / name for name in _SHARED)]
    own_headers = digest([headers, *(path.read_bytes() for path in sorted(_CPP.glob("*.hpp")))])
    quiet = (*_COMPILE, *system, "-w")
    strict = (*_COMPILE, *system, f"-I{_CPP}", "-Wall", "-Wextra", "-Werror")
    return [
        *(Unit(path, quiet, headers, folder) for path in model),
        *(Unit(path, quiet, verilator.version, folder) for path in runtime),
        *(Unit(path, strict, own_headers, folder) for path in own),
    ]


def _key(test: str, packages: tuple[Path, ...], verilator: Verilator, compiler: Compiler) -> str:
    files = [*packages, _HDL / f"{test}.sv", *sorted(_CPP.iterdir())]
    tools = [verilator.version, compiler.identity, *_VERILATE, *_COMPILE]
    return digest([*tools, *(path.read_bytes() for path in files)])[:16]


def build_bench(test: str, instead: Path | None = None, root: Path = BUILD_ROOT) -> Path:
    """The program of bench `test`, built now unless it exists.

    `instead` takes the place of the package of rtl/fpu with the same file name.
    InputError: no such package, sources that do not elaborate. InfrastructureError: no Verilator,
    no compiler, a builder that never ends.
    """
    packages = _packages(instead)
    verilator, compiler = find_verilator(), find_compiler()
    folder = root / f"{test}-{_key(test, packages, verilator, compiler)}"
    program = folder / test
    if program.is_file():
        return program
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / "lock", timeout=_LOCK_TIMEOUT_S):
            if not program.is_file():
                _build_locked(test, packages, folder, verilator, compiler)
    except Timeout as error:
        raise InfrastructureError(f"another build holds {root} for too long") from error
    except OSError as error:
        raise InfrastructureError(f"build of {test} failed: {error}") from error
    return program


def _build_locked(
    test: str,
    packages: tuple[Path, ...],
    folder: Path,
    verilator: Verilator,
    compiler: Compiler,
) -> None:
    unfinished = folder.with_name(f".{folder.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    _verilate(test, packages, verilator, unfinished)
    store = ObjectStore(folder.parent / "objects", compiler, jobs=2)
    objects = store.compile(_units(test, verilator, unfinished), lambda done, total: None)
    linker = replace(compiler, command=compiler.command[-1:])
    run_compiler(linker, ["-o", test, *(str(path) for path in objects), "-pthread"], unfinished)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    store.drop_old()
