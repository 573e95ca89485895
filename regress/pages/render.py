# SPDX-License-Identifier: Apache-2.0
"""Templates to files: every page is made here, and every value is escaped here."""

from __future__ import annotations

import shutil
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from driver.errors import unwritable
from driver.results import write_text
from regress.nightly.estimate import duration_text

_TEMPLATES = Path(__file__).with_name("templates")
STYLE_FILE = "style.css"


def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters["count"] = lambda value: "–" if value is None else f"{value:,}"
    found.filters["percent"] = lambda value: "–" if value is None else f"{value:.1%}"
    found.filters["number"] = _number
    found.filters["seconds"] = duration_text
    found.filters["sizes"] = lambda shapes: " ".join("×".join(map(str, s)) or "()" for s in shapes)
    return found


def _number(value: float | None) -> str:
    """Whole numbers in full, others in four digits."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


_ENVIRONMENT = _environment()


def render(template: str, **values: object) -> str:
    """A page as text."""
    return _ENVIRONMENT.get_template(template).render(**values)


def write_page(path: Path, template: str, **values: object) -> Path:
    """Write a page whole or not at all. `root` is the way from it to the top of the site."""
    write_text(path, render(template, **values))
    return path


def write_style(site: Path) -> None:
    """The one style sheet. InputError when the place cannot be written."""
    try:
        site.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_TEMPLATES / STYLE_FILE, site / STYLE_FILE)
    except OSError as error:
        raise unwritable(site, "folder", error) from error
