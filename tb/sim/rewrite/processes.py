# SPDX-License-Identifier: Apache-2.0
"""Keeps the processes of the generated model in their files, under their names.

Verilator numbers the functions of a model's processes in their order, and begins a file after so
many lines: with one process more, half of them have another name and are in another file. Here a
function with the same text has the name that it had in the build before, and its name alone decides
in which file it is. Knows Verilator's C++, compiles nothing.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from tb.sim.plan import PREFIX, ROOT
from tb.sim.rewrite.file_list import NewFile, needed_by, replace_files
from tb.sim.spec import digest

_NAME = re.compile(rf"({ROOT}___\w+__TOP__)(\d+)\b", re.ASCII)
"""What it does, and its number. Begins with what it looks for, or it takes three times as long."""
_DEFINITION = re.compile(
    rf"^(?P<head>(?:VL_ATTR_COLD )?void {_NAME.pattern}\({ROOT}\* vlSelf\)) \{{\n.*?^\}}\n",
    re.MULTILINE | re.DOTALL | re.ASCII,
)
_DECLARATION = re.compile(
    rf"^(?P<text>extern const .*?(?P<constant>\w+)(?=;\n)"
    rf"|\w[\w ]* (?P<function>{ROOT}___\w+)\([^;{{}}]*\)(?=(?:;| \{{)\n))",
    re.MULTILINE | re.ASCII,
)
"""Of a constant; of a function, or the beginning of its definition."""
_WRITTEN = re.compile(r"vlSelfRef\.(\w+)\s*=[^=]", re.ASCII)
"""A member that is assigned."""
_INCLUDE = f'#include "{PREFIX}__pch.h"\n\n'
_END = "\n}\n"
_SLOW = "__Slow.cpp"
_OWN_FILE = 64 * 1024
"""Bytes from which on a function has a file of its own."""
_TOGETHER = 16
"""The smaller ones of so many numbers share a file."""
_REMEMBERED = 4096
"""Functions, of this build and of those before."""


@dataclass(frozen=True)
class Names:
    """The names that functions have here."""

    by_text: dict[str, list[str]] = field(default_factory=dict)
    """Hash of the text without the function's own name → the names of those that have it, and of
    those that had it in the builds before."""
    by_target: dict[str, list[str]] = field(default_factory=dict)
    """What functions do and write first → the names of those that do, and of those that did."""

    @classmethod
    def saved(cls, memory: Path) -> Names:
        """Empty where there is no such file, or it is damaged: that costs time, nothing else."""
        try:
            plain = json.loads(memory.read_text())
            found = [
                {key: [one for one in names if _NAME.fullmatch(one)] for key, names in part.items()}
                for part in (plain["by_text"], plain["by_target"])
            ]
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return cls()
        return cls(*found)

    def save(self, memory: Path) -> None:
        """What was not used for longest is forgotten."""
        by_text = dict(list(self.by_text.items())[-_REMEMBERED:])
        by_target = dict(list(self.by_target.items())[-_REMEMBERED:])
        memory.write_text(json.dumps({"by_text": by_text, "by_target": by_target}))


def _stem(text: str) -> str:
    """Without the numbers of functions."""
    return _NAME.sub(r"\1", text)


def _target(name: str, text: str) -> str:
    """Hardly ever that of two functions, and mostly the same after an edit."""
    written = _WRITTEN.search(text)
    return f"{_stem(name)} {written[1] if written else ''}"


def _newest_last(
    before: Mapping[str, list[str]], used: Sequence[tuple[str, str]]
) -> dict[str, list[str]]:
    """`before` with these names in front of those of each key, and the used keys at the end."""
    found = dict(before)
    for key, name in reversed(used):
        found[key] = [name, *(one for one in found.pop(key, []) if one != name)]
    return found


def following(
    before: Names, texts: Mapping[str, str], reserved: Collection[str] = ()
) -> tuple[dict[str, str], Names]:
    """Names for the functions of Verilator's names, and what to remember: the name of a function
    with the same text, else of one that wrote the same, else a new one. No two have the same, and
    none has one of `reserved`."""
    now: dict[str, str] = {}
    taken = set(reserved)

    def take(name: str, candidates: Iterable[str]) -> None:
        kept = next((one for one in candidates if one not in taken), None)
        if kept is not None:
            now[name] = kept
            taken.add(kept)

    keys = {name: digest([_stem(text)]) for name, text in texts.items()}
    targets = {name: _target(name, text) for name, text in texts.items()}
    for name, key in keys.items():
        take(name, before.by_text.get(key, ()))
    for name in [one for one in texts if one not in now]:
        take(name, before.by_target.get(targets[name], ()))
    known = [*chain(*before.by_text.values(), *before.by_target.values()), *taken]
    last = max((int(found[2]) for one in known if (found := _NAME.fullmatch(one))), default=-1)
    for number, name in enumerate((one for one in texts if one not in now), last + 1):
        now[name] = f"{_stem(name)}{number}"
    return now, Names(
        _newest_last(before.by_text, [(keys[name], now[name]) for name in texts]),
        _newest_last(before.by_target, [(targets[name], now[name]) for name in texts]),
    )


@dataclass(frozen=True)
class _Function:
    name: str
    text: str
    slow: bool

    @property
    def place(self) -> tuple[str, int]:
        """In the order of all of them."""
        stem, mark, number = self.name.rpartition("__TOP__")
        return stem + mark, int(number)

    @property
    def file(self) -> str:
        """Decided by the name, so that no other function moves this one."""
        stem, number = self.place
        alone = len(self.text) >= _OWN_FILE
        name = self.name if alone else f"{stem}from__{number // _TOGETHER * _TOGETHER}"
        return name + (_SLOW if self.slow else ".cpp")


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return _NAME.sub(lambda match: names.get(match[0], match[0]), text)


def _files(functions: Sequence[_Function], declarations: Mapping[str, str]) -> Iterator[NewFile]:
    """`declarations`: of all that a function may name."""
    together: dict[str, list[str]] = defaultdict(list)
    for function in sorted(functions, key=lambda one: one.place):
        together[function.file].append(function.text)
    for name, texts in together.items():
        body = "\n".join(texts)
        kind = "classes_slow" if name.endswith(_SLOW) else "classes_fast"
        yield NewFile(kind, name, f"{_INCLUDE}{needed_by(body, declarations)}\n{body}")


def keep_processes(generated: Path, memory: Path) -> None:
    """Rewrite the model in the folder, and Verilator's list of its files; `memory` has the names of
    the builds before."""
    sources = {path: path.read_text() for path in sorted(generated.glob(f"{ROOT}__*.cpp"))}
    found = [
        _Function(match[2] + match[3], match[0], path.name.endswith(_SLOW))
        for path, text in sources.items()
        for match in _DEFINITION.finditer(text)
    ]
    texts = {one.name: one.text for one in found}
    others = {match[0] for text in sources.values() for match in _NAME.finditer(text)}
    names, remembered = following(Names.saved(memory), texts, others - texts.keys())
    remembered.save(memory)
    declarations: dict[str, str] = {}
    gone = set()
    for path, text in sources.items():
        renamed = _renamed(text, names)
        for match in _DECLARATION.finditer(renamed):
            declarations[match["constant"] or match["function"]] = f"{match['text']};\n"
        left = _DEFINITION.sub(r"\g<head>;\n", renamed)
        if left != text and _END not in left:
            gone.add(path.name)
        elif left != text:
            path.write_text(left)
    functions = [
        replace(one, name=names[one.name], text=_renamed(one.text, names)) for one in found
    ]
    replace_files(generated, gone, _files(functions, dict(sorted(declarations.items()))))
