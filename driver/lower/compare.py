# SPDX-License-Identifier: Apache-2.0
"""Comparisons, logic and choices. Results are torch.bool: bytes of 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence

from driver.isa import DType
from driver.lower import long
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import (
    as_compared,
    as_float,
    as_integer,
    as_truth,
    as_type,
    constant,
    convert,
    is_float,
    promoted,
    require_integers,
)
from driver.lower.long_views import is_long, words
from driver.lower.registry import LoweringTable, RuleFunction, Scalar
from driver.lower.words import FLOATS, rounded, wrapped
from driver.runtime.views import TensorView

TABLE = LoweringTable()

_RELATIONS: dict[str, tuple[str, str, bool]] = {
    "lt": ("less", "less_imm", False),
    "le": ("less_equal", "less_equal_imm", False),
    "gt": ("less", "greater_imm", True),
    "ge": ("less_equal", "greater_equal_imm", True),
    "eq": ("equal", "equal_imm", False),
    "ne": ("not_equal", "not_equal_imm", False),
}
"""ATen's name → program of two tensors, of a tensor and a number, operands exchanged."""


def _relation(name: str) -> RuleFunction:
    program, _, swapped = _RELATIONS[name]

    def rule(
        b: ProgramBuilder, out: TensorView, self: TensorView, other: TensorView | Scalar
    ) -> None:
        if not isinstance(other, TensorView):
            _with_number(b, out, self, name, other)
            return
        pair = (self, other)
        floats = any(map(is_float, pair))
        if not floats:
            pair = as_compared(b, *pair)
            if is_long(*pair):
                long.compare(b, name, out, *pair)
                return
        left, right = promoted(b, *pair) if floats else pair
        operands = (right, left) if swapped else (left, right)
        b.vector(program if floats else f"int_{program}", operands, out)

    return rule


def _with_number(
    b: ProgramBuilder, out: TensorView, x: TensorView, name: str, number: Scalar
) -> None:
    _, program, _ = _RELATIONS[name]
    if is_float(x):
        b.vector(program, (x,), out, rounded(float(number), x.dtype))
    elif isinstance(number, float):
        b.vector(program, (as_float(b, x),), out, number)
    elif is_long(x):
        long.compare(b, name, out, x, int(number))
    elif x.boolean:  # 0 or 1, beside an integer of 64 bits
        b.vector(f"int_{program}", (x,), out, min(max(as_integer(b, number), -1), 2))
    else:
        b.vector(f"int_{program}", (x,), out, wrapped(as_integer(b, number), x.dtype))


for _name in _RELATIONS:
    TABLE.op(f"{_name}.Tensor", f"{_name}.Scalar")(_relation(_name))
equal_elements = _relation("eq")


@TABLE.op("isnan")
def isnan(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """self ≠ self"""
    if is_float(self):
        b.vector("not_equal", (self, self), out)
    else:
        b.fill(out, 0)


@TABLE.op("isinf")
def isinf(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """|self| = ∞"""
    if not is_float(self):
        b.fill(out, 0)
        return
    magnitude = b.temp(DType.FP32, self.sizes)
    b.vector("abs", (self,), magnitude)
    b.vector("equal_imm", (magnitude,), out, float("inf"))


# ---------------------------------------------------------------------- logic
def _logic(b: ProgramBuilder, program: str, out: TensorView, sources: Sequence[TensorView]) -> None:
    """A logical program; in place of floats its truth values become 0.0 and 1.0.

    Programs ask for bits of one word: those of −0 are set, yet it is false; int64 has two words.
    """
    truths = tuple(
        as_truth(b, view) if is_float(view) or is_long(view) else view for view in sources
    )
    target = b.temp(DType.UINT8, out.sizes) if is_float(out) else out
    b.vector(program, truths, target)
    if is_float(out):
        convert(b, target, out)


@TABLE.op("logical_not", "logical_not_")
def logical_not(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """self is 0"""
    _logic(b, "logical_not", out, (self,))


def _logical(name: str) -> RuleFunction:
    def rule(b: ProgramBuilder, out: TensorView, self: TensorView, other: TensorView) -> None:
        _logic(b, f"logical_{name}", out, (self, other))

    return rule


def _bitwise(name: str) -> RuleFunction:
    def rule(
        b: ProgramBuilder, out: TensorView, self: TensorView, other: TensorView | Scalar
    ) -> None:
        require_integers(b, out, self, other)
        if not isinstance(other, TensorView):
            wide = DType.INT64 if is_long(out) else DType.INT32
            other = constant(b, as_integer(b, other), wide)
        if is_long(out):
            long.bitwise(b, f"bits_{name}", out, self, other)
        else:
            b.vector(f"bits_{name}", (self, other), out)

    return rule


for _name in ("and", "or", "xor"):
    TABLE.op(f"logical_{_name}", f"logical_{_name}_")(_logical(_name))
    _overloads = (f"bitwise_{_name}", f"bitwise_{_name}_", f"__{_name}__", f"__i{_name}__")
    TABLE.op(*(f"{_o}.{_k}" for _o in _overloads for _k in ("Tensor", "Scalar")))(_bitwise(_name))


@TABLE.op("bitwise_not", "bitwise_not_")
def bitwise_not(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """All bits inverted; a truth value's one bit"""
    if is_long(out):
        b.vector("bits_xor_imm", (words(self),), words(out), -1)
    else:
        b.vector("bits_xor_imm", (self,), out, 1 if self.boolean else -1)


# ---------------------------------------------------------------------- choices
@TABLE.op("where.self")
def where(
    b: ProgramBuilder,
    out: TensorView,
    condition: TensorView,
    self: TensorView,
    other: TensorView,
) -> None:
    """self where the condition holds, else other"""
    if out.dtype in FLOATS:
        choices = [as_float(b, x) for x in (self, other)]
    elif out.boolean:
        choices = [as_truth(b, x) for x in (self, other)]
    else:  # a value without dimensions may be of another type
        choices = [as_type(b, x, out.dtype) if is_float(x) else x for x in (self, other)]
    if is_long(out):
        long.choose(b, out, condition, *choices)
    else:
        b.vector("where", (condition, *choices), out)


@TABLE.op("masked_fill.Scalar", "masked_fill_.Scalar")
def masked_fill(
    b: ProgramBuilder, out: TensorView, self: TensorView, mask: TensorView, value: Scalar
) -> None:
    """value where the mask holds, else self"""
    if is_long(out):
        long.choose(b, out, mask, long.number(b, int(value)), self)
        return
    word = float(value) if is_float(out) else int(bool(value) if out.boolean else value)
    b.vector("masked_fill", (self, mask), out, word)


@TABLE.op("masked_fill.Tensor", "masked_fill_.Tensor")
def masked_fill_tensor(
    b: ProgramBuilder, out: TensorView, self: TensorView, mask: TensorView, value: TensorView
) -> None:
    """value where the mask holds, else self"""
    where(b, out, mask, value, self)
