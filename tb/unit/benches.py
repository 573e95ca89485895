# SPDX-License-Identifier: Apache-2.0
"""The unit benches: one row each, and the program that a row stands for.

An arithmetic bench is a top level in `hdl` around functions of rtl/fpu. The bench of a block is a
folder with a `main.cpp`, which links the cmodel as its reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from driver.errors import InputError
from tb.mutants.expression import WAIVERS
from tb.sim.spec import REPOSITORY
from tb.unit.model import BenchProgram, rtl_sources
from tb.unit.mutants import mutant_sources

BUS_WIDTHS = (128, 256, 512)
CONVERSIONS = ("f16_to_f32", "bf16_to_f32", "f32_to_f16", "f32_to_bf16")
ALU_OPERATIONS = (
    *("f32_max", "f32_min", "f32_lt", "f32_le", "f32_eq"),
    *("i32_to_f32", "f32_to_i32", "f32_to_i32_r_minMag"),
)
ARITHMETIC: dict[str, tuple[str, ...]] = {
    "fp_fma": ("f32_mulAdd",),
    "fp_cast": CONVERSIONS,
    "int8_mac": ("int8_mac",),
    "fp_div": ("f32_div", "f32_sqrt"),
    "fp_alu": ALU_OPERATIONS,
}
"""The arithmetic benches, with their operations by the names that Berkeley TestFloat gives them."""

_ARITHMETIC_FOLDERS = ("fpu",)
_FOLDER = Path(__file__).parent
_CMODEL = REPOSITORY / "golden" / "cmodel"
_REGISTERS = REPOSITORY / "rtl" / "csr" / "gen"
_MEMORY = _FOLDER / "mem"
"""The memory with everything around it serves all engines behind the memory controller."""


@dataclass(frozen=True)
class BlockBench:
    """One row: the bench of a block, in the folder of its name."""

    rtl_folders: tuple[str, ...]
    rounds: int
    """Scale of the random parts."""
    mutant_bus: int
    """The bus width at which mutants are tried."""
    mutant_rounds: int
    include: tuple[Path, ...] = (_MEMORY,)
    """Folders of headers beside its own and the cmodel's."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    readers: int = 0
    """Read clients of the folder's `bench_engine`, which `engine_bench` puts behind the memory
    controller. 0: the folder has a top level of its own, `NAME_bench`."""
    writers: int = 1
    """Its write clients."""
    engine: str = ""
    """Folder of the `bench_engine`; its own if empty."""
    sizes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Sizes of the engine at each bus width: rows of its array, or its lanes. The first is meant
    where none is named, as by mutants."""

    def shapes(self) -> tuple[tuple[int, int | None], ...]:
        """Bus width and size of all its checks; None of an engine that has no size."""
        return tuple((bus, size) for bus in BUS_WIDTHS for size in self.sizes.get(bus, (None,)))

    def size_at(self, bus_bits: int, size: int | None) -> int | None:
        """This size, or the first at a bus width. InputError: no such width, or no such size."""
        if bus_bits not in BUS_WIDTHS:
            raise InputError("command line", "bus", bus_bits, f"one of {BUS_WIDTHS}")
        if size is None:
            return self.sizes.get(bus_bits, (None,))[0]
        known = sorted({one for sizes in self.sizes.values() for one in sizes})
        if size not in known:
            expected = f"one of {', '.join(map(str, known))}" if known else "none for this bench"
            raise InputError("command line", "size", size, expected)
        return size

    def top_level(self, name: str) -> tuple[Path, ...]:
        """The SystemVerilog of the bench and its lint waivers; its top level, last, is named as its
        file."""
        if not self.readers:
            own = _FOLDER / name
            return (*sorted(own.glob("*.vlt")), own / f"{name}_bench.sv")
        return (_FOLDER / (self.engine or name) / "bench_engine.sv", _MEMORY / "engine_bench.sv")


BLOCKS: dict[str, BlockBench] = {
    "mem": BlockBench(("pkg", "common", "mem", "copy"), 20, 128, 10, readers=1),
    "ctrl": BlockBench(
        ("pkg", "common", "csr", "gen", "ctrl"),
        40,
        256,
        40,
        (_REGISTERS,),
        {"MemBase": "64'h500100000", "MemLimit": "64'h500200000"},
    ),
    "gather": BlockBench(("pkg", "fpu", "common", "mem", "copy", "gather"), 20, 256, 10, readers=2),
    # Beside usual sizes the widest bus with the smallest array, whose lines are shorter than a
    # beat, and the narrowest with the largest, whose lines are longer than the operand buffer's.
    "matrix": BlockBench(
        ("pkg", "fpu", "common", "mem", "copy", "matrix"),
        20,
        128,
        10,
        readers=1,
        sizes={128: (8, 32), 256: (16,), 512: (32, 8)},
    ),
    "vector": BlockBench(
        ("pkg", "fpu", "common", "mem", "copy", "vector"),
        20,
        128,
        5,
        readers=4,
        writers=3,
        sizes={128: (4,), 256: (16,), 512: (8,)},
    ),
    "single_port": BlockBench(
        ("pkg", "common", "mem", "copy"),
        5,
        128,
        5,
        parameters={"WholeWrites": "1"},
        readers=1,
        engine="mem",
    ),
}


def _rtl(folders: tuple[str, ...], instead: Mapping[str, Path] | None) -> tuple[Path, ...]:
    """RTL of a bench, with what mutants need when files are replaced. InputError: no such file."""
    sources = rtl_sources(folders, instead)
    return (WAIVERS, *sources) if instead else sources


def rtl_files(name: str) -> frozenset[str]:
    """Names of the files of rtl/ that a bench is made of."""
    folders = _ARITHMETIC_FOLDERS if name in ARITHMETIC else BLOCKS[name].rtl_folders
    return frozenset(path.name for path in rtl_sources(folders))


def arithmetic_program(test: str, instead: Mapping[str, Path] | None = None) -> BenchProgram:
    """The program of an arithmetic bench; `instead` maps names of RTL files to others.

    InputError: no such file.
    """
    return BenchProgram(
        name=test,
        folder=_FOLDER / "fp",
        top=test,
        sources=(*_rtl(_ARITHMETIC_FOLDERS, instead), _FOLDER / "hdl" / f"{test}.sv"),
        cpp_sources=(f"{test}.cpp", "bench.cpp", "testfloat.cpp"),
        prefix=f"V{test}",
        optimise="-O3",
    )


def block_program(
    name: str, bus_bits: int, mutant: int | str | None = None, size: int | None = None
) -> BenchProgram:
    """The program of a block's bench; with `mutant`, that of the RTL with selectable mutants.

    InputError: no such bus width, no such size of its engine, no such mutant.
    """
    bench = BLOCKS[name]
    size = bench.size_at(bus_bits, size)
    top_level = bench.top_level(name)
    instead = mutant_sources(name, mutant, rtl_files(name))
    engine = {"Readers": bench.readers, "Writers": bench.writers, "EngineSize": size or 0}
    given = {"BusBits": bus_bits, **(engine if bench.readers else {}), **bench.parameters}
    return BenchProgram(
        name=f"{name}{bus_bits}" + (f"x{size}" if size else ""),
        folder=_FOLDER / name,
        top=top_level[-1].stem,
        sources=(*_rtl(bench.rtl_folders, instead), *top_level),
        parameters={key: str(value) for key, value in given.items()},
        defines=(f"BUS_BITS={bus_bits}", *([f"ENGINE_SIZE={size}"] if size else [])),
        include=(*bench.include, _FOLDER, _CMODEL),
        cmodel=True,
    )
