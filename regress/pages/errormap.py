# SPDX-License-Identifier: Apache-2.0
"""The error map of a failing op as two pictures: the whole result by tiles, one tile by elements.

Wrong elements carry a cross as well as a colour; the element that the failure names has a ring.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from driver.evidence import ErrorMap, Grid
from driver.isa import DTYPE_BYTES, DType
from golden.formats import FLOAT_FORMATS, decode
from regress.pages.svg import line, on, picture, tag, text, viridis

_CELL = 16
_LEAST_TILE, _MOST_TILE, _OVERVIEW = 12, 32, 320
_MARGIN = 44
_LEGEND = 40
_UINTS = {2: np.uint16, 4: np.uint32}
"""Of the floating-point formats."""
_UNSIGNED = (DType.UINT8,)
_STEPS = 7
_RULER = 4
"""Every so many rows and columns the tile's picture has a number."""

Distances = npt.NDArray[np.float64]


def distances(expected: Grid, actual: Grid, dtype: DType) -> Distances:
    """Numbers of the format between two elements, given as bits: ULP, 0 where equal."""
    return np.array(
        [
            [abs(_ordered(e, dtype) - _ordered(a, dtype)) for e, a in zip(*lines, strict=True)]
            for lines in zip(expected, actual, strict=True)
        ],
        np.float64,
    )


def _ordered(bits: int, dtype: DType) -> int:
    """An integer in the order of the values that the bits stand for."""
    sign = 1 << (8 * DTYPE_BYTES[dtype] - 1)
    if bits < sign or dtype in _UNSIGNED:
        return bits
    return sign - bits if dtype in FLOAT_FORMATS else bits - 2 * sign


def tile_picture(found: ErrorMap) -> Markup:
    """The tile around the element, one cell per element."""
    dtype = DType[found.dtype.upper()]
    apart = distances(found.expected, found.actual, dtype)
    wrong = np.array(found.expected, object) != np.array(found.actual, object)
    rows, columns = apart.shape
    label = (
        f"Tile at row {found.origin[0]}, column {found.origin[1]}: "
        f"{np.count_nonzero(wrong)} of {wrong.size} elements differ"
    )
    cells = _cells(found, apart, dtype)
    ring = _ring(found)
    width, height = _MARGIN + columns * _CELL + 8, _MARGIN + rows * _CELL + _LEGEND
    legend = _legend(height - 16, max(width, 330), int(apart.max()))
    content = [*_rulers(found, rows, columns), *cells, ring, *legend]
    return picture(max(width, 330), height, label, content)


def _place(row: int, column: int) -> tuple[int, int]:
    return _MARGIN + column * _CELL, _MARGIN + row * _CELL


def _cells(found: ErrorMap, apart: Distances, dtype: DType) -> Iterator[Markup]:
    digits = 2 * DTYPE_BYTES[dtype]
    top = math.log2(int(apart.max()) + 1) or 1.0
    for (row, column), ulp in np.ndenumerate(apart):
        bits = [grid[row][column] for grid in (found.expected, found.actual)]
        x, y = _place(row, column)
        frame = {"x": x, "y": y, "width": _CELL - 1, "height": _CELL - 1}
        if bits[0] == bits[1]:
            yield tag("rect", **frame, class_="same")
            continue
        colour = viridis(math.log2(int(ulp) + 1) / top)
        place = f"[{found.origin[0] + row}, {found.origin[1] + column}]"
        said = [f"{one:#0{digits + 2}x} {_value(one, dtype)}" for one in bits]
        title = tag("title", f"{place} expected {said[0]}, actual {said[1]}, {ulp:.0f} ULP apart")
        yield tag("g", title, tag("rect", **frame, fill=colour), *_cross(x, y, on(colour)))


def _value(bits: int, dtype: DType) -> str:
    if dtype not in FLOAT_FORMATS:
        return str(_ordered(bits, dtype))
    return f"{decode(np.array([bits], _UINTS[DTYPE_BYTES[dtype]]), dtype)[0]:g}"


def _cross(x: float, y: float, colour: str) -> Iterator[Markup]:
    near, far = 4, _CELL - 5
    for start, end in (((near, near), (far, far)), ((near, far), (far, near))):
        (x1, y1), (x2, y2) = start, end
        yield line((x + x1, y + y1), (x + x2, y + y2), stroke=colour, stroke_width=1.6)


def _ring(found: ErrorMap) -> Markup:
    x, y = _place(found.element[1] - found.origin[0], found.element[2] - found.origin[1])
    return tag("rect", x=x - 2, y=y - 2, width=_CELL + 3, height=_CELL + 3, class_="ring")


def _rulers(found: ErrorMap, rows: int, columns: int) -> Iterator[Markup]:
    yield text(0, 12, "row", class_="note")
    yield text(_MARGIN, 12, "column", class_="note")
    for row in range(0, rows, _RULER):
        x, y = _place(row, 0)
        yield text(x - 6, y + 12, found.origin[0] + row, text_anchor="end", class_="note")
    for column in range(0, columns, _RULER):
        x, y = _place(0, column)
        yield text(x, y - 8, found.origin[1] + column, class_="note")


def _legend(y: float, width: float, largest: int) -> Iterator[Markup]:
    step = (width - 220) / _STEPS
    yield text(0, y + 10, "1 ULP", class_="note")
    for i in range(_STEPS):
        colour = viridis(i / (_STEPS - 1) if largest > 1 else 1.0)
        yield tag("rect", x=44 + i * step, y=y, width=step, height=12, fill=colour)
    yield text(52 + _STEPS * step, y + 10, f"{largest:,} ULP apart (log)", class_="note")


def overview_picture(found: ErrorMap) -> Markup:
    """The whole result, one cell per tile (or per few), coloured by how many elements differ."""
    tiles = np.array(found.tiles, np.int64)
    rows, columns = tiles.shape
    span = found.tile_size * found.tiles_per_cell
    edge = min(max(_OVERVIEW // columns, _LEAST_TILE), _MOST_TILE)
    label = f"{np.count_nonzero(tiles)} of {tiles.size} cells of {span}×{span} elements have errors"
    top = math.log2(int(tiles.max()) + 1) or 1.0
    content: list[Markup] = []
    for (row, column), count in np.ndenumerate(tiles):
        x, y = column * edge + 4, row * edge + 4
        frame = {"x": x, "y": y, "width": edge - 1, "height": edge - 1}
        title = tag("title", f"tile [{row}, {column}]: {count} wrong")
        share = math.log2(int(count) + 1) / top
        paint = {"fill": viridis(share)} if count else {"class_": "same"}
        content.append(tag("rect", title, **frame, **paint))
        if count:
            dot = {"cx": x + edge / 2 - 0.5, "cy": y + edge / 2 - 0.5, "r": edge / 6}
            content.append(tag("circle", **dot, fill=on(viridis(share))))
    row, column = found.element[1] // span, found.element[2] // span
    ring = {"x": column * edge + 2, "y": row * edge + 2, "width": edge + 3, "height": edge + 3}
    content.append(tag("rect", **ring, class_="ring"))
    return picture(columns * edge + 10, rows * edge + 10, label, content)
