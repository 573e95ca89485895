# SPDX-License-Identifier: Apache-2.0
"""Every flag of a build, and the keys that follow from them. Runs tools only for their version."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from driver.errors import InputError
from driver.filelist import FILELIST, read_by, read_filelist
from tb.sim.spec import (
    BEHAVIOURAL_ARRAY,
    HDL_FOLDER,
    INNER_CHECKERS,
    INSIDE,
    REPOSITORY,
    SIM_FOLDER,
    TOP,
    TRAINING,
    WAIVERS,
    BuildSpec,
    BuildVariant,
    digest,
    variant_named,
)
from tb.sim.toolchain import Compiler, Verilator, find_compiler, find_header, find_verilator

PREFIX = f"V{TOP}"
ROOT = f"{PREFIX}___024root"
"""The class of the whole model, and the beginning of its files' names."""

_MODULE = re.compile(r"^\s*module\s+(\w+)", re.MULTILINE)
_DEVICE = "npu_top"
GENERATED_STANDARD = "-std=c++17"
"""The oldest that aligns what `new` makes, as the model needs: with an older one the model of a
trace build crashes, with a newer one the library's headers are half as long again."""
OWN_STANDARD = "-std=c++20"
FAST = (GENERATED_STANDARD, "-O3", "-march=native")
WITH_WAVES = (GENERATED_STANDARD, "-O1", "-march=native")
"""Instead of `FAST`, of a model that can record waves: it runs as fast, and is built sooner."""
SHORTER = ("-fno-expand", "-fno-merge-cond")
"""Steps of Verilator that such a model goes without, for the same reason: less C++, sooner."""
SLOW = '#pragma GCC optimize("O0")\n#pragma clang optimize off\n'
"""In the text of files that run once, so that they can share a precompiled header."""
RUNTIME = (GENERATED_STANDARD, "-O2", "-march=native")
OWN = (OWN_STANDARD, "-O2", "-march=native", "-Wall", "-Wextra", "-Werror")
COLLECT = ("-fprofile-generate", "-fprofile-update=single")
"""Counts the branches that are taken; the model has one thread."""
USE = ("-fprofile-use", "-fprofile-partial-training")
"""What the training never ran is compiled as without a profile, not for size."""
OUTPUT_SPLIT = 5000
"""Size of one generated C++ file, in Verilator's node count: smaller compiles less after an edit,
larger optimises across more."""
REWRITES = tuple(sorted((SIM_FOLDER / "rewrite").glob("*.py")))
"""What changes the generated C++ before it is compiled."""
STRUCTURE = ("MODDUP", "IMPLICIT", "PINMISSING", "MULTIDRIVEN", "LATCH")
"""Warnings that end the build of RTL that is not this project's, as nothing else looks at it: a
module twice, a net that is not declared, a pin that is left out, two drivers, a latch."""
NO_IMPLICIT_NETS = ("-Wwarn-IMPLICIT", "-Werror-IMPLICIT")
"""For RTL with mutants: one that names no signal would be a net of its own, another mutant."""


def verilator_flags(variant: BuildVariant) -> list[str]:
    """Verilator's options, without sources, top and parameters."""
    state = "unique" if variant.random_init else "fast"
    flags = ["--cc", "--make", "json", "--no-timing", "--quiet", "-O3"]
    flags += ["--x-assign", state, "--x-initial", state]
    flags += ["--assert" if variant.assertions else "--no-assert"]
    flags += ["--timescale-override", "1ns/1ps", "--output-split", str(OUTPUT_SPLIT)]
    # Lint is a gate of its own; here a warning must not stand between an edit and its run.
    flags += ["-Wno-lint", "-Wno-style", "-Wno-fatal"]
    if variant.mutants:
        flags += NO_IMPLICIT_NETS
    if variant.trace:
        flags += ["--trace-vcd", "--trace-structs", *SHORTER]
    flags += ["--vpi"] if variant.vpi else ["+define+NPU_SHARED_MEMORY_ONLY"]
    return flags


def compile_flags_of(variant: BuildVariant, verilator: Verilator) -> tuple[str, ...]:
    """Flags of every C++ file; order and content are part of each object's key."""
    shim = SIM_FOLDER / "fst"
    flags = ["-DVERILATOR=1", "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0"]
    flags += ["-DVM_TIMING=0", f"-DVM_TRACE={int(variant.trace)}"]
    flags += [
        f"-DVM_TRACE_VCD={int(variant.trace)}",
        "-DVM_TRACE_FST=0",
        "-DVM_TRACE_SAIF=0",
        "-I.",
    ]
    flags += ["-isystem", str(verilator.include), "-isystem", str(verilator.include / "vltstd")]
    if variant.trace:  # for the FST library
        # Also the fallback of a system header: -idirafter is searched last.
        flags += ["-idirafter", str(shim)]
    return tuple(flags)


