# SPDX-License-Identifier: Apache-2.0
"""Registers, constants and results of a vector program: the last step of driver.isa.assembler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from driver.isa.micro import (
    DST_RESULT,
    MAX_CONSTANTS,
    MAX_INSTRUCTIONS,
    OPERAND_CONST,
    OPERAND_TABLE,
    REGISTERS,
    Instruction,
    MicroOp,
)


class ProgramError(ValueError):
    """A function that is no program of the vector engine: what was wrong, and the limit."""


@dataclass(frozen=True)
class Value:
    """An operand: a result of this program, or (`node` negative) what the command brings, by its
    code, or a constant, by its word, or a `column` of the table whose SEGMENT is `node`.
    """

    node: int
    code: int = 0
    word: int | None = None
    column: int | None = None

    @property
    def in_register(self) -> bool:
        """Whether it is a result of this program."""
        return self.node >= 0 and self.column is None


@dataclass(frozen=True)
class Node:
    """One instruction before registers are chosen."""

    op: MicroOp
    operands: tuple[Value, ...]
    table: int = 0
    """The table of a SEGMENT."""


class Allocation:
    """Registers and constants of the nodes that results need, in the order of their numbers.

    A node that is one result and nothing else writes that result; any other result is moved out of
    its register, right behind the instruction that computes it.
    """

    def __init__(self, nodes: Sequence[Node], results: dict[int, list[int]]) -> None:
        """`results`: node → numbers of the results that it is."""
        self._free = list(range(REGISTERS))[::-1]
        self._register: dict[int, int] = {}
        self._constants: dict[int, int] = {}
        self._code: list[Instruction] = []
        self._segment = -1
        live = _needed(nodes, results)
        self._last_use = {
            operand.node: at for at in live for operand in nodes[at].operands if operand.in_register
        }  # later uses overwrite earlier ones
        for at in live:
            self._place(at, nodes[at], results.get(at, []))

    @property
    def code(self) -> tuple[Instruction, ...]:
        """The instructions."""
        if len(self._code) > MAX_INSTRUCTIONS:
            raise ProgramError(f"{len(self._code)} instructions, at most {MAX_INSTRUCTIONS} fit")
        return tuple(self._code)

    @property
    def constants(self) -> tuple[int, ...]:
        """The words, in order of first use."""
        if len(self._constants) > MAX_CONSTANTS:
            raise ProgramError(f"{len(self._constants)} constants, at most {MAX_CONSTANTS} fit")
        return tuple(self._constants)

    def _place(self, at: int, node: Node, results: Sequence[int]) -> None:
        operands = [self._operand(operand) for operand in node.operands]
        if sum(operand.column is not None for operand in node.operands) > 1:
            raise ProgramError(f"{node.op.name} reads two columns of a table, one fits")
        if node.op is MicroOp.SEGMENT:
            self._segment = at
            operands.append(node.table)
        for operand in {o.node for o in node.operands if o.in_register}:
            if self._last_use[operand] == at:
                self._free.append(self._register[operand])
        used = at in self._last_use
        if len(results) == 1 and not used:
            self._code.append(Instruction(node.op, DST_RESULT + results[0], *operands))
            return
        if not self._free:
            raise ProgramError(f"more than {REGISTERS} values are live at once")
        register = self._register[at] = self._free.pop()
        self._code.append(Instruction(node.op, register, *operands))
        self._code += [Instruction(MicroOp.MOV, DST_RESULT + n, register) for n in results]
        if not used:
            self._free.append(register)

    def _operand(self, operand: Value) -> int:
        if operand.word is not None:
            return OPERAND_CONST + self._constants.setdefault(operand.word, len(self._constants))
        if operand.column is not None:
            if operand.node != self._segment:
                raise ProgramError("a column of a table is read behind another SEGMENT")
            return OPERAND_TABLE + operand.column
        return operand.code if operand.node < 0 else self._register[operand.node]


def _needed(nodes: Sequence[Node], results: Iterable[int]) -> list[int]:
    """Nodes that the results depend on, in order."""
    needed = set(results)
    for at in range(len(nodes) - 1, -1, -1):
        if at in needed:
            needed |= {o.node for o in nodes[at].operands if o.node >= 0}
    return sorted(needed)
