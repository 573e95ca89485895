# SPDX-License-Identifier: Apache-2.0
"""`python -m tb.bench NAME ROUNDS`: notes as event lines, then {"value": …, "spread": …}."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from driver.errors import InputError, NpuError
from driver.results import NoteEvent, event_line
from tb.bench.measure import Measurement

_HELPERS = ("device", "measure")


def _note(text: str) -> None:
    sys.stdout.write(event_line(NoteEvent(text=text)) + "\n")
    sys.stdout.flush()


def _figures() -> list[str]:
    names = [path.stem for path in Path(__file__).parent.glob("*.py")]
    return sorted(name for name in names if name not in _HELPERS and not name.startswith("_"))


def main(arguments: list[str]) -> int:
    """Exit status of the error, whose text is the last line of stderr."""
    try:
        if len(arguments) != 2 or not arguments[1].isdecimal() or int(arguments[1]) < 1:
            raise InputError("command line", "arguments", " ".join(arguments), "NAME ROUNDS")
        name, figures = arguments[0], _figures()
        if name not in figures:
            raise InputError("command line", "figure", name, f"one of {', '.join(figures)}")
        value: Measurement = importlib.import_module(f"tb.bench.{name}").measure(
            int(arguments[1]), _note
        )
    except NpuError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(value.to_json() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
