# SPDX-License-Identifier: Apache-2.0
"""Passes arrays to the model's functions by reference, and has results written where they belong.

Verilator passes an array by value, clears a variable for the result in every cycle, whether the
function is called or not, and copies that variable: 5 % of a product's instructions (ADR 22). A
function gets references where it reads and writes nothing but its arguments and no call has its
result among them; every other one stays as it is. Knows Verilator's C++, compiles nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tb.sim.plan import ROOT

_HEAD = re.compile(rf"^ *void (?:{ROOT}::)?(__VnoInFunc_\w+)\(([^()]*)\)(?: \{{|;)\n", re.MULTILINE)
_CALL = re.compile(r"(__VnoInFunc_\w+)\(vlSymsp, ")
"""Begins with what it looks for, or it takes ten times as long; `_calls` sees what is before."""
_ARRAY = re.compile(r"(VlUnpacked<.+>) (&?)(\w+)")
_STATE = re.compile(r"vlSelf|vlSymsp->|\bthis\b")
_END = "\n}\n"
_RESULT = re.compile(
    r"    VlUnpacked<[^;]*> (?P<name>\w+__Vfuncout);\n"
    r"    for \(int __Vi0 = 0; __Vi0 < \d+; \+\+__Vi0\) \{\n"
    r"        (?P=name)\[__Vi0\] = 0;\n    \}\n"
)
"""The variable for a result, and what clears it."""
_USES = 4
"""Of that variable: both, the call, and the copy of the result."""


@dataclass(frozen=True)
class _Call:
    function: str
    end: int
    """Of its arguments, in the text."""
    arguments: tuple[str, ...]

    @property
    def is_apart(self) -> bool:
        """Whether what is written is not among what is read."""
        return _is_apart(self.arguments[-1], self.arguments[:-1])


def _is_apart(written: str, read: tuple[str, ...]) -> bool:
    name = re.escape(written.partition("[")[0].strip())
    return not any(re.search(rf"{name}\b", one) for one in read)


def _calls(text: str) -> Iterator[_Call]:
    for match in _CALL.finditer(text):
        if re.match(r"\w", text[match.start() - 1]):
            continue
        at = start = match.end()
        depth, arguments = 0, []
        while depth >= 0:
            if text[at] == "," and depth == 0:
                arguments.append(text[start:at])
                start = at + 1
            depth += (text[at] in "([") - (text[at] in ")]")
            at += 1
        arguments.append(text[start : at - 1])
        yield _Call(match[1], at - 1, tuple(arguments))


def _parameters(text: str) -> list[str]:
    """Types have commas in angle brackets."""
    return re.split(r", (?![^<]*>)", text)


def _is_assigned(name: str, body: str) -> bool:
    for match in re.finditer(rf"\b{name}\b", body):
        at, depth = match.end(), 0
        while depth or body[at] in "[ \n":
            depth += (body[at] == "[") - (body[at] == "]")
            at += 1
        if body[at] == "=" and body[at + 1] != "=":
            return True
    return re.search(rf"VL_ASSIGN\w*\([^;]*\b{name}\b", body) is not None


def _is_pure(parameters: str, body: str) -> bool:
    """Whether the function has arrays, returns its result through its last parameter, where it
    leaves nothing of before, writes no other one and reads nothing else."""
    _, *read, result = _parameters(parameters)
    arrays = [found[3] for one in read if (found := _ARRAY.fullmatch(one))]
    returned = _ARRAY.fullmatch(result)
    return (
        bool(arrays)
        and "&" in result
        and (returned is None or f"{returned[3]}[__Vi0] = 0;\n" in body)
        and not any("&" in one for one in read)
        and not _STATE.search(body)
        and not any(_is_assigned(array, body) for array in arrays)
    )


def _pure_functions(texts: list[str]) -> set[str]:
    """Those that may have references."""
    found = {
        head[1]
        for text in texts
        for head in _HEAD.finditer(text)
        if head[0].endswith("{\n")
        and _is_pure(head[2], text[head.end() : text.index(_END, head.end())])
    }
    return found - {call.function for text in texts for call in _calls(text) if not call.is_apart}


def _with_references(text: str, functions: set[str]) -> str:
    """Their heads changed."""

    def array(match: re.Match[str]) -> str:
        return f"{'' if match[2] else 'const '}{match[1]}& __restrict {match[3]}"

    def head(match: re.Match[str]) -> str:
        if match[1] not in functions:
            return match[0]
        parameters = (_ARRAY.sub(array, one) for one in _parameters(match[2]))
        return match[0].replace(match[2], ", ".join(parameters))

    return _HEAD.sub(head, text)


def _in_place(body: str, functions: set[str]) -> str:
    """A function of the model with the results of these functions written where they are copied."""
    cleared = {found["name"]: found[0] for found in _RESULT.finditer(body)}
    uses = Counter(re.findall(r"\w+", body)) if cleared else {}
    unused = []
    for call in reversed(list(_calls(body))):
        *read, name = (one.strip() for one in call.arguments)
        copied = re.match(rf"\);\n\s*(vlSelfRef\.\w+)\s*= {re.escape(name)};\n", body[call.end :])
        if call.function not in functions or not copied or name not in cleared:
            continue
        if uses[name] == _USES and _is_apart(copied[1], tuple(read)):
            given = body[: call.end].removesuffix(name) + copied[1]
            body = f"{given});\n{body[call.end + copied.end() :]}"
            unused.append(cleared[name])
    for text in unused:
        body = body.replace(text, "", 1)
    return body


def pass_by_reference(generated: Path) -> frozenset[str]:
    """Rewrite the model in the folder. The functions that have references now."""
    files = {path: path.read_text() for path in sorted(generated.glob(f"{ROOT}__*.cpp"))}
    functions = _pure_functions(list(files.values()))
    header = generated / f"{ROOT}.h"
    for path, text in {header: header.read_text(), **files}.items():
        bodies = _with_references(text, functions).split(_END)
        new = _END.join(_in_place(body, functions) for body in bodies)
        if new != text:
            path.write_text(new)
    return frozenset(functions)
