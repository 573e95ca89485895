# SPDX-License-Identifier: Apache-2.0
"""What the lowering refuses, by a typed error that names the op and why; and the view algebra."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from backend_host import CONFIG

from driver.errors import UnsupportedOp
from driver.isa import DType, Opcode
from driver.lower import LOWERINGS, lower
from driver.runtime import UNBOUNDED_BYTES, Buffer, Program, TensorView, dense
from driver.runtime.views import collapse, dense_strides

LIMIT = 1 << 32
MEMORY = Buffer(UNBOUNDED_BYTES)
"""What all operands lie in."""


def view(
    *sizes: int, dtype: DType = DType.FP32, strides: tuple[int, ...] | None = None
) -> TensorView:
    strides = dense_strides(sizes) if strides is None else strides
    return TensorView(MEMORY, 0, dtype, sizes, strides)


def lowered(op: str, *views: TensorView, **scalars: float) -> Program:
    """The last view is the result."""
    return lower(f"aten.{op}.default", views[:-1], scalars, views[-1:], CONFIG)


HALF, INT, I8 = DType.FP16, DType.INT32, DType.INT8
REFUSED = [
    ("sgn", (view(2), view(2)), {}, "op: got aten.sgn.default, expected one of aten."),
    ("mm", (view(2, 3), view(4, 5), view(2, 5)), {}, "shapes: got (2, 3) · (4, 5)"),
    ("mm", (view(2, 3), view(3, 5), view(3, 5)), {}, "shapes: got (2, 3) · (3, 5)"),
    ("bmm", (view(2, 2, 3), view(1, 3, 5), view(2, 2, 5)), {}, "shapes: got (2, 2, 3)"),
    ("mm", (view(3), view(3, 5), view(3, 5)), {}, "ranks: got (1, 2, 2), expected (2, 2, 2)"),
    ("mm", (view(2, 3), view(2, 5)), {}, "argument mat2: got"),
    ("bmm", (view(2, 3), view(3, 5), view(2, 5)), {}, "ranks: got (2, 2, 2)"),
    ("addmm", (view(2, 3), view(3, 5), view(2, 5)), {}, "argument mat2: got"),
    ("addmm", (view(5), view(2, 3), view(3, 5), view(1, 1, 2, 5)), {}, "ranks: got (2, 2, 4)"),
    ("linear", (view(2, 3), view(2, 5)), {}, "argument weight: got"),
    ("linear", (view(4, 3), view(5, 3), view(2, 5)), {}, "shapes: got (4, 3)"),
    ("linear", (view(3), view(5, 3), view(2, 5)), {}, "ranks: got (2, 2), expected (2, 1)"),
    ("mm", (view(2, 3), view(3, 5, dtype=HALF), view(2, 5)), {}, "dtype: got FP32 · FP16 = FP32"),
    ("mm", (view(2, 3), view(3, 5), view(2, 5, dtype=HALF)), {}, "dtype: got FP32 · FP32 = FP16"),
    (
        "addmm",
        (view(5), view(2, 3), view(3, 5), view(2, 5)),
        {"alpha": "two"},
        "argument alpha",
    ),
    (
        "addmm",
        (view(5, dtype=INT), view(2, 3, dtype=I8), view(3, 5, dtype=I8), view(2, 5, dtype=INT)),
        {"beta": 0.5},
        "scalar: got 0.5, expected an integer for integer operands",
    ),
    ("mm", (view(2, 3), view(3, 5), view(2, 5)), {"gamma": 1}, "argument gamma: got 1"),
    (
        "addmm",
        (view(4), view(2, 3), view(3, 5), view(2, 5)),
        {},
        "shape: got (4,), expected one that",
    ),
    ("addmm", (view(3, 2, 5), view(2, 3), view(3, 5), view(2, 5)), {}, "shape: got (3, 2, 5)"),
    ("mm", (view(2, 3), view(3, 5), view(2, 5, strides=(0, 1))), {}, "result: got (1, 0, 1)"),
    ("mm", (view(2, 3, strides=(-3, 1)), view(3, 5), view(2, 5)), {}, "strides: got size 2 with"),
    ("mm", (view(2, 3, strides=(LIMIT, 1)), view(3, 5), view(2, 5)), {}, "stride 4294967296"),
    (
        "mm",
        (view(LIMIT, 1), view(1, 1), view(LIMIT, 1)),
        {},
        "strides: got size 4294967296 with stride 1",
    ),
    (
        "clone",
        (dense(Buffer(1 << 34), DType.FP32, (1 << 16, 1 << 16)), view(1 << 16, 1 << 16)),
        {},
        "strides: got size 4294967296 with stride 1",
    ),
    (
        "linear",
        (
            view(1 << 16, 1 << 16, 1, strides=(1, 1 << 17, 1)),
            view(1, 1),
            view(1 << 16, 1 << 16, 1, strides=(1, 1 << 17, 1)),
        ),
        {},
        "sizes: got (4294967296, 1, 1)",
    ),
]


@pytest.mark.parametrize(("op", "views", "scalars", "message"), REFUSED)
def test_refusals_name_the_op_and_the_reason(
    op: str, views: tuple[TensorView, ...], scalars: dict[str, float], message: str
) -> None:
    with pytest.raises(UnsupportedOp) as caught:
        lowered(op, *views, **scalars)
    text = str(caught.value)
    assert text.startswith(f"aten.{op}.default: ")
    assert message in text
    assert "\n" not in text
    assert caught.value.exit_code == 2


def test_a_copy_with_more_strides_than_a_descriptor_holds_is_several() -> None:
    strides = (1, 2, 4, 8, 16, 32, 64)
    x = view(*[2] * 6, 3, strides=strides)
    program = lowered("clone", x, view(*[2] * 6, 3))
    assert [packet.opcode for packet in program.packets] == [Opcode.COPY] * 4


def test_rows_of_more_dimensions_than_a_window_holds_are_several_products() -> None:
    strides = (1, 2, 4, 8, 16, 32, 64)
    x = view(*[2] * 6, 3, strides=strides)
    program = lowered("linear", x, view(5, 3), view(*[2] * 6, 5))
    assert [packet.opcode for packet in program.packets] == [Opcode.MATMUL] * 4
    assert {packet.params[:4] for packet in program.packets} == {(8, 3, 5, 2)}


def test_a_size_of_one_may_have_any_stride() -> None:
    x = view(1, 3, strides=(1 << 40, 1))
    assert lowered("mm", x, view(3, 5), view(1, 5)).sections == ()
    tall = view(3, 1, strides=(7, 1 << 40))
    program = lowered("mm", tall, view(1, 5), view(3, 5))
    assert [section.kind for section in program.sections] == ["descriptor"]
    data = program.image.tobytes()[program.sections[0].content :]
    assert int.from_bytes(data[36:40], "little") == 1
    assert [int.from_bytes(data[at : at + 4], "little") for at in (40, 44)] == [7, 1]


def test_the_table_names_every_matrix_product_of_the_contract() -> None:
    assert {"mm", "addmm", "bmm", "linear"} <= {name.split(".")[1] for name in LOWERINGS}


# ---------------------------------------------------------------------- views
def test_collapse_keeps_the_walk_of_both_strides() -> None:
    rng = np.random.default_rng(5)
    compared = shorter = 0
    for _ in range(500):
        rank = int(rng.integers(0, 6))
        sizes = tuple(int(size) for size in rng.choice([1, 2, 3], rank))
        walks = []
        for _ in range(2):
            order = rng.permutation(rank) if rng.random() < 0.3 else np.arange(rank)
            steps = [0] * rank
            extent = int(rng.integers(1, 3))
            for dim in order[::-1]:
                steps[dim] = extent if rng.random() < 0.9 else 0
                extent *= sizes[dim]
            walks.append(tuple(steps))
        merged, strides = collapse(sizes, *walks)
        assert prod(merged) == prod(sizes)
        assert merged == (1,) or 1 not in merged
        for before, after in zip(walks, strides, strict=True):
            offsets = [
                sum(index * step for index, step in zip(at, walk, strict=True))
                for shape, walk in ((sizes, before), (merged, after))
                for at in np.ndindex(*shape)
            ]
            half = len(offsets) // 2
            assert offsets[:half] == offsets[half:]
            compared += half
        for outer in range(len(merged) - 1):
            inner = outer + 1
            assert any(walk[outer] != merged[inner] * walk[inner] for walk in strides)
        shorter += len(merged) < rank
    assert compared > 5000
    assert shorter > 100


@pytest.mark.parametrize(
    ("sizes", "strides", "expected"),
    [
        ((2, 3), (3, 1), True),
        ((2, 3), (4, 1), False),
        ((1, 3), (99, 1), True),
        ((2, 1, 3), (3, 0, 1), True),
        ((2, 3), (1, 2), False),
        ((2, 3), (0, 1), False),
        ((), (), True),
    ],
)
def test_density_ignores_sizes_of_one(
    sizes: tuple[int, ...], strides: tuple[int, ...], expected: bool
) -> None:
    assert TensorView(MEMORY, 0, DType.FP32, sizes, strides).is_dense == expected


def test_expansion_follows_torchs_rules() -> None:
    column = view(3, 1)
    wide = column.expanded((2, 3, 4))
    assert wide is not None
    assert (wide.sizes, wide.strides, wide.repeats) == ((2, 3, 4), (0, 1, 0), True)
    assert column.expanded((4,)) is None
    assert view(1, 1).expanded((4,)) is None
    assert column.expanded((2, 4)) is None
    whole = dense(MEMORY, DType.FP32, (2, 3))
    assert whole.expanded((2, 3)) == whole
