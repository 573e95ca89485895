# SPDX-License-Identifier: Apache-2.0
"""Views cut into pieces for descriptors, their algebra against numpy, numbers as bits."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch

from driver.isa import MAX_RANK, DType
from driver.lower.pieces import pieces
from driver.lower.words import element, fp32, rounded, word
from driver.runtime import UNBOUNDED_BYTES, Buffer, TensorView, dense
from driver.runtime.views import broadcast

MEMORY = Buffer(UNBOUNDED_BYTES)
RNG = np.random.default_rng(11)


def offsets(view: TensorView) -> list[int]:
    """Where each element lies, in row-major order; fp32, from the start of the buffer."""
    indices = product(*map(range, view.sizes))
    return [
        view.offset_bytes // 4
        + sum(i * stride for i, stride in zip(index, view.strides, strict=True))
        for index in indices
    ]


def random_view(sizes: tuple[int, ...]) -> TensorView:
    order = RNG.permutation(len(sizes))
    strides = [0] * len(sizes)
    extent = 1
    for dim in order:
        strides[dim] = 0 if RNG.random() < 0.1 else extent
        extent *= sizes[dim] * int(RNG.integers(1, 3))
    return TensorView(MEMORY, 0, DType.FP32, sizes, tuple(strides))


def test_a_whole_number_of_numpy_is_one() -> None:
    assert word(np.int64(3)) == word(3) == 3
    assert word(np.float32(3)) == word(3.0) == 0x4040_0000


def test_pieces_walk_all_views_in_step() -> None:
    compared = cut = 0
    for _ in range(300):
        sizes = tuple(int(n) for n in RNG.choice([1, 2, 3], RNG.integers(0, 8)))
        views = [random_view(sizes) for _ in range(3)]
        together = sorted(zip(*map(offsets, views), strict=True))
        found: list[tuple[int, ...]] = []
        parts = list(pieces(views))
        for part, _ in parts:
            assert 1 <= part[0].rank <= MAX_RANK
            assert len({view.sizes for view in part}) == 1
            found += zip(*map(offsets, part), strict=True)
        assert sorted(found) == together
        compared += len(found)
        cut += len(parts) > 1
    assert compared > 5000
    assert cut > 5


def test_a_dimension_apart_keeps_its_size_and_order() -> None:
    compared = 0
    for _ in range(300):
        sizes = tuple(int(n) for n in RNG.choice([1, 2, 3], RNG.integers(1, 8)))
        apart = int(RNG.integers(0, len(sizes)))
        view = random_view(sizes)
        table = random_view((*sizes[:apart], 5, *sizes[apart + 1 :]))
        rows: list[list[int]] = []
        for (part, long), at in pieces([view, table], apart):
            assert (part.sizes[at], long.sizes[at]) == (sizes[apart], 5)
            last = part.with_last([at])
            flat = offsets(last)
            rows += [flat[n : n + sizes[apart]] for n in range(0, len(flat), sizes[apart])]
        wanted = offsets(view.with_last([apart]))
        step = sizes[apart]
        assert sorted(rows) == sorted(wanted[n : n + step] for n in range(0, len(wanted), step))
        compared += len(wanted)
    assert compared > 3000


def test_views_follow_numpy() -> None:
    data = np.arange(60).reshape(3, 4, 5)
    view = dense(MEMORY, DType.FP32, (3, 4, 5))
    cases = [
        (view.permuted((2, 0, 1)), data.transpose(2, 0, 1)),
        (view.transposed(), data.swapaxes(1, 2)),
        (view.with_last([0]), data.transpose(1, 2, 0)),
        (view.inserted(1), data[:, None]),
        (view.inserted(3), data[..., None]),
        (view.sliced(1, 1, 2, 2), data[:, 1:4:2]),
        (view.selected(-1, 3), data[..., 3]),
        (view.split(1, (2, 2)), data.reshape(3, 2, 2, 5)),
        (view.flattened(), data.reshape(60)),
        (view.windows(2, 2, 2, 3, 1), np.stack([data[..., 0:3], data[..., 2:5]], 2)),
        (view.selected(0, 1).expanded((2, 4, 5)), np.stack([data[1]] * 2)),
    ]
    for found, wanted in cases:
        assert found is not None
        assert found.sizes == wanted.shape
        assert offsets(found) == wanted.reshape(-1).tolist()
    assert view.transposed().flattened() is None


def test_shapes_broadcast_as_numpys() -> None:
    for _ in range(200):
        ranks = RNG.integers(0, 4, 2)
        shapes = [tuple(int(n) for n in RNG.choice([0, 1, 2, 3], rank)) for rank in ranks]
        try:
            wanted: tuple[int, ...] | None = np.broadcast_shapes(*shapes)
        except ValueError:
            wanted = None
        assert broadcast(*shapes) == wanted


SPECIAL = [0.0, -0.0, 1.0, 0.1, 65504.0, 65519.9, 65520.0, -1e9, 1e-8, 3e-45, 1e39, -1e39]
NUMBERS = [*SPECIAL, math.inf, -math.inf, *(float(x) for x in RNG.standard_normal(500))]


@pytest.mark.parametrize(
    ("dtype", "npu"),
    [(torch.float32, DType.FP32), (torch.float16, DType.FP16), (torch.bfloat16, DType.BF16)],
)
def test_numbers_round_as_torchs(dtype: torch.dtype, npu: DType) -> None:
    wide = torch.tensor(NUMBERS, dtype=torch.float64).to(torch.float32)
    values = wide.to(dtype)
    kind = torch.int32 if npu is DType.FP32 else torch.int16
    bits = values.view(kind).to(torch.int64) & ((1 << 8 * dtype.itemsize) - 1)
    assert [element(number, npu) for number in NUMBERS] == bits.tolist()
    assert [rounded(number, npu) for number in NUMBERS] == values.double().tolist()
    assert [fp32(number) for number in NUMBERS] == wide.double().tolist()
    assert math.isnan(rounded(math.nan, npu))
    assert [element(n, DType.INT8) for n in (-1, 300)] == [255, 44]


def test_immediates_are_words() -> None:
    assert [word(-1), word(1 << 31), word(-1.0)] == [0xFFFF_FFFF, 1 << 31, 0xBF80_0000]
    for number in (1 << 32, -(1 << 31) - 1):
        with pytest.raises(OverflowError):
            word(number)
