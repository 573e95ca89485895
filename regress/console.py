# SPDX-License-Identifier: Apache-2.0
"""The terminal: where reports go. Nothing that a user or a file says is read as markup, and no
control character of theirs reaches the terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from driver.errors import printable

_PLAIN_WIDTH = 132
"""Columns in a pipe or file: lines that fit the wide table."""
_NOT_SHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def plain_table(gap: int = 2) -> Table:
    """A table without lines, `gap` columns of the terminal between its own."""
    return Table(box=None, padding=(0, gap, 0, 0), header_style="bold", show_edge=False)


class PlainConsole(Console):
    """A console that shows texts as they are, and control characters in them as escapes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        """A text before it is laid out, as it will be shown."""
        return super().render_str(_escaped(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments of a renderable: styles are the console's own, so what is in a text is not
        meant for the terminal."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            if control is None and _NOT_SHOWN.search(text):
                yield Segment(_escaped(text), style, control)
            else:
                yield segment


def _escaped(text: str) -> str:
    """The text with control characters, and what is no character at all, as escapes."""
    return _NOT_SHOWN.sub(lambda found: printable(found[0]), text)


def print_line(where: Console, text: str) -> None:
    """A line as it is, however wide: the terminal breaks it, so that it can be copied whole."""
    where.print(Text(text), soft_wrap=True, highlight=False)


def console() -> Console:
    """The console of the command line."""
    plain = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else _PLAIN_WIDTH
    return PlainConsole(width=plain)
