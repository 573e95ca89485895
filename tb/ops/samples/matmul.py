# SPDX-License-Identifier: Apache-2.0
"""Samples of matrix products beyond the directed cases: scaled, added, in every type."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tb.ops.samples.model import FLOATS, Sample, T

_EDGES = ((5, 7, 3), (1, 1, 1), (17, 33, 9), (8, 8, 8))


def _products() -> Iterator[Sample]:
    for m, k, n in _EDGES:
        a, b, c = T((m, k)), T((k, n)), T((m, n))
        yield Sample("aten.mm.default", (a, b), special=False)
        yield Sample("aten.bmm.default", (T((3, m, k)), T((3, k, n))), special=False)
        for scalars in ({}, {"beta": 0}, {"alpha": 0.5, "beta": -2.0}):
            yield Sample("aten.addmm.default", (c, a, b), FLOATS, scalars, special=False)
        yield Sample("aten.addmm.default", (T((n,)), a, b), special=False)
        yield Sample("aten.linear.default", (T((2, m, k)), T((n, k)), T((n,))), special=False)
        yield Sample("aten.linear.default", (T((m, k)), T((n, k))), special=False)
    batch = (T((2, 5, 3)), T((2, 5, 7)), T((2, 7, 3)))
    for scalars in ({}, {"alpha": 2.0, "beta": 0.5}):
        yield Sample("aten.baddbmm.default", batch, FLOATS, scalars, special=False)
    yield Sample("aten.mv.default", (T((5, 9)), T((9,))), special=False)
    yield Sample("aten.addmv.default", (T((5,)), T((5, 9)), T((9,))), special=False)
    yield Sample("aten.dot.default", (T((33,)), T((33,))), special=False)
    yield Sample("aten._int_mm.default", (T((17, 8)), T((8, 8))), (torch.int8,))
    yield Sample("aten.mm.default", (T((0, 4)), T((4, 3))), special=False)
    yield Sample("aten.addmm.default", (T((3,)), T((2, 0)), T((0, 3))), special=False)


SAMPLES = tuple(_products())
