# SPDX-License-Identifier: Apache-2.0
"""Longest paths of a flat word-level netlist, in levels of two-input gates.

A figure of order, not of time: no wires, no placement, no retiming. A multiply-add that is written
as one expression with registers behind it counts as one path, although synthesis will move the
registers into it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from driver.errors import InfrastructureError
from driver.synthesis import LogicPath
from tb.netlist.flat import FlatCell, FlatNetlist

REGISTERS = frozenset(("$dff", "$dffe", "$sdff", "$sdffe", "$sdffce", "$dlatch", "$memwr_v2"))
"""Cells at whose inputs a path ends."""
_SOURCES = REGISTERS | {"$meminit", "$meminit_v2"}


def _one_level(_: FlatCell) -> int:
    return 1


def _log2(width: int) -> int:
    return math.ceil(math.log2(width)) if width > 1 else 0


def _wide(cell: FlatCell) -> int:
    return max(cell.width("A"), cell.width("B"), 1)


_LEVELS: dict[str, Callable[[FlatCell], int]] = {
    **dict.fromkeys(("$buf", "$pos", "$slice", "$concat"), lambda cell: 0),
    **dict.fromkeys(("$add", "$sub", "$neg", "$alu"), lambda cell: 2 + _log2(_wide(cell))),
    **dict.fromkeys(("$lt", "$le", "$gt", "$ge"), lambda cell: 2 + _log2(_wide(cell))),
    **dict.fromkeys(("$eq", "$ne", "$eqx", "$nex"), lambda cell: 1 + _log2(_wide(cell))),
    **dict.fromkeys(
        ("$logic_not", "$reduce_or", "$reduce_and", "$reduce_bool", "$reduce_xor", "$reduce_xnor"),
        lambda cell: max(1, _log2(cell.width("A"))),
    ),
    **dict.fromkeys(("$logic_and", "$logic_or"), lambda cell: 1 + _log2(_wide(cell))),
    **dict.fromkeys(
        ("$shl", "$shr", "$sshl", "$sshr", "$shift", "$shiftx"),
        lambda cell: max(1, min(cell.width("B"), 1 + _log2(cell.width("A")))),
    ),
    "$mul": lambda cell: 2 + 2 * _log2(_wide(cell)),
    "$pmux": lambda cell: 1 + _log2(cell.width("S")),
    "$bmux": lambda cell: cell.width("S"),
    "$memrd_v2": lambda cell: cell.width("ADDR"),
    "$memrd": lambda cell: cell.width("ADDR"),
}
"""Kind of cell → its levels: adders and comparisons with a carry tree, multipliers with a tree of
carry-save adders, shifters of one multiplexer per bit of the distance. All others have one."""


@dataclass(frozen=True)
class PathEnd:
    """Where the longest path to a register, a memory or an output pin ends."""

    levels: int
    last: str
    """The cell that feeds it."""
    name: str
    """Of the register, the memory or the pin."""
    block: str


@dataclass(frozen=True)
class Depths:
    """The longest path to every cell of a netlist, and those to its ends."""

    levels: dict[str, int]
    before: dict[str, str]
    """Cell → the cell before it on its longest path; "" for none."""
    ends: tuple[PathEnd, ...]


def depths(netlist: FlatNetlist) -> Depths:
    """InfrastructureError for a loop of logic."""
    before: dict[str, str] = {}
    levels: dict[str, int] = {}
    driver = netlist.driver
    for name in _in_order(netlist):
        cell = netlist.cells[name]
        best, source = 0, ""
        for bit in cell.inputs():
            feeding = driver.get(bit)
            if feeding is not None and levels.get(feeding, 0) >= best:
                best, source = levels.get(feeding, 0), feeding
        before[name] = source
        own = 0 if cell.kind in _SOURCES else _LEVELS.get(cell.kind, _one_level)(cell)
        levels[name] = best + own
    registers = (
        (netlist.register_name(name), cell.block, list(cell.inputs()))
        for name, cell in netlist.cells.items()
        if cell.kind in REGISTERS
    )
    pins = ((name, "", bits) for name, bits in netlist.output_pins.items())
    ends = []
    for name, block, bits in (*registers, *pins):
        reached = [(levels.get(driver[bit], 0), driver[bit]) for bit in bits if bit in driver]
        if reached:
            ends.append(PathEnd(*max(reached), name, block))
    return Depths(levels, before, tuple(ends))


def longest_paths(netlist: FlatNetlist, found: Depths, count: int = 10) -> tuple[LogicPath, ...]:
    """The `count` longest, each with another end."""
    paths: dict[str, LogicPath] = {}
    for end in sorted(found.ends, key=lambda end: (-end.levels, end.name)):
        if end.name not in paths:
            paths[end.name] = _path(netlist, found, end)
        if len(paths) == count:
            break
    return tuple(paths.values())


def _in_order(netlist: FlatNetlist) -> Iterator[str]:
    """Cells so that each comes after what feeds it; registers first."""
    waiting: dict[str, int] = {}
    feeds: dict[str, list[str]] = defaultdict(list)
    ready: list[str] = []
    for name, cell in netlist.cells.items():
        if cell.kind in _SOURCES:
            yield name
            continue
        drivers = {netlist.driver[bit] for bit in cell.inputs() if bit in netlist.driver}
        logic = [d for d in drivers if netlist.cells[d].kind not in _SOURCES]
        waiting[name] = len(logic)
        for one in logic:
            feeds[one].append(name)
        if not logic:
            ready.append(name)
    done = 0
    while ready:
        name = ready.pop()
        done += 1
        yield name
        for after in feeds[name]:
            waiting[after] -= 1
            if waiting[after] == 0:
                ready.append(after)
    if done != len(waiting):
        stuck = next(name for name, left in waiting.items() if left)
        raise InfrastructureError(f"netlist: a loop of logic, for example through {stuck}")


def _path(netlist: FlatNetlist, found: Depths, end: PathEnd) -> LogicPath:
    cells = [end.last]
    while netlist.cells[cells[-1]].kind not in _SOURCES and found.before[cells[-1]]:
        cells.append(found.before[cells[-1]])
    cells.reverse()
    spent: dict[str, int] = {}
    for number, name in enumerate(cells):
        earlier = found.levels[cells[number - 1]] if number else 0
        if netlist.cells[name].kind not in _SOURCES:
            block = netlist.cells[name].block
            spent[block] = spent.get(block, 0) + found.levels[name] - earlier
    first = netlist.cells[cells[0]]
    held = first.kind in _SOURCES or first.kind.startswith("$memrd")
    return LogicPath(
        levels=end.levels,
        start=netlist.register_name(cells[0]) if held else "pins",
        end=end.name,
        by_block=tuple((block or "top", count) for block, count in spent.items() if count),
    )
