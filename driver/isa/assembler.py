# SPDX-License-Identifier: Apache-2.0
"""From a Python function to a vector program: expressions become instructions on few registers.

    @family.program("alpha·src1 + src2", sources=2, imms=("alpha",))
    def axpy(p: Assembler) -> Value:
        return p.fma(p.imm(0), p.src1, p.src2)

Equal expressions are computed once, unused ones not at all. The meaning of an
instruction is in docs/numerics.md, not here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from driver.isa.micro import (
    CONSTANTS,
    DST_OUT,
    IMMEDIATES,
    MAX_INSTRUCTIONS,
    MAX_SOURCES,
    MICRO_INFO,
    OPERAND_CONST,
    OPERAND_IMM,
    OPERAND_INDEX,
    OPERAND_SRC,
    REGISTERS,
    Instruction,
    MicroOp,
    Reduce,
    VectorProgram,
)


@dataclass(frozen=True)
class Value:
    """An operand: a result of this program, or (`node` negative) an operand code as it stands."""

    node: int
    code: int = 0


class Constants:
    """The words that all programs share, in order of first use."""

    def __init__(self) -> None:
        self._words: dict[int, int] = {}

    def code(self, word: int) -> int:
        """Operand code of a 32-bit word."""
        at = self._words.setdefault(word, len(self._words))
        assert at < CONSTANTS, f"more than {CONSTANTS} constants"
        return OPERAND_CONST + at

    @property
    def words(self) -> tuple[int, ...]:
        """The table."""
        return tuple(self._words)


def float_bits(value: float) -> int:
    """Bits of the fp32 number nearest to `value`."""
    (word,) = struct.unpack("<I", struct.pack("<f", value))
    return int(word)


@dataclass(frozen=True)
class _Node:
    op: MicroOp
    operands: tuple[Value, ...]


class Assembler:
    """What a program's function builds its expression with. Operands and results are Values."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._nodes: list[_Node] = []
        self._known: dict[_Node, Value] = {}

    # ------------------------------------------------------------------ operands
    def src(self, number: int) -> Value:
        """Source 0, 1 or 2: the element, widened to 32 bits."""
        assert 0 <= number < MAX_SOURCES
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
    def index(self) -> Value:
        """Position in the innermost dimension, an int32."""
        return Value(-1, OPERAND_INDEX)

    def imm(self, number: int) -> Value:
        """A word of the packet: imm0 to imm3."""
        assert 0 <= number < IMMEDIATES
        return Value(-1, OPERAND_IMM + number)

    def f(self, value: float) -> Value:
        """An fp32 constant: the nearest to `value`."""
        return self.word(float_bits(value))

    def word(self, bits: int) -> Value:
        """A constant of these 32 bits; negative numbers in two's complement."""
        return Value(-1, self._constants.code(bits & 0xFFFF_FFFF))

    # ------------------------------------------------------------------ instructions
    def op(self, op: MicroOp, *operands: Value) -> Value:
        """The result of any instruction."""
        assert len(operands) == MICRO_INFO[op].operands, f"{op.name} has {len(operands)} operands"
        node = _Node(op, operands)
        if node not in self._known:
            self._known[node] = Value(len(self._nodes))
            self._nodes.append(node)
        return self._known[node]

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
    def assemble(self, result: Value) -> tuple[Instruction, ...]:
        """The instructions that compute `result`; registers of dead values are used again."""
        if result.node < 0:
            result = self.op(MicroOp.MOV, result)
        live = self._needed(result)
        last_use = {
            operand.node: at for at in live for operand in self._nodes[at].operands
        }  # later uses overwrite earlier ones
        free = list(range(REGISTERS))[::-1]
        register: dict[int, int] = {}
        code = []
        for at in live:
            node = self._nodes[at]
            operands = [
                operand.code if operand.node < 0 else register[operand.node]
                for operand in node.operands
            ]
            for operand in {o.node for o in node.operands if o.node >= 0}:
                if last_use[operand] == at:
                    free.append(register[operand])
            if at == result.node:
                dst = DST_OUT
            else:
                assert free, f"a program needs more than {REGISTERS} registers"
                dst = register[at] = free.pop()
            code.append(Instruction(node.op, dst, *operands))
        return tuple(code)

    def _needed(self, result: Value) -> list[int]:
        """Nodes that the result depends on, itself last."""
        needed = {result.node}
        for at in range(result.node, -1, -1):
            if at in needed:
                needed |= {o.node for o in self._nodes[at].operands if o.node >= 0}
        return sorted(needed)


Body = Callable[[Assembler], Value]


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


class Catalogue:
    """All programs, assembled. Numbers follow the order of families, and of declaration within."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._constants = Constants()
        self.programs: dict[str, VectorProgram] = {}
        for family in families:
            for declaration in family.declared:
                self._assemble(family.name, declaration)

    @property
    def constants(self) -> tuple[int, ...]:
        """The words of the constant table."""
        return self._constants.words

    def _assemble(self, family: str, program: Declaration) -> None:
        name = program.name
        assert name not in self.programs, f"two programs named {name}"
        assembler = Assembler(self._constants)
        code = assembler.assemble(program.body(assembler))
        assert len(code) <= MAX_INSTRUCTIONS, f"{name} has {len(code)} instructions"
        used = {operand for line in code for operand in (line.a, line.b, line.c)}
        for number in range(MAX_SOURCES):
            reads = OPERAND_SRC + number in used
            assert not reads or number < program.sources, f"{name} reads src{number + 1}"
        for number in range(IMMEDIATES):
            known = number < len(program.imms)
            assert OPERAND_IMM + number not in used or known, f"{name}: imm{number}"
        self.programs[name] = VectorProgram(
            len(self.programs), name, family, program.text, program.sources, program.imms,
            program.reduce, code,
        )  # fmt: skip
