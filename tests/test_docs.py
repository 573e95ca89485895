# SPDX-License-Identifier: Apache-2.0
"""The documentation keeps its promises: links, commands and examples are tried."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from source_names import (
    REPEATED,
    class_files,
    glossary_problems,
    named_in_code,
    repetitions,
)

from regress.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
MAKE = re.compile(r"(?:^ {4,}|`)make(?: -C \S+)? ([a-z-]+)(?=[\s`])", re.MULTILINE)
PROGRAM = re.compile(r"\.venv/bin/npu-cosim ([a-z-]+)")
PYTHON = re.compile(r"^( *)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)

# A simulator takes minutes to build, and the cmodel takes the same packets and faults.
ON_CMODEL = ('open_backend("rtl", config, variant="check", stall=96, seed=7)',
             'open_backend("cmodel", config)')  # fmt: skip


def blocks(page: Path) -> list[str]:
    found = PYTHON.finditer(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(match[2]) for match in found]


def text_of_all() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def test_every_link_leads_to_a_file() -> None:
    links = [
        (page, target)
        for page in PAGES
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in target and not target.startswith("#")
    ]
    broken = [
        f"{page.name}: {target}"
        for page, target in links
        if not (page.parent / target.split("#")[0]).exists()
    ]
    assert len(links) > 20
    assert broken == []


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    named = set(MAKE.findall(text_of_all()))
    assert {"test", "capture", "replay", "unit"} <= named <= set(phony[1].split())


def test_every_command_of_the_program_exists() -> None:
    known = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}
    named = set(PROGRAM.findall(text_of_all()))
    assert {"run"} <= named <= known


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda p: p.stem)
def test_every_python_block_parses(page: Path) -> None:
    for block in blocks(page):
        assert ast.parse(block).body


@pytest.mark.parametrize(("page", "shown"), [("capsule", "8, 4"), ("debugging", "BUS_READ")])
def test_the_examples_run(page: str, shown: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "sim_config.yaml", tmp_path)
    example = blocks(ROOT / "docs" / f"{page}.md")[0].replace(*ON_CMODEL)
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout


def test_a_class_name_is_declared_once() -> None:
    classes = class_files(ROOT)
    assert len(classes) > 200
    assert repetitions(classes, REPEATED) == []


def test_a_repeated_class_name_and_a_stale_exception_are_found() -> None:
    classes = {"Step": ["tb/a.py", "regress/b.py"], "Job": ["regress/c.py"]}
    assert repetitions(classes, {"Step": ""}) == []
    assert repetitions(classes, {"Job": ""}) == [
        "class Step is declared in tb/a.py and regress/b.py: give each a name of its own",
        "REPEATED['Job'] in tests/source_names.py: remove it",
    ]


def test_every_name_of_the_glossary_is_in_its_file() -> None:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| (?!term |---)[^|]+ \| [^|]+ \| .+ \|$", page, re.MULTILINE)
    assert len(list(named_in_code(page))) >= len(terms) >= 80
    assert glossary_problems(page, ROOT) == []


def test_a_name_that_has_moved_is_found() -> None:
    page = "| packet | A command. | `Packet`, `Gone` (driver/isa/types.py) |"
    assert glossary_problems(page, ROOT) == [
        "docs/glossary.md: `Packet` is not in driver/isa/types.py; it is in driver/isa/codec.py",
        "docs/glossary.md: `Gone` is not in driver/isa/types.py",
    ]
