# SPDX-License-Identifier: Apache-2.0
"""Common walks of two passes: complete, in the order that a row needs, or refused."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod

import pytest
from backend_host import CONFIG
from fusion_host import executed

from driver.compile import VectorPass, fused
from driver.compile.aligning import Axis, common_axes, with_row
from driver.isa import DType
from driver.isa.programs import PROGRAMS
from driver.runtime import Buffer, TensorView
from driver.runtime.views import dense

_ELEMENTS = 24
_SHAPES = ((24,), (4, 6), (6, 4), (2, 3, 4), (4, 3, 2), (2, 2, 2, 3), (1, 24), (8, 1, 3))


def _view(sizes: Sequence[int], buffer: Buffer, dtype: DType = DType.FP32) -> TensorView:
    return dense(buffer, dtype, tuple(sizes))


def _turned(rng: random.Random, buffer: Buffer) -> TensorView:
    """All elements of a buffer, in some shape and order."""
    view = _view(rng.choice(_SHAPES), buffer)
    return view.permuted(rng.sample(range(view.rank), view.rank))


def _offsets(view: TensorView, axes: Sequence[Axis], *, second: bool) -> list[int]:
    """Elements of the view in the order of the axes."""
    found = [0]
    for axis in axes:
        dim = axis.second if second else axis.first
        assert dim is not None
        step = view.strides[dim] * (axis.second_step if second else axis.first_step)
        found = [at + step * i for at in found for i in range(axis.size)]
    return found


def _complete(axes: Sequence[Axis], sizes: Sequence[int], *, second: bool) -> bool:
    """Whether the axes of each dimension, longest steps first, are all of it."""
    for dim, size in enumerate(sizes):
        own = [axis for axis in axes if (axis.second if second else axis.first) == dim]
        steps = sorted(((a.second_step if second else a.first_step), a.size) for a in own)
        inner = 1
        for step, length in steps:
            if step != inner:
                return False
            inner *= length
        if inner != size:
            return False
    return True


def test_axes_meet_the_same_elements_and_are_complete() -> None:
    rng = random.Random(1)
    found = 0
    for _ in range(3000):
        buffer = Buffer(4 * _ELEMENTS)
        first, second = _turned(rng, buffer), _turned(rng, buffer)
        axes = common_axes(first, second)
        if axes is None:
            continue
        found += 1
        assert prod(axis.size for axis in axes) == _ELEMENTS
        assert _offsets(first, axes, second=False) == _offsets(second, axes, second=True)
        assert _complete(axes, first.sizes, second=False)
        assert _complete(axes, second.sizes, second=True)
        rows = first.rank - 1, second.rank - 1
        for first_row, second_row in ((rows[0], None), (None, rows[1]), rows):
            split = with_row(axes, first_row, second_row)
            if split is None:
                assert None not in (first_row, second_row)
                continue
            assert _in_order(split[1], first, first_row, second=False)
            assert _in_order(split[1], second, second_row, second=True)
    assert found > 1500


def _in_order(row: Sequence[Axis], view: TensorView, dim: int | None, *, second: bool) -> bool:
    """Whether the axes of the row walk this dimension from its first element to its last."""
    if dim is None:
        return True
    return _offsets(view, row, second=second) == [
        at * view.strides[dim] for at in range(view.sizes[dim])
    ]


@pytest.mark.parametrize("sizes", [(4, 6), (3, 8), (24, 1)])
def test_a_first_walk_that_repeats_elements_has_no_common_axes(sizes: tuple[int, int]) -> None:
    buffer = Buffer(4 * _ELEMENTS)
    row = _view((1, sizes[1]), buffer).expanded(sizes)
    assert row is not None
    for other in (row, _view(sizes, buffer), _view((1, sizes[1]), buffer)):
        assert common_axes(row, other) is None


# ---------------------------------------------------------------------- passes
def _step(name: str, *views: TensorView) -> VectorPass:
    program = PROGRAMS[name]
    return VectorPass(program, views[:-1], views[-1:], (0,) * len(program.imms))


def _checked(passes: Sequence[VectorPass], between: TensorView) -> int:
    """Passes that are left, with the bits of the given ones."""
    buffers = {view.buffer for one in passes for view in (*one.sources, *one.results)}
    memory = {buffer: bytearray(random.Random(2).randbytes(256)) for buffer in buffers}
    for data in memory.values():
        data[3::4] = bytes([0x3F]) * 64  # numbers of ordinary size
    memory |= {
        view.buffer: bytearray(b"\2\0\0\0" * 64)
        for one in passes
        for view in one.sources
        if view.dtype is DType.INT32
    }
    left = fused(passes, frozenset((between.buffer,)), CONFIG)
    (result,) = passes[-1].results
    expected = executed(passes, memory)[result.buffer]
    assert executed(left, memory)[result.buffer] == expected
    return len(left)


def _tril(x: TensorView, a: TensorView) -> VectorPass:
    limit = _view((a.sizes[0], 1), Buffer(256), DType.INT32).expanded(a.sizes)
    assert limit is not None
    return _step("tril", x, limit, a)


def test_rows_of_other_elements_are_not_those_of_a_reduction() -> None:
    for sizes in ((4, 6), (4, 4)):
        x, a = (_view(sizes, Buffer(256)) for _ in range(2))
        along, across = _view((sizes[0], 1), Buffer(256)), _view((sizes[1], 1), Buffer(256))
        assert _checked([_tril(x, a), _step("sum", a, along)], a) == 1
        assert _checked([_tril(x, a), _step("sum", a.permuted((1, 0)), across)], a) == 2


def test_a_row_that_the_second_pass_visits_in_another_order_stays_in_its_own() -> None:
    x, a = (_view((4, 6), Buffer(256)) for _ in range(2))
    pieces = TensorView(a.buffer, 0, DType.FP32, (4, 3, 2), (6, 1, 3))
    out = _view((4, 3, 2), Buffer(256))
    assert _checked([_tril(x, a), _step("sqrt", pieces, out)], a) == 2
    back = TensorView(out.buffer, 0, DType.FP32, (4, 3, 2), (6, 1, 3))
    assert _checked([_tril(x, a), _step("sqrt", pieces, back)], a) == 1
