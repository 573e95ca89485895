# SPDX-License-Identifier: Apache-2.0
"""Cuts the functions that write waves into pieces that an edit leaves alone.

Verilator writes a few large functions for all signals of the model. Here each becomes calls of
smaller ones, in a file each, that are named by what they do: the cuts lie where the text says, not
after so many lines, and signals keep their numbers (tb/sim/rewrite/trace_codes.py). Only the pieces
with a changed signal are then compiled again. Compiles nothing itself.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path
from typing import TypeVar

from tb.sim.plan import PREFIX, ROOT
from tb.sim.rewrite.file_list import NewFile, needed_by, replace_files
from tb.sim.rewrite.trace_codes import Codes
from tb.sim.rewrite.trace_text import (
    CALL,
    FILES,
    NUMBER,
    TEMPORARY,
    TEMPORARY_BEGIN,
    TraceFunction,
    mentioned,
    parts,
    read_functions,
    statements,
)
from tb.sim.spec import digest

_INCLUDES = f'#include "verilated_vcd_c.h"\n#include "{PREFIX}__Syms.h"\n\n'
_SLOW = "VL_ATTR_COLD"
_TYPE = re.compile(rf"\b{ROOT}__trace_\w+_dtype\w+")
"""The name of a function that serves all signals of a type."""
_BEGIN = f"{ROOT}__trace_"
_NAME = re.compile(rf"\b{ROOT}__trace_\w+")
_COUNT = re.compile(r"->addInitCb\([^;]*, (\d+)\);")
_GUARD = re.compile(r"(if \(VL_UNLIKELY\([^{};]*__Vm_traceActivity[^{};]*\)\)) \{ (.*) \}")
_MIN_BYTES, _MAX_BYTES = 64 * 1024, 512 * 1024
_ONE_IN = 200
"""Statements, of which one may end a piece."""
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class _Step:
    """A statement, and the condition on which it runs."""

    guard: str
    text: str


def _steps(function: TraceFunction) -> Iterator[_Step]:
    for text in function.statements:
        if (guarded := _GUARD.fullmatch(text)) is None:
            yield _Step("", text)
        else:
            yield from (_Step(guarded[1], inner) for inner in statements(guarded[2]))


def _runs(steps: Sequence[_Step], temporaries: Iterable[str]) -> Iterator[list[_Step]]:
    """The steps, those together from the first to the last that mentions a temporary."""
    names = set(temporaries)
    mentions = [names.intersection(mentioned(step.text)) for step in steps]
    last = {name: at for at, used in enumerate(mentions) for name in used}
    run: list[_Step] = []
    until = 0
    for at, (step, used) in enumerate(zip(steps, mentions, strict=True)):
        run.append(step)
        until = max([until, *(last[name] for name in used)])
        if at >= until:
            yield run
            run = []


def _number(run: list[_Step]) -> int:
    """Of the first signal that is written. Verilator's order is that in which signals may change,
    which one register more can turn round; their numbers stay."""
    for step in run:
        if (found := NUMBER.search(step.text)) is not None:
            return int(found[2])
    raise ValueError(f"writes no signal: {run[0].text[:80]}")


def _cut(items: Iterable[_Item], text: Callable[[_Item], str]) -> Iterator[list[_Item]]:
    """Consecutive items by piece. Whether a piece ends with an item is up to the text of that one,
    so that one more item moves no other end."""
    piece: list[_Item] = []
    size = 0
    for item in items:
        piece.append(item)
        written = text(item)
        size += len(written)
        ends = zlib.crc32(written.encode()) % _ONE_IN == 0
        if size >= _MAX_BYTES or (ends and size >= _MIN_BYTES):
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _renamed(function: TraceFunction, names: Mapping[str, str]) -> TraceFunction:
    """With other names for these temporaries."""
    if not names:
        return function

    def new(line: str) -> str:
        if TEMPORARY_BEGIN not in line:
            return line
        return TEMPORARY.sub(lambda match: names.get(match[0], match[0]), line)

    return replace(
        function,
        locals={names.get(name, name): new(line) for name, line in function.locals.items()},
        statements=tuple(map(new, function.statements)),
    )


def _by_content(function: TraceFunction) -> TraceFunction:
    """With a name that says what it does, and only the temporaries that it uses, by their order."""
    named = chain.from_iterable(map(mentioned, function.statements))
    used = [name for name in dict.fromkeys(named) if name in function.locals]
    function = replace(function, name="", locals={name: function.locals[name] for name in used})
    plain = _renamed(function, {name: f"temporary_{at}" for at, name in enumerate(used)})
    return replace(plain, name=f"{ROOT}__trace_{digest([plain.text()])[:16]}")


class _Model:
    """The functions of a model that write waves, with the names that they have now."""

    def __init__(self, functions: Mapping[str, TraceFunction], codes: Codes) -> None:
        self._before = functions
        self._codes = codes
        self._types: dict[str, TraceFunction] = {}
        self._pieces: dict[str, TraceFunction] = {}
        lines = chain(*(function.statements for function in functions.values()))
        called = {call[1] for line in lines if (call := CALL.fullmatch(line))}
        own = (one for one in functions.values() if not _TYPE.fullmatch(one.name))
        self.entries = [self._entry(one) for one in own if one.name not in called]
        """Called by the rest of the model."""

    @property
    def pieces(self) -> list[TraceFunction]:
        """Each once: two may do the same."""
        return list(self._pieces.values())

    @property
    def types(self) -> list[TraceFunction]:
        """Each once: types of the same shape have the same functions."""
        by_name = {function.name: function for function in self._types.values()}
        return [by_name[name] for name in sorted(by_name)]

    @property
    def all(self) -> dict[str, TraceFunction]:
        """By name."""
        return {one.name: one for one in (*self.entries, *self.pieces, *self.types)}

    def _type(self, name: str) -> TraceFunction:
        if name not in self._types:
            function = self._before[name]
            texts = tuple(map(self._with_types, function.statements))
            self._types[name] = _by_content(replace(function, statements=texts))
        return self._types[name]

    def _with_types(self, text: str) -> str:
        """With the names that functions of types have now."""
        if _BEGIN not in text:
            return text
        return _TYPE.sub(lambda match: self._type(match[0]).name, text)

    def _entry(self, function: TraceFunction) -> TraceFunction:
        """The function, calling pieces instead."""
        calls = [match for line in function.statements if (match := CALL.fullmatch(line))]
        if not calls:
            return function
        called = [part for call in calls for part in parts(self._before, call[1])]
        names = [piece.name for piece in self._cut_into_pieces(called)]
        first = function.statements.index(calls[0][0])
        if len(function.statements) - first > len(calls) or len({call[2] for call in calls}) > 1:
            raise ValueError(f"{function.name}: not all calls are alike")
        made = (f"{name}({calls[0][2]});" for name in names)
        return replace(function, statements=(*function.statements[:first], *made))

    def _cut_into_pieces(self, called: Sequence[TraceFunction]) -> list[TraceFunction]:
        """All parts as one sequence, cut."""
        whole = called[0]
        temporaries: dict[str, str] = {}
        steps: list[_Step] = []
        for number, part in enumerate(called):
            own = _renamed(part, {name: f"{name}_{number}" for name in part.locals})
            temporaries |= own.locals
            steps += _steps(self._known(own))
        preamble = tuple(dict.fromkeys(line for part in called for line in part.preamble))
        found = []
        runs = list(_runs(steps, temporaries))
        if "bufp" in whole.parameters:
            runs.sort(key=_number)
        for piece in _cut(runs, lambda run: "".join(step.text for step in run)):
            lines: list[str] = []
            for guard, inner in groupby(chain(*piece), lambda step: step.guard):
                texts = [step.text for step in inner]
                lines += [f"{guard} {{", *texts, "}"] if guard else texts
            cut = replace(whole, locals=temporaries, preamble=preamble, statements=tuple(lines))
            found.append(_by_content(cut))
        self._pieces |= {piece.name: piece for piece in found}
        return found

    def _known(self, function: TraceFunction) -> TraceFunction:
        """With the numbers of signals and the names of types as they are now."""
        texts = (self._codes.in_text(line, function.base) for line in function.statements)
        return replace(function, statements=tuple(map(self._with_types, texts)))


def _file(
    functions: Sequence[TraceFunction],
    known: Mapping[str, TraceFunction],
    constants: Mapping[str, str],
) -> str:
    """The text of a file with these functions. `known`: what they call."""
    body = "\n".join(function.text() for function in functions)
    calling = "\n".join(line for line in body.splitlines() if _BEGIN in line)
    called = dict.fromkeys(name for name in _NAME.findall(calling) if name in known)
    declared = "".join(f"{known[name].declaration.strip()};\n" for name in called)
    return _INCLUDES + needed_by(body, constants) + declared + "\n" + body


def _named(slow: bool, text: str) -> NewFile:
    """A file that is named by its text. `slow`: it runs once."""
    number = int(digest([text])[:12], 16)
    name = f"{PREFIX}__Trace__{number}{'__Slow' if slow else ''}.cpp"
    return NewFile("support_slow" if slow else "support_fast", name, text)


def _files(model: _Model, constants: Mapping[str, str]) -> Iterator[NewFile]:
    known = model.all
    yield _named(False, _file(model.entries, known, constants))
    for slow in (False, True):
        types = [one for one in model.types if (_SLOW in one.head) == slow]
        groups = [*_cut(types, TraceFunction.text)]
        groups += [[one] for one in model.pieces if (_SLOW in one.head) == slow]
        yield from (_named(slow, _file(group, known, constants)) for group in groups)


def _counted(text: str) -> tuple[str, int, str]:
    """The number of signals' words, for which the writer of waves keeps room, with the text before
    and behind it."""
    found = _COUNT.search(text)
    if found is None:
        raise ValueError("no count of signals")
    return text[: found.start(1)], int(found[1]), text[found.end(1) :]


def cut_traces(generated: Path, memory: Path) -> str:
    """Rewrite the files of the model in the folder that write waves, and Verilator's list of them;
    `memory` has the numbers of signals. Why they stay as they are, or nothing."""
    try:
        functions, constants = read_functions(generated)
        if not functions:
            return "no waves"
        top = generated / f"{PREFIX}.cpp"
        head, counted, tail = _counted(top.read_text())
        codes = Codes(functions, memory)
        model = _Model(functions, codes)
    except (ValueError, LookupError) as error:
        return str(error)
    top.write_text(f"{head}{codes.count(counted)}{tail}")
    gone = {path.name for path in generated.glob(FILES)}
    replace_files(generated, gone, _files(model, constants))
    return ""
