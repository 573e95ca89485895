# SPDX-License-Identifier: Apache-2.0
"""Packets and descriptors for matrix products and copies of arbitrary views.

An operand goes into the packet directly when it is dense, or when its transpose is; otherwise
through a descriptor. Decides layout only: which products an op needs is the table's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from driver.errors import UnsupportedOp
from driver.isa import (
    DESCRIPTOR_BYTES,
    MATMUL_DTYPES,
    MAX_RANK,
    Descriptor,
    Opcode,
    Packet,
    flag_word,
)
from driver.lower.views import TensorView, collapse, dense, size_bytes

Alloc = Callable[[int], int]
"""Bytes → address of so many fresh bytes of device memory, 64-byte aligned."""

_WORD_LIMIT = 1 << 32


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
        self._descriptors: list[tuple[int, bytes]] = []

    def program(self) -> Program:
        """What was collected."""
        return Program(tuple(self._packets), tuple(self._descriptors))

    def unsupported(self, field: str, value: object, expected: str) -> UnsupportedOp:
        """The error to raise for this op."""
        return UnsupportedOp(self._op, field, value, expected)

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
        self._packets.append(Packet(Opcode.MATMUL, flags, *addresses, (m, k, n, batch)))

    def copy(self, source: TensorView, result: TensorView) -> None:
        """Store the source's elements, of the same type and sizes, into the result."""
        assert source.sizes == result.sizes
        if source.dtype != result.dtype:
            types = f"{source.dtype.name} to {result.dtype.name}"
            raise self.unsupported("dtype", types, "a copy without conversion")
        sizes, (from_strides, to_strides) = collapse(source.sizes, source.strides, result.strides)
        if len(sizes) > MAX_RANK:
            raise self.unsupported("rank", len(sizes), f"at most {MAX_RANK} separate strides")
        source = TensorView(source.address, source.dtype, sizes, from_strides)
        result = TensorView(result.address, result.dtype, sizes, to_strides)
        self._check_words(source, result)
        src, dst = self._operand(source, "SRC1_DESC"), self._destination(result)
        flags = flag_word(source.dtype, result.dtype, *src.flags, *dst.flags)
        count = 0 if src.flags or dst.flags else source.count
        packet = Packet(Opcode.COPY, flags, src.address, 0, dst.address, (count,))
        self._packets.append(packet)

    def densely(self, view: TensorView) -> TensorView:
        """A dense copy of the view in fresh memory."""
        fresh = dense(self._alloc(size_bytes(view)), view.dtype, view.sizes)
        self.copy(view, fresh)
        return fresh

    def _destination(self, view: TensorView) -> _Operand:
        if view.repeats:
            raise self.unsupported("result", view.strides, "no stride of 0")
        return self._operand(view, "DST_DESC")

    def _operand(self, view: TensorView, descriptor_flag: str, trans: str = "") -> _Operand:
        """The view as it stands, or under `trans`, where the packet has such a flag."""
        if view.is_dense:
            return _Operand(view.address)
        if trans and view.transposed().is_dense:
            return _Operand(view.address, (trans,))
        # A size of 1 says nothing by its stride; torch's may be any number.
        strides = tuple(
            1 if size == 1 else stride
            for size, stride in zip(view.sizes, view.strides, strict=True)
        )
        descriptor = Descriptor(view.address, view.dtype, view.sizes, strides)
        address = self._alloc(DESCRIPTOR_BYTES)
        self._descriptors.append((address, descriptor.pack()))
        return _Operand(address, (descriptor_flag,))

    def _check_words(self, *views: TensorView) -> None:
        """Sizes, strides and counts are 32-bit words."""
        for view in views:
            if not view.count:
                raise self.unsupported("sizes", view.sizes, "no empty dimension")
            for size, stride in zip(view.sizes, view.strides, strict=True):
                if size >= _WORD_LIMIT or (size > 1 and not 0 <= stride < _WORD_LIMIT):
                    words = f"size {size} with stride {stride}"
                    raise self.unsupported("strides", words, "0 to 2³² - 1")
