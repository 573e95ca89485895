# SPDX-License-Identifier: Apache-2.0
"""Makes .venv: the pinned packages and this project with its C++ model. Standard library only.

Runs under the user's Python before anything is installed, at every `make`. It does nothing when
what it depends on has not changed since it last finished. Several may run at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parents[1]
LOCK = "requirements.lock"
TORCH_FOR_CPU = "https://download.pytorch.org/whl/cpu"
"""Where builds of torch are that need no CUDA libraries. Those for Linux on PyPI do."""
_STAMP = "npu-cosim.json"
_LOG_LINES = 8
_VENV = ("-m", "venv")
_EXTENSION_SOURCES = (
    "CMakeLists.txt",
    *(
        f"{folder}/*.{kind}"
        for folder in ("golden/cmodel", "driver/torch_device/core")
        for kind in ("cpp", "h")
    ),
)
_PACKAGES = ("driver", "golden", "regress", "tb", "workloads")
"""Of pyproject.toml. The installed project knows each of their folders by name."""


class SetupError(Exception):
    """One line: what is missing, and what to do."""


def check_host(root: Path) -> None:
    """SetupError when this machine or this place cannot carry the project."""
    if any(character.isspace() for character in str(root)):
        raise SetupError(
            f"{root}: the path has a space in it, which simulator builds cannot take: "
            "move the project to a path without one"
        )
    chosen = os.environ.get("CXX")
    compilers = [chosen] if chosen else ["g++", "c++"]
    if not any(shutil.which(name) for name in compilers):
        raise SetupError(
            f"no C++ compiler: {' or '.join(compilers)} is not on PATH (g++ 11 will do)"
        )


def check_python() -> None:
    """SetupError when this Python cannot make an environment or build an extension."""
    if sys.version_info < OLDEST:
        raise SetupError(f"{sys.executable} is {sys.version.split()[0]}: Python 3.11 or newer")
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            raise SetupError(
                f"{sys.executable} has no module {module}: take a Python that has it "
                "(make PYTHON=/path/to/python3)"
            )
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.is_file():
        raise SetupError(
            f"{sys.executable} came without its C headers ({header}): take a Python that has them "
            "(make PYTHON=/path/to/python3)"
        )


class Environment:
    """The virtual environment of the project at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.stamp = self.folder / _STAMP
        self.log = self.folder / "setup.log"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def wanted(self) -> dict[str, str]:
        """What each of the two steps depends on, as hashes."""
        packages = self._digest([self.root / LOCK], str(self.folder))
        sources = [path for glob in _EXTENSION_SOURCES for path in sorted(self.root.glob(glob))]
        marks = [mark for name in _PACKAGES for mark in self.root.glob(f"{name}/**/__init__.py")]
        folders = sorted(str(mark.relative_to(self.root)) for mark in marks)
        return {
            "packages": packages,
            "extensions": self._digest(sources),
            "project": self._digest([self.root / "pyproject.toml", *sources], packages, *folders),
        }

    def finished(self) -> dict[str, str]:
        """The hashes of the steps that were finished before."""
        try:
            found = json.loads(self.stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) and self.python.exists() else {}

    def install(self) -> None:
        """Do the steps that are not up to date."""
        wanted, done = self.wanted(), self.finished()
        if done == wanted:
            return
        self.stamp.unlink(missing_ok=True)
        if done.get("packages") != wanted["packages"]:
            self._make()
            _say("setup: installing the packages of requirements.lock into .venv (minutes, once)")
            self._pip("packages", "--no-deps", "--requirement", LOCK)
            self._check_torch()
            self._record({"packages": wanted["packages"]})
        _say("setup: building the C++ extensions and installing the project")
        self._pip("project", "--no-deps", "--no-build-isolation", "--editable", ".")
        self._record(wanted)
        _say("setup: done")

    def _record(self, finished: dict[str, str]) -> None:
        fresh = self.stamp.with_suffix(".new")
        fresh.write_text(json.dumps(finished), encoding="utf-8")
        fresh.replace(self.stamp)

    def _digest(self, files: Iterable[Path], *texts: str) -> str:
        state = hashlib.sha256()
        for file in files:
            data = file.read_bytes()
            state.update(f"{file.relative_to(self.root)}:{len(data)}:".encode() + data)
        for text in texts:
            state.update(f"{len(text)}:{text}".encode())
        return state.hexdigest()

    def _make(self) -> None:
        """An environment that works and belongs to this folder (one that was moved does not)."""
        if self._is_ours() and self._works():
            return
        self._clear()
        python = getattr(sys, "_base_executable", sys.executable)  # not the one just removed
        _say(f"setup: making .venv with {python}")
        done = subprocess.run(
            [python, *_VENV, str(self.folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            reason = " ".join((done.stdout + done.stderr).split())
            self._clear()
            raise SetupError(f"{python} -m venv failed: {reason}")

    def _check_torch(self) -> None:
        """Replace a torch that does not import by its build for the CPU."""
        found = re.search(r"^torch==\S+$", (self.root / LOCK).read_text(encoding="utf-8"), re.M)
        if found is None or not (error := self._torch_error()):
            return
        _say(f"setup: {found[0]} does not import ({error}): taking its build for the CPU")
        place = ("--no-deps", "--force-reinstall", "--index-url", TORCH_FOR_CPU)
        self._pip(f"{found[0]} of {TORCH_FOR_CPU}", *place, found[0])
        if error := self._torch_error():
            raise SetupError(f"{found[0]} does not import: {error}")

    def _torch_error(self) -> str:
        """The last line of what importing torch prints when it fails."""
        command = [str(self.python), "-I", "-c", "import torch"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        return "" if done.returncode == 0 else lines[-1]

    def _is_ours(self) -> bool:
        """Whether it was made in this place: its scripts hold absolute paths."""
        try:
            lines = (self.folder / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        return any(
            line.startswith("command = ") and line.endswith(f" {self.folder}") for line in lines
        )

    def _works(self) -> bool:
        command = [str(self.python), "-m", "pip", "--version"]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            return False

    def _clear(self) -> None:
        """Empty the folder but for the lock that this process holds."""
        for entry in self.folder.iterdir():
            if entry.name == "lock":
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def _pip(self, step: str, *arguments: str) -> None:
        """pip install, its output in the log; on a terminal a count of what it has come to."""
        head = [str(self.python), "-m", "pip", "install", "--disable-pip-version-check"]
        hidden = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
        inherited = {key: value for key, value in os.environ.items() if key not in hidden}
        tools = f"{self.python.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        with (
            self.log.open("w", encoding="utf-8") as log,
            subprocess.Popen(
                [*head, "--no-input", *arguments],
                cwd=self.root,
                env={**inherited, "PATH": tools},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as process,
        ):
            assert process.stdout is not None
            _follow(process.stdout, log)
        if process.returncode != 0:
            lines = self.log.read_text(encoding="utf-8").strip().splitlines()[-_LOG_LINES:]
            _say("\n".join(f"  {line}" for line in lines))
            raise SetupError(f"installing the {step} failed (see {self.log})")


def _follow(output: Iterable[str], log: TextIO) -> None:
    """Copy pip's lines to the log and count packages on a terminal."""
    shown = 0
    for line in output:
        log.write(line)
        if sys.stderr.isatty() and line.startswith(("Collecting ", "Requirement already")):
            shown += 1
            sys.stderr.write(f"\rsetup: package {shown}")
            sys.stderr.flush()
    if shown:
        sys.stderr.write("\r\033[K")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main() -> int:
    """0, or 2 after one line that says what is missing."""
    environment = Environment(ROOT)
    try:
        check_host(ROOT)
        if environment.finished() == environment.wanted():
            return 0
        check_python()
        if environment.folder.is_symlink():  # what it points to belongs to something else
            raise SetupError(f"{environment.folder} is a link: remove it, and setup makes a folder")
        environment.folder.mkdir(exist_ok=True)
        with (environment.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            environment.install()
    except SetupError as error:
        _say(f"error: setup: {error}")
        return 2
    except OSError as error:
        _say(f"error: setup: {error.filename or ROOT}: {error.strerror}")
        return 2
    except KeyboardInterrupt:
        _say("setup: interrupted; the next run goes on from here")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
