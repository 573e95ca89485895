# SPDX-License-Identifier: Apache-2.0
"""Keeps the members of the generated model where they were, so that an edit moves none of them.

Verilator sorts the model's variables: one more shifts all behind it, and every object with their
offsets is stale. Here the order of the build before is kept, in a file beside the generated C++:
what is new goes to the end, what has gone leaves its place. A file of C++ then depends only on the
members that it names, and on all before them. The constants of packages are members of another
class, Verilator's symbols, and lie behind the model there: they are moved before it.
Knows Verilator's headers, compiles nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tb.sim.spec import digest

_BEGIN = "    // DESIGN SPECIFIC STATE\n"
_END = "    // INTERNAL VARIABLES\n"
_AFTER = "    // CONSTRUCTORS\n"
_WORD = re.compile(r"\w+", re.ASCII)
_KEPT_TYPES = re.compile(r"(?:[CSIQ]Data|VlWide|VlUnpacked|double)\b")
_FUNCTIONS = re.compile(r"__\d+(?:__Slow)?\.cpp$")
"""Names of the files with nothing but functions of the model."""
_OF_SYMBOLS = re.compile(r"vlSymsp->(\w+)", re.ASCII)
_BEFORE_MODEL = re.compile(r"_vm_contextp__|name|__Vm_\w+", re.ASCII)
"""What the symbols have before the model, besides the instances that `Symbols` names."""
_SYMBOLS = "__Syms.h"
_INSTANCES = "    // MODULE INSTANCE STATE\n"
_SCOPES = "    // SCOPE NAMES\n"
_DEAD_PART = 4
"""With more than one in so many members gone, the order begins anew."""


def _name(declaration: str) -> str:
    """Of the declared member."""
    if declaration.startswith("VL_"):
        return str(re.split(r"[(,]", declaration)[1]).strip("&()")
    return str(_WORD.findall(declaration.partition("[")[0])[-1])


def _keys(layout: Sequence[str], declared: Collection[str]) -> dict[str, tuple[int, str]]:
    """Member that is declared → its number, and the hash of all lines up to its own, which decide
    its place. The members are no structures in a structure: the alignment of one depends on what
    follows."""
    found: dict[str, tuple[int, str]] = {}
    so_far = ""
    for number, line in enumerate(layout):
        so_far = digest([so_far, line])
        if line in declared:
            found[_name(line)] = number, so_far
    return found


def _repeated(layout: Sequence[str]) -> frozenset[str]:
    """The members that have been of another type."""
    return frozenset(name for name, count in Counter(map(_name, layout)).items() if count > 1)


def _distinct(
    layout: Sequence[str], declared: Collection[str], repeated: Collection[str]
) -> Iterator[str]:
    """The lines of the class: what keeps the place of a member that has another type now gets a
    name of its own."""
    for number, line in enumerate(layout):
        if line not in declared and (name := _name(line)) in repeated:
            yield re.sub(rf"\b{name}\b", f"{name}__before{number}", line)
        else:
            yield line


def following(before: Sequence[str], lines: Sequence[str]) -> list[str]:
    """The declarations `lines` in an order that moves none of `before`. A fresh order where too
    many have gone, or one whose type may be gone, too."""
    wanted, known = set(lines), set(before)
    gone = [line for line in before if line not in wanted]
    stuck = any(not _KEPT_TYPES.match(line) for line in gone)
    if stuck or len(gone) * _DEAD_PART > len(before):
        return list(lines)
    return [*before, *(line for line in lines if line not in known)]


_ELEMENT_BYTES = {"CData": 1, "SData": 2, "IData": 4, "QData": 8}
_UNPACKED = re.compile(r"VlUnpacked<(.+), (\d+)>")
_WIDE = re.compile(r"VlWide<(\d+)>")
_VECTOR_BYTES = (64, 32)


def _size_bytes(cpp_type: str) -> int:
    """Of a wide word or an array; 0 for anything else."""
    if (array := _UNPACKED.match(cpp_type)) is not None:
        element = array[1].partition("/*")[0]
        return int(array[2]) * (_ELEMENT_BYTES.get(element) or _size_bytes(array[1]))
    wide = _WIDE.match(cpp_type)
    return 4 * int(wide[1]) if wide is not None else 0


def _aligned(declaration: str) -> str:
    """A member that fills vector registers begins at a multiple of their size: copies of one that
    lies across two cache lines take twice the time."""
    size = _size_bytes(declaration)
    fits = next((one for one in _VECTOR_BYTES if size and size % one == 0), None)
    return declaration if fits is None else f"alignas({fits}) {declaration}"


def _members(state: str) -> Iterator[str]:
    for line in state.splitlines():
        text = line.strip()
        if text and text not in ("struct {", "};") and not text.startswith("//"):
            yield text


@dataclass(frozen=True)
class Symbols:
    """The header of the class that holds the model, next to what the model refers to."""

    text: str
    seen: str = ""
    """The part that functions of the model depend on."""
    instances: frozenset[str] = frozenset()
    """Classes for packages, which lie before the model in `text`."""


def model_last(text: str, model_class: str) -> Symbols:
    """The header `text` with the model behind all other instances, whose places then do not depend
    on its size, and the names of scopes behind it. As it is where it has another form."""
    before, found, behind = text.partition(_INSTANCES)
    block, scopes, names = behind.partition(_SCOPES)
    names, constructors, tail = names.partition(_AFTER)
    lines = [line for line in block.splitlines(keepends=True) if line.strip()]
    models = [line for line in lines if line.split()[0] == model_class]
    if not (found and scopes and constructors) or len(models) != 1:
        return Symbols(text, seen=text)
    others = [line for line in lines if line not in models]
    seen = before + found + "".join([*others, *models]) + "\n"
    rest = scopes + names + constructors + tail
    instances = frozenset(map(_name, others))
    return Symbols(seen + rest, seen=seen + constructors + tail, instances=instances)


@dataclass(frozen=True)
class Dependence:
    """What a file of C++ depends on besides its own text."""

    rest: str
    """Hash of the headers without the members, and without the names of scopes."""
    whole: str
    members: dict[str, tuple[int, str]]
    instances: frozenset[str] = frozenset()
    """Of other classes, whose places depend on `rest` alone."""
    repeated: frozenset[str] = frozenset()
    """Members of which the hashes do not say which of two places they have."""

    def of(self, file: Path) -> str:
        """The hash for a file. One that only holds functions of the model depends on the members
        that it names; every other one, as that of the constructor, on all of them."""
        text = file.read_text()
        reached = set(_OF_SYMBOLS.findall(text)) - self.instances
        beyond = any(not _BEFORE_MODEL.fullmatch(name) for name in reached)
        if beyond or not (self.members and _FUNCTIONS.search(file.name)):
            return self.whole
        used = {word: self.members[word] for word in _WORD.findall(text) if word in self.members}
        places = sorted(f"{name} {used[name][0]}" for name in self.repeated.intersection(used))
        return digest([self.rest, max(used.values())[1] if used else "", *places])


def keep_in_place(root_header: Path, headers: Sequence[Path], memory: Path) -> Dependence:
    """Rewrite the header of the model's class after the layout in `memory`, and save it there; in
    that of the symbols, the model goes behind the other instances."""
    text = root_header.read_text()
    before, found, behind = text.partition(_BEGIN)
    state, end, tail = behind.partition(_END)
    internal, constructors, tail = tail.partition(_AFTER)
    if not (found and end and constructors):
        whole = digest(path.read_bytes() for path in headers)
        return Dependence(whole, whole, {})
    lines = list(_members(state))
    wanted = set(lines)
    layout = following(_saved(memory), lines)
    repeated = _repeated(layout)
    memory.write_text(json.dumps(layout))
    # What Verilator puts behind the variables goes before them: new ones must not move it.
    shell = before + _END + internal + found
    distinct = _distinct(layout, wanted, repeated)
    declared = "".join(f"    {_aligned(line)}\n" for line in distinct)
    root_header.write_text(shell + declared + "\n" + constructors + tail)
    seen, hidden = [shell, constructors, tail], [declared]
    instances: frozenset[str] = frozenset()
    for header in headers:
        if header.name.endswith(_SYMBOLS):
            symbols = model_last(header.read_text(), root_header.stem)
            header.write_text(symbols.text)
            seen.append(symbols.seen)
            hidden.append(symbols.text)
            instances = symbols.instances
        elif header != root_header:
            seen.append(header.read_text())
    rest = digest(seen)
    return Dependence(rest, digest([rest, *hidden]), _keys(layout, wanted), instances, repeated)


def _saved(memory: Path) -> list[str]:
    """Nothing where there is no such file, or it is damaged: that costs time, nothing else."""
    try:
        return [str(line) for line in json.loads(memory.read_text())]
    except (OSError, ValueError, TypeError):
        return []
