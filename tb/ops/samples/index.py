# SPDX-License-Identifier: Apache-2.0
"""Samples of ops that read and write by index, and of sorting."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tb.ops.samples.model import BOOL, EVERY, FLOATS, INTS, NUMBERS, Sample, T

_I64, _I32 = torch.int64, torch.int32


def _at(shape: tuple[int, ...], limit: int, dtype: torch.dtype = _I64) -> T:
    return T(shape, "index", dtype, limit)


def _reads() -> Iterator[Sample]:
    for dtype in (_I64, _I32):
        yield Sample("aten.embedding.default", (T((11, 6)), _at((2, 5), 11, dtype)), FLOATS)
        yield Sample("aten.index_select.default", (T((7, 5)), 0, _at((9,), 7, dtype)), EVERY)
    yield Sample("aten.index_select.default", (T((3, 7)), 1, _at((4,), 7)), EVERY)
    yield Sample("aten.gather.default", (T((4, 7)), 1, _at((4, 3), 7)), EVERY)
    yield Sample("aten.gather.default", (T((4, 7)), 0, _at((2, 5), 4)), EVERY)
    yield Sample("aten._unsafe_index.Tensor", (T((7, 5)), [_at((4,), 7)]), EVERY)
    yield Sample("aten.index.Tensor", (T((7, 5)), [_at((4,), 7)]), EVERY)
    yield Sample("aten.index.Tensor", (T((7, 5)), [None, _at((2, 3), 5)]), EVERY)


def _masks() -> Iterator[Sample]:
    """Of some elements, of all and of none; the memory order of the mask is the sample's."""
    for mask in (T((4, 7), "any", torch.bool), T((4, 7), "all set", torch.bool)):
        yield Sample("aten.nonzero.default", (mask,), BOOL)
        yield Sample("aten.masked_select.default", (T((4, 7)), mask), EVERY)
        yield Sample("aten.index.Tensor", (T((4, 7)), [mask]), EVERY)
        yield Sample("aten.index.Tensor", (T((4, 7, 3)), [mask]), EVERY)
        for form, first in (("", T((4, 7))), ("_", T((4, 7), plain=True))):
            given = (first, mask, T((40,)))
            yield Sample(f"aten.masked_scatter{form}.default", given, EVERY)
            yield Sample(f"aten.index_put{form}.default", (first, [mask], T(())), EVERY)
    yield Sample("aten.nonzero.default", (T((3, 5, 4), "ties"),), NUMBERS)
    yield Sample("aten.nonzero.default", (T((33, 40), "any", torch.bool),), BOOL)
    line = T((7,), "any", torch.bool)
    yield Sample("aten.masked_select.default", (T((4, 7)), line), FLOATS)
    yield Sample("aten.index.Tensor", (T((4, 7, 3)), [None, line]), FLOATS)
    yield Sample(
        "aten.index.Tensor", (T((4, 7, 3)), [T((4,), "all set", torch.bool), None]), FLOATS
    )
    every = T((4, 7), "all set", torch.bool)
    puts = (T((4, 7, 3)), [every], T((28, 3)))
    yield Sample("aten.index_put.default", puts, EVERY)
    yield Sample("aten.index_put.default", (*puts, True), (*FLOATS, _I32), special=False)
    yield Sample("aten.index_put.default", (T((4, 7, 3)), [line_of(4)], T((3,))), EVERY)
    adds = (T((4, 7, 3)), [line_of(4)], T((3,)), True)
    yield Sample("aten.index_put.default", adds, (*FLOATS, _I32, _I64), special=False)
    yield Sample("aten.index_put.default", (T((2, 4, 3)), [None, line_of(4)], T((1, 3))), EVERY)


def line_of(count: int) -> T:
    """A mask of one dimension."""
    return T((count,), "any", torch.bool)


