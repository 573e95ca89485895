# SPDX-License-Identifier: Apache-2.0
"""How a packet refers to a view: by its address, by that of its transpose, or by a descriptor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from driver.errors import UnsupportedOp
from driver.isa import DESCRIPTOR_BYTES, Descriptor
from driver.lower.views import TensorView

Alloc = Callable[[int], int]
"""Bytes → address of so many fresh bytes of device memory, 64-byte aligned."""

_WORD_LIMIT = 1 << 32


@dataclass(frozen=True)
class Operand:
    """An address, and the flags that say what is there."""

    address: int
    flags: tuple[str, ...] = ()


class Operands:
    """Places operands and collects their descriptors. `refuse` makes the error for what none fits:
    (field, value, expected)."""

    def __init__(self, refuse: Callable[[str, object, str], UnsupportedOp], alloc: Alloc) -> None:
        self._refuse = refuse
        self._alloc = alloc
        self.descriptors: dict[bytes, int] = {}

    def destination(self, view: TensorView, *, described: bool = False) -> Operand:
        """A view to write to."""
        if view.repeats:
            raise self._refuse("result", view.strides, "no stride of 0")
        if described:
            return self.described(view, "DST_DESC")
        return self.placed(view, "DST_DESC")

    def placed(self, view: TensorView, descriptor_flag: str, trans: str = "") -> Operand:
        """The view as it stands, or under `trans`, where the packet has such a flag."""
        if view.is_dense:
            return Operand(view.address)
        if trans and view.transposed().is_dense:
            return Operand(view.address, (trans,))
        return self.described(view, descriptor_flag)

    def described(self, view: TensorView, descriptor_flag: str) -> Operand:
        """The view by a descriptor, the same one for equal views."""
        # A size of 1 says nothing by its stride; torch's may be any number.
        strides = tuple(
            1 if size == 1 else stride
            for size, stride in zip(view.sizes, view.strides, strict=True)
        )
        data = Descriptor(view.address, view.dtype, view.sizes, strides).pack()
        if data not in self.descriptors:
            self.descriptors[data] = self._alloc(DESCRIPTOR_BYTES)
        return Operand(self.descriptors[data], (descriptor_flag,))

    def check(self, *views: TensorView) -> None:
        """UnsupportedOp unless sizes, strides and counts are 32-bit words, and none is empty."""
        for view in views:
            if not view.count:
                raise self._refuse("sizes", view.sizes, "no empty dimension")
            for size, stride in zip(view.sizes, view.strides, strict=True):
                if size >= _WORD_LIMIT or (size > 1 and not 0 <= stride < _WORD_LIMIT):
                    words = f"size {size} with stride {stride}"
                    raise self._refuse("strides", words, "0 to 2³² - 1")
