# SPDX-License-Identifier: Apache-2.0
"""Every static check by name. Each answers with its problems as text, empty when there is none."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from regress import text_rules
from regress.front_ends import SHAPES, sampled_memories, slang_problems, verilator_problems
from regress.generate import COMMAND, render, stale
from regress.paths import ROOT

Check = Callable[[], str]

_CPP_FOLDERS = ("driver", "golden/cmodel", "tb")
_CPP_SUFFIXES = (".cpp", ".hpp", ".h")
_LIMIT_S = 900


@cache
def _generated() -> frozenset[str]:
    return frozenset(render())


def _tool(*command: str) -> str:
    """The output of a tool of the environment; empty if it found no problem."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / command[0]), *command[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    said = (done.stdout + done.stderr).strip()
    return "" if done.returncode == 0 else said or f"{command[0]}: status {done.returncode}"


def _cpp_files() -> list[str]:
    exempt = {ROOT / path for path in _generated()}
    return [
        str(file)
        for folder in _CPP_FOLDERS
        for file in sorted((ROOT / folder).rglob("*"))
        if file.suffix in _CPP_SUFFIXES and file not in exempt
    ]


def reformat() -> str:
    """Put Python and C++ into their form; what the tools complain of, empty when of nothing."""
    found = [_tool("ruff", "format", "--quiet", ".")]
    found.append(_tool("clang-format", "-i", "--style=file", *_cpp_files()))
    return "\n".join(filter(None, found))


def cpp_format() -> str:
    """clang-format on hand-written C++."""
    files = _cpp_files()
    said = _tool("clang-format", "--dry-run", "--Werror", "--style=file", *files)
    places = Counter(line.split(":")[0] for line in said.splitlines() if ": error:" in line)
    found = [
        f"{Path(file).relative_to(ROOT)}: {count} places; run `make format`"
        for file, count in places.items()
    ]
    return "\n".join(found) or said


def _on_files(check: Callable[[Sequence[Path]], list[str]]) -> str:
    return "\n".join(check(text_rules.source_files()))


def generated_is_fresh() -> str:
    """The committed generated files against their sources."""
    return "\n".join(f"{path}: out of date; run `{COMMAND}`" for path in sorted(stale()))


def _front_ends() -> dict[str, Check]:
    """Both front ends at every offered shape."""
    checks: dict[str, Check] = {}
    for name, parameters in SHAPES.items():
        checks[f"verilator {name}"] = partial(verilator_problems, parameters)
        checks[f"slang {name}"] = partial(slang_problems, parameters)
    return checks


LINT: dict[str, Check] = {
    "ruff check": lambda: _tool("ruff", "check", "--quiet", "--output-format", "concise", "."),
    "ruff format": lambda: _tool("ruff", "format", "--check", "--output-format", "concise", "."),
    "clang-format": cpp_format,
    "licence lines": lambda: _on_files(text_rules.licence_problems),
    "file lengths": lambda: _on_files(
        lambda files: text_rules.length_problems(files, _generated())
    ),
    "line widths": lambda: _on_files(lambda files: text_rules.width_problems(files, _generated())),
    "RTL constructs": lambda: _on_files(lambda files: text_rules.rtl_problems(files, _generated())),
    "names of types": lambda: _on_files(
        lambda files: text_rules.type_name_problems(files, _generated())
    ),
    **_front_ends(),
    "memories in assertions": sampled_memories,
}
TYPES: dict[str, Check] = {"mypy": lambda: _tool("mypy")}
GENERATED: dict[str, Check] = {"generated files": generated_is_fresh}
