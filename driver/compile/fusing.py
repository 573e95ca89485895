# SPDX-License-Identifier: Apache-2.0
"""Commands with as few passes of the vector engine as their bits allow.

Goes through the commands in order. A pass joins an earlier group where that needs no memory in
between, no command between the two minds, one program has room for it, and the estimate of
driver.compile.cost says that it does not cost more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from driver.compile.cost import pass_cost
from driver.compile.merging import FusedGroup, alone, merged
from driver.compile.passes import Command, OtherCommand, VectorPass
from driver.config import HwConfig
from driver.isa import Opcode
from driver.runtime.buffer import Buffer
from driver.runtime.views import TensorView

_WINDOW = 16
"""How many commands back a pass looks for a group to join."""
MOST_COMMANDS = 1024
"""Longer lists stay as they are: what they do in loops is not worth the time of looking."""


def fused(
    commands: Sequence[Command],
    temporaries: frozenset[Buffer],
    hw: HwConfig,
    *,
    reductions_first: bool = False,
) -> list[Command]:
    """Commands that leave the same bits in every buffer but the temporaries, in a valid order.

    `temporaries`: buffers that only these commands use. `reductions_first`: reductions take
    what they reduce before other passes can.
    """
    passes = sum(isinstance(command, VectorPass) for command in commands)
    if passes < 2 or len(commands) > MOST_COMMANDS:
        return list(commands)
    fusing = _Fusing(commands, temporaries, hw)
    return [unit.command for unit in fusing.units(reductions_first=reductions_first)]


@dataclass(frozen=True)
class _Unit:
    """A command of the result, and the places of those that it does in the given list."""

    numbers: frozenset[int]
    group: FusedGroup | None
    other: OtherCommand | None
    reads: frozenset[Buffer]
    writes: frozenset[Buffer]

    @property
    def command(self) -> Command:
        """What runs."""
        if self.group is not None:
            return self.group.fused
        assert self.other is not None
        return self.other

    @property
    def is_product(self) -> bool:
        """Whether it runs on the matrix engine: a pass before it is not put off until it ends."""
        return self.other is not None and self.other.packet.opcode == Opcode.MATMUL

    def minds(self, other: _Unit) -> bool:
        """Whether the order of the two matters."""
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


class _Fusing:
    """One list of commands."""

    def __init__(
        self, commands: Sequence[Command], temporaries: frozenset[Buffer], hw: HwConfig
    ) -> None:
        self._commands = commands
        self._temporaries = temporaries
        self._hw = hw
        self._readers: dict[Buffer, set[int]] = {}
        for number, command in enumerate(commands):
            for buffer in command.reads:
                self._readers.setdefault(buffer, set()).add(number)

    def units(self, *, reductions_first: bool) -> list[_Unit]:
        """All commands, fused."""
        units = [_unit(number, command) for number, command in enumerate(self._commands)]
        if reductions_first:
            units = self._round(units, _reduces)
        return self._round(units, lambda unit: unit.group is not None)

    def _round(self, given: Sequence[_Unit], may_join: Callable[[_Unit], bool]) -> list[_Unit]:
        units: list[_Unit] = []
        for unit in given:
            units.append(unit)
            at: int | None = len(units) - 1
            while at is not None and may_join(units[at]):
                at = self._joined(units, at)
        return units

    def _joined(self, units: list[_Unit], at: int) -> int | None:
        """The new place of the unit at `at` after it has joined an earlier one, else None."""
        unit = units[at]
        if unit.group is None:
            return None
        for place in range(at - 1, max(at - 1 - _WINDOW, -1), -1):
            found = self._merged(units[place], unit, units[place + 1 : at])
            if found is None:
                continue
            group, goes_down = found
            both = units[place].numbers | unit.numbers
            result = _Unit(both, group, None, group.reads, group.writes)
            units[place : at + 1] = (
                [*units[place + 1 : at], result] if goes_down else [result, *units[place + 1 : at]]
            )
            return at - 1 if goes_down else place
        return None

    def _merged(
        self, first: _Unit, second: _Unit, between: Sequence[_Unit]
    ) -> tuple[FusedGroup, bool] | None:
        """The cheapest group of both, and whether it takes the second one's place."""
        assert second.group is not None
        if first.group is None or not second.reads & (first.reads | first.writes):
            return None
        goes_down = not any(first.minds(unit) or unit.is_product for unit in between)
        if not goes_down and any(second.minds(unit) for unit in between):
            return None
        numbers = first.numbers | second.numbers

        def is_read_later(view: TensorView) -> bool:
            if view.buffer not in self._temporaries:
                return True
            others = self._readers.get(view.buffer, set()) - numbers
            return any(number > min(numbers) for number in others)

        limit = pass_cost(first.group.fused, self._hw) + pass_cost(second.group.fused, self._hw)
        best, cost = None, limit
        for group in merged(first.group, second.group, is_read_later):
            new = pass_cost(group.fused, self._hw)
            if new.effort <= cost.effort and new.size_bytes <= cost.size_bytes:
                best, cost = group, new
        return None if best is None else (best, goes_down)


def _reduces(unit: _Unit) -> bool:
    return unit.group is not None and unit.group.reduces


def _unit(number: int, command: Command) -> _Unit:
    numbers = frozenset((number,))
    if isinstance(command, VectorPass):
        return _Unit(numbers, alone(command), None, command.reads, command.writes)
    return _Unit(numbers, None, command, command.reads, command.writes)
