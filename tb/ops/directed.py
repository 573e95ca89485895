# SPDX-License-Identifier: Apache-2.0
"""Directed matrix products: the shapes, strides, types and values at which engines break.

Every list is data; adding a case is adding a row. Operands depend on the seed and the case's own
number only, so a case run alone has the same bits as in the whole test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch

from driver.isa import DType
from tb.ops.case import Case, Entry

Tensor = torch.Tensor
Generator = torch.Generator

DTYPES: dict[str, torch.dtype] = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "int8": torch.int8,
}


def _edge_shapes(n: int) -> list[tuple[int, int, int]]:
    """(M, K, N): one, one short of and one past the array in each dimension, and longer."""
    around = [(m, k, j) for m in (n - 1, n + 1) for k in (n - 1, n + 1) for j in (n - 1, n + 1)]
    single = [(1, 1, 1), (1, n, n), (n, 1, n), (n, n, 1), (n, n, n)]
    long = [(1, 4864, 1), (3, 4864, n + 2), (2 * n + 1, 3, 5 * n - 1), (8 * n + 1, n + 3, n + 1)]
    return single + around + long


def _block_shapes(n: int) -> list[tuple[int, int, int]]:
    """More than the accumulators' 64 tiles hold: blocks of columns, of rows (8 tiles), of both."""
    return [(3, n + 1, 64 * n + 5), (8 * n + 1, 3, 8 * n + 3), (16 * n + 1, n + 3, 16 * n + 1)]


_LONG = 65_539
"""More than 16 bits count, and no multiple of an array's side."""

SMALL_SHAPES = ((1, 1, 1), (5, 7, 3), (17, 33, 9), (33, 20, 47))


def random_values(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator) -> Tensor:
    """Normally distributed; int8: any value, both extremes often."""
    if dtype == torch.int8:
        wide = torch.randint(-160, 160, shape, dtype=torch.int16, generator=generator)
        return wide.clamp(-128, 127).to(dtype)
    return torch.randn(shape, generator=generator).to(dtype)


def special_values(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator) -> Tensor:
    """Zeros, ones, subnormals, extremes, infinities and NaN of both signs, at random.

    NaN and infinities are rare enough that most results stay numbers.
    """
    info = torch.finfo(dtype)
    tame = [0.0, 0.75, 1.0, 1.5, info.eps, info.max**0.5, info.max]
    tame += [info.tiny * part for part in (1, 1 - info.eps, 1 / 4, 1 / 64, info.eps)]
    wild = [float("inf"), float("nan")]
    table = torch.tensor([sign * x for x in tame * 8 + wild for sign in (1, -1)])
    pick = torch.randint(0, len(table), shape, generator=generator)
    return table.to(dtype)[pick]


def cancelling_values(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator) -> Tensor:
    """Large values of alternating sign: sums cancel and leave the roundings."""
    values = torch.randn(shape, generator=generator) + 1000
    signs = 1 - 2 * (torch.arange(shape[-1]) % 2)
    return (values * signs).to(dtype)


Values = Callable[[tuple[int, ...], torch.dtype, Generator], Tensor]


Make = Callable[[Generator], tuple[str, tuple[Tensor, ...]]]
"""Random numbers → ATen op and its operands."""


@dataclass(frozen=True)
class _Row:
    """One directed case before its operands exist."""

    group: str
    make: Make
    result: DType | None = None


def _mm(m: int, k: int, n: int, dtype: torch.dtype, values: Values = random_values) -> Make:
    def make(generator: Generator) -> tuple[str, tuple[Tensor, ...]]:
        return "aten.mm.default", (
            values((m, k), dtype, generator),
            values((k, n), dtype, generator),
        )

    return make


def _view(
    shapes: tuple[tuple[int, ...], ...],
    view: Callable[..., tuple[Tensor, ...]],
    op: str,
    dtype: torch.dtype = torch.float32,
) -> Make:
    def make(generator: Generator) -> tuple[str, tuple[Tensor, ...]]:
        return op, view(*(random_values(shape, dtype, generator) for shape in shapes))

    return make


def _layouts(n: int, dtype: torch.dtype) -> Iterator[tuple[str, Make]]:
    """Strided operands: transposed, sliced, broadcast, batched."""
    m, k, j = n + 3, 2 * n + 5, n + 1
    mm, bmm = "aten.mm.default", "aten.bmm.default"
    yield "A transposed", _view(((k, m), (k, j)), lambda a, b: (a.t(), b), mm, dtype)
    yield "B transposed", _view(((m, k), (j, k)), lambda a, b: (a, b.t()), mm, dtype)
    yield "both transposed", _view(((k, m), (j, k)), lambda a, b: (a.t(), b.t()), mm, dtype)
    yield "rows sliced", _view(((2 * m, k), (k, j)), lambda a, b: (a[::2], b), mm, dtype)
    yield (
        "columns sliced",
        _view(((m, 3 * k), (k, 2 * j)), lambda a, b: (a[:, ::3], b[:, ::2]), mm, dtype),
    )
    yield (
        "window of a larger matrix",
        _view(
            ((m + 3, k + 5), (k + 2, j + 7)), lambda a, b: (a[1:-2, 3:-2], b[2:, 5:-2]), mm, dtype
        ),
    )
    yield "row broadcast", _view(((1, k), (k, j)), lambda a, b: (a.expand(m, k), b), mm, dtype)
    yield "column broadcast", _view(((m, k), (k, 1)), lambda a, b: (a, b.expand(k, j)), mm, dtype)
    yield "scalar broadcast", _view(((1, 1), (k, j)), lambda a, b: (a.expand(m, k), b), mm, dtype)
    yield "batch", _view(((3, m, k), (3, k, j)), lambda a, b: (a, b), bmm, dtype)
    yield (
        "batch, both transposed",
        _view(((3, k, m), (3, j, k)), lambda a, b: (a.mT, b.mT), bmm, dtype),
    )
    yield (
        "batch, B shared",
        _view(((3, m, k), (1, k, j)), lambda a, b: (a, b.expand(3, k, j)), bmm, dtype),
    )
    yield (
        "batch, heads interleaved",
        _view(
            ((m, 4, k), (j, 4, k)), lambda a, b: (a.transpose(0, 1), b.permute(1, 2, 0)), bmm, dtype
        ),
    )


