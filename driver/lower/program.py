# SPDX-License-Identifier: Apache-2.0
"""Packets and descriptors for passes, products, copies and gathers of arbitrary views.

An operand goes into the packet directly when it is dense, or when its transpose is; otherwise
through a descriptor. Decides layout only: which packets an op needs is the table's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from driver.errors import UnsupportedOp
from driver.isa import (
    DESCRIPTOR_BYTES,
    DTYPE_BYTES,
    FLAGS,
    MATMUL_DTYPES,
    Descriptor,
    DType,
    Opcode,
    Packet,
    flag_word,
)
from driver.isa.micro import OPERAND_INDEX, Reduce
from driver.isa.programs import PROGRAMS
from driver.isa.types import INDEX_DTYPES, SCATTER_ADD_DTYPES
from driver.lower.views import TensorView, broadcast, dense, pieces
from driver.lower.words import element, word

Alloc = Callable[[int], int]
"""Bytes → address of so many fresh bytes of device memory, 64-byte aligned."""

_WORD_LIMIT = 1 << 32
_MAX_PACKETS = 1 << 16
_POSITIONAL = frozenset(
    name
    for name, program in PROGRAMS.items()
    if program.reduce is not Reduce.NONE
    or any(OPERAND_INDEX in (line.a, line.b, line.c) for line in program.code)
)
"""Programs to which the innermost dimension means something."""


@dataclass(frozen=True)
class Program:
    """What runs one op: write each descriptor to its address, then submit the packets."""

    packets: tuple[Packet, ...]
    descriptors: tuple[tuple[int, bytes], ...]


@dataclass(frozen=True)
class _Operand:
    """How a packet refers to a view: an address, and the flags that say what is there."""

    address: int
    flags: tuple[str, ...] = ()


class ProgramBuilder:
    """Collects the packets of one op. UnsupportedOp, naming it, for what they cannot express."""

    def __init__(self, op: str, alloc: Alloc) -> None:
        self._op = op
        self._alloc = alloc
        self._packets: list[Packet] = []
        self._descriptors: dict[bytes, int] = {}

    def program(self) -> Program:
        """What was collected."""
        return Program(
            tuple(self._packets), tuple((at, data) for data, at in self._descriptors.items())
        )

    def unsupported(self, field: str, value: object, expected: str) -> UnsupportedOp:
        """The error to raise for this op."""
        return UnsupportedOp(self._op, field, value, expected)

    def temp(self, dtype: DType, sizes: Sequence[int]) -> TensorView:
        """A dense view of fresh memory."""
        view = dense(0, dtype, tuple(sizes))
        address = self._alloc(max(view.count, 1) * DTYPE_BYTES[dtype])
        return dense(address, dtype, tuple(sizes))

    # ------------------------------------------------------------------ vector engine
    def vector(
        self, program: str, sources: Sequence[TensorView], result: TensorView, *imms: float
    ) -> None:
        """One pass of a vector program; ints and floats of `imms` as int32 and fp32 words.

        Sources broadcast to the result's sizes. If the program reduces, they broadcast to each
        other, and the result has their sizes but for 1 in the innermost dimension.
        """
        declared = PROGRAMS[program]
        assert len(sources) == declared.sources, f"{program} has {declared.sources} sources"
        assert len(imms) == len(declared.imms), f"{program}: {declared.imms}"
        words = [self._word(imm) for imm in imms]
        reduces = declared.reduce is not Reduce.NONE
        views = [*self._broadcast(sources, result, reduces), result]
        if not views[0].count:
            return
        positional = program in _POSITIONAL
        inner = [views[0].rank - 1] if positional else []
        walk = sorted(
            (at for at in range(result.rank) if at not in inner), key=lambda at: -result.strides[at]
        )
        views = [view.permuted([*walk, *inner]) for view in views]
        for piece, _ in pieces(views, result.rank - 1 if positional else None):
            self._pass(declared.number, piece, words, countable=not positional)

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
        self, number: int, views: Sequence[TensorView], words: list[int], *, countable: bool
    ) -> None:
        """One VECTOR packet: sources, then the destination, of at most five dimensions."""
        *sources, result = views
        self._check_words(*views)
        direct = countable and all(view.rank == 1 and view.is_dense for view in views)
        flags = flag_word(sources[0].dtype if sources else DType.FP32, result.dtype)
        for view, name in zip(sources[1:], ("SRC2_DTYPE", "SRC3_DTYPE"), strict=False):
            flags |= view.dtype << FLAGS[name].lsb
        addresses = [0, 0, 0]
        for at, view in enumerate(sources):
            operand = (
                _Operand(view.address) if direct else self._described(view, f"SRC{at + 1}_DESC")
            )
            addresses[at] = operand.address
            flags |= flag_word(*(DType.FP32,) * 2, *operand.flags)
        dst = _Operand(result.address) if direct else self._destination(result, described=True)
        flags |= flag_word(*(DType.FP32,) * 2, *dst.flags)
        imms = [*words, 0, 0, 0, 0][:4]
        low, high = addresses[2] & 0xFFFF_FFFF, addresses[2] >> 32
        params = (number, result.count if direct else 0, *imms, low, high)
        self._add(Packet(Opcode.VECTOR, flags, addresses[0], addresses[1], dst.address, params))

    # ------------------------------------------------------------------ moves
    def copy(self, source: TensorView, result: TensorView) -> None:
        """Store the source's elements, of the same type and sizes, into the result."""
        assert source.sizes == result.sizes
        if source.dtype != result.dtype:
            types = f"{source.dtype.name} to {result.dtype.name}"
            raise self.unsupported("dtype", types, "a copy without conversion")
        if not result.count or source == result:
            return
        walk = sorted(range(result.rank), key=lambda at: -result.strides[at])
        for (part, target), _ in pieces([source.permuted(walk), result.permuted(walk)]):
            self._check_words(part, target)
            src, dst = self._operand(part, "SRC1_DESC"), self._destination(target)
            flags = flag_word(source.dtype, result.dtype, *src.flags, *dst.flags)
            count = 0 if src.flags or dst.flags else part.count
            self._add(Packet(Opcode.COPY, flags, src.address, 0, dst.address, (count,)))

    def fill(self, result: TensorView, value: float) -> None:
        """Store one number everywhere: floats round to the type, ints wrap."""
        if result.dtype is DType.INT64:  # FILL has 32 bits
            self.vector("constant", (), result, int(value))
            return
        if not result.count:
            return
        bits = element(value, result.dtype)
        walk = sorted(range(result.rank), key=lambda at: -result.strides[at])
        for (target,), _ in pieces([result.permuted(walk)]):
            self._check_words(target)
            dst = self._destination(target)
            flags = flag_word(DType.FP32, result.dtype, *dst.flags)
            count = 0 if dst.flags else target.count
            self._add(Packet(Opcode.FILL, flags, 0, 0, dst.address, (count, bits)))

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
            self._check_words(*views)
            part, places, target = views
            src1, src2 = self._described(part, "SRC1_DESC"), self._described(places, "SRC2_DESC")
            dst = self._destination(target, described=True)
            every = (*src1.flags, *src2.flags, *dst.flags, *names)
            flags = flag_word(part.dtype, target.dtype, *every)
            flags |= places.dtype << FLAGS["SRC2_DTYPE"].lsb
            self._add(Packet(opcode, flags, src1.address, src2.address, dst.address, (at,)))

    # ------------------------------------------------------------------ matrix engine
    def matmul(
        self, a: TensorView, b: TensorView, result: TensorView, *, accumulate: bool = False
    ) -> None:
        """result = a·b, or result += a·b: views of [batch, M, K], [batch, K, N], [batch, M, N].

        Accumulating into fp16 or bf16 widens the old value exactly and rounds once at the end, so
        the bits are those of one chain that starts from it (docs/numerics.md).
        """
        batch, m, k = a.sizes
        n = b.sizes[2]
        if b.sizes != (batch, k, n) or result.sizes != (batch, m, n):
            shapes = f"{a.sizes} · {b.sizes} = {result.sizes}"
            raise self.unsupported("shapes", shapes, "[b, m, k] · [b, k, n] = [b, m, n]")
        if a.dtype != b.dtype or (a.dtype, result.dtype) not in MATMUL_DTYPES:
            types = f"{a.dtype.name} · {b.dtype.name} = {result.dtype.name}"
            pairs = ", ".join(f"{src.name} to {dst.name}" for src, dst in MATMUL_DTYPES)
            raise self.unsupported("dtype", types, f"operands of one type, and {pairs}")
        self._check_words(a, b, result)
        src1 = self._operand(a, "SRC1_DESC", "TRANS_A")
        src2 = self._operand(b, "SRC2_DESC", "TRANS_B")
        dst = self._destination(result)
        extra = ("ACCUMULATE",) if accumulate else ()
        flags = flag_word(a.dtype, result.dtype, *src1.flags, *src2.flags, *dst.flags, *extra)
        addresses = (src1.address, src2.address, dst.address)
        self._add(Packet(Opcode.MATMUL, flags, *addresses, (m, k, n, batch)))

    # ------------------------------------------------------------------ operands
    def _add(self, packet: Packet) -> None:
        if len(self._packets) >= _MAX_PACKETS:
            raise self.unsupported("packets", f"over {_MAX_PACKETS}", "views of fewer dimensions")
        self._packets.append(packet)

    def _word(self, imm: float) -> int:
        try:
            return word(imm)
        except OverflowError:
            raise self.unsupported("scalar", imm, "an int of 32 bits") from None

    def _destination(self, view: TensorView, *, described: bool = False) -> _Operand:
        if view.repeats:
            raise self.unsupported("result", view.strides, "no stride of 0")
        if described:
            return self._described(view, "DST_DESC")
        return self._operand(view, "DST_DESC")

    def _operand(self, view: TensorView, descriptor_flag: str, trans: str = "") -> _Operand:
        """The view as it stands, or under `trans`, where the packet has such a flag."""
        if view.is_dense:
            return _Operand(view.address)
        if trans and view.transposed().is_dense:
            return _Operand(view.address, (trans,))
        return self._described(view, descriptor_flag)

    def _described(self, view: TensorView, descriptor_flag: str) -> _Operand:
        # A size of 1 says nothing by its stride; torch's may be any number.
        strides = tuple(
            1 if size == 1 else stride
            for size, stride in zip(view.sizes, view.strides, strict=True)
        )
        data = Descriptor(view.address, view.dtype, view.sizes, strides).pack()
        if data not in self._descriptors:
            self._descriptors[data] = self._alloc(DESCRIPTOR_BYTES)
        return _Operand(self._descriptors[data], (descriptor_flag,))

    def _check_words(self, *views: TensorView) -> None:
        """Sizes, strides and counts are 32-bit words."""
        for view in views:
            if not view.count:
                raise self.unsupported("sizes", view.sizes, "no empty dimension")
            for size, stride in zip(view.sizes, view.strides, strict=True):
                if size >= _WORD_LIMIT or (size > 1 and not 0 <= stride < _WORD_LIMIT):
                    words = f"size {size} with stride {stride}"
                    raise self.unsupported("strides", words, "0 to 2³² - 1")
