# SPDX-License-Identifier: Apache-2.0
"""Types of options that several commands have: what the command line takes for a path or a seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from driver.results import MAX_SEED

_CAPSULE = "the folder of a capsule (make replay takes CAPSULE=, or ID= of a stored failure)"


def _given(expected: str) -> Callable[[str], str]:
    """A parser of texts that are not empty and hold nothing that a terminal would obey."""

    def parsed(text: str) -> str:
        if not text:
            raise typer.BadParameter(f"got nothing, expected {expected}")
        if not text.isprintable():
            raise typer.BadParameter(f"got {text!a}, expected {expected}, all printable")
        return text

    return parsed


def _given_path(expected: str = "a path") -> Callable[[str | Path], Path]:
    """An empty path would be the current folder, which is hardly meant. Defaults are paths."""
    parsed = _given(expected)
    return lambda given: Path(parsed(str(given)))


def path_option(help_text: str) -> Any:
    """An option whose value is a path."""
    return typer.Option(help=help_text, parser=_given_path(), metavar="PATH")


Out = Annotated[Path | None, path_option("Folder of the results.")]
ConfigFile = Annotated[Path, path_option("Hardware configurations.")]
Seed = Annotated[int, typer.Option(help="Of all that is random.", min=0, max=MAX_SEED)]
Capsule = Annotated[Path, typer.Argument(parser=_given_path(_CAPSULE), metavar="CAPSULE")]
Identity = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Of an attempt, or how it begins.", parser=_given("the id of an attempt")
    ),
]
