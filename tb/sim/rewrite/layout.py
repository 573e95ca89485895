# SPDX-License-Identifier: Apache-2.0
"""Keeps the members of the generated model where they were, so that an edit moves none of them.

Verilator sorts the model's variables: one more shifts all behind it, and every object with their
offsets is stale. Here the order of the build before is kept, in a file beside the generated C++:
what is new goes to the end, what has gone leaves its place. A file of C++ then depends only on the
members that it names, and on all before them. Knows Verilator's header, compiles nothing.
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
_OTHER_STATE = re.compile(r"vlSymsp->(?!_vm_contextp__|name\(|__Vm_)")
"""What lies behind the model's variables, or is reached past them."""
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
class Dependence:
    """What a file of C++ depends on besides its own text."""

    rest: str
    """Hash of the headers without the members."""
    whole: str
    members: dict[str, tuple[int, str]]
    repeated: frozenset[str] = frozenset()
    """Members of which the hashes do not say which of two places they have."""

    def of(self, file: Path) -> str:
        """The hash for a file. One that only holds functions of the model depends on the members
        that it names; every other one, as that of the constructor, on all of them."""
        text = file.read_text()
        if not (self.members and _FUNCTIONS.search(file.name)) or _OTHER_STATE.search(text):
            return self.whole
        used = {word: self.members[word] for word in _WORD.findall(text) if word in self.members}
        places = sorted(f"{name} {used[name][0]}" for name in self.repeated.intersection(used))
        return digest([self.rest, max(used.values())[1] if used else "", *places])


def keep_in_place(root_header: Path, headers: Sequence[Path], memory: Path) -> Dependence:
    """Rewrite the header of the model's class after the layout in `memory`, and save it there."""
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
    others = [path.read_bytes() for path in headers if path != root_header]
    rest = digest([shell, constructors, tail, *others])
    return Dependence(rest, digest([rest, declared]), _keys(layout, wanted), repeated)


def _saved(memory: Path) -> list[str]:
    """Nothing where there is no such file, or it is damaged: that costs time, nothing else."""
    try:
        return [str(line) for line in json.loads(memory.read_text())]
    except (OSError, ValueError, TypeError):
        return []
