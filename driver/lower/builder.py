# SPDX-License-Identifier: Apache-2.0
"""Packets and descriptors for passes, products, copies and gathers of arbitrary views.

An operand goes into the packet directly when it is dense, or when its transpose is; otherwise
through a descriptor. It decides layout only; the lowering rules decide which packets an op needs.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod

from driver.config import HwConfig
from driver.errors import InputError, UnsupportedOp
from driver.isa import DTYPE_BYTES, FLAGS, MATMUL_DTYPES, DType, Opcode, Packet, flag_word
from driver.isa.image import LINE_BYTES
from driver.isa.micro import PLAIN_IMMEDIATES, PLAIN_SOURCES, Reduce, VectorProgram
from driver.isa.programs import LINES, PROGRAMS
from driver.isa.types import INDEX_DTYPES, SCATTER_ADD_DTYPES
from driver.lower.linking import SectionKind, Sections
from driver.lower.long_views import high_words, low_words, split, words
from driver.lower.operands import (
    NO_OPERAND,
    MatrixView,
    OperandEncoder,
    PacketOperand,
    direct,
)
from driver.lower.pieces import pieces
from driver.lower.words import INT32_MAX, INT32_MIN, WORD_LIMIT, element, word
from driver.random_stream import RandomStream
from driver.runtime.buffer import Buffer
from driver.runtime.program import Program
from driver.runtime.vector_programs import placeholder
from driver.runtime.views import TensorView, broadcast, dense

_MAX_PACKETS = 1 << 16


class ProgramBuilder:
    """Collects the packets of one op. Raises UnsupportedOp, which names the op, for
    what packets cannot express.

    `operands`: the buffers of the call; others that packets name follow in order of use.
    `stream`: what a random op draws. `op_number`: what it draws has the address of this buffer,
    an operand without content, for its number; the stream's own is 0 then.
    """

    def __init__(
        self,
        op: str,
        hw: HwConfig,
        stream: RandomStream | None = None,
        operands: Sequence[Buffer] = (),
        op_number: Buffer | None = None,
    ) -> None:
        self.hw = hw
        """The hardware that the program is for."""
        self._op = op
        self._stream = stream
        self._op_number = op_number
        self._packets: list[tuple[Packet, tuple[Buffer | None, ...]]] = []
        self._encoder = OperandEncoder(self.unsupported, self._descriptor)
        self._sections = Sections()
        self._known = list(operands)

    def program(self) -> Program:
        """The program of the collected packets."""
        return self._sections.linked(self._op, self._known, self._packets)

    @property
    def is_empty(self) -> bool:
        """Whether no packet has been added."""
        return not self._packets

    def unsupported(self, field: str, value: object, expected: str) -> UnsupportedOp:
        """The error to raise for this op."""
        return UnsupportedOp(self._op, field, value, expected)

    def temp(self, dtype: DType, sizes: Sequence[int]) -> TensorView:
        """A dense view of fresh memory."""
        size_bytes = max(prod(sizes), 1) * DTYPE_BYTES[dtype]
        return dense(self._sections.add("temporary", size_bytes), dtype, tuple(sizes))

    def _descriptor(self, data: bytes, described: Sequence[Buffer]) -> Buffer:
        return self._sections.add("descriptor", len(data), data, described)

    def keep(
        self, buffer: Buffer, kind: SectionKind, content: bytes, described: Sequence[Buffer]
    ) -> None:
        """Take over a section of another program, under its own buffer."""
        self._sections.keep(buffer, kind, content, described)

    def packet(self, packet: Packet, buffers: tuple[Buffer | None, ...]) -> None:
        """A packet of another program: its addresses are offsets into the buffers of src1, src2,
        dst and src3."""
        self._packets.append((packet, buffers))

    @property
    def stream(self) -> RandomStream:
        """The random stream of this op. UnsupportedOp when the caller gave no stream."""
        if self._stream is None:
            raise self.unsupported("stream", None, "the seed and the number of a random op")
        return self._stream

    def counter(self) -> tuple[TensorView, ...]:
        """Words 1 to 3 of the stream's counter as 0-d int32 operands, without a packet."""
        zero, *number = self.stream.counter
        described = () if self._op_number is None else (self._op_number,)
        # The number comes first, where its 64 bits are one word of the image, and can be relocated.
        data = struct.pack("<III", *number, zero)
        section = self._sections.add("constant", len(data), data, described)
        line = dense(section, DType.INT32, (len(data) // 4,))
        return tuple(line.selected(0, at) for at in (2, 0, 1))

    def table(self, dtype: DType, values: Sequence[float]) -> TensorView:
        """Numbers that follow from sizes and scalars alone, one line of them in memory."""
        width = DTYPE_BYTES[dtype]
        data = b"".join(element(value, dtype).to_bytes(width, "little") for value in values)
        if not data:
            return self.temp(dtype, (0,))
        return dense(self._sections.add("constant", len(data), data), dtype, (len(values),))

    def constant(self, data: bytes) -> Buffer:
        """A section that starts with these bytes."""
        return self._sections.add("constant", len(data), data)

    # ------------------------------------------------------------------ vector engine
    def load(self, image: Buffer, line: int) -> None:
        """Load the program whose image is in a section, to line `line` of program memory."""
        lines = image.size_bytes // LINE_BYTES
        self._add(Opcode.LOAD, 0, (PacketOperand(image),), NO_OPERAND, (line, lines))

    def vector(
        self,
        program: str | VectorProgram,
        sources: Sequence[TensorView],
        result: TensorView | Sequence[TensorView],
        *imms: float,
        line: int | None = None,
    ) -> None:
        """One pass of a vector program; ints and floats of `imms` as int32 and fp32 words.

        `program`: the name of one of driver.isa.programs, or any other, which devices then load.
        Sources broadcast to the sizes of the results, which have equal ones. If the program
        reduces, they broadcast to each other, and the result has their sizes, except 1 in the
        innermost dimension. `line`: where `load` has put the program, for one that is loaded by
        packets of the op itself.
        """
        declared = PROGRAMS.get(program) if isinstance(program, str) else program
        if declared is None:
            raise InputError(self._op, "vector program", program, "one of docs/vector-programs.md")
        results = [result] if isinstance(result, TensorView) else list(result)
        for field, found, expected in (
            ("sources", len(sources), declared.sources),
            ("results", len(results), declared.results),
            ("numbers", len(imms), len(declared.imms)),
            ("sizes of results", len({view.sizes for view in results}), 1),
        ):
            if found != expected:
                raise InputError(self._op, f"{field} of {declared.name}", found, str(expected))
        words = [self._word(imm) for imm in imms]
        first, positional = results[0], declared.positional
        views = [*self._broadcast(sources, first, declared.reduce is not Reduce.NONE), *results]
        if not views[0].count:
            return
        inner = [views[0].rank - 1] if positional else []
        walk = sorted(
            (at for at in range(first.rank) if at not in inner), key=lambda at: -first.strides[at]
        )
        views = [view.permuted([*walk, *inner]) for view in views]
        for piece, _ in pieces(views, first.rank - 1 if positional else None):
            self._pass(declared, piece, words, line)

    def _broadcast(
        self, sources: Sequence[TensorView], result: TensorView, reduces: bool
    ) -> list[TensorView]:
        sizes: tuple[int, ...] | None = result.sizes
        if reduces:
            sizes = broadcast(*(source.sizes for source in sources))
            if sizes is None or (*sizes[:-1], 1) != result.sizes:
                shapes = [source.sizes for source in sources]
                raise self.unsupported("shapes", shapes, f"rows for the result {result.sizes}")
        return [self.expanded(source, sizes or ()) for source in sources]

    def expanded(self, view: TensorView, sizes: Sequence[int]) -> TensorView:
        """The view broadcast to `sizes`; UnsupportedOp when it does not."""
        wide = view.expanded(tuple(sizes))
        if wide is None:
            raise self.unsupported("shape", view.sizes, f"one that broadcasts to {tuple(sizes)}")
        return wide

    def _pass(
        self,
        program: VectorProgram,
        views: Sequence[TensorView],
        words: list[int],
        line: int | None,
    ) -> None:
        """One VECTOR packet: sources, then results, of at most five dimensions."""
        number = LINES[program.name] if program is PROGRAMS.get(program.name) else line
        number = placeholder(program) if number is None else number
        sources, results = views[: program.sources], views[program.sources :]
        self._encoder.check(*views)
        plain = program.sources <= PLAIN_SOURCES and len(results) == 1
        if not plain or len(words) > PLAIN_IMMEDIATES:
            listed = self._encoder.listed(sources, results)
            self._add(Opcode.VECTOR, 0, (listed,), NO_OPERAND, (number, 0, *words))
            return
        (result,) = results
        countable = not program.positional
        linear = countable and all(view.rank == 1 and view.is_dense for view in views)
        flags = flag_word(sources[0].dtype if sources else DType.FP32, result.dtype)
        for view, name in zip(sources[1:], ("SRC2_DTYPE", "SRC3_DTYPE"), strict=False):
            flags |= view.dtype << FLAGS[name].lsb
        encoder = self._encoder
        operands = [
            direct(view) if linear else encoder.described(view, f"SRC{at}_DESC")
            for at, view in enumerate(sources, 1)
        ]
        dst = direct(result) if linear else encoder.destination(result, described=True)
        imms = [*words, 0, 0, 0, 0][:PLAIN_IMMEDIATES]
        params = (number, result.count if linear else 0, *imms)
        self._add(Opcode.VECTOR, flags, operands, dst, params)

    # ------------------------------------------------------------------ moves
    def copy(self, source: TensorView, result: TensorView) -> None:
        """Store the source's elements, of the same type and sizes, into the result."""
        if source.sizes != result.sizes:
            sizes = f"{source.sizes} to {result.sizes}"
            raise self.unsupported("sizes", sizes, "a copy between equal sizes")
        if source.dtype != result.dtype:
            types = f"{source.dtype.name} to {result.dtype.name}"
            raise self.unsupported("dtype", types, "a copy without conversion")
        if not result.count or source == result:
            return
        walk = sorted(range(result.rank), key=lambda at: -result.strides[at])
        for (part, target), _ in pieces([source.permuted(walk), result.permuted(walk)]):
            self._encoder.check(part, target)
            src, dst = self._encoder.placed(part, "SRC1_DESC"), self._encoder.destination(target)
            count = 0 if src.flags or dst.flags else part.count
            self._add(Opcode.COPY, flag_word(source.dtype, result.dtype), (src,), dst, (count,))

    def fill(self, result: TensorView, value: float) -> None:
        """Store one number everywhere: floats round to the type, ints wrap, truth values are 1
        where the number is not 0."""
        if not result.count:
            return
        if result.dtype is DType.INT64:  # FILL has 32 bits
            self._fill_long(result, int(value))
            return
        if result.boolean:
            value = bool(value)
        bits = element(value, result.dtype)
        walk = sorted(range(result.rank), key=lambda at: -result.strides[at])
        for (target,), _ in pieces([result.permuted(walk)]):
            self._encoder.check(target)
            dst = self._encoder.destination(target)
            count = 0 if dst.flags else target.count
            self._add(Opcode.FILL, flag_word(DType.FP32, result.dtype), (), dst, (count, bits))

    def _fill_long(self, result: TensorView, value: int) -> None:
        low, high = split(value)
        if low == high:
            self.fill(words(result), low)
        elif INT32_MIN <= value <= INT32_MAX:  # an int32 is stored with its sign extended
            self.vector("constant", (), result, value)
        else:
            self.fill(low_words(result), low)
            self.fill(high_words(result), high)

    def gather(self, table: TensorView, index: TensorView, result: TensorView, dim: int) -> None:
        """result[i] = table[i with i[dim] replaced by index[i]]; index of the result's sizes."""
        self._by_index(Opcode.GATHER, table, index, result, dim)

    def scatter(
        self,
        source: TensorView,
        index: TensorView,
        result: TensorView,
        dim: int,
        *,
        accumulate: bool = False,
    ) -> None:
        """result[i with i[dim] replaced by index[i]] = source[i], or += it; in row-major order."""
        if accumulate and result.dtype not in SCATTER_ADD_DTYPES:
            types = ", ".join(dtype.name for dtype in SCATTER_ADD_DTYPES)
            raise self.unsupported("dtype", result.dtype.name, f"one of {types}")
        flags = ("ACCUMULATE",) if accumulate else ()
        self._by_index(Opcode.SCATTER, source, index, result, dim, *flags)

    def _by_index(
        self,
        opcode: Opcode,
        source: TensorView,
        index: TensorView,
        result: TensorView,
        dim: int,
        *names: str,
    ) -> None:
        if index.dtype not in INDEX_DTYPES or source.dtype != result.dtype:
            types = f"{source.dtype.name} to {result.dtype.name} by {index.dtype.name}"
            raise self.unsupported("dtype", types, "one type, and indices INT32 or INT64")
        if not index.count:
            return
        for views, at in pieces([source, index, result], dim % index.rank):
            self._encoder.check(*views)
            part, places, target = views
            src1 = self._encoder.described(part, "SRC1_DESC")
            src2 = self._encoder.described(places, "SRC2_DESC")
            dst = self._encoder.destination(target, described=True)
            flags = flag_word(part.dtype, target.dtype, *names)
            flags |= places.dtype << FLAGS["SRC2_DTYPE"].lsb
            self._add(opcode, flags, (src1, src2), dst, (at,))

    # ------------------------------------------------------------------ matrix engine
    def matmul(
        self,
        a: MatrixView,
        b: MatrixView,
        result: MatrixView,
        *,
        start: MatrixView | None = None,
        accumulate: bool = False,
    ) -> None:
        """result = a·b; plus `start`; or result += a·b. One packet of [batch, M, K], [batch, K, N],
        [batch, M, N].

        Accumulating into fp16 or bf16 widens the old value exactly and rounds once at the end, so
        the bits are those of one chain that starts from it (docs/numerics.md).
        """
        (batch, m, k), n = a.shape, b.shape[2]
        if b.shape != (batch, k, n) or result.shape != (batch, m, n):
            shapes = f"{a.shape} · {b.shape} = {result.shape}"
            raise self.unsupported("shapes", shapes, "[b, m, k] · [b, k, n] = [b, m, n]")
        types = (a.view.dtype, result.view.dtype)
        if a.view.dtype != b.view.dtype or types not in MATMUL_DTYPES:
            found = f"{a.view.dtype.name} · {b.view.dtype.name} = {result.view.dtype.name}"
            pairs = ", ".join(f"{src.name} to {dst.name}" for src, dst in MATMUL_DTYPES)
            raise self.unsupported("dtype", found, f"operands of one type, and {pairs}")
        self._encoder.check(a.view, b.view, result.view)
        if max(m, k, n, batch) >= WORD_LIMIT:
            raise self.unsupported("sizes", (m, k, n), "products of sizes up to 2³² - 1")
        sources = [
            self._encoder.matrix(a, "SRC1_DESC", "TRANS_A"),
            self._encoder.matrix(b, "SRC2_DESC", "TRANS_B"),
        ]
        if start is not None:
            assert start.shape == result.shape and start.view.dtype == result.view.dtype
            self._encoder.check(start.view)
            sources.append(self._encoder.start(start))
        extra = ("ACCUMULATE",) if accumulate or start is not None else ()
        flags = flag_word(*types, *extra)
        sizes = (m, k, n, batch, 0, 0)
        self._add(Opcode.MATMUL, flags, sources, self._encoder.product(result), sizes)

    def int4_matmul(
        self, a: TensorView, words: TensorView, scales: TensorView, result: TensorView, group: int
    ) -> None:
        """result [batch, M, N] = a [batch, M, K] · weights of four bits: `words`
        [batch, ⌈K ÷ 8⌉, N] of INT32, `scales` [batch, ⌈K ÷ 2^group⌉, N] of a's type. One packet."""
        self._encoder.check(a, words, scales, result)
        sources = [
            self._encoder.placed(a, "SRC1_DESC", "TRANS_A"),
            self._encoder.placed(words, "SRC2_DESC", "TRANS_B"),
            self._encoder.placed(scales, "SRC3_DESC"),
        ]
        flags = flag_word(a.dtype, result.dtype) | group << FLAGS["INT4_GROUP"].lsb
        batch, m, k = a.sizes
        sizes = (m, k, result.sizes[2], batch, 0, 0)
        self._add(Opcode.MATMUL, flags, sources, self._encoder.destination(result), sizes)

    # ------------------------------------------------------------------ words
    def _add(
        self,
        opcode: Opcode,
        flags: int,
        sources: Sequence[PacketOperand],
        dst: PacketOperand,
        params: Sequence[int],
    ) -> None:
        """A packet with its operands' offsets in place of addresses."""
        if len(self._packets) >= _MAX_PACKETS:
            raise self.unsupported("packets", f"over {_MAX_PACKETS}", "views of fewer dimensions")
        src1, src2, src3 = (*sources, NO_OPERAND, NO_OPERAND, NO_OPERAND)[:3]
        for operand in (*sources, dst):
            for name in operand.flags:
                flags |= FLAGS[name].mask
        if src3.buffer is not None:
            params = (*params, *split(src3.offset_bytes))
        offsets = (src1.offset_bytes, src2.offset_bytes, dst.offset_bytes)
        packet = Packet(opcode, flags, *offsets, tuple(params))
        self._packets.append((packet, (src1.buffer, src2.buffer, dst.buffer, src3.buffer)))

    def _word(self, imm: float) -> int:
        try:
            return word(imm)
        except OverflowError:
            raise self.unsupported("scalar", imm, "an int of 32 bits") from None
