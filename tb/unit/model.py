# SPDX-License-Identifier: Apache-2.0
"""Builds the program of a bench from RTL and C++, once. Knows nothing of what a bench finds.

A finished program lies in `build/unit/<name>-<key>/`; the key is the hash of sources, flags and
tools. The folder is filled beside its final place and renamed, so it is complete or absent.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock, Timeout

from driver.errors import InfrastructureError, InputError
from driver.filelist import FILELIST, read_filelist
from driver.isa.programs import BOOT_IMAGE, LINES
from tb.sim.compile import merge_small
from tb.sim.objects import ObjectStore, Unit, run_compiler
from tb.sim.plan import GENERATED_STANDARD, NO_IMPLICIT_NETS, OWN_STANDARD
from tb.sim.progress import BuildProgress
from tb.sim.spec import REPOSITORY, WAIVERS, digest
from tb.sim.toolchain import Compiler, Verilator, find_compiler, find_verilator
from tb.sim.verilate import run_verilator

BUILD_ROOT = REPOSITORY / "build" / "unit"

# Generated registers do not pass without.
_LOCK_TIMEOUT_S = 900
_VERILATE = (
    *("--cc", "--make", "json", "--no-timing", "--quiet", "-O3", "--assert"),
    *("--x-assign", "unique", "--x-initial", "unique"),
    *("-Wno-lint", "-Wno-style", *NO_IMPLICIT_NETS),
)
_KINDS = ("classes", "support")
"""Of the generated files; each has those that run in every cycle and those that do not."""
_MERGED_BELOW: Mapping[str, int | None] = {"fast": 64 * 1024, "slow": None}
"""Bytes, for the files of each speed (tb.sim.compile.merge_small): what is not optimised takes less
time to compile than the headers that each file of it reads."""
_DEFINES = ("-DVERILATOR=1", "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0")
_COMPILE = ("-march=native", *_DEFINES, "-DVM_TIMING=0", "-I.")
_GENERATED = (GENERATED_STANDARD, *_COMPILE)
_OWN = (OWN_STANDARD, *_COMPILE)
_ONCE = "-O0"
"""What runs before the first cycle only, a third of the generated text: optimising it takes longer
than running it."""
_RUNTIME = "-O2"
"""Verilator's own library: one for the programs of all benches."""
_STRICT = ("-Wall", "-Wextra", "-Werror")

_CMODEL = REPOSITORY / "golden" / "cmodel"
# The contract is bits: no contraction that the source does not spell as fma.
_CMODEL_FLAGS = (OWN_STANDARD, "-march=native", "-O2", "-ffp-contract=off", *_STRICT)
CMODEL_SOURCES = (
    *("copy", "dispatch_portable", "gather", "image", "kernels_portable", "memory"),
    *(
        "operands",
        "packet",
        "parallel",
        "programs",
        "tensor_view",
        "vector",
        "vector_block",
        "walk",
    ),
)
"""The checks of packets, VECTOR, COPY, FILL, GATHER and SCATTER, without the Python module."""
_TABLES_SOURCE = "program_table.cpp"


@dataclass(frozen=True)
class BenchProgram:
    """The sources and options of one program."""

    name: str
    """Of the program and its folder; it tells apart the programs of one bench."""
    folder: Path
    """Of the C++ sources and their headers."""
    top: str
    sources: tuple[Path, ...]
    """SystemVerilog, in order."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Of the top level."""
    defines: tuple[str, ...] = ()
    """Of the C++ sources: "NAME=value"."""
    include: tuple[Path, ...] = ()
    """Folders of headers that the C++ sources include besides their own."""
    cpp_sources: tuple[str, ...] = ("main.cpp",)
    """In `folder`."""
    cmodel: bool = False
    """Link the cmodel and its vector programs (tb/unit/program_table.hpp)."""
    prefix: str = "Vbench"
    """Name of the model's class. Benches that share headers share it, whatever the top level."""
    optimise: str = "-O1"


@dataclass(frozen=True)
class _BuildInputs:
    bench: BenchProgram
    verilator: Verilator
    compiler: Compiler

    def headers(self) -> list[Path]:
        """Every header that the C++ sources may include."""
        own = sorted(self.bench.folder.glob("*.hpp"))
        return own + [path for one in self.bench.include for path in sorted(one.glob("*.h*"))]

    def cmodel_sources(self) -> list[Path]:
        """Those of the library, if the bench links it."""
        return [_CMODEL / f"{name}.cpp" for name in CMODEL_SOURCES if self.bench.cmodel]

    def key(self) -> str:
        """Decides everything about the program."""
        bench = self.bench
        own = [bench.folder / name for name in bench.cpp_sources]
        files = [WAIVERS, *bench.sources, *own, *self.headers(), *self.cmodel_sources()]
        parameters = [f"{name}={value}" for name, value in sorted(bench.parameters.items())]
        tools = [self.verilator.version, self.compiler.identity, bench.top, *parameters]
        flags = [*_VERILATE, *_GENERATED, *_OWN, _ONCE, _RUNTIME, bench.optimise, *bench.defines]
        library: list[str | bytes] = [*_CMODEL_FLAGS, BOOT_IMAGE] if bench.cmodel else []
        return digest([*tools, *flags, *library, *(path.read_bytes() for path in files)])[:16]


