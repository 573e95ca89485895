# SPDX-License-Identifier: Apache-2.0
"""Keeps the clocks of the last evaluation in one word instead of a variable for each.

Verilator asks three times in a cycle which clocks have risen, and keeps the last value of each by
itself: with 28 gated clocks, 4 % of a product's cycle and 10 % of a COPY's. As bits of a word they
are compared at once (ADR 22). The function's results are the same; where it has another form than
that of rising edges and changes, it stays as it is. Knows Verilator's C++, compiles nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

from tb.sim.plan import ROOT

_BODY = "    // Body\n"
_STATE = "    // DESIGN SPECIFIC STATE\n"
_FIRED = "vlSelfRef.__VactTriggered[0U]"
_BEFORE = "__VtriggersBefore"
_LOCAL = re.compile(r"__Vtrigprevexpr_\w+")
_LAST = r"vlSelfRef\.__Vtrigprevexpr_\w+"
_EDGE = re.compile(rf"\(\(IData\)\(([\w.\[\]]+)\) & \(~ \(IData\)\(({_LAST})\)\)\)")
_CHANGE = re.compile(rf"\(\(IData\)\(([\w.\[\]]+)\) \^ \(IData\)\(({_LAST})\)\)")
_NOW, _THEN = r"(IData)(\1)", r"(IData)(\2)"
_PLACES = re.compile(r"(?:[()|]|<<|[IQ]Data|(?:0x[0-9a-f]+|\d+)U|\s)*")
"""All that is left of the word without its clocks: what shifts and joins bits."""


def _function(name: str) -> re.Pattern[str]:
    """The definition of a function of the model."""
    head = rf"^(?:VL_ATTR_COLD )?void {ROOT}___{name}\({ROOT}\* vlSelf\) \{{\n"
    return re.compile(head + r".*?^\}\n", re.DOTALL | re.MULTILINE)


def _with_clocks(word: str, edge: str, change: str | None = None) -> str:
    """The word with something else for each of its clocks."""
    return _CHANGE.sub(edge if change is None else change, _EDGE.sub(edge, word))


def packed(function: str) -> tuple[str, str] | None:
    """The function with one word of last values, and the expression of their first ones from
    Verilator's variables. None where it has another form."""
    head, _, body = function.partition(_BODY)
    statements = [" ".join(one.split()) for one in body.removesuffix("}\n").split(";\n")]
    assigned = dict(one.split(" = ", 1) for one in statements if " = " in one)
    word = assigned.pop(_FIRED, "")
    derived = {name: value for name, value in assigned.items() if _LOCAL.fullmatch(name)}
    kept = {name: value for name, value in assigned.items() if name not in derived}
    clocks = {last: now for now, last in [*_EDGE.findall(word), *_CHANGE.findall(word)]}
    understood = kept == clocks and _PLACES.fullmatch(_with_clocks(word, "0U"))
    if not clocks or not understood or len(statements) != len(assigned) + 2:
        return None
    lines = [
        *(f"{name} = {value};" for name, value in derived.items()),
        f"const QData now = {_with_clocks(word, _NOW)};",
        f"const QData both_edges = {_with_clocks(word, '0U', '1U')};",
        f"{_FIRED} = (now ^ vlSelfRef.{_BEFORE}) & (now | both_edges);",
        f"vlSelfRef.{_BEFORE} = now;",
    ]
    text = "".join(f"    {line}\n" for line in lines)
    return f"{head}{_BODY}{text}}}\n", _with_clocks(word, _THEN)


def pack_triggers(generated: Path) -> bool:
    """Rewrite the model in the folder. False, and nothing has changed, where its triggers have
    another form."""
    sources = {path: path.read_text() for path in sorted(generated.glob(f"{ROOT}__*.cpp"))}
    asks = _find(_function("eval_triggers_vec__act"), sources)
    starts = _find(_function("eval_static"), sources)
    if asks is None or starts is None or (rewritten := packed(asks[1])) is None:
        return False
    function, first = rewritten
    began = starts[1].removesuffix("}\n") + f"    vlSelfRef.{_BEFORE} = {first};\n}}\n"
    header = generated / f"{ROOT}.h"
    for path, old, new in (
        (*asks, function),
        (*starts, began),
        (header, _STATE, f"{_STATE}    QData/*63:0*/ {_BEFORE};\n"),
    ):
        path.write_text(path.read_text().replace(old, new, 1))
    return True


def _find(pattern: re.Pattern[str], sources: dict[Path, str]) -> tuple[Path, str] | None:
    found = ((path, pattern.search(text)) for path, text in sources.items())
    return next(((path, match[0]) for path, match in found if match), None)
