# SPDX-License-Identifier: Apache-2.0
"""Cuts the one function that CXXRTL generates into many that a compiler can take.

CXXRTL writes a flat design as one function of ten thousands of statements, on which g++ works for
more than ten minutes. Its statements come in an order in which each uses only values of those
before, so any cut between two of them is allowed; a value that is used on both sides of a cut
becomes a member. Statements that take effect at the clock's edge are kept apart from the others:
`settle()` computes all combinational values, `edge()` the next state from them. Text in, text out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from driver.errors import InfrastructureError

_CHUNK_BYTES = 24_000
"""Text of one function: small enough that the compiler's time is linear in the number of them."""
_FUNCTIONS_PER_FILE = 16
_LOCAL = re.compile(r"\tvalue<(?P<width>\d+)> (?P<name>\w+);")
_WORD = re.compile(r"\w+")
_EVAL = re.compile(r"^bool p_(?P<top>\w+)::eval\(performer \*performer\) \{\n", re.M)
_EVAL_END = "\treturn converged;\n}\n"
_COMMIT = "\tbool commit() override {"


@dataclass(frozen=True)
class SplitModel:
    """The same model in several files: name → text."""

    header: str
    sources: dict[str, str]


@dataclass(frozen=True)
class _Body:
    """The function: its local values with their widths, and its statements by kind."""

    locals_: dict[str, int]
    settle: list[str]
    edge: list[str]


def split(header: str, source: str, header_name: str, clock: str) -> SplitModel:
    """The model in pieces. InfrastructureError when CXXRTL's output is not of the known form."""
    found = _EVAL.search(source)
    if found is None or _EVAL_END not in source or header.count(_COMMIT) != 1:
        raise InfrastructureError("cxxrtl: the generated code has another form than that of 0.70")
    end = source.index(_EVAL_END)
    body = _parsed(source[found.end() : end], f"posedge_{clock}")
    chunks = {
        f"{kind}_{number}": text
        for kind, statements in (("settle", body.settle), ("edge", body.edge))
        for number, text in enumerate(_chunks(statements))
    }
    shared, own = _placed(body.locals_, chunks)
    top = f"p_{found['top']}"
    functions = [
        f"void {top}::{name}() {{\n{_declared(body.locals_, own[name])}{text}}}\n"
        for name, text in chunks.items()
    ]
    prologue = (
        f'#include "{header_name}"\nusing namespace cxxrtl_yosys;\nnamespace cxxrtl_design {{\n'
    )
    sources = {
        f"part{number}.cc": prologue + "".join(part) + "}\n"
        for number, part in enumerate(_grouped(functions, _FUNCTIONS_PER_FILE))
    }
    sources["state.cc"] = (
        source[: found.start()] + _drivers(top, chunks, clock) + source[end + len(_EVAL_END) :]
    )
    members = _declared(body.locals_, shared)
    methods = "".join(f"\tvoid {name}();\n" for name in ("settle", "edge", *chunks))
    return SplitModel(header.replace(_COMMIT, f"{members}{methods}\n{_COMMIT}"), sources)


def _parsed(text: str, posedge: str) -> _Body:
    locals_: dict[str, int] = {}
    kinds: dict[bool, list[str]] = {False: [], True: []}
    open_lines: list[str] = []
    for line in text.splitlines(keepends=True):
        plain = line.strip()
        if not plain or plain.startswith("//") or plain.startswith("bool "):
            continue
        local = _LOCAL.fullmatch(line.rstrip("\n"))
        if local is not None:
            locals_[local["name"]] = int(local["width"])
            continue
        open_lines.append(line)
        opened = open_lines[0]
        whole = plain == "}" if opened.startswith(("\tif", "\tauto")) else plain.endswith(";")
        if not whole or (plain == "}" and line != "\t}\n"):
            continue
        at_edge = opened.startswith(f"\tif ({posedge})")
        lines = open_lines[1:-1] if at_edge else open_lines
        kinds[at_edge].append(f"\t{{\n{''.join(lines)}\t}}\n" if at_edge else "".join(lines))
        open_lines = []
    if open_lines or any(posedge in statement for found in kinds.values() for statement in found):
        raise InfrastructureError("cxxrtl: the generated code has another form than that of 0.70")
    return _Body(locals_, kinds[False], kinds[True])


def _chunks(statements: Iterable[str]) -> list[str]:
    chunks: list[str] = []
    size = _CHUNK_BYTES
    for statement in statements:
        if size >= _CHUNK_BYTES:
            chunks.append("")
            size = 0
        chunks[-1] += statement
        size += len(statement)
    return chunks


def _placed(
    locals_: dict[str, int], chunks: dict[str, str]
) -> tuple[list[str], dict[str, list[str]]]:
    """Values that several functions use, and by function those that only it uses."""
    users: dict[str, list[str]] = defaultdict(list)
    for name, text in chunks.items():
        for word in dict.fromkeys(_WORD.findall(text)):
            if word in locals_:
                users[word].append(name)
    own: dict[str, list[str]] = defaultdict(list)
    for word, names in users.items():
        if len(names) == 1:
            own[names[0]].append(word)
    return [word for word, names in users.items() if len(names) > 1], own


def _declared(locals_: dict[str, int], names: Iterable[str]) -> str:
    return "".join(f"\tvalue<{locals_[name]}> {name};\n" for name in names)


def _drivers(top: str, chunks: dict[str, str], clock: str) -> str:
    """The functions that call the pieces in order."""
    lines = []
    for kind in ("settle", "edge"):
        calls = "".join(f"\t{name}();\n" for name in chunks if name.startswith(kind))
        lines.append(f"void {top}::{kind}() {{\n{calls}}}\n")
    lines.append(
        f"bool {top}::eval(performer *) {{\n"
        f"\tsettle();\n\tif (posedge_{clock}()) edge();\n\treturn true;\n}}\n"
    )
    return "\n".join(lines)


def _grouped(items: Sequence[str], size: int) -> list[Sequence[str]]:
    return [items[at : at + size] for at in range(0, len(items), size)]
