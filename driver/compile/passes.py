# SPDX-License-Identifier: Apache-2.0
"""Commands as the compiler sees them: passes, products and copies as views, the rest opaque."""

from __future__ import annotations

from dataclasses import dataclass

from driver.isa import Packet
from driver.isa.micro import VectorProgram
from driver.runtime.buffer import Buffer
from driver.runtime.views import TensorView


@dataclass(frozen=True)
class PatchedConstant:
    """A constant of a program whose word is in device memory when the program is loaded."""

    number: int
    """Among the program's constants."""
    view: TensorView
    """The word, FP32 or INT32, repeated over the pass."""


@dataclass(frozen=True)
class VectorPass:
    """One VECTOR command: a program over operands of equal rank and sizes.

    The result of a program that reduces has size 1 in the innermost dimension.
    """

    program: VectorProgram
    sources: tuple[TensorView, ...]
    results: tuple[TensorView, ...]
    imms: tuple[int, ...]
    """32-bit words, one per immediate that the program names."""
    words: tuple[PatchedConstant, ...] = ()
    """Constants of the program that the device itself computes before the pass."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Elements per dimension of what the pass walks."""
        return (*self.sources, *self.results)[0].sizes

    @property
    def reads(self) -> frozenset[Buffer]:
        """Buffers that it reads."""
        return frozenset(view.buffer for view in (*self.sources, *(w.view for w in self.words)))

    @property
    def writes(self) -> frozenset[Buffer]:
        """Buffers that it writes."""
        return frozenset(view.buffer for view in self.results)

    @property
    def buffers(self) -> frozenset[Buffer]:
        """Buffers that it reads or writes."""
        return self.reads | self.writes


@dataclass(frozen=True)
class MatrixProduct:
    """One MATMUL: result = a·b, plus `start` or what the result holds."""

    a: TensorView
    """[batch, M, K]"""
    b: TensorView
    """[batch, K, N]"""
    start: TensorView | None
    result: TensorView
    """[batch, M, N], as `start`."""
    accumulates: bool
    """Onto the result."""

    @property
    def sources(self) -> tuple[TensorView, ...]:
        """What it reads."""
        started = () if self.start is None else (self.start,)
        return (self.a, self.b, *started, *((self.result,) if self.accumulates else ()))

    @property
    def results(self) -> tuple[TensorView, ...]:
        """What it writes."""
        return (self.result,)

    @property
    def buffers(self) -> frozenset[Buffer]:
        """Buffers that it reads or writes."""
        return frozenset(view.buffer for view in (*self.sources, *self.results))


@dataclass(frozen=True)
class ElementCopy:
    """One COPY between views of equal sizes."""

    source: TensorView
    result: TensorView

    @property
    def sources(self) -> tuple[TensorView, ...]:
        """What it reads."""
        return (self.source,)

    @property
    def results(self) -> tuple[TensorView, ...]:
        """What it writes."""
        return (self.result,)

    @property
    def buffers(self) -> frozenset[Buffer]:
        """Buffers that it reads or writes."""
        return frozenset(view.buffer for view in (*self.sources, *self.results))


@dataclass(frozen=True)
class OtherCommand:
    """A command that is not fused: its packet as it stands, and the buffers that it uses."""

    packet: Packet
    """Addresses are offsets into buffers."""
    packet_buffers: tuple[Buffer | None, ...]
    """Of src1, src2, dst and src3; sections for descriptors."""
    reads: frozenset[Buffer]
    writes: frozenset[Buffer]
    listed: tuple[TensorView, ...] = ()
    """Operands of a VECTOR with an operand list whose program the op itself loads."""
    work: MatrixProduct | ElementCopy | None = None
    """The same as views, where there are such."""

    @property
    def buffers(self) -> frozenset[Buffer]:
        """All that its addresses name, and what is behind descriptors."""
        named = frozenset(buffer for buffer in self.packet_buffers if buffer is not None)
        return named | self.reads | self.writes


Command = VectorPass | OtherCommand
CutCommand = VectorPass | MatrixProduct | ElementCopy
"""A part of a command, on parts of its views."""
AnyCommand = Command | CutCommand