def _sums(n: int, dtype: torch.dtype) -> Iterator[tuple[str, Make]]:
    """A product added to something: bias, matrix, linear layer."""
    m, k, j = n + 1, n + 2, 2 * n - 1
    yield (
        "bias",
        _view(((j,), (m, k), (k, j)), lambda c, a, b: (c, a, b), "aten.addmm.default", dtype),
    )
    yield (
        "matrix added",
        _view(((m, j), (m, k), (k, j)), lambda c, a, b: (c, a, b), "aten.addmm.default", dtype),
    )
    yield (
        "matrix added, in blocks",
        _view(
            ((8 * n + 1, 16 * n + 3), (8 * n + 1, k), (k, 16 * n + 3)),
            lambda c, a, b: (c, a, b),
            "aten.addmm.default",
            dtype,
        ),
    )
    yield (
        "transposed matrix added",
        _view(((j, m), (m, k), (k, j)), lambda c, a, b: (c.t(), a, b), "aten.addmm.default", dtype),
    )
    yield (
        "linear",
        _view(((2, m, k), (j, k), (j,)), lambda a, w, c: (a, w, c), "aten.linear.default", dtype),
    )
    yield (
        "linear, all strided",
        _view(
            ((2, m, 2 * k), (k, j), (2 * j,)),
            lambda a, w, c: (a[..., ::2], w.t(), c[::2]),
            "aten.linear.default",
            dtype,
        ),
    )


def _long_rows(n: int) -> Iterator[_Row]:
    """Each dimension, and the strides of each operand, beyond 16 bits."""
    for shape in ((_LONG, 2, 1), (2, _LONG, 3), (1, 2, _LONG)):
        yield _Row("long fp32", _mm(*shape, torch.float32))
    yield _Row("long int8", _mm(3, _LONG, 2, torch.int8))
    far = _view(((n + 1, _LONG), (3, _LONG)), lambda a, b: (a[:, :3], b[:, -n:]), "aten.mm.default")
    yield _Row("far rows fp32", far)


def _rows(n: int) -> Iterator[_Row]:
    for name, dtype in DTYPES.items():
        for shape in _edge_shapes(n) if name == "fp32" else SMALL_SHAPES:
            yield _Row(f"shapes {name}", _mm(*shape, dtype))
    for shape in _block_shapes(n):
        yield _Row("blocks fp32", _mm(*shape, torch.float32))
    for name, dtype in DTYPES.items():
        for label, make in _layouts(n, dtype):
            yield _Row(f"strides {name}: {label}", make)
    for name, dtype in DTYPES.items():
        if name != "int8":
            for label, make in _sums(n, dtype):
                yield _Row(f"sums {name}: {label}", make)
            yield _Row(f"special {name}", _mm(2 * n + 1, n - 1, 2 * n, dtype, special_values))
            yield _Row(f"special pairs {name}", _mm(8 * n, 1, 8 * n, dtype, special_values))
            yield _Row(f"cancelling {name}", _mm(n, 20 * n + 1, n, dtype, cancelling_values))
    for name in ("fp16", "bf16"):
        yield _Row(f"wide result {name}", _mm(n + 1, 3 * n, n + 1, DTYPES[name]), DType.FP32)


def directed_cases(array_size: int, seed: int, numbers: Iterator[int]) -> Iterator[Entry]:
    """All directed cases for an array of this size."""
    yield from _entries(_rows(array_size), seed, numbers)


def long_cases(array_size: int, seed: int, numbers: Iterator[int]) -> Iterator[Entry]:
    """Those of dimensions and strides beyond 16 bits: they take as long as all others."""
    yield from _entries(_long_rows(array_size), seed, numbers)


def _entries(rows: Iterator[_Row], seed: int, numbers: Iterator[int]) -> Iterator[Entry]:
    for row in rows:
        index = next(numbers)
        yield Entry(index, partial(_build, row, index, seed))


def _build(row: _Row, index: int, seed: int) -> Case:
    generator = torch.Generator().manual_seed(seed * 1_000_003 + index)
    op, args = row.make(generator)
    return Case(index=index, op=op, args=args, module=row.group, result=row.result)
