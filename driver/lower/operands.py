# SPDX-License-Identifier: Apache-2.0
"""How a packet refers to a view: by its place, by that of its transpose, by a descriptor or, as a
matrix, by a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from driver.errors import UnsupportedOp
from driver.isa import WINDOW_GROUP, Descriptor, WindowDescriptor
from driver.lower.words import WORD_LIMIT
from driver.runtime.buffer import Buffer
from driver.runtime.views import TensorView


@dataclass(frozen=True)
class PacketOperand:
    """An offset into a buffer, and the flags that say what is there. None: no operand."""

    buffer: Buffer | None
    offset_bytes: int = 0
    flags: tuple[str, ...] = ()


NO_OPERAND = PacketOperand(None)


@dataclass(frozen=True)
class MatrixView:
    """A view [batch, rows…, columns…] as matrices; up to three dimensions of each."""

    view: TensorView
    rows: int
    """How many dimensions the rows have."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """[batch, rows, columns]."""
        split = 1 + self.rows
        return self.view.sizes[0], prod(self.view.sizes[1:split]), prod(self.view.sizes[split:])

    @property
    def is_plain(self) -> bool:
        """Whether rows and columns are one dimension each."""
        return self.rows == 1 and self.view.rank == 3

    def window(self) -> WindowDescriptor:
        """The window of these matrices at the view's offset; dimensions that are absent have size
        1."""
        split = 1 + self.rows
        walk = list(zip(self.view.sizes, self.view.strides, strict=True))
        parts = (walk[:1], walk[1:split], walk[split:])
        dims = []
        for part, room in zip(parts, (1, WINDOW_GROUP, WINDOW_GROUP), strict=True):
            assert len(part) <= room, "at most three dimensions of rows and of columns"
            dims += [(1, 0)] * (room - len(part)) + part
        sizes = tuple(size for size, _ in dims)
        strides = tuple(stride if size > 1 else 0 for size, stride in dims)
        return WindowDescriptor(self.view.offset_bytes, self.view.dtype, sizes, strides)


def direct(view: TensorView, *flags: str) -> PacketOperand:
    """The view's first element."""
    return PacketOperand(view.buffer, view.offset_bytes, flags)


class OperandEncoder:
    """Decides how packets name views. `refuse` makes the error when no way fits: (field, value,
    expected); `describe` gives the section for descriptors and the buffers that they describe."""

    def __init__(
        self,
        refuse: Callable[[str, object, str], UnsupportedOp],
        describe: Callable[[bytes, Sequence[Buffer]], Buffer],
    ) -> None:
        self._refuse = refuse
        self._describe = describe
        self._descriptors: dict[tuple[tuple[Buffer, ...], bytes], Buffer] = {}

    def destination(self, view: TensorView, *, described: bool = False) -> PacketOperand:
        """A view to write to."""
        if view.repeats:
            raise self._refuse("result", view.strides, "no stride of 0")
        if described:
            return self.described(view, "DST_DESC")
        return self.placed(view, "DST_DESC")

    def placed(self, view: TensorView, descriptor_flag: str, trans: str = "") -> PacketOperand:
        """The view as it stands, or under `trans`, where the packet has such a flag."""
        if view.is_dense:
            return direct(view)
        if trans and view.transposed().is_dense:
            return direct(view, trans)
        return self.described(view, descriptor_flag)

    def matrix(self, matrix: MatrixView, descriptor_flag: str, trans: str = "") -> PacketOperand:
        """A factor of a product: as `placed` has it, or by a window."""
        if matrix.is_plain:
            return self.placed(matrix.view, descriptor_flag, trans)
        return self._window(matrix, descriptor_flag)

    def start(self, matrix: MatrixView) -> PacketOperand:
        """What the sums of a product start from: always by a descriptor."""
        if matrix.is_plain:
            return self.described(matrix.view, "SRC3_DESC")
        return self._window(matrix, "SRC3_DESC")

    def product(self, matrix: MatrixView) -> PacketOperand:
        """The result of a product."""
        if matrix.is_plain:
            return self.destination(matrix.view)
        if matrix.view.repeats:
            raise self._refuse("result", matrix.view.strides, "no stride of 0")
        return self._window(matrix, "DST_DESC")

    def described(self, view: TensorView, descriptor_flag: str) -> PacketOperand:
        """The view by a descriptor, the same one for equal views."""
        return PacketOperand(self._section((view,)), 0, (descriptor_flag,))

    def listed(self, sources: Sequence[TensorView], results: Sequence[TensorView]) -> PacketOperand:
        """All operands of a packet by an operand list."""
        for view in results:
            if view.repeats:
                raise self._refuse("result", view.strides, "no stride of 0")
        return PacketOperand(self._section((*sources, *results)), 0, ("OPERAND_LIST",))

    def _section(self, views: tuple[TensorView, ...]) -> Buffer:
        """The section of the views' descriptors, the same one for equal views."""
        described = tuple(view.buffer for view in views)
        return self._stored(b"".join(map(_packed, views)), described)

    def _window(self, matrix: MatrixView, descriptor_flag: str) -> PacketOperand:
        section = self._stored(matrix.window().pack(), (matrix.view.buffer,))
        return PacketOperand(section, 0, (descriptor_flag,))

    def _stored(self, data: bytes, described: tuple[Buffer, ...]) -> Buffer:
        key = (described, data)
        if key not in self._descriptors:
            self._descriptors[key] = self._describe(data, described)
        return self._descriptors[key]

    def check(self, *views: TensorView) -> None:
        """UnsupportedOp unless sizes, strides and counts are 32-bit words, none is empty, and every
        element lies in its buffer: beside it is the memory of others."""
        for view in views:
            if not view.count:
                raise self._refuse("sizes", view.sizes, "no empty dimension")
            for size, stride in zip(view.sizes, view.strides, strict=True):
                if size >= WORD_LIMIT or (size > 1 and not 0 <= stride < WORD_LIMIT):
                    words = f"size {size} with stride {stride}"
                    raise self._refuse("strides", words, "0 to 2³² - 1")
            end, room = view.offset_bytes + view.extent_bytes, view.buffer.size_bytes
            if view.offset_bytes < 0 or end > room:
                found = f"bytes {view.offset_bytes} to {end}"
                raise self._refuse("view", found, f"inside its buffer of {room} bytes")


def _packed(view: TensorView) -> bytes:
    """The view's descriptor, with its offset for an address."""
    # A size of 1 says nothing by its stride; torch's may be any number.
    strides = tuple(
        1 if size == 1 else stride for size, stride in zip(view.sizes, view.strides, strict=True)
    )
    return Descriptor(view.offset_bytes, view.dtype, view.sizes, strides).pack()