def rtl_sources(
    folders: Sequence[str] | None = None, instead: Mapping[str, Path] | None = None
) -> tuple[Path, ...]:
    """The files of rtl/ in order, of these folders only; `instead` replaces files by name.

    InputError: a name in `instead` that is none of them.
    """
    listed = [
        path for path in read_filelist(FILELIST) if folders is None or path.parent.name in folders
    ]
    unknown = set(instead or {}) - {path.name for path in listed}
    if unknown:
        raise InputError("command line", "file", min(unknown), "a file that the bench is made of")
    return tuple((instead or {}).get(path.name, path) for path in listed)


def _verilate(inputs: _BuildInputs, folder: Path) -> None:
    bench = inputs.bench
    names = ["--top-module", bench.top, "--prefix", bench.prefix]
    parameters = [f"-G{name}={value}" for name, value in sorted(bench.parameters.items())]
    arguments = [*_VERILATE, *names, *parameters]
    run_verilator(inputs.verilator, arguments, [WAIVERS, *bench.sources], folder)


def _units(inputs: _BuildInputs, folder: Path) -> list[Unit]:
    bench = inputs.bench
    generated = json.loads((folder / f"{bench.prefix}.json").read_text())["sources"]
    include = inputs.verilator.include
    system = ("-isystem", str(include), "-isystem", str(include / "vltstd"))
    headers = digest(path.read_bytes() for path in sorted(folder.glob("*.h")))
    fast, slow = (
        _merged(folder, generated, f"{bench.prefix}__small_{speed}.cpp", speed, below)
        for speed, below in _MERGED_BELOW.items()
    )
    own = digest([headers, *(path.read_bytes() for path in inputs.headers())])
    quiet = (*_GENERATED, bench.optimise, *system, "-w")
    local = (f"-I{one}" for one in (bench.folder, *bench.include))
    defines = (f"-D{one}" for one in bench.defines)
    strict = (*_OWN, bench.optimise, *system, *local, *defines, *_STRICT)
    runtime = (*_GENERATED, _RUNTIME, *system, "-w")
    version = inputs.verilator.version
    return [
        *(Unit(path, quiet, headers, folder) for path in fast),
        *(Unit(path, (*quiet, _ONCE), headers, folder) for path in slow),
        *(Unit(Path(name), runtime, version, folder) for name in generated["global"]),
        *(Unit(bench.folder / name, strict, own, folder) for name in bench.cpp_sources),
        *_cmodel_units(inputs, folder),
    ]


def _merged(
    folder: Path, generated: Mapping[str, list[str]], name: str, speed: str, below: int | None
) -> list[Path]:
    """The generated files of one speed to compile, by name; the small ones are one, `name`."""
    files = [Path(one).name for kind in _KINDS for one in generated.get(f"{kind}_{speed}", [])]
    merged = merge_small([folder / one for one in files], folder / name, below)
    return [Path(path.name) for path in merged]


def _cmodel_units(inputs: _BuildInputs, folder: Path) -> list[Unit]:
    if not inputs.bench.cmodel:
        return []
    lines_of = ", ".join(f'{{"{name}", {line}}}' for name, line in LINES.items())
    lines = (
        '#include "program_table.hpp"',
        f"const unsigned char kBootImage[] = {{{', '.join(map(str, BOOT_IMAGE))}}};",
        f"const std::size_t kBootImageBytes = {len(BOOT_IMAGE)};",
        f"const NamedProgram kPrograms[] = {{{lines_of}}};",
        f"const std::size_t kProgramCount = {len(LINES)};",
    )
    (folder / _TABLES_SOURCE).write_text("\n".join(lines) + "\n")
    table = Path(__file__).parent / "program_table.hpp"
    headers = digest(path.read_bytes() for path in (table, *sorted(_CMODEL.glob("*.h"))))
    include = (f"-I{table.parent}", f"-I{_CMODEL}")
    return [
        Unit(Path(_TABLES_SOURCE), (OWN_STANDARD, *include), headers, folder),
        *(Unit(path, _CMODEL_FLAGS, headers, folder) for path in inputs.cmodel_sources()),
    ]


def _build_locked(inputs: _BuildInputs, key: str, folder: Path) -> None:
    unfinished = folder.with_name(f".{folder.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    progress = BuildProgress(f"bench {inputs.bench.name}")
    progress("Verilator reads the RTL")
    _verilate(inputs, unfinished)
    version = inputs.verilator.version
    store = ObjectStore(folder.parent / "objects", inputs.compiler, version, jobs=2)
    objects = store.compile(_units(inputs, unfinished), progress.compiled)
    linker = replace(inputs.compiler, command=inputs.compiler.command[-1:])
    linked = ["-o", inputs.bench.name, *(str(path) for path in objects), "-pthread"]
    run_compiler(linker, linked, unfinished)
    if inputs.key() != key:
        raise InfrastructureError(f"{inputs.bench.name}: the sources changed while they were read")
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    store.drop_old()


def build_model(bench: BenchProgram, root: Path = BUILD_ROOT) -> Path:
    """The bench's program, built now unless it exists.

    InputError: sources that do not elaborate. InfrastructureError: no tools, a builder that never
    ends.
    """
    inputs = _BuildInputs(bench, find_verilator(), find_compiler())
    key = inputs.key()
    folder = root / f"{bench.name}-{key}"
    program = folder / bench.name
    if program.is_file():
        return program
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / "lock", timeout=_LOCK_TIMEOUT_S):
            if not program.is_file():
                _build_locked(inputs, key, folder)
    except Timeout as error:
        raise InfrastructureError(f"another build holds {root} for too long") from error
    except OSError as error:
        raise InfrastructureError(f"build of {bench.name} failed: {error}") from error
    return program
