# SPDX-License-Identifier: Apache-2.0
"""The committed generated files: what they should hold, and whether they do."""

from __future__ import annotations

from pathlib import Path

from driver.isa.generate import render as render_isa
from driver.results import result_schema
from regress.gen_registers import render as render_registers
from regress.make_options import render as render_make_options
from regress.nightly.schema import FILE as SCHEMA_FILE
from regress.nightly.schema import config_schema
from regress.paths import ROOT

COMMAND = "make gen"


def render() -> dict[str, str]:
    """Path from the project's root → text, for every committed generated file."""
    return {
        **render_isa(),
        **render_registers(),
        **render_make_options(),
        "docs/result.schema.json": result_schema(),
        SCHEMA_FILE: config_schema(),
    }


def stale(root: Path = ROOT) -> dict[str, str]:
    """The files that differ from what their sources say, or are missing, with their new text."""
    return {path: text for path, text in render().items() if _current(root / path) != text}


def write(root: Path = ROOT) -> list[str]:
    """Write the files that are out of date; their paths."""
    outdated = stale(root)
    for path, text in outdated.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(target)
    return sorted(outdated)


def _current(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
