# SPDX-License-Identifier: Apache-2.0
"""`python -m regress.run_report.curves RESULT.json FIGURE.svg [MODEL]`: the curves of a training.

Above the value of each step, by CPU torch as a line and on the NPU as points; below how far apart
the two are, on a logarithmic axis. Knows results; draws SVG as text.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from driver.errors import InputError, NpuError
from driver.results import Curve, RunResult, read_json, write_text
from regress.run_report import svg

FILE = "curves.svg"
_TORCH, _NPU, _APART = "#b8bec8", "#2c5f9e", "#d1495b"
_WIDTH, _LEFT, _RIGHT, _TOP = 860, 70, 30, 64
_VALUES, _DISTANCES, _BETWEEN, _BELOW = 260, 90, 34, 46
"""Heights of the two plots, and of what is between and below them."""
_HEIGHT = _TOP + _VALUES + _BETWEEN + _DISTANCES + _BELOW
_LINES = 5
"""Of the grid, about so many."""
_SMALLEST = 1e-9
"""A smaller distance stands on the axis."""


@dataclass(frozen=True)
class _Area:
    """A plot: its pixels from top to bottom, and the values that they show."""

    top: float
    height: float
    low: float
    high: float
    steps: int

    def at(self, step: int, value: float) -> tuple[float, float]:
        """Pixel of a value of a step, counted from 0."""
        right = step / max(self.steps - 1, 1)
        up = (value - self.low) / (self.high - self.low)
        return _LEFT + right * (_WIDTH - _LEFT - _RIGHT), self.top + (1 - up) * self.height


def draw(curves: Sequence[Curve], title: str) -> str:
    """The figure of one or more curves, one below the other; `title` follows the model's name."""
    height = _HEIGHT * len(curves)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
    ]
    for number, curve in enumerate(curves):
        place = f'<g transform="translate(0 {number * _HEIGHT})">'
        lines += [place, *_one(curve, f"{curve.model} {title}"), "</g>"]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _one(curve: Curve, title: str) -> Iterator[str]:
    """One curve with its distances."""
    values = [v for v in (*curve.npu, *curve.torch) if math.isfinite(v)] or [0.0]
    step = _grid_step(max(values) - min(values, default=0.0))
    low, high = (math.floor(min(values) / step) * step, math.ceil(max(values) / step) * step)
    count = len(curve.npu)
    above = _Area(_TOP, _VALUES, low, max(high, low + step), count)
    apart = [max(abs(a - b), _SMALLEST) for a, b in zip(curve.npu, curve.torch, strict=True)]
    powers = [math.log10(d) if math.isfinite(d) else 0.0 for d in apart]
    bottom, top = math.floor(min(powers)), math.ceil(max(powers))
    below = _Area(_TOP + _VALUES + _BETWEEN, _DISTANCES, bottom, max(top, bottom + 1), count)
    yield svg.text(_LEFT, 22, title, size=15)
    yield from _legend(curve.name)
    ticks = range(round((above.high - low) / step) + 1)
    yield from _grid(above, [(low + i * step, f"{low + i * step:.10g}") for i in ticks])
    exponents = range(int(below.low), int(below.high) + 1, 2)
    yield from _grid(below, [(float(e), f"1e{e}") for e in exponents])
    path = " ".join(_pixel(above.at(i, v)) for i, v in _finite(curve.torch))
    yield f'<polyline points="{path}" fill="none" stroke="{_TORCH}" stroke-width="4"/>'
    yield from (_dot(above.at(i, v), _NPU) for i, v in _finite(curve.npu))
    yield from (_dot(below.at(i, power), _APART) for i, power in enumerate(powers))
    yield from _steps(below)


def _finite(values: Sequence[float]) -> Iterator[tuple[int, float]]:
    return ((i, v) for i, v in enumerate(values) if math.isfinite(v))


def _grid_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, so that about _LINES of them make the span."""
    wanted = max(span, 1e-12) / _LINES
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(power * f for f in (1, 2, 5, 10) if power * f >= wanted)


def _grid(area: _Area, ticks: Sequence[tuple[float, str]]) -> Iterator[str]:
    for value, words in ticks:
        _, y = area.at(0, value)
        yield (
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" '
            'stroke="#e6e9ee"/>'
        )
        yield svg.text(_LEFT - 8, y + 4, words, anchor="end")


def _legend(name: str) -> Iterator[str]:
    yield f'<path d="M{_LEFT} 44h22" stroke="{_TORCH}" stroke-width="4"/>'
    yield svg.text(_LEFT + 28, 48, f"{name}, CPU torch")
    yield _dot((_LEFT + 196, 44), _NPU)
    yield svg.text(_LEFT + 204, 48, f"{name}, NPU")
    yield _dot((_LEFT + 336, 44), _APART)
    yield svg.text(_LEFT + 344, 48, "distance between the two")


def _steps(area: _Area) -> Iterator[str]:
    foot = area.top + area.height
    every = max(1, round(_grid_step(area.steps)))
    for step in range(0, area.steps, every):
        yield svg.text(area.at(step, area.low)[0], foot + 18, str(step + 1), anchor="middle")
    yield svg.text((_LEFT + _WIDTH) / 2, foot + 36, "step", anchor="middle")


def _pixel(at: tuple[float, float]) -> str:
    return f"{at[0]:.1f},{at[1]:.1f}"


def _dot(at: tuple[float, float], colour: str) -> str:
    return f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="2.6" fill="{colour}"/>'


def figure(result: RunResult) -> str:
    """The picture of a run that has curves."""
    array = "" if result.array == "rtl" else f" ARRAY={result.array}"
    where = f"{result.backend}{array}, CONFIG={result.config} SEED={result.seed}"
    return draw(result.curves, f"on {where}")


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0, or 2 after one line that says what is wrong."""
    try:
        if not 2 <= len(arguments) <= 3:
            usage = "RESULT.json FIGURE.svg [MODEL]"
            raise InputError("command line", "arguments", len(arguments), usage)
        result = read_json(Path(arguments[0]), RunResult)
        curves = tuple(c for c in result.curves if c.model in (arguments[2:] or [c.model]))
        if not curves:
            raise InputError(arguments[0], "curves", "none", "the result of a training")
        result = result.model_copy(update={"curves": curves})
        write_text(Path(arguments[1]), figure(result))
    except NpuError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
