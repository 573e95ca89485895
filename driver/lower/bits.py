# SPDX-License-Identifier: Apache-2.0
"""Shifts of integers, by any count: one beyond the width leaves 0, or copies of the sign."""

from __future__ import annotations

from driver.isa import DType
from driver.lower import long
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_integer, as_type, constant, require_integers
from driver.lower.long_views import is_long
from driver.lower.registry import LoweringTable, RuleFunction, Scalar
from driver.lower.words import wrapped
from driver.runtime.views import TensorView

TABLE = LoweringTable()


def _shift(direction: str) -> RuleFunction:
    def rule(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView | Scalar,
        other: TensorView | Scalar,
    ) -> None:
        require_integers(b, out, self, other)
        x = self if isinstance(self, TensorView) else constant(b, as_integer(b, self), out.dtype)
        if not isinstance(other, TensorView):
            places = wrapped(as_integer(b, other), out.dtype)
            places = places if 0 <= places < _BEYOND else _BEYOND
            count = constant(b, places, DType.INT32)
        elif not other.rank and x.rank:  # counts as a number of the other's type
            count = as_type(b, other, out.dtype)
        else:
            count = other
        if is_long(out):
            shifted = long.shift_left if direction == "left" else long.shift_right
            shifted(b, out, x, count)
            return
        count = long.shift_counts(b, count) if is_long(count) else count
        b.vector(f"int_shift_{direction}", (x, count), out)

    return rule


_BEYOND = 64
"""A count that leaves nothing of any type."""


for _name, _short in (("left", "l"), ("right", "r")):
    _rule = _shift(_name)
    for _place in ("", "_"):
        _base = f"bitwise_{_name}_shift{_place}"
        TABLE.op(f"{_base}.Tensor", f"{_base}.Tensor_Scalar")(_rule)
    TABLE.op(f"bitwise_{_name}_shift.Scalar_Tensor")(_rule)
    for _form in (f"__{_short}shift__", f"__i{_short}shift__"):
        TABLE.op(f"{_form}.Tensor", f"{_form}.Scalar")(_rule)
