# SPDX-License-Identifier: Apache-2.0
"""Numbers over nights as lines: each with a colour, a dash and a shape of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from regress.pages.svg import DASHES, SERIES, line, picture, tag, text

_WIDTH, _HEIGHT = 560, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 16, 18, 34
_TICKS = 4
_LABELS = 6
"""Nights named below a trend, at most."""


@dataclass(frozen=True)
class TrendSeries:
    """A line of a trend; None where a night has no such number."""

    name: str
    values: tuple[float | None, ...]


def trend(
    title: str,
    nights: Sequence[str],
    series: Sequence[TrendSeries],
    unit: str = "",
    most: float = math.inf,
) -> Markup:
    """Lines over nights, oldest first; `most` is the largest value there can be."""
    scale = _scale([v for one in series for v in one.values if v is not None], most)
    legend = 18 * len(series) if len(series) > 1 else 0
    height = _HEIGHT + legend
    content: list[Markup] = [*_frame(scale, unit), *_nights(nights)]
    for number, one in enumerate(series):
        content += _series(one, number, scale, nights, unit)
        if legend:
            content += _key(one.name, number, _HEIGHT + 18 * number)
    last = ", ".join(f"{one.name} {_short(_last(one))}{unit}" for one in series)
    return picture(_WIDTH, height, f"{title} over {len(nights)} nights; last: {last}", content)


def _last(series: TrendSeries) -> float | None:
    return next((v for v in reversed(series.values) if v is not None), None)


@dataclass(frozen=True)
class _Scale:
    """The vertical axis: from `low` to `high`, a line every `step`."""

    low: float
    high: float
    step: float

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _scale(known: Sequence[float], most: float) -> _Scale:
    """Round numbers around the values, so that a line which does not move is not on an edge."""
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = (high - low) * 0.1 or abs(high) * 0.05 or 1.0
    step = _round_step((high - low + 2 * room) / _TICKS)
    first = math.floor((low - room) / step) * step
    last = min(math.ceil((high + room) / step) * step, most)
    return _Scale(max(first, 0.0) if low >= 0 else first, last, step)


def _round_step(least: float) -> float:
    """The next of 1, 2, 5, 10, … times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * 0.999)


def _short(value: float | None) -> str:
    if value is None:
        return "–"
    if value and abs(value) < 0.01:
        return f"{value:.1e}"
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= scale:
            return f"{value / (1e3 if unit == 'k' else scale):.4g}{unit}"
    return f"{value:.4g}"


def _x(number: int, count: int) -> float:
    span = _WIDTH - _LEFT - _RIGHT - 16
    return _LEFT + 8 + (span * number / (count - 1) if count > 1 else span / 2)


def _frame(scale: _Scale, unit: str) -> Iterator[Markup]:
    for tick in range(math.floor((scale.high - scale.low) / scale.step + 1e-6) + 1):
        value = scale.low + tick * scale.step
        y = scale.y(value)
        yield line((_LEFT, y), (_WIDTH - _RIGHT, y), class_="grid-line")
        words = f"{_short(value)}{unit}"
        yield text(_LEFT - 6, y + 4, words, text_anchor="end", class_="note")


def _nights(nights: Sequence[str]) -> Iterator[Markup]:
    step = -(-len(nights) // _LABELS) or 1
    for number in range(len(nights) - 1, -1, -step):
        x = _x(number, len(nights))
        day = nights[number][5:10]
        yield text(x, _HEIGHT - _BOTTOM + 18, day, text_anchor="middle", class_="note")


def _series(
    one: TrendSeries, number: int, scale: _Scale, nights: Sequence[str], unit: str
) -> Iterator[Markup]:
    colour, dash = SERIES[number % len(SERIES)], DASHES[number % len(DASHES)]
    places = [
        (_x(i, len(nights)), scale.y(v), v, nights[i])
        for i, v in enumerate(one.values)
        if v is not None
    ]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in places)
    style = {"fill": "none", "stroke": colour, "stroke_width": 2, "stroke_dasharray": dash or None}
    yield tag("polyline", points=corners, **style)
    for x, y, value, night in places:
        title = tag("title", f"{one.name}, {night}: {_short(value)}{unit}")
        yield mark(x, y, number, title)


def mark(x: float, y: float, number: int, *content: Markup) -> Markup:
    """The shape of series `number`: circle, square, diamond, triangle, then again larger."""
    colour, r = SERIES[number % len(SERIES)], 3.5 + number // 4
    if number % 4 == 0:
        return tag("circle", *content, cx=x, cy=y, r=r, fill=colour)
    corners = (
        ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
        ((0, -1.3), (1.2, 1), (-1.2, 1)),
    )[number % 4 - 1]
    points = " ".join(f"{x + dx * r:.1f},{y + dy * r:.1f}" for dx, dy in corners)
    return tag("polygon", *content, points=points, fill=colour)


def _key(name: str, number: int, y: float) -> Iterator[Markup]:
    colour, dash = SERIES[number % len(SERIES)], DASHES[number % len(DASHES)]
    style = {"stroke": colour, "stroke_width": 2, "stroke_dasharray": dash or None}
    yield line((_LEFT, y + 4), (_LEFT + 30, y + 4), **style)
    yield mark(_LEFT + 15, y + 4, number)
    yield text(_LEFT + 38, y + 8, name)
