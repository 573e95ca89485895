# SPDX-License-Identifier: Apache-2.0
"""How the command line is entered: Ctrl-C while it loads, and variables of the environment."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.metadata import entry_points
from shutil import which

import pytest

from regress import entry
from regress.paths import ROOT
from regress.process import environment

_INTERRUPTED_WHILE_IT_LOADS = """
import os, signal, sys
from regress import entry
class Interrupted:
    def find_spec(self, name, *_):
        if name == "regress.cli":
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except BaseException as error:
                raise RuntimeError("as pydantic wraps it") from error
sys.meta_path.insert(0, Interrupted())
entry.main()
"""


def test_ctrl_c_while_the_command_line_loads_is_one_line() -> None:
    code = [sys.executable, "-c", _INTERRUPTED_WHILE_IT_LOADS]
    done = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


def test_ctrl_c_while_it_runs_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("regress.cli"), "main", interrupted)
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_the_installed_script_is_entered_there() -> None:
    (script,) = entry_points(group="console_scripts", name="npu-cosim")
    assert script.value == "regress.entry:main"


@pytest.mark.parametrize(
    ("words", "own", "expected"),
    [
        (["ci"], {"DRY_RUN": "1", "FILTER": "x"}, "npu-cosim nightly  -- ci"),
        (["ci", "DRY_RUN=1"], {"DRY_RUN": "0"}, "npu-cosim nightly --dry-run -- ci"),
        ([], {"TEST": "matmul"}, "help.txt"),
        (["TEST=lenet"], {"CONFIG": "small"}, 'npu-cosim run  -- "$TEST"'),
    ],
)
def test_make_ignores_and_names_variables_of_the_environment(
    words: list[str], own: dict[str, str], expected: str
) -> None:
    done = subprocess.run(
        [which("make") or "make", "-n", *words],
        cwd=ROOT,
        env={**environment(), **own},
        capture_output=True,
        text=True,
        check=True,
    )
    assert expected in done.stdout
    for name in own:
        given = any(word.startswith(f"{name}=") for word in words)
        assert (f"{name} of the environment is ignored" in done.stderr) is not given
