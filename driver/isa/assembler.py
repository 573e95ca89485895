# SPDX-License-Identifier: Apache-2.0
"""From a Python function to a vector program: expressions become instructions on few registers.

    @family.program("alpha·src1 + src2", sources=2, imms=("alpha",))
    def axpy(p: Assembler) -> Value:
        return p.fma(p.imm(0), p.src1, p.src2)

Equal expressions are computed once, unused ones not at all. The meaning of an
instruction is in docs/numerics.md, not here. A function of several results returns a tuple.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

from driver.isa.allocation import Allocation, Node, ProgramError, Value
from driver.isa.micro import (
    IMMEDIATES,
    MAX_RESULTS,
    MAX_SOURCES,
    MICRO_INFO,
    OPERAND_CONST,
    OPERAND_IMM,
    OPERAND_INDEX,
    OPERAND_SRC,
    Instruction,
    MicroOp,
    Reduce,
    VectorProgram,
)
from driver.isa.tables import TABLE_NUMBER, TABLES


def float_bits(value: float) -> int:
    """Bits of the fp32 number nearest to `value`."""
    (word,) = struct.unpack("<I", struct.pack("<f", value))
    return int(word)


__all__ = [
    "Assembler",
    "Body",
    "Declaration",
    "Family",
    "ProgramError",
    "Value",
    "assembled",
    "float_bits",
    "vector_program",
]


class Assembler:
    """What a program's function builds its expression with. Operands and results are Values."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._known: dict[Node, Value] = {}
        self._segment: Node | None = None

    # ------------------------------------------------------------------ operands
    def src(self, number: int) -> Value:
        """Source 0 to 3: the element, widened to 32 bits."""
        if not 0 <= number < MAX_SOURCES:
            raise ProgramError(f"source {number}: expected 0 to {MAX_SOURCES - 1}")
        return Value(-1, OPERAND_SRC + number)

    @property
    def src1(self) -> Value:
        """The first source's element."""
        return self.src(0)

    @property
    def src2(self) -> Value:
        """The second source's element."""
        return self.src(1)

    @property
    def src3(self) -> Value:
        """The third source's element."""
        return self.src(2)

    @property
    def src4(self) -> Value:
        """The fourth source's element; it needs an operand list."""
        return self.src(3)

    @property
    def index(self) -> Value:
        """Position in the innermost dimension, an int32."""
        return Value(-1, OPERAND_INDEX)

    def imm(self, number: int) -> Value:
        """A word of the packet: imm0 to imm5; those past imm3 need an operand list."""
        if not 0 <= number < IMMEDIATES:
            raise ProgramError(f"immediate {number}: expected 0 to {IMMEDIATES - 1}")
        return Value(-1, OPERAND_IMM + number)

    def f(self, value: float) -> Value:
        """An fp32 constant: the nearest to `value`."""
        return self.word(float_bits(value))

    def word(self, bits: int) -> Value:
        """A constant of these 32 bits; negative numbers in two's complement."""
        return Value(-1, OPERAND_CONST, bits & 0xFFFF_FFFF)

    # ------------------------------------------------------------------ instructions
    def op(self, op: MicroOp, *operands: Value) -> Value:
        """The result of any instruction."""
        count = MICRO_INFO[op].operands
        if len(operands) != count:
            raise ProgramError(f"{op.name} of {len(operands)} operands, expected {count}")
        if op is MicroOp.SEGMENT:
            raise ProgramError("SEGMENT without a table: expected a call of segment")
        return self._value(Node(op, operands))

    def _value(self, node: Node) -> Value:
        if node not in self._known:
            self._known[node] = Value(len(self._nodes))
            self._nodes.append(node)
        return self._known[node]

    def segment(self, a: Value, table: str) -> Value:
        """|a|, at most the table's end. `column` then reads the element's row of the table."""
        if table not in TABLE_NUMBER:
            raise ProgramError(f"table {table}: expected one of {', '.join(TABLE_NUMBER)}")
        node = Node(MicroOp.SEGMENT, (a,), TABLE_NUMBER[table])
        if node != self._segment:  # one before another SEGMENT does not serve any more
            self._known.pop(node, None)
        self._segment = node
        return self._value(node)

    def column(self, segment: Value, number: int) -> Value:
        """A column of the row that `segment`, of the method of that name, found.

        An instruction reads at most one, before the next SEGMENT.
        """
        node = self._nodes[segment.node] if segment.in_register else None
        if node is None or node.op is not MicroOp.SEGMENT:
            raise ProgramError(f"column {number} of what is no segment")
        count = TABLES[node.table].columns
        if not 0 <= number < count:
            raise ProgramError(f"column {number}: expected 0 to {count - 1}")
        return Value(segment.node, column=number)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a·b + c, one rounding."""
        return self.op(MicroOp.FMA, a, b, c)

    def mul(self, a: Value, b: Value) -> Value:
        """a·b: adding −0 changes nothing."""
        return self.fma(a, b, self.word(0x8000_0000))

    def add(self, a: Value, b: Value) -> Value:
        """a + b as fp32."""
        return self.fma(a, self.f(1.0), b)

    def sub(self, a: Value, b: Value) -> Value:
        """a − b as fp32."""
        return self.fma(b, self.f(-1.0), a)

    def neg(self, a: Value) -> Value:
        """a with its sign bit inverted, NaN included."""
        return self.op(MicroOp.XOR, a, self.word(0x8000_0000))

    def abs(self, a: Value) -> Value:
        """a with its sign bit cleared, NaN included."""
        return self.op(MicroOp.AND, a, self.word(0x7FFF_FFFF))

    def div(self, a: Value, b: Value) -> Value:
        """a ÷ b, correctly rounded."""
        return self.op(MicroOp.DIV, a, b)

    def sqrt(self, a: Value) -> Value:
        """√a, correctly rounded."""
        return self.op(MicroOp.SQRT, a)

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """`then` where the condition has a bit set, else `otherwise`."""
        return self.op(MicroOp.SEL, condition, then, otherwise)

    def horner(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Polynomial in x by Horner's rule, highest power first."""
        value = self.f(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.fma(value, x, self.f(coefficient))
        return value

    # ------------------------------------------------------------------ assembly
    def assemble(self, *results: Value) -> tuple[tuple[Instruction, ...], tuple[int, ...]]:
        """The instructions that compute `results`, and their constants. Registers of dead values
        are used again. ProgramError beyond the limits of a program.
        """
        numbers: dict[int, list[int]] = {}
        for number, result in enumerate(results):
            numbers.setdefault(self._computed(result), []).append(number)
        allocation = Allocation(self._nodes, numbers)
        return allocation.code, allocation.constants

    def _computed(self, result: Value) -> int:
        """The node of a result; an operand as it stands is moved."""
        if result.in_register:
            return result.node
        self._nodes.append(Node(MicroOp.MOV, (result,)))
        return len(self._nodes) - 1


Body = Callable[[Assembler], "Value | tuple[Value, ...]"]


@dataclass(frozen=True)
class Declaration:
    """A program as its file states it."""

    name: str
    body: Body
    text: str
    sources: int
    imms: tuple[str, ...]
    reduce: Reduce


class Family:
    """The programs of one file, in the order of their declaration."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.declared: list[Declaration] = []

    def program(
        self, text: str, *, sources: int, imms: tuple[str, ...] = (), reduce: Reduce = Reduce.NONE
    ) -> Callable[[Body], Body]:
        """Declare the decorated function as a program of its name (less a trailing underscore)."""

        def declare(body: Body) -> Body:
            self.add(
                body.__name__.rstrip("_"), body, text, sources=sources, imms=imms, reduce=reduce
            )
            return body

        return declare

    def add(
        self,
        name: str,
        body: Body,
        text: str,
        *,
        sources: int,
        imms: tuple[str, ...] = (),
        reduce: Reduce = Reduce.NONE,
    ) -> None:
        """Declare a program."""
        self.declared.append(Declaration(name, body, text, sources, imms, reduce))


def assembled(declaration: Declaration, family: str = "") -> VectorProgram:
    """The program of a declaration. ProgramError, which names it, when it is none."""
    try:
        return _assembled(declaration, family)
    except ProgramError as error:
        raise ProgramError(f"vector program {declaration.name}: {error}") from None


@overload
def vector_program(
    body: Body, /, *, sources: int, imms: tuple[str, ...] = (), reduce: Reduce = Reduce.NONE,
    text: str = "",
) -> VectorProgram: ...  # fmt: skip


@overload
def vector_program(
    *, sources: int, imms: tuple[str, ...] = (), reduce: Reduce = Reduce.NONE, text: str = ""
) -> Callable[[Body], VectorProgram]: ...


def vector_program(
    body: Body | None = None,
    /,
    *,
    sources: int,
    imms: tuple[str, ...] = (),
    reduce: Reduce = Reduce.NONE,
    text: str = "",
) -> VectorProgram | Callable[[Body], VectorProgram]:
    """A function as a program that a device can load: no generated file knows of it.

        @vector_program(sources=2, imms=("alpha",))
        def axpy(p: Assembler) -> Value:
            return p.fma(p.imm(0), p.src1, p.src2)

    Args:
        body: the function, where this is not used as a decorator.
        sources: how many it reads: src1, src2, …, at most four.
        imms: what imm0, imm1, … mean, at most six.
        reduce: how a row of results becomes one element.
        text: what it computes, for listings.

    Raises:
        ProgramError: it names the program and the limit that is exceeded.
    """

    def made(function: Body) -> VectorProgram:
        return assembled(Declaration(function.__name__, function, text, sources, imms, reduce))

    return made if body is None else made(body)


def _assembled(declared: Declaration, family: str) -> VectorProgram:
    assembler = Assembler()
    body = declared.body(assembler)
    results = body if isinstance(body, tuple) else (body,)
    if not 1 <= len(results) <= (MAX_RESULTS if declared.reduce is Reduce.NONE else 1):
        raise ProgramError(f"{len(results)} results; 1 to {MAX_RESULTS} fit, 1 of a reduction")
    if declared.reduce is not Reduce.NONE and not declared.sources:
        raise ProgramError("a reduction without a source has no rows")
    code, constants = assembler.assemble(*results)
    used = {operand for line in code for operand in line.operands}
    for number in range(MAX_SOURCES):
        if OPERAND_SRC + number in used and number >= declared.sources:
            raise ProgramError(f"reads src{number + 1} of {declared.sources} sources")
    for number in range(IMMEDIATES):
        if OPERAND_IMM + number in used and number >= len(declared.imms):
            raise ProgramError(f"reads imm{number}, which has no name")
    return VectorProgram(
        declared.name, family, declared.text, declared.sources, declared.imms, declared.reduce,
        code, constants, len(results),
    )  # fmt: skip
