# SPDX-License-Identifier: Apache-2.0
"""The order of the elements of rows: positions, stable, NaN as the largest.

Elements become int32 keys that order alike; int64 has two, of which the low one is sorted first.
Short rows count each element's rank over all pairs. Long ones are sorted bit by bit: the elements
with a 0 first, then those with a 1, both in the order they had. The first few of a long row are
looked for in the blocks with the smallest minima only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import is_float
from driver.lower.long_views import high_words, low_words
from driver.lower.positions import positions
from driver.lower.prefix import PrefixSums
from driver.lower.words import INT32_MIN
from driver.runtime.views import TensorView

KeyOrder = Callable[[ProgramBuilder, TensorView, Sequence[int]], TensorView]
"""Positions of int32 keys [rows, length] in order; only the given bits differ."""
SHORT = 512
"""Rows up to this long are sorted by ranks, which costs their length per element."""
_EVERY_BIT = tuple(range(32))
_KEY_BITS: dict[DType, tuple[int, ...]] = {
    DType.BF16: tuple(range(16, 32)),
    DType.FP16: tuple(range(13, 32)),
    DType.INT8: (*range(7), 31),
    DType.UINT8: tuple(range(8)),
}
"""The bits of a key in which elements of a type may differ; those beyond int8's follow its sign."""


def order(
    b: ProgramBuilder,
    rows: TensorView,
    *,
    descending: bool = False,
    by: KeyOrder | None = None,
) -> TensorView:
    """Positions along the innermost dimension in ascending or descending order, int32; `by` ranks
    or bits; None: the length of rows decides.

    Of equal elements the first comes first. Result: dense, [rows, length].
    """
    bits = _KEY_BITS.get(rows.dtype, _EVERY_BIT)
    found: TensorView | None = None
    for keys in _keys(b, rows, descending):
        moved = keys if found is None else _taken(b, keys, found)
        made = (by or _order_of_keys)(b, moved, bits)
        found = made if found is None else _taken(b, found, made)
    assert found is not None
    return found


def first(b: ProgramBuilder, rows: TensorView, count: int, *, descending: bool) -> TensorView:
    """The first `count` positions of `order`; their order among equal elements is not defined."""
    if rows.dtype is DType.INT64:
        return order(b, rows, descending=descending).sliced(1, 0, count)
    (keys,) = _keys(b, rows, descending)
    return _first_keys(b, keys, count, _KEY_BITS.get(rows.dtype, _EVERY_BIT))


def _keys(b: ProgramBuilder, rows: TensorView, descending: bool) -> list[TensorView]:
    """int32 keys [rows, length] that order as the elements; several: the last counts most."""
    mask = -1 if descending else 0
    parts: Sequence[tuple[TensorView, str, int]]
    if rows.dtype is DType.INT64:
        low, high = low_words(rows), high_words(rows)
        parts = ((low, "bits_xor_imm", mask ^ INT32_MIN), (high, "bits_xor_imm", mask))
    else:
        parts = ((rows, "sort_key" if is_float(rows) else "bits_xor_imm", mask),)
    length = rows.sizes[-1]
    made = []
    for part, program, imm in parts:
        keys = b.temp(DType.INT32, rows.sizes)
        b.vector(program, (part,), keys, imm)
        made.append(keys.reshaped((keys.count // max(length, 1), length), (length, 1)))
    return made


def _taken(b: ProgramBuilder, table: TensorView, places: TensorView) -> TensorView:
    """table[r, places[r, i]]."""
    made = b.temp(table.dtype, places.sizes)
    b.gather(table, places, made, 1)
    return made


def _positions(b: ProgramBuilder, keys: TensorView) -> TensorView:
    """0, 1, 2, … in every row; a view that repeats."""
    return b.expanded(positions(b, keys.sizes[1]), keys.sizes)


def _order_of_keys(b: ProgramBuilder, keys: TensorView, bits: Sequence[int]) -> TensorView:
    return (by_ranks if is_short(keys) else by_bits)(b, keys, bits)


def is_short(rows: TensorView) -> bool:
    """Whether rows are short enough for sorting by ranks."""
    return rows.sizes[-1] <= SHORT


def by_ranks(b: ProgramBuilder, keys: TensorView, bits: Sequence[int]) -> TensorView:
    """The place of each element is its rank: the number of elements before it."""
    count, length = keys.sizes
    places = _positions(b, keys)
    ranks, made = (b.temp(DType.INT32, keys.sizes) for _ in range(2))
    pairs = (count, length, length)
    others, own, place = keys.inserted(1), keys.inserted(2), places.inserted(2)
    sources = [b.expanded(view, pairs) for view in (others, own, place)]
    b.vector("rank", sources, ranks.inserted(2))
    b.scatter(places, ranks, made, 1)
    return made


def by_bits(b: ProgramBuilder, keys: TensorView, bits: Sequence[int]) -> TensorView:
    """Radix sort, lowest bit first. Takes two buffers for keys and two for positions."""
    sums, places = PrefixSums(b), _positions(b, keys)
    flags, goals = b.temp(DType.FP32, keys.sizes), b.temp(DType.INT32, keys.sizes)
    buffers = [[b.temp(DType.INT32, keys.sizes) for _ in range(2)] for _ in range(2)]
    for number, bit in enumerate(bits):
        b.vector("radix_zero", (keys,), flags, bit)
        zeros = sums.inclusive(flags)
        every = b.expanded(zeros.sliced(1, keys.sizes[1] - 1, 1), keys.sizes)
        b.vector("radix_place", (keys, zeros, every), goals, bit)
        next_keys, next_places = buffers[number % 2]
        b.scatter(places, goals, next_places, 1)
        if bit != bits[-1]:
            b.scatter(keys, goals, next_keys, 1)
        keys, places = next_keys, next_places
    return places


def has_blocks(rows: TensorView, count: int) -> bool:
    """Whether rows are long enough for a search by blocks, for so many elements."""
    length = rows.sizes[-1]
    return length > SHORT and isqrt(length // count) >= 2


def _first_keys(b: ProgramBuilder, keys: TensorView, count: int, bits: Sequence[int]) -> TensorView:
    """The positions of the `count` smallest keys, in order.

    They lie in the `count` blocks whose minima are smallest: if an element's block is not among
    these, each of them has an element before it.
    """
    rows, length = keys.sizes
    size = isqrt(length // count)
    if not has_blocks(keys, count):
        return _order_of_keys(b, keys, bits).sliced(1, 0, count)
    blocks = length // size
    rest = length - blocks * size
    cut = keys.sliced(1, 0, blocks * size).split(1, (blocks, size))
    minima = b.temp(DType.INT32, (rows, blocks))
    b.vector("int_amin", (cut,), minima.inserted(2))
    chosen = _first_keys(b, minima, count, bits).inserted(2)

    inside = count * size
    left, places = (b.temp(DType.INT32, (rows, inside + rest)) for _ in range(2))
    shape = (rows, count, size)
    b.gather(cut, b.expanded(chosen, shape), left.sliced(1, 0, inside).split(1, (count, size)), 1)
    b.vector(
        "int_add",
        (_positions(b, keys.sliced(1, 0, size)).inserted(1), chosen),
        places.sliced(1, 0, inside).split(1, (count, size)),
        size,
    )
    b.copy(keys.sliced(1, blocks * size, rest), left.sliced(1, inside, rest))
    b.vector("int_range", (), places.sliced(1, inside, rest), blocks * size, 1)
    return _taken(b, places, _first_keys(b, left, count, bits))
