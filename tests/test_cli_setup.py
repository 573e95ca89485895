# SPDX-License-Identifier: Apache-2.0
"""Setting up: what is missing is one line, what is there is left alone, several may try at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regress import bootstrap
from regress.bootstrap import Environment, SetupError, check_host, check_python
from regress.paths import ROOT

Calls = list[tuple[str, ...]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Just enough of a project to be set up."""
    root = tmp_path / "project"
    (root / "golden" / "cmodel").mkdir(parents=True)
    for name in ("pyproject.toml", "requirements.lock", "CMakeLists.txt", "golden/cmodel/a.cpp"):
        (root / name).write_text(name)
    return root


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Records what pip is asked instead of asking it."""
    found: Calls = []
    monkeypatch.setattr(Environment, "_pip", lambda self, *words: found.append(words))
    return found


@pytest.fixture
def calls(asked: Calls, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The same, in environments without pip: it takes seconds to install and is never called."""
    monkeypatch.setattr(bootstrap, "_VENV", (*bootstrap._VENV, "--without-pip"))
    return asked


def _ready(root: Path) -> Environment:
    environment = Environment(root)
    environment.folder.mkdir(exist_ok=True)
    environment.install()
    return environment


def _steps(calls: Calls) -> list[str]:
    return [words[0] for words in calls]


def test_a_fresh_project_gets_an_environment_of_its_own(project: Path, asked: Calls) -> None:
    environment = _ready(project)
    assert _steps(asked) == ["packages", "project"]
    assert environment.finished() == environment.wanted()
    done = subprocess.run([environment.python, "-m", "pip", "--version"], check=True)
    assert done.returncode == 0


def test_what_has_not_changed_is_left_alone(project: Path, calls: Calls) -> None:
    _ready(project)
    calls.clear()
    _ready(project)
    assert calls == []


@pytest.mark.parametrize(
    ("file", "steps"),
    [
        ("requirements.lock", ["packages", "project"]),
        ("pyproject.toml", ["project"]),
        ("CMakeLists.txt", ["project"]),
        ("golden/cmodel/a.cpp", ["project"]),
        ("golden/cmodel/new.h", ["project"]),
        ("golden/other.py", []),
        ("golden/cmodel/__init__.py", ["project"]),  # a module that becomes a package
    ],
)
def test_only_what_depends_on_a_change_is_done_again(
    file: str, steps: list[str], project: Path, calls: Calls
) -> None:
    _ready(project)
    calls.clear()
    (project / file).write_text("changed")
    _ready(project)
    assert _steps(calls) == steps


def test_a_failed_step_is_done_again_and_the_one_before_is_not(
    project: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pip(self: Environment, *words: str) -> None:
        calls.append(words)
        if words[0] == "project":
            raise SetupError("installing the project failed")

    monkeypatch.setattr(Environment, "_pip", pip)
    for _ in range(2):
        with pytest.raises(SetupError):
            _ready(project)
    assert _steps(calls) == ["packages", "project", "project"]


@pytest.mark.parametrize("mended", [True, False])
def test_a_torch_that_does_not_import_is_replaced_by_that_for_the_cpu(
    mended: bool, project: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / bootstrap.LOCK).write_text("numpy==1.0\ntorch==9.8.7\n")

    def pip(self: Environment, *words: str) -> None:
        calls.append(words)
        works = words[0] != "packages" and mended
        (site,) = self.folder.glob("lib/python3*/site-packages")
        text = "" if works else 'raise ImportError("libcudnn.so.9: cannot open")\n'
        (site / "torch.py").write_text(text)

    monkeypatch.setattr(Environment, "_pip", pip)
    if mended:
        _ready(project)
    else:
        with pytest.raises(SetupError, match=r"^torch==9\.8\.7 does not import: .*libcudnn"):
            _ready(project)
    assert calls[1][-2:] == (bootstrap.TORCH_FOR_CPU, "torch==9.8.7")
    assert len(calls) == (3 if mended else 2)
    assert ("packages" in Environment(project).finished()) == mended


def test_an_environment_of_something_else_is_left_alone(
    project: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = project.parent / "other"
    other.mkdir()
    (other / "kept").touch()
    (project / ".venv").symlink_to(other)
    monkeypatch.setattr(bootstrap, "ROOT", project)
    assert bootstrap.main() == 2
    assert "is a link: remove it" in capsys.readouterr().err
    assert [path.name for path in other.iterdir()] == ["kept"]
    assert calls == []


def test_an_environment_that_was_moved_is_made_anew(project: Path, calls: Calls) -> None:
    _ready(project)
    calls.clear()
    moved = project.with_name("elsewhere")
    project.rename(moved)
    environment = _ready(moved)
    assert _steps(calls) == ["packages", "project"]
    assert str(moved) in (environment.folder / "bin" / "activate").read_text()


def test_a_broken_stamp_is_as_none(project: Path, calls: Calls) -> None:
    environment = _ready(project)
    environment.stamp.write_text("[")
    assert environment.finished() == {}
    environment.stamp.write_text(json.dumps([1]))
    assert environment.finished() == {}


def test_a_failing_pip_is_one_line_with_its_log(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = Environment(project)
    (environment.folder / "bin").mkdir(parents=True)
    environment.python.write_text("#!/bin/sh\necho Collecting x; echo no such package; exit 1\n")
    environment.python.chmod(0o755)
    with pytest.raises(SetupError, match=r"^installing the packages failed \(see .*setup\.log\)$"):
        environment._pip("packages")
    assert "no such package" in capsys.readouterr().err
    assert "no such package" in environment.log.read_text()


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    check_host(tmp_path)
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(SetupError, match=r"no C.* compiler: no-such-compiler is not on PATH"):
        check_host(tmp_path)
    monkeypatch.delenv("CXX")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SetupError, match="is not on PATH"):
        check_host(tmp_path)


def test_a_path_with_a_space_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="has a space in it"):
        check_host(tmp_path / "my project")


def _no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def _no_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: "/none")


def _too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 2))


@pytest.mark.parametrize(
    ("lack", "text"),
    [
        (_no_module, "has no module venv"),
        (_no_headers, "came without its C headers"),
        (_too_old, "Python 3.11 or newer"),
    ],
)
def test_a_python_that_will_not_do_is_told_why(
    lack: Callable[[pytest.MonkeyPatch], None], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_python()
    lack(monkeypatch)
    with pytest.raises(SetupError, match=text):
        check_python()


def test_errors_are_one_line_and_exit_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path / "a b")
    assert bootstrap.main() == 2
    assert capsys.readouterr().err.startswith("error: setup: ")
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path / "none")
    assert bootstrap.main() == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_no_python_at_all_is_one_line(tmp_path: Path) -> None:
    for tool in ("sh",):
        (tmp_path / tool).symlink_to(shutil.which(tool) or "")
    shutil.copytree(ROOT / "regress", tmp_path / "regress")
    done = subprocess.run(
        [tmp_path / "sh", "regress/setup.sh"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: setup: no Python of 3.11 or newer on PATH (make PYTHON=/path/to/python3)\n"
    )


def test_a_chosen_python_that_is_none_is_named() -> None:
    done = subprocess.run(
        [shutil.which("sh") or "sh", "regress/setup.sh"],
        cwd=ROOT,
        env={**os.environ, "PYTHON": "/none/python"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "PYTHON=/none/python is not a Python of 3.11 or newer" in done.stderr
