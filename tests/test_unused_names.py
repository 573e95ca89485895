# SPDX-License-Identifier: Apache-2.0
"""No function, class or constant is defined that nothing names: ruff sees unused imports only."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from doc_names import files

ROOT = Path(__file__).parents[1]
_SUFFIXES = (".py", ".yaml", ".toml", ".j2", ".cpp", ".md", "Makefile")
_GENERATED = "# Generated from "
_PROTOCOL = {"_initialized", "is_initialized", "get_amp_supported_dtype", "seed_all"}
"""What torch calls of a device's module, by these names (driver/torch_device/npu.py)."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_WORD = re.compile(r"[A-Za-z_]\w*")


def defined(source: str) -> Iterator[str]:
    """Names that a module binds at its top; what a decorator registers is used by that."""
    for node in ast.parse(source).body:
        if isinstance(node, _DEFINITIONS) and not _registered(node):
            yield node.name
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        for name in (part for target in targets for part in ast.walk(target)):
            if isinstance(name, ast.Name) and not name.id.startswith("__"):
                yield name.id


def _registered(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether a decorator does more than shape the definition."""
    shaping = ("dataclass", "cache", "contextmanager", "lru_cache", "overload", "final")
    return any(
        not any(word in ast.unparse(decorator) for word in shaping)
        for decorator in node.decorator_list
    )


def once(sources: dict[str, str]) -> list[str]:
    """`file: name` of each definition whose name no other place has."""
    seen: Counter[str] = Counter()
    for text in sources.values():
        seen.update(_WORD.findall(text))
    python = {file: text for file, text in sources.items() if file.endswith(".py")}
    return [f"{file}: {n}" for file, text in python.items() for n in defined(text) if seen[n] == 1]


def test_every_definition_is_named_somewhere() -> None:
    listed = sorted(name for name in files() if name.endswith(_SUFFIXES))
    sources = {name: (ROOT / name).read_text(encoding="utf-8") for name in listed}
    assert len(sources) > 500
    shown = [
        found
        for found in once(sources)
        if not found.startswith("tests/")
        and found.rpartition(" ")[2] not in _PROTOCOL
        and _GENERATED not in sources[found.partition(":")[0]][:200]
    ]
    assert shown == []


def test_a_definition_that_nothing_names_is_found() -> None:
    text = (
        "USED = 1\nLEFT: int = USED\ndef _helper(): ...\n@op('x')\ndef rule(): ...\nclass Old: ..."
    )
    assert once({"a.py": text, "b.md": "Old"}) == ["a.py: LEFT", "a.py: _helper"]