def _writes() -> Iterator[Sample]:
    place = T((4, 3), "permutation", _I64, 7, plain=True)
    for form, first in (("", T((4, 7))), ("_", T((4, 7), plain=True))):
        yield Sample(f"aten.scatter{form}.src", (first, 1, place, T((4, 3))), EVERY)
        yield Sample(f"aten.scatter{form}.value", (first, 1, place, 1), NUMBERS)
        adds = (first, 1, _at((4, 6), 7), T((4, 6)))
        yield Sample(f"aten.scatter_add{form}.default", adds, (*FLOATS, _I32))
        rows = (first, 0, _at((6,), 4), T((6, 7)))
        yield Sample(f"aten.index_add{form}.default", rows, (*FLOATS, _I32))
        copies = (first, 0, T((3,), "permutation", _I64, 4, plain=True), T((3, 7)))
        yield Sample(f"aten.index_copy{form}.default", copies, EVERY)
        puts = (first, [T((3,), "permutation", _I64, 4, plain=True)], T((3, 7)))
        yield Sample(f"aten.index_put{form}.default", puts, EVERY)

    puts = (T((4, 7)), [T((3,), "permutation", _I64, 4, plain=True)], T((3, 7)))
    yield Sample("aten._unsafe_index_put.default", puts, EVERY)
    back = (T((2, 5, 6)), _at((2, 5), 11), 11, -1, False)
    yield Sample("aten.embedding_dense_backward.default", back, FLOATS)
    again = (T((4, 5, 6)), _at((4, 5), 7), 7, 3, True)
    yield Sample("aten.embedding_dense_backward.default", again, FLOATS)


def _sorting() -> Iterator[Sample]:
    for values in ("any", "ties"):
        for shape, dim in (((3, 13), -1), ((6, 4), 0), ((1,), 0)):
            for down in (False, True):
                yield Sample("aten.sort.default", (T(shape, values), dim, down), NUMBERS)
                stable = {"stable": True, "dim": dim, "descending": down}
                yield Sample("aten.sort.stable", (T(shape, values),), FLOATS, stable)
        yield Sample("aten.argsort.default", (T((3, 13), values), -1, True), NUMBERS)
        for k, largest in ((1, True), (5, True), (3, False)):
            yield Sample("aten.topk.default", (T((3, 13), values), k, -1, largest), NUMBERS)
        yield Sample("aten.kthvalue.default", (T((3, 13), values), 4), NUMBERS)
        yield Sample("aten.kthvalue.default", (T((5, 3), values), 2, 0, True), NUMBERS)
        for sizes in ((3, 12), (3, 13), ()):
            # Plain: of a row that a stride of 0 repeats, torch 2.13 answers with another row's.
            yield Sample("aten.median.default", (T(sizes, values),), NUMBERS)
            yield Sample("aten.median.dim", (T(sizes, values, plain=True), 0), NUMBERS)
            yield Sample("aten.median.dim", (T(sizes, values, plain=True), -1, True), NUMBERS)


def _long_rows() -> Iterator[Sample]:
    """Beyond the length at which ranks are counted: sorts by bits, choices by blocks."""
    row, stable = T((2, 1100), "ties"), {"stable": True}
    yield Sample("aten.sort.stable", (row,), FLOATS, stable)
    yield Sample("aten.argsort.stable", (T((2, 700)),), (*INTS, *BOOL), stable)
    yield Sample("aten.sort.default", (T((600, 2)), 0, True), (torch.bfloat16,))
    far = T((3, 40), "far")
    yield Sample("aten.sort.default", (far,), (_I64, _I32))
    yield Sample("aten.argsort.stable", (far,), (_I64,), {"stable": True, "descending": True})
    for k, largest in ((1, True), (9, False), (300, True)):
        yield Sample("aten.topk.default", (T((2, 2500)), k, -1, largest), FLOATS)
        yield Sample("aten.topk.default", (T((2, 2500), "far"), k, -1, largest), (_I64, _I32))
    yield Sample("aten.kthvalue.default", (T((2, 2500)), 2000), FLOATS)
    yield Sample("aten.median.default", (T((30, 30)),), FLOATS)


SAMPLES = (*_reads(), *_masks(), *_writes(), *_sorting(), *_long_rows())
