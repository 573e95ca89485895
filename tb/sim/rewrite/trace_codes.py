# SPDX-License-Identifier: Apache-2.0
"""Keeps the numbers by which the model knows its traced signals, so that an edit moves none.

Verilator counts them in the order in which they may change: one signal more gives others to all
behind it, in every file that writes waves. Here a signal has the number of the build before, by
its path; a new one has one of its own, behind all others. Compiles nothing.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tb.sim.plan import ROOT
from tb.sim.rewrite.trace_text import NUMBER, TraceFunction, parts

_FIRST = f"{ROOT}__trace_init_top"
_PUSH = re.compile(r'VL_TRACE_PUSH_PREFIX\(tracep, "([^"]*)"')
_POP = "VL_TRACE_POP_PREFIX(tracep);"
_SIGNAL = re.compile(
    r'VL_TRACE_DECL_(?P<kind>\w+)\(tracep, c\+(?P<code>\d+)[^,]*, \d+, "(?P<name>[^"]*)"'
    r"[^;]*?(?:, (?P<left>\d+), (?P<right>\d+))?\);"
)
_TYPED = re.compile(
    r'\w+__trace_init_dtype\w*\(vlSelf, tracep, "(?P<name>[^"]*)", \d+, c\+(?P<code>\d+),'
)
_SCALARS = ("BIT", "BUS", "QUAD", "WIDE")
_WORD_BITS = 32
_DEAD_PART = 2
"""With more numbers unused than one in so many, the count begins anew."""


@dataclass(frozen=True)
class _Block:
    """The numbers of one signal, a word each."""

    first: int
    words: int
    """0: unknown, as of the last one, if its type does not say it."""
    paths: tuple[str, ...]
    """A signal that is connected to a port has two."""


def _declared(functions: Mapping[str, TraceFunction]) -> Iterator[tuple[str, int, int]]:
    """Path, number, words if the declaration says them. ValueError: not a declaration."""
    path: list[str] = []
    for line in chain.from_iterable(part.statements for part in parts(functions, _FIRST)):
        if (found := _SIGNAL.search(line)) is not None:
            yield "/".join([*path, found["name"]]), int(found["code"]), _words(found)
        elif (found := _TYPED.match(line)) is not None:
            yield "/".join([*path, found["name"]]), int(found["code"]), 0
        elif (found := _PUSH.match(line)) is not None:
            path.append(found[1])
        elif line == _POP:
            path.pop()
        else:
            raise ValueError(f"no declaration of a signal: {line[:80]}")


def _words(declaration: re.Match[str]) -> int:
    if declaration["kind"] not in _SCALARS:
        return 0
    left, right = (int(declaration[side] or 0) for side in ("left", "right"))
    return abs(left - right) // _WORD_BITS + 1


def _blocks(functions: Mapping[str, TraceFunction]) -> list[_Block]:
    paths: dict[int, list[str]] = {}
    words: dict[int, int] = {}
    for path, code, said in _declared(functions):
        paths.setdefault(code, []).append(path)
        words[code] = max(words.get(code, 0), said)
    firsts = sorted(paths)
    behind = [*firsts[1:], None]
    return [
        _Block(first, words[first] if end is None else end - first, tuple(paths[first]))
        for first, end in zip(firsts, behind, strict=True)
    ]


class Codes:
    """The new numbers of a model's signals."""

    def __init__(self, functions: Mapping[str, TraceFunction], memory: Path) -> None:
        """`memory` has those of the build before, and is rewritten. ValueError: _declared."""
        blocks = _blocks(functions)
        before = _saved(memory)
        new = _following(before, blocks)
        used = sum(block.words for block in blocks)
        if max(new.values(), default=0) > _DEAD_PART * used:
            new = {block.first: block.first for block in blocks}
            before = {}
        self._firsts = [block.first for block in blocks]
        self._shift = [new[block.first] - block.first for block in blocks]
        kept = {
            path: [new[block.first], block.words]
            for block in blocks
            if block.words
            for path in block.paths
        }
        memory.write_text(json.dumps({**before, **kept}))
        self._ends = [(block.first, new[block.first], block.words) for block in blocks]

    def count(self, counted: int) -> int:
        """How many numbers the model needs room for; `counted` by Verilator, which knows of none
        that is kept. The last signal of a type has all numbers up to that."""
        ends = (to + (words or counted - first) for first, to, words in self._ends)
        return max([counted, *ends])

    def of(self, code: int) -> int:
        """The number instead of Verilator's."""
        return code + self._shift[bisect_right(self._firsts, code) - 1]

    def in_text(self, statement: str, base: int) -> str:
        """A statement of a function that is no type's, with the numbers of its signals; those of
        values are less by `base`."""

        def number(match: re.Match[str]) -> str:
            own = int(match[2]) + (base if match[1] == "oldp+" else 0)
            return f"{match[1]}{self.of(own)}"

        return NUMBER.sub(number, statement)


def _following(before: Mapping[str, list[int]], blocks: list[_Block]) -> dict[int, int]:
    """Verilator's number → the new one."""
    new: dict[int, int] = {}
    taken = set()
    for block in blocks:
        known = (before[path] for path in block.paths if path in before)
        fitting = (first for first, words in known if words == block.words and first not in taken)
        if (first := next(fitting, None)) is not None:
            new[block.first] = first
            taken.add(first)
    free = max((first + words for first, words in before.values()), default=0)
    for block in blocks:
        if block.first not in new:
            new[block.first] = free
            free += block.words
    return new


def _saved(memory: Path) -> dict[str, list[int]]:
    """Nothing where there is no such file, or it is damaged: that costs time, nothing else."""
    try:
        saved = json.loads(memory.read_text()).items()
        return {str(path): [int(first), int(words)] for path, (first, words) in saved}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
