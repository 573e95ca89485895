# SPDX-License-Identifier: Apache-2.0
"""The examples for CI servers are YAML, and every command in them is one of ours."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from regress.cli import app
from regress.paths import ROOT

EXAMPLES = sorted((ROOT / "docs" / "ci").glob("*.yml"))


def commands(node: Any, key: str = "") -> Iterator[str]:
    """Every shell line of a document of either server."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from commands(value, str(name))
    elif isinstance(node, list):
        for value in node:
            yield from commands(value, key)
    elif key in ("run", "script", "after_script", "before_script"):
        yield from str(node).splitlines()


def targets() -> set[str]:
    text = (ROOT / "Makefile").read_text()
    return {name for line in re.findall(r"^\.PHONY: (.*)$", text, re.M) for name in line.split()}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_command_of_an_example_exists(path: Path) -> None:
    found = list(commands(yaml.safe_load(path.read_text())))
    assert {"make ci", "make nightly"} <= set(found)
    known = get_command(app).commands  # type: ignore[attr-defined]
    for line in found:
        program, name, *rest = shlex.split(line)
        if program == "make":
            assert name in targets(), line
            continue
        assert program == ".venv/bin/npu-cosim", line
        options = {option for parameter in known[name].params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= options, line


def test_both_servers_have_an_example_and_commands_are_mounted_once() -> None:
    assert [path.stem for path in EXAMPLES] == ["github-actions", "gitlab-ci"]
    names = [c.name or c.callback.__name__ for c in app.registered_commands if c.callback]
    assert len(names) == len(set(names))
