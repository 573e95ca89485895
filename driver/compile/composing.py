# SPDX-License-Identifier: Apache-2.0
"""The programs of several passes as one, with the roundings that memory between them made.

What goes from one pass to the next was stored in a type and loaded again. docs/numerics.md says
what that does to a word; the fused program does it by instructions, so its bits are those of the
passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice

from driver.compile.passes import PatchedConstant, VectorPass
from driver.compile.tracing import (
    DataFlow,
    External,
    Forwarded,
    NotFusable,
    Origin,
    Patched,
)
from driver.isa import DType
from driver.isa.allocation import ProgramError
from driver.isa.assembler import Assembler, Declaration, Value, assembled
from driver.isa.image import OWN_LINES, lines_of
from driver.isa.micro import (
    DST_RESULT,
    IMMEDIATES,
    OPERAND_CONST,
    OPERAND_IMM,
    OPERAND_INDEX,
    OPERAND_SRC,
    OPERAND_TABLE,
    REGISTERS,
    MicroOp,
    VectorProgram,
)
from driver.isa.tables import TABLES
from driver.runtime.views import TensorView

_STAND_INS = 0x7FA0_0000
"""From here on the words are NaNs, which no program has for a constant."""
_TRUTHS = frozenset((MicroOp.FLT, MicroOp.FLE, MicroOp.FEQ, MicroOp.ILT, MicroOp.IEQ))
"""Instructions that give 0 or 1, which a byte holds."""
_ROUND = {"fp16": MicroOp.ROUND_FP16, "bf16": MicroOp.ROUND_BF16}


def composed(
    passes: Sequence[VectorPass], flow: DataFlow, results: Sequence[TensorView]
) -> VectorPass:
    """The pass that stores `results`. The first six of the packets' immediates stay immediates,
    further ones become constants. NotFusable beyond the limits of a program."""
    composer = _Composer(passes, flow)
    try:
        program = assembled(
            Declaration(
                name="+".join(one.program.name for one in passes),
                body=composer.body,
                text="one pass of several",
                sources=len(flow.sources),
                imms=tuple(f"imm{number}" for number in range(len(composer.imms))),
                reduce=passes[-1].program.reduce,
            )
        )
    except ProgramError as error:
        raise NotFusable(str(error)) from None
    if flow.words and lines_of(program) > OWN_LINES:
        raise NotFusable(f"{lines_of(program)} lines with constants that the device computes")
    words = tuple(
        PatchedConstant(program.constants.index(stand_in), view)
        for stand_in, view in zip(composer.stand_ins, flow.words, strict=True)
        if stand_in in program.constants
    )
    sources, imms = tuple(flow.sources), tuple(composer.imms)
    return VectorPass(program, sources, tuple(results), imms, words)


class _Composer:
    """Emits one program after the other into an assembler."""

    def __init__(self, passes: Sequence[VectorPass], flow: DataFlow) -> None:
        self._passes = passes
        self._flow = flow
        self.imms = list(islice((imm for one in passes for imm in one.imms), IMMEDIATES))
        used = {word for one in passes for word in (*one.program.constants, *one.imms)}
        free = (word for word in count(_STAND_INS) if word not in used)
        self.stand_ins = tuple(islice(free, len(flow.words)))
        """What the assembler has for patched constants, unlike any other constant."""

    def body(self, p: Assembler) -> tuple[Value, ...]:
        """The function of the fused program."""
        emitted = _Emitted(p)
        results: list[tuple[Value, ...]] = []
        imms = self._immediates(p)
        for one, operands in zip(self._passes, self._flow.operands, strict=True):
            sources = [self._operand(emitted, operand, results) for operand in operands]
            own = list(islice(imms, len(one.imms)))
            results.append(emitted.inline(one.program, sources, own))
        return tuple(results[origin.at][origin.result] for origin, _ in self._flow.stored)

    def _immediates(self, p: Assembler) -> Iterator[Value]:
        """In the order of the passes: immediates as long as there are any, then constants."""
        words = [imm for one in self._passes for imm in one.imms]
        for number, word in enumerate(words):
            yield p.imm(number) if number < IMMEDIATES else p.word(word)

    def _operand(
        self,
        emitted: _Emitted,
        operand: Origin,
        results: Sequence[tuple[Value, ...]],
    ) -> Value:
        if isinstance(operand, External):
            return emitted.source(operand.number, self._flow.sources[operand.number].dtype)
        if isinstance(operand, Patched):
            return emitted.word(self.stand_ins[operand.number])
        value = results[operand.origin.at][operand.origin.result]
        return emitted.stored_and_loaded(value, operand)


class _Emitted:
    """An assembler, and which of its values a type holds without a change."""

    def __init__(self, p: Assembler) -> None:
        self._p = p
        self._held: set[tuple[Value, str]] = set()

    def source(self, number: int, dtype: DType) -> Value:
        """A source of the fused pass; its type holds what was loaded from it."""
        value = self._p.src(number)
        if dtype in (DType.FP16, DType.BF16):
            self._held.add((value, dtype.name.lower()))
        elif dtype in (DType.INT8, DType.UINT8):
            self._held.add((value, dtype.name))
        return value

    def word(self, bits: int) -> Value:
        """A constant."""
        return self._p.word(bits)

    def stored_and_loaded(self, value: Value, through: Forwarded) -> Value:
        """What a load gives after the value was stored."""
        p, part = self._p, through.part
        if part == "word":
            return value
        if part == "sign":
            return p.op(MicroOp.SRA, value, p.word(31))
        kind = through.dtype.name if part == "byte" else part
        if (value, kind) in self._held:
            return value
        if part != "byte":
            loaded = p.op(_ROUND[part], value)
        elif through.dtype is DType.UINT8:
            loaded = p.op(MicroOp.AND, value, p.word(0xFF))
        else:
            shift = p.word(24)
            loaded = p.op(MicroOp.SRA, p.op(MicroOp.SHL, value, shift), shift)
        self._held.add((loaded, kind))
        return loaded

    def inline(
        self, program: VectorProgram, sources: Sequence[Value], imms: Sequence[Value]
    ) -> tuple[Value, ...]:
        """The results of a program, each register replaced by the value that it holds."""
        p = self._p
        held: dict[int, Value] = {OPERAND_INDEX: p.index}
        held |= {OPERAND_SRC + number: value for number, value in enumerate(sources)}
        held |= {OPERAND_IMM + number: value for number, value in enumerate(imms)}
        held |= {OPERAND_CONST + at: p.word(word) for at, word in enumerate(program.constants)}
        results: dict[int, Value] = {}
        for line in program.code:
            operands = [held[code] for code in line.operands]
            if line.op is MicroOp.SEGMENT:
                table = TABLES[line.b]
                value = p.segment(operands[0], table.name)
                held |= {OPERAND_TABLE + at: p.column(value, at) for at in range(table.columns)}
            elif line.op is MicroOp.MOV and operands[0].column is None:
                value = operands[0]
            else:
                value = p.op(line.op, *operands)
            written = held if line.dst < REGISTERS else results
            written[line.dst] = value
            if line.op in _TRUTHS:
                self._held |= {(value, DType.INT8.name), (value, DType.UINT8.name)}
        return tuple(results[DST_RESULT + number] for number in range(program.results))
