# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim op NAME`: where an op's lowering rule, bound and samples are. Runs nothing.

Functions are found in the tables of driver.lower and golden.bounds; the lines that declare an op
are found as string constants in the sources that hold the tables and samples.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from inspect import unwrap
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from driver.errors import InputError
from regress.console import console
from regress.paths import ROOT

_BOUNDS, _SAMPLES = "golden/bounds", "tb/ops/samples"
_UNNAMED = f"{_SAMPLES} does not spell it: in a loop, or missing (tests/test_op_samples.py tells)"


def mount(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("op")
    def op(
        name: Annotated[
            str, typer.Argument(help="An op or an overload: softmax, aten.add.Tensor.")
        ],
    ) -> int:
        """Show where an op is lowered, bounded and sampled."""
        return show(console(), name)


def show(out: Console, name: str) -> int:
    """Print what is known of every overload of that name; underscores around it do not count."""
    for overload in overloads(name):
        out.print(overload, style="bold")
        for what, where in facts(overload):
            out.print(f"  {what:<10}{where}", soft_wrap=True)
    return 0


def overloads(name: str) -> list[str]:
    """The overloads that a user's name means: those of the op table, then those that torch defines
    by smaller ops. InputError when there are none.
    """
    from driver.capture.single import overload_names  # noqa: PLC0415 - imports torch
    from driver.lower import LOWERINGS  # noqa: PLC0415

    spaced = name if name.startswith(("aten.", "npu.")) else f"aten.{name}"
    space, base, overload = [*spaced.split(".", 2), ""][:3]
    alike = [known for known in LOWERINGS if _core(known) == (space, base.strip("_"))]
    others = overload_names(space, base)
    found = [*sorted(alike), *(known for known in others if known not in LOWERINGS)]
    if overload:
        found = [known for known in found if known == spaced]
    runs = [known for known in found if known in LOWERINGS or _is_decomposed(known)]
    found = runs or found[:1]
    if not found:
        expected = "an op of torch such as softmax, or an overload such as aten.add.Tensor"
        raise InputError("command line", "op", name, expected)
    return found


def _core(overload: str) -> tuple[str, str]:
    space, base, _ = overload.split(".")
    return space, base.strip("_")


def _is_decomposed(overload: str) -> bool:
    from driver.capture.decompose import definition  # noqa: PLC0415 - imports torch
    from driver.capture.single import overload as in_torch  # noqa: PLC0415

    return definition(in_torch(overload)) is not None


def facts(overload: str) -> Iterator[tuple[str, str]]:
    """What to say of an overload: (what, where)."""
    from driver.lower import LOWERINGS  # noqa: PLC0415
    from golden.bounds import RULES  # noqa: PLC0415 - imports torch
    from golden.calls import base_name  # noqa: PLC0415

    lowering = LOWERINGS.get(overload)
    if lowering is None:
        yield "lowering", f"none: {_instead(overload)}"
        return
    base = base_name(overload)
    for rule in lowering.rules:
        several = f" rule {rule.name}" if len(lowering.rules) > 1 else ""
        yield "lowering", _function(rule.function) + several
    bound = RULES.get(base)
    if bound is not None:
        yield "bound", " ".join([_function(bound), *_lines(_BOUNDS, {base})])
    names = {overload, overload.removesuffix(".default"), base, base.strip("_")}
    names |= {name.removeprefix("aten.") for name in names}
    yield "samples", " ".join(_lines(_SAMPLES, names)) or _UNNAMED


def _instead(overload: str) -> str:
    """What runs of an op without a lowering."""
    from driver.capture.decompose import fresh_op  # noqa: PLC0415 - imports torch
    from driver.capture.single import overload as in_torch  # noqa: PLC0415

    if not _is_decomposed(overload):
        return "a view, which costs nothing, or an op that the NPU refuses"
    fresh = fresh_op(in_torch(overload))
    if fresh is not None:
        return f"runs as {fresh}, and a copy into the tensor that it writes"
    return "torch defines the op by smaller ops (driver/capture/decompose.py)"


def _function(function: Callable[..., Any]) -> str:
    """Where a function stands: file, line, name; the decorators of a rule are its first lines."""
    code = unwrap(function).__code__
    file = Path(code.co_filename).relative_to(ROOT)
    return f"{file}:{code.co_firstlineno} ({code.co_qualname.replace('.<locals>', '')})"


def _lines(folder: str, names: set[str]) -> list[str]:
    """The lines below a folder at which a string holds one of these names, as file:line,line."""
    places = []
    for file in sorted((ROOT / folder).glob("*.py")):
        found = {line for line, word in _words(file) if any(map(word.fullmatch, names))}
        if found:
            places.append(f"{folder}/{file.name}:{','.join(map(str, sorted(found)))}")
    return places


@cache
def _words(file: Path) -> list[tuple[int, re.Pattern[str]]]:
    """The words of every string in a source, but for its documentation, each with its line.

    What an f-string leaves open may be anything, if three letters of the op's name are not.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            parts = [x.value if isinstance(x, ast.Constant) else "\0" for x in node.values]
            word = "".join(map(str, parts))
            if re.search("[a-z]{3}", re.sub(r"aten|default|\.\w+$", "", word)):
                found.append((node.lineno, re.escape(word).replace("\0", r"\w*")))
        elif isinstance(node, ast.Constant) and id(node) not in skipped:
            lines = enumerate(str(node.value).split("\n"), node.lineno)
            found += [(line, re.escape(word)) for line, text in lines for word in text.split()]
    return [(line, re.compile(word)) for line, word in found]
