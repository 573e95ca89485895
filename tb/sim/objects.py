# SPDX-License-Identifier: Apache-2.0
"""Compiles C++ files into a content-keyed store of objects, a few at a time.

An object's name is the hash of everything that decides its bytes (compiler, flags, text, headers),
so an unchanged file is never compiled again, whatever happened to its time stamp.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from driver.errors import InfrastructureError
from tb.sim.spec import digest
from tb.sim.toolchain import Compiler

_UNUSED_FOR_S = 7 * 24 * 3600
_ERROR_LINES = 12


@dataclass(frozen=True)
class Unit:
    """One file to compile in `folder`; `context` stands for the headers that it can see."""

    source: Path
    flags: tuple[str, ...]
    context: str
    folder: Path


def _text(unit: Unit) -> Path:
    return unit.source if unit.source.is_absolute() else unit.folder / unit.source


def _taken(path: Path) -> bool:
    """Whether the object is there; it counts as used from now on, so that no other builder drops it
    while the missing ones are compiled."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def run_compiler(compiler: Compiler, arguments: Sequence[str], folder: Path) -> None:
    """Run it; InfrastructureError with the first lines of what it said."""
    environment = {**os.environ, "CCACHE_SLOPPINESS": "pch_defines,time_macros"}
    done = subprocess.run(
        [*compiler.command, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        reason = " | ".join((lines or done.stderr.splitlines())[:_ERROR_LINES])
        raise InfrastructureError(f"C++ compiler failed: {reason}")


class ObjectStore:
    """Objects by content, for any number of builders at once."""

    def __init__(self, folder: Path, compiler: Compiler, runtime: str, jobs: int) -> None:
        """`runtime`: the version of the tool whose headers all files may include, which lie at the
        same place whatever their version is."""
        self.compiled = 0
        self.reused = 0
        self._folder = folder
        self._compiler = compiler
        self._identity = digest([compiler.identity, runtime])
        self._jobs = jobs
        folder.mkdir(parents=True, exist_ok=True)

    def precompiled_header(self, header: Path, name: str, flags: tuple[str, ...], key: str) -> None:
        """Make `name`.gch beside `header`, which -include `name` then finds."""
        stored = self._folder / f"{digest([self._identity, *flags, name, key])[:32]}.gch"
        if not stored.exists():
            arguments = [*flags, "-x", "c++-header", header.name]
            self._write(arguments, stored, header.parent)
        os.utime(stored)
        target = header.parent / f"{name}.gch"
        target.unlink(missing_ok=True)
        os.link(stored, target)

    def missing(self, units: Sequence[Unit]) -> int:
        """How many of the objects are not there yet."""
        return sum(not self._object_path(unit).exists() for unit in units)

    def compile(
        self, units: Sequence[Unit], progress: Callable[[int, int, float], None] | None = None
    ) -> list[Path]:
        """The objects of `units`, in order; `progress` hears how many are compiled, how many have
        to be, and which share of their text is."""
        objects = [self._object_path(unit) for unit in units]
        missing = [
            (unit, path) for unit, path in zip(units, objects, strict=True) if not _taken(path)
        ]
        # The longest first: none of them is then begun when all others are done.
        sizes = {path: _text(unit).stat().st_size for unit, path in missing}
        missing.sort(key=lambda pair: sizes[pair[1]], reverse=True)
        to_do = total = sum(sizes[path] for _, path in missing)
        self.compiled += len(missing)
        self.reused += len(units) - len(missing)
        with ThreadPoolExecutor(max(1, self._jobs)) as pool:
            jobs = [
                pool.submit(
                    self._write, [*unit.flags, "-c", os.fspath(unit.source)], path, unit.folder
                )
                for unit, path in missing
            ]
            for done, ((_, path), job) in enumerate(zip(missing, jobs, strict=True)):
                if progress is not None:
                    progress(done, len(missing), 1 - to_do / total)
                job.result()
                to_do -= sizes[path]
        return objects

    def drop_old(self) -> None:
        """Remove objects that no build has used for a week."""
        oldest = time.time() - _UNUSED_FOR_S
        for path in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _object_path(self, unit: Unit) -> Path:
        text = _text(unit).read_bytes()
        key = digest([self._identity, *unit.flags, unit.context, text])
        return self._folder / f"{key[:32]}.o"

    def _write(self, arguments: Sequence[str], target: Path, folder: Path) -> None:
        """Compile beside the target, then rename: neither a killed compiler nor a power failure
        leaves half an object under a name that stands for a whole one."""
        unfinished = target.with_suffix(f"{target.suffix}.{os.getpid()}.tmp")
        try:
            run_compiler(self._compiler, [*arguments, "-o", os.fspath(unfinished)], folder)
            with unfinished.open("rb") as file:
                os.fsync(file.fileno())
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)


def digest_of(binary: Path) -> str:
    """What `is_intact` compares: SHA-256 of the file."""
    return hashlib.sha256(binary.read_bytes()).hexdigest()


def is_intact(binary: Path, stated: Path) -> bool:
    """Whether a finished build is there, and its binary the one that was linked: `stated` is the
    file with its digest."""
    try:
        return stated.read_text().strip() == digest_of(binary)
    except OSError:
        return False
