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
import typer
from doc_names import (
    Text,
    commands,
    files,
    missing_files,
    missing_modules,
    missing_tests,
    pages,
    source_texts,
    unwanted_words,
    wrong_commands,
    wrong_make,
    wrong_variables,
)
from source_names import (
    REPEATED,
    class_files,
    glossary_problems,
    named_in_code,
    repetitions,
)
from test_imports import FORBIDDEN, LAYERS, REGRESS_ORDER, STDLIB_ONLY, is_inside
from typer.core import TyperGroup

from regress.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
PYTHON = re.compile(r"^( *)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)

# A simulator takes minutes to build, and the cmodel takes the same packets and faults.
ON_CMODEL = ('open_backend("rtl", config, variant="check", stall=96, seed=7)',
             'open_backend("cmodel", config)')  # fmt: skip


def blocks(page: Path) -> list[str]:
    found = PYTHON.finditer(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(match[2]) for match in found]


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


def options() -> dict[str, frozenset[str]]:
    """Each command of npu-cosim with its options."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return {
        name: frozenset(o for p in command.params for o in (*p.opts, *p.secondary_opts))
        for name, command in group.commands.items()
    }


def test_every_file_module_and_test_that_a_text_names_exists() -> None:
    texts = [*pages(), *source_texts()]
    assert len(texts) > 8000
    assert missing_files(texts, files()) == []
    assert missing_modules(texts) == []
    assert missing_tests(texts) == []
    assert unwanted_words(pages()) == []


def test_every_command_on_a_page_exists_and_takes_what_it_is_given() -> None:
    shown = list(commands(pages()))
    assert wrong_make(shown) == []
    assert wrong_commands(shown, options()) == []
    assert wrong_variables(shown) == []


def test_every_target_and_variable_of_the_help_text_exists() -> None:
    done = subprocess.run(
        [shutil.which("make") or "make", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = re.findall(r"^ +make ([a-z][a-z-]*(?: \| [a-z][a-z-]*)*)", done.stdout, re.MULTILINE)
    targets = [Text("make help", f"make {name}") for line in lines for name in line.split(" | ")]
    assert len(targets) > 20
    assert wrong_make(targets) == []
    assert wrong_variables([Text("make help", line) for line in done.stdout.splitlines()]) == []


WRONG = {
    "see driver/lower/gone.py": "driver/lower/gone.py: no such file or folder",
    "see regress/no_such_folder/": "regress/no_such_folder: no such file or folder",
    "| `gone.py` | it |": "gone.py: no file has this name",
    "`rtl/gone/npu_*.sv`": "rtl/gone/npu_*.sv: no such file or folder",
    "`driver.lower.gone`": "driver.lower.gone: no such module, or nothing of this name in it",
    "`driver.config.Gone`": "driver.config.Gone: no such module, or nothing of this name in it",
    "`test_that_is_gone` fails": "test_that_is_gone: no such test",
    "    make gone": "make gone: No rule to make target 'gone'.  Stop.",
    "    make report TIER=ci": "make report TIER=ci: make report does not take TIER; it takes"
    " PLAN STORE OUT.  Stop.",
    "`make SIM=verilator`, `make gone`": "make gone: No rule to make target 'gone'.  Stop.",
    "`.venv/bin/npu-cosim gone`": "npu-cosim gone: no such command",
    "    npu-cosim run units --gone": "npu-cosim run --gone: no such option",
    "with `--gone 3`": "--gone: no command has this option",
    "`GONE_VARIABLE=1`": "GONE_VARIABLE: no such variable",
    "a byte that nobody wrote": "nobody",
    "`TEST=gone` fails": "TEST=gone: no such test",
    "`CONFIG=gone` fails": "CONFIG=gone: no such config",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_name_that_is_gone_is_found(line: str) -> None:
    texts = [Text("docs/page.md:3", line)]
    shown = list(commands(texts))
    found = missing_files(texts, files()) + missing_modules(texts) + missing_tests(texts)
    found += (
        unwanted_words(texts)
        + wrong_make(shown)
        + wrong_commands(shown, options())
        + wrong_variables(shown)
    )
    assert found == [f"docs/page.md:3: {WRONG[line]}"]


def import_rows() -> list[str]:
    """The table of docs/architecture.md, from the layers that are enforced."""
    rows = []
    for name, allowed in LAYERS.items():
        inside = [other for other in sorted(LAYERS) if other.startswith(f"{name}.")]
        others = [
            f"`{other}`"
            for other in sorted({*allowed, *inside} - {name})
            if not any(is_inside(other, refused) for refused in FORBIDDEN.get(name, ()))
        ]
        refused = [f"`{other}`" for other in sorted(FORBIDDEN.get(name, ()))]
        text = "the standard library" if name in STDLIB_ONLY else ", ".join(others)
        rows.append(f"| `{name}` | {text}{', but not ' if refused else ''}{', '.join(refused)} |")
    return rows


def test_the_table_of_imports_is_the_one_that_is_enforced() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = page.partition("| package | may import |\n|---|---|\n")[2].partition("\n\n")[0]
    assert table.splitlines() == import_rows(), "write these rows into docs/architecture.md"
    assert ", ".join(name.removeprefix("regress.") for name in REGRESS_ORDER) in page


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda p: p.stem)
def test_every_python_block_parses(page: Path) -> None:
    for block in blocks(page):
        assert ast.parse(block).body


@pytest.mark.parametrize(
    ("page", "shown"), [("capsule", "8, 4"), ("debugging", "BUS_READ"), ("runtime", "VECTOR exp")]
)
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
