# SPDX-License-Identifier: Apache-2.0
"""Programs of the runtime with fewer passes; several programs as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from driver.compile.arranging import arranged
from driver.compile.decoding import DecodedProgram, SectionContent, vector_commands
from driver.compile.forwarding import forwarded
from driver.compile.fusing import fused
from driver.compile.passes import (
    AnyCommand,
    Command,
    ElementCopy,
    MatrixProduct,
    OtherCommand,
    VectorPass,
)
from driver.config import HwConfig
from driver.isa import DTYPE_BYTES
from driver.isa.image import OWN_LINE, WORD_BYTES, pack
from driver.lower.builder import ProgramBuilder
from driver.lower.operands import MatrixView
from driver.runtime.buffer import Buffer
from driver.runtime.program import Program
from driver.runtime.views import TensorView


def fused_program(program: Program, hw: HwConfig) -> Program:
    """A program that leaves the same bits in the operands, with fewer passes where there can be;
    the program itself where there cannot, or where the configuration says so."""
    if not hw.fusion or vector_commands(program) <= 1:
        return program
    decoded = DecodedProgram(program)
    commands = fused(decoded.commands, decoded.temporaries, hw)
    if len(commands) == len(decoded.commands):
        return program
    return _encoded(program.op, program.operands, commands, decoded.sections, hw)


def joined(
    op: str,
    programs: Sequence[Program],
    temporaries: Iterable[Buffer],
    hw: HwConfig,
    *,
    fuse: bool = True,
) -> Program:
    """Several programs, one after the other, as one; operands that they share are one buffer.

    `temporaries`: operands whose content is of no use afterwards. They become sections, and need
    no memory where a fused pass does not store them.
    """
    parts = _together(programs, temporaries)
    commands = fused(parts.commands, parts.temporaries, hw) if fuse else parts.commands
    return _encoded(op, parts.operands, commands, parts.sections, hw)


def queued(
    op: str, programs: Sequence[Program], temporaries: Iterable[Buffer], hw: HwConfig
) -> Program:
    """As `joined`, with the commands cut and ordered so that the engines wait little for each
    other."""
    parts = _together(programs, temporaries)
    commands: Sequence[Command] = parts.commands
    if hw.fusion:
        commands = forwarded(commands, parts.temporaries)
        commands = fused(commands, parts.temporaries, hw, reductions_first=True)
    ordered, fresh = arranged(commands, parts.temporaries, hw)
    parts.sections.update({buffer: SectionContent("temporary", b"", ()) for buffer in fresh})
    return _encoded(op, parts.operands, ordered, parts.sections, hw)


@dataclass(frozen=True)
class _Parts:
    """Several programs taken apart."""

    commands: list[Command]
    operands: tuple[Buffer, ...]
    sections: dict[Buffer, SectionContent]

    @property
    def temporaries(self) -> frozenset[Buffer]:
        """Buffers that are of no use afterwards."""
        return frozenset(b for b, section in self.sections.items() if section.kind == "temporary")


def _together(programs: Sequence[Program], temporaries: Iterable[Buffer]) -> _Parts:
    decoded = [DecodedProgram(program) for program in programs]
    sections: dict[Buffer, SectionContent] = {}
    for one in decoded:
        sections |= one.sections
    for buffer in temporaries:
        sections[buffer] = SectionContent("temporary", b"", ())
    operands = dict.fromkeys(chain.from_iterable(program.operands for program in programs))
    return _Parts(
        commands=list(chain.from_iterable(one.commands for one in decoded)),
        operands=tuple(buffer for buffer in operands if buffer not in sections),
        sections=sections,
    )


def _encoded(
    op: str,
    operands: Sequence[Buffer],
    commands: Sequence[AnyCommand],
    sections: dict[Buffer, SectionContent],
    hw: HwConfig,
) -> Program:
    """The program of these commands, with those of the sections that they use."""
    builder = ProgramBuilder(op, hw, operands=operands)
    named = {buffer for command in commands for buffer in command.buffers}
    named |= {
        behind for buffer in named if buffer in sections for behind in sections[buffer].described
    }
    for buffer, section in sections.items():
        if buffer in named:
            builder.keep(buffer, section.kind, section.data, section.described)
    for command in commands:
        _add(builder, command)
    return builder.program()


def _add(builder: ProgramBuilder, command: AnyCommand) -> None:
    match command:
        case VectorPass():
            _add_pass(builder, command)
        case ElementCopy():
            builder.copy(command.source, command.result)
        case MatrixProduct():
            a, b, result = (MatrixView(v, 1) for v in (command.a, command.b, command.result))
            start = None if command.start is None else MatrixView(command.start, 1)
            builder.matmul(a, b, result, start=start, accumulate=command.accumulates)
        case OtherCommand():
            builder.packet(command.packet, command.packet_buffers)


def _add_pass(builder: ProgramBuilder, one: VectorPass) -> None:
    """A pass; if the device computes constants of its program, it loads that itself before."""
    if not one.words:
        builder.vector(one.program, one.sources, one.results, *one.imms)
        return
    image = builder.constant(pack(one.program))
    first = (1 + len(one.program.code)) * WORD_BYTES
    for word in one.words:
        where = TensorView(
            image, first + word.number * DTYPE_BYTES[word.view.dtype], word.view.dtype, (1,), (1,)
        )
        builder.copy(replace(word.view, sizes=(1,), strides=(1,)), where)
    builder.load(image, OWN_LINE)
    builder.vector(one.program, one.sources, one.results, *one.imms, line=OWN_LINE)
