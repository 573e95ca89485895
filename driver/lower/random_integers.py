# SPDX-License-Identifier: Apache-2.0
"""Random integers and permutations, from the words of the op's stream (docs/numerics.md)."""

from __future__ import annotations

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import convert, is_float
from driver.lower.long_views import high_words, low_words
from driver.lower.order import order
from driver.lower.philox import shaped, words, words_like
from driver.lower.registry import LoweringTable
from driver.lower.shape import Option
from driver.lower.words import INT32_MAX, INT32_MIN, WORD_LIMIT, wrapped
from driver.runtime.views import TensorView

TABLE = LoweringTable()

_WHOLE = {
    DType.FP32: 1 << 24,
    DType.FP16: 1 << 11,
    DType.BF16: 1 << 8,
    DType.INT8: 1 << 7,
    DType.UINT8: 1 << 8,
    DType.INT32: 1 << 31,
}
"""How many integers from 0 on a type tells apart; random_ without limits draws from them."""
_LARGEST_HALF = 65504


def _integers(b: ProgramBuilder, out: TensorView, low: int, end: int) -> None:
    """Integers from low to end − 1."""
    if not INT32_MIN <= low < end <= INT32_MAX + 1 or end - low >= WORD_LIMIT:
        raise b.unsupported("range", (low, end), "fewer than 2³² integers of 32 bits")
    if not is_float(out) and not all(_holds(out, number) for number in (low, end - 1)):
        raise b.unsupported("range", (low, end), f"integers that {out.dtype.name} holds")
    if out.dtype is DType.FP16 and max(-low, end - 1) > _LARGEST_HALF:
        raise b.unsupported("range", (low, end), f"numbers up to {_LARGEST_HALF} for FP16")
    direct = not is_float(out) and not out.boolean
    whole = out if direct else b.temp(DType.INT32, out.sizes)
    b.vector("random_integer", (words_like(b, out),), whole, low, end - low)
    if whole is not out:
        convert(b, whole, out)


def _holds(out: TensorView, number: int) -> bool:
    return number in (0, 1) if out.boolean else wrapped(number, out.dtype) == number


@TABLE.op("randint", "randint.generator")
def randint(
    b: ProgramBuilder,
    out: TensorView,
    high: int,
    size: tuple[int, ...],
    *,
    generator: None = None,
    **options: Option,
) -> None:
    """Integers from 0 to high − 1"""
    _integers(b, out, 0, high)


@TABLE.op("randint.low", "randint.low_generator")
def randint_low(
    b: ProgramBuilder,
    out: TensorView,
    low: int,
    high: int,
    size: tuple[int, ...],
    *,
    generator: None = None,
    **options: Option,
) -> None:
    """Integers from low to high − 1"""
    _integers(b, out, low, high)


@TABLE.op("randint_like", "randint_like.generator")
def randint_like(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    high: int,
    *,
    generator: None = None,
    **options: Option,
) -> None:
    """Integers from 0 to high − 1 in self's sizes"""
    _integers(b, out, 0, high)


@TABLE.op("randint_like.low_dtype", "randint_like.low_generator_dtype")
def randint_like_low(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    low: int,
    high: int,
    *,
    generator: None = None,
    **options: Option,
) -> None:
    """Integers from low to high − 1 in self's sizes"""
    _integers(b, out, low, high)


@TABLE.op("random_.from", "random.from")
def random_from(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    from_: int,
    to: int | None,
    *,
    generator: None = None,
) -> None:
    """Integers from `from` to `to` − 1"""
    if to is None:
        raise b.unsupported("to", to, "an integer")
    _integers(b, out, from_, to)


@TABLE.op("random_.to", "random.to")
def random_to(
    b: ProgramBuilder, out: TensorView, self: TensorView, to: int, *, generator: None = None
) -> None:
    """Integers from 0 to `to` − 1"""
    _integers(b, out, 0, to)


@TABLE.op("random_", "random")
def random_all(
    b: ProgramBuilder, out: TensorView, self: TensorView, *, generator: None = None
) -> None:
    """Integers from 0 up, of all bits of the type but the sign"""
    if out.dtype is not DType.INT64:
        _integers(b, out, 0, 2 if out.boolean else _WHOLE[out.dtype])
        return
    pairs = words(b, 2 * out.count).reshaped((out.count, 2), (2, 1))
    made = b.temp(DType.INT64, (out.count,))
    b.vector("move", (pairs.selected(1, 0),), low_words(made))
    upper = (pairs.selected(1, 1),)
    b.vector("random_integer", upper, high_words(made), 0, _WHOLE[DType.INT32])
    b.copy(shaped(made, out), out)


@TABLE.op("randperm", "randperm.generator")
def randperm(
    b: ProgramBuilder,
    out: TensorView,
    n: int,
    *,
    generator: None = None,
    **options: Option,
) -> None:
    """0 to n − 1 in a random order: that of their words"""
    if n > _WHOLE.get(out.dtype, n):
        raise b.unsupported("n", n, f"as many as {out.dtype.name} tells apart")
    keys = b.temp(DType.INT32, (n,))
    b.vector("bits_xor_imm", (words(b, n),), keys, INT32_MIN)
    convert(b, order(b, keys.inserted(0)).selected(0, 0), out)
