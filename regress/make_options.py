# SPDX-License-Identifier: Apache-2.0
"""What `make` knows of the commands' options: regress/options.mk, and its help on a run's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from typer.models import OptionInfo

from regress import nightly_cli, options
from regress.variables import OPTIONS, VARIABLES

MAKE_FILE: Final = "regress/options.mk"
HELP_FILE: Final = "regress/variables.txt"

_COMMANDS: dict[str, Callable[..., Any]] = {
    "run": options.RunOptions,
    "replay": options.ReplayOptions,
    "capture": options.CaptureOptions,
    "unit": options.UnitOptions,
    "bench": options.BenchOptions,
    "op-survey": options.OpSurveyOptions,
    "lint": options.LintOptions,
    "synth": options.SynthesisOptions,
    "power": options.PowerOptions,
    **{command.__name__: command for command in nightly_cli.COMMANDS},
}
"""Command → what its options are the parameters of."""
_ARGUMENTS: dict[str, str] = {
    **dict.fromkeys(("run", "unit"), "TEST"),
    **dict.fromkeys(("reproduce", "waves", "shrink", "bisect"), "ID"),
    **{"replay": "CAPSULE", "capture": "WORKLOAD", "bench": "BENCH", "baseline": "TIER"},
}
"""Command → the variable of its argument."""
_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Variables, and the flags of each command. Made by `make gen` from regress/options.py.
"""


def render() -> dict[str, str]:
    """Path from the project's root → text."""
    found = {name: _parameters(command) for name, command in _COMMANDS.items()}
    switches = {p.name.upper() for own in found.values() for p in own if _is_switch(p)}
    flags = [f"{name}_flags = $(strip {' '.join(map(_call, own))})" for name, own in found.items()]
    takes = [f"{name}_takes := {' '.join(_takes(name, own))}" for name, own in found.items()]
    variables = ["VARIABLES := " + " ".join(VARIABLES), "export $(VARIABLES)"]
    lines = [*variables, f"SWITCHES := {' '.join(sorted(switches))}", *flags, *takes]
    shown = [parameter for parameter in found["run"] if not _option(parameter).hidden]
    help_lines = ["", "Variables of a run", *map(_help, shown)]
    return {MAKE_FILE: _HEAD + _text(lines), HELP_FILE: _text(help_lines)}


def _parameters(command: Callable[..., Any]) -> list[inspect.Parameter]:
    """Those that `make` has a variable for."""
    found = inspect.signature(command, eval_str=True).parameters.values()
    return [parameter for parameter in found if parameter.name.upper() in OPTIONS]


def _takes(command: str, parameters: list[inspect.Parameter]) -> list[str]:
    """The variables of a command."""
    own = [parameter.name.upper() for parameter in parameters]
    return [_ARGUMENTS[command], *own] if command in _ARGUMENTS else own


def _is_switch(parameter: inspect.Parameter) -> bool:
    return parameter.annotation.__origin__ is bool


def _call(parameter: inspect.Parameter) -> str:
    """The make function that makes a flag of the variable."""
    function = "switch" if _is_switch(parameter) else "flag"
    return f"$(call {function},{parameter.name.upper()},{parameter.name.replace('_', '-')})"


def _help(parameter: inspect.Parameter) -> str:
    default = parameter.default
    shown = "" if default in (None, "", False) else f" Default: {default}."
    return f"  {parameter.name.upper() + '=':14} {_option(parameter).help}{shown}"


def _option(parameter: inspect.Parameter) -> OptionInfo:
    found = (one for one in parameter.annotation.__metadata__ if isinstance(one, OptionInfo))
    return next(found)


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