@dataclass(frozen=True)
class BuildPlan:
    """A BuildSpec with its sources read and its tools found."""

    spec: BuildSpec
    variant: BuildVariant
    verilator: Verilator
    compiler: Compiler
    sources: tuple[Path, ...]
    own_sources: tuple[Path, ...]
    link_flags: tuple[str, ...]

    @property
    def arguments(self) -> list[str]:
        """Verilator's, without the sources and the output folder."""
        parameters = [f"-G{name}={value}" for name, value in self.spec.parameters]
        flags = verilator_flags(self.variant)
        if self.spec.filelist != FILELIST:
            flags += [f"-W{what}-{name}" for name in STRUCTURE for what in ("warn", "error")]
            folders = dict.fromkeys(source.parent for source in self.sources)
            flags += [f"-I{os.path.relpath(folder, REPOSITORY)}" for folder in folders]
        return [*flags, "--top-module", TOP, "--prefix", PREFIX, *parameters]

    @property
    def compile_flags(self) -> tuple[str, ...]:
        """Of every C++ file, before its language and its level of optimisation."""
        return compile_flags_of(self.variant, self.verilator)

    @property
    def optimisation(self) -> tuple[str, ...]:
        """Standard and level of the generated C++ that does not run once."""
        return WITH_WAVES if self.variant.trace else FAST

    def family_key(self) -> str:
        """Hash of what does not depend on the text of the sources."""
        tools = [self.verilator.version, self.compiler.identity]
        flags = [*self.arguments, "--", *self.compile_flags, *self.link_flags]
        profiled = ["profiled"] if self.variant.profiled else []
        return digest([*tools, *flags, *profiled])[:16]

    def key(self) -> str:
        """Hash of everything."""
        own = sorted([*self.own_sources, *own_headers()])
        files = [
            *self.sources,
            *read_by(self.sources),
            *own,
            *REWRITES,
            *([TRAINING] if self.variant.profiled else []),
        ]
        names = [os.path.relpath(path, REPOSITORY) for path in files]
        profile = [*COLLECT, *USE] if self.variant.profiled else []
        constants = [*self.optimisation, SLOW, *RUNTIME, *OWN, *profile]
        return digest(
            [self.family_key(), *constants, *names, *(path.read_bytes() for path in files)]
        )[:16]


def own_headers() -> list[Path]:
    """Headers of the main programs, and the replacements of system headers."""
    return sorted([*(SIM_FOLDER / "core").glob("*.h"), *(SIM_FOLDER / "fst").glob("*.h")])


def _own_sources(variant: BuildVariant) -> tuple[Path, ...]:
    core = sorted((SIM_FOLDER / "core").glob("*.cpp"))
    if variant.vpi:
        return (SIM_FOLDER / "cocotb_main.cpp", *core)
    return (SIM_FOLDER / "main.cpp", *(path for path in core if path.stem != "cocotb_loop"))


def _link_flags(variant: BuildVariant) -> tuple[str, ...]:
    flags = ["-pthread"]
    if variant.trace:
        flags += ["-llz4"] if find_header("lz4.h") else []
        flags += ["-lz"] if find_header("zlib.h") else []
    if variant.vpi:
        import cocotb_tools.config  # noqa: PLC0415 - only builds for cocotb need cocotb

        library = cocotb_tools.config.libs_dir
        flags += [f"-L{library}", f"-Wl,-rpath,{library}", "-Wl,--export-dynamic"]
        flags += ["-Wl,--no-as-needed", "-lcocotbvpi_verilator"]
    return tuple(flags)


def _check_modules(filelist: Path, design: Sequence[Path]) -> None:
    """InputError unless the design has the device, and each module in one file."""
    places: dict[str, Path] = {}
    for source in design:
        for name in dict.fromkeys(_MODULE.findall(source.read_text(errors="replace"))):
            first = places.setdefault(name, source)
            if first is not source:
                both = [os.path.relpath(path, filelist.parent) for path in (first, source)]
                value = f"module {name} in {' and in '.join(both)}"
                raise InputError(filelist, "sources", value, "each module in one file")
    if _DEVICE not in places:
        expected = f"one that defines the module {_DEVICE}"
        raise InputError(filelist, "sources", f"{len(design)} files", expected)


def make_plan(spec: BuildSpec) -> BuildPlan:
    """Read the file list, find the tools. InputError and InfrastructureError as build()."""
    variant = variant_named(spec.variant)
    places = {"repository": REPOSITORY, "build folder": spec.build_root, "filelist": spec.filelist}
    for name, path in places.items():
        if any(character.isspace() for character in str(path)):
            raise InputError(name, "path", path, "a path without spaces")
    design = read_filelist(spec.filelist)
    _check_modules(spec.filelist, design)
    inside = any(source.name == INSIDE for source in design)
    bench = [source for source in spec.bench if inside or source not in INNER_CHECKERS]
    sources = [*design, *bench]
    rewrites = variant.behavioural_array or variant.mutants
    if rewrites and spec.filelist != FILELIST:
        expected = f"one without mutants and with the array of the RTL, for {spec.filelist}"
        raise InputError("command line", "variant", spec.variant, expected)
    if variant.behavioural_array:
        sources = [BEHAVIOURAL_ARRAY.get(source, source) for source in sources]
    if variant.mutants:
        from tb.mutants.activation import rewritten_sources  # noqa: PLC0415 - only with mutants
        from tb.mutants.expression import WAIVERS as MUTANT_WAIVERS  # noqa: PLC0415

        written = rewritten_sources(variant.mutants)
        sources = [MUTANT_WAIVERS, *(written.get(source, source) for source in sources)]
    if spec.filelist != FILELIST:
        sources.insert(0, WAIVERS)  # it may have the project's generated registers
    if variant.vpi:
        sources.insert(0, HDL_FOLDER / "pins.vlt")
    return BuildPlan(
        spec=spec,
        variant=variant,
        verilator=find_verilator(),
        compiler=find_compiler(),
        sources=tuple(sources),
        own_sources=_own_sources(variant),
        link_flags=_link_flags(variant),
    )
