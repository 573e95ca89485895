# SPDX-License-Identifier: Apache-2.0
"""What a failing op leaves beside its row: the map of its wrong elements, and its operands.

The bench writes OUT/failures/opN/map.json and OUT/failures/opN/capsule; reports and the shrinker
read them. Knows bits and places; not why they are wrong, and no picture.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from driver.frozen import Frozen
from driver.results import Count

FOLDER: Final = "failures"
MAP_FILE: Final = "map.json"
CAPSULE: Final = "capsule"
MAX_TILES: Final = 64
"""Rows and columns of the overview at most; beyond, several tiles share a cell."""

Bits = npt.NDArray[np.unsignedinteger]
Grid = tuple[tuple[Count, ...], ...]
Reference = Literal["cmodel", "rtl", "torch"]


class ErrorMap(Frozen):
    """Where the result of an op differs: all of it by tiles, and one tile bit by bit.

    The result counts as batch × rows × columns; sizes beyond three are folded into the batch.
    """

    dtype: str
    """Of the result, as the row says it: fp32, int8, …"""
    against: Reference
    """Whose bits are `expected`. torch rounds in another order: there some difference is normal."""
    sizes: tuple[Count, Count, Count]
    differing: Count
    """Elements whose bits differ, in the whole result."""
    element: tuple[Count, Count, Count]
    """Batch, row and column of the element that the failure names."""
    tile_size: Annotated[int, Field(ge=1)]
    """Rows and columns of a tile: the array's."""
    tiles_per_cell: Annotated[int, Field(ge=1)]
    tiles: Grid
    """Differing elements per cell of the overview, in the batch of `element`."""
    origin: tuple[Count, Count]
    """Row and column at which the tile shown bit by bit begins."""
    expected: Grid
    actual: Grid


def folder_of(out: Path, index: int) -> Path:
    """Where the evidence about op `index` of the run in `out` lies."""
    return out / FOLDER / f"op{index}"


def error_map(
    expected: Bits,
    actual: Bits,
    element: tuple[int, ...],
    *,
    dtype: str,
    against: Reference,
    tile_size: int,
) -> ErrorMap:
    """The map of two results of equal shape. `element` is an index of that shape."""
    sizes = folded(expected.shape)
    left, right = expected.reshape(sizes), actual.reshape(sizes)
    flat = int(np.ravel_multi_index(element, expected.shape)) if element else 0
    batch, row, column = (int(i) for i in np.unravel_index(flat, sizes))
    differing = left != right
    per_cell = -(-max(sizes[1:]) // (tile_size * MAX_TILES)) or 1
    origin = (row - row % tile_size, column - column % tile_size)
    tile = tuple(slice(start, start + tile_size) for start in origin)
    return ErrorMap(
        dtype=dtype,
        against=against,
        sizes=sizes,
        differing=int(np.count_nonzero(differing)),
        element=(batch, row, column),
        tile_size=tile_size,
        tiles_per_cell=per_cell,
        tiles=_grid(_counts(differing[batch], tile_size * per_cell)),
        origin=origin,
        expected=_grid(left[batch][tile]),
        actual=_grid(right[batch][tile]),
    )


def folded(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """A shape as batch, rows and columns."""
    rows, columns = (1, 1, *shape)[-2:]
    return int(np.prod(shape[:-2], dtype=np.int64)), rows, columns


def _counts(mask: npt.NDArray[np.bool_], cell: int) -> npt.NDArray[np.int64]:
    rows = np.add.reduceat(mask, np.arange(0, mask.shape[0], cell), axis=0, dtype=np.int64)
    return np.add.reduceat(rows, np.arange(0, mask.shape[1], cell), axis=1)


def _grid(values: npt.NDArray[np.integer]) -> Grid:
    return tuple(tuple(int(value) for value in line) for line in values)
