# SPDX-License-Identifier: Apache-2.0
"""What to build: sources, parameters and variant; and what a finished build is. Runs nothing."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from driver.config import HwConfig
from driver.errors import InputError
from driver.filelist import FILELIST

REPOSITORY = Path(__file__).resolve().parents[2]
SIM_FOLDER = REPOSITORY / "tb" / "sim"
HDL_FOLDER = REPOSITORY / "tb" / "hdl"
WAIVERS = REPOSITORY / "rtl" / "lint" / "npu.vlt"
"""Of lint, for generated RTL."""
BUILD_ROOT = REPOSITORY / "build" / "sim"
TRAINING = REPOSITORY / "tb" / "training.py"
"""The programs that a profile is taken from."""
TOP = "tb_top"
BENCH = tuple(HDL_FOLDER / f"{name}.sv" for name in ("npu_dram", "npu_port_watch", "tb_top"))
CHECKERS = tuple(HDL_FOLDER / f"npu_{name}.sv" for name in ("axi_checker", "axil_checker", "bind"))
"""Protocol assertions at the pins, part of every build of npu_top that has assertions."""
INNER_CHECKERS = tuple(
    HDL_FOLDER / f"npu_{name}.sv"
    for name in ("request_checker", "order_checker", "span_checker", "inner_bind")
)
"""Assertions of what happens inside INSIDE, where the design has that file."""
INSIDE = "npu_core.sv"

BEHAVIOURAL_ARRAY = {
    REPOSITORY / "rtl" / folder / name: HDL_FOLDER / "behavioural" / name
    for folder, name in (("fpu", "npu_fma_pkg.sv"), ("matrix", "npu_matrix_array.sv"))
}
"""Sources of the RTL and what stands in for them in a build with `behavioural_array`."""


@dataclass(frozen=True)
class BuildVariant:
    """How the model is compiled; every combination is legal."""

    assertions: bool = False
    random_init: bool = False
    trace: bool = False
    """Can record waves, in VCD or FST as the file's name says."""
    vpi: bool = False
    behavioural_array: bool = False
    """Matrix array and multiply-add are models: see BEHAVIOURAL_ARRAY."""
    profiled: bool = False
    """Compiled for the branches that the programs of tb/training.py take."""
    mutants: str = ""
    """The set of wrong expressions in the RTL, of which an argument activates one: see
    tb.mutants.activation."""


VARIANTS: dict[str, BuildVariant] = {
    "fast": BuildVariant(),
    "behavioural": BuildVariant(behavioural_array=True),
    "check": BuildVariant(assertions=True, random_init=True),
    "fast-pgo": BuildVariant(profiled=True),
    "behavioural-pgo": BuildVariant(behavioural_array=True, profiled=True),
    "check-pgo": BuildVariant(assertions=True, random_init=True, profiled=True),
    "waves": BuildVariant(assertions=True, random_init=True, trace=True),
    "cocotb": BuildVariant(assertions=True, random_init=True, vpi=True),
    "cocotb-fast": BuildVariant(vpi=True),
    "cocotb-waves": BuildVariant(assertions=True, random_init=True, trace=True, vpi=True),
}
"""The builds by name. A variant with waves runs the same cycles as the one without, and so does a
profile-guided one (pgo)."""

PLANTED_SET: Final = "planted"
"""The mutants of tb/mutants/blocks."""
_WITH_MUTANTS: Final = re.compile(rf"(check|waves|cocotb|cocotb-waves)-({PLANTED_SET}|sampled-\d+)")

SECOND_SIMULATOR = "cxxrtl"
"""The name under which callers ask for the build of tb/cxxrtl."""


def variant_named(name: str) -> BuildVariant:
    """The variant `name`, or InputError. `NAME-SET` is one with assertions and with the mutants of
    a set."""
    mutated = _WITH_MUTANTS.fullmatch(name)
    if mutated is not None:
        return replace(VARIANTS[mutated[1]], mutants=mutated[2])
    if name not in VARIANTS:
        raise InputError("command line", "variant", name, f"one of {', '.join(VARIANTS)}")
    return VARIANTS[name]


@dataclass(frozen=True)
class BuildSpec:
    """Everything that decides what the simulator does. Paths are absolute."""

    variant: str
    parameters: tuple[tuple[str, str], ...] = ()
    """Of tb_top, as Verilog text."""
    filelist: Path = FILELIST
    bench: tuple[Path, ...] = BENCH
    """Sources after those of the file list, in order; a .vlt file is a control file."""
    build_root: Path = BUILD_ROOT
    label: str = "npu"
    """Only names the folder."""
    config: HwConfig | None = field(default=None, compare=False)
    """What the training programs of a profiled build are made for."""
    jobs: int = field(default=2, compare=False)


@dataclass(frozen=True)
class BuiltModel:
    """A finished simulator."""

    binary: Path
    folder: Path
    key: str
    variant: str
    cached: bool
    """Nothing had to be done."""
    objects_compiled: int
    objects_reused: int

    def to_json(self) -> str:
        """One line."""
        plain = {
            name: str(value) if isinstance(value, Path) else value
            for name, value in asdict(self).items()
        }
        return json.dumps(plain)


def spec_for(
    config: HwConfig, variant: str, build_root: Path = BUILD_ROOT, jobs: int = 2
) -> BuildSpec:
    """The build of npu_top with the parameters of `config`."""
    checkers = (*CHECKERS, *INNER_CHECKERS) if variant_named(variant).assertions else ()
    parameters = {
        name: f"64'h{value:x}" if name.startswith("Mem") else str(value)
        for name, value in (config.rtl_parameters() | config.bench_parameters()).items()
    }
    return BuildSpec(
        variant=variant,
        parameters=tuple(parameters.items()),
        filelist=config.filelist or FILELIST,
        bench=(*BENCH, *checkers),
        build_root=build_root,
        label=config.name,
        config=config,
        jobs=jobs,
    )


def digest(parts: Iterable[bytes | str]) -> str:
    """SHA-256 over the parts, each with its length, so that no two lists collide."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(f"{len(data)}:".encode())
        state.update(data)
    return state.hexdigest()
