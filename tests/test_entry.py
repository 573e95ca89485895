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


def test_ctrl_c_while_the_command_line_loads_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        """A finder of modules during which Ctrl-C comes."""

        def find_spec(self, name: str, *_: object) -> None:
            if name == "regress.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "regress.cli", raising=False)
    monkeypatch.delattr(importlib.import_module("regress"), "cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
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
