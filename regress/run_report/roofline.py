# SPDX-License-Identifier: Apache-2.0
"""`python -m regress.run_report.roofline RESULT.json FIGURE.svg`: draws each op under the roof.

An op that reads each byte of its operands once does no more MACs per cycle than the array has, and
no more than the read channel feeds: the roof. Knows results and configurations; draws SVG as text.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from driver.config import HwConfig, load_config
from driver.errors import InputError, NpuError
from driver.results import OpRow, RunResult, read_json, write_text
from regress.paths import CONFIG_FILE
from regress.run_report import svg

FILE = "roofline.svg"
OPERAND_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1}
DIRECTED = "directed"
_COLOURS = ("#b8bec8", "#d1495b", "#2e7d5b", "#2c5f9e", "#8e5ba6", "#c9822b")
_WIDTH, _HEIGHT = 860, 500
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 30, 64, 54
_NAMED = 6
"""How many of the largest ops are listed with what they reach."""
_LOWEST_RATE = 1.0
"""MACs per cycle below which the vertical axis ends: 1×1×1 and its like."""


@dataclass(frozen=True)
class RooflinePoint:
    """One op. `intensity`: MACs per byte of operands; `rate`: MACs per cycle of its MATMUL."""

    name: str
    group: str
    macs: int
    intensity: float
    rate: float


def points(rows: Iterable[OpRow], array_size: int) -> list[RooflinePoint]:
    """The measured matrix products among `rows`."""
    found: list[RooflinePoint] = []
    for row in rows:
        width = OPERAND_BYTES.get(row.dtype.split("→")[0])
        if width is None or not row.macs or not row.utilisation:
            continue
        read_bytes = width * sum(math.prod(shape) for shape in row.shapes[:2])
        model, _, module = row.module.partition(":")
        found.append(
            RooflinePoint(
                name=(module or model).rpartition(".")[2] if row.source else row.module,
                group=model if row.source else DIRECTED,
                macs=row.macs,
                intensity=row.macs / read_bytes,
                rate=row.utilisation * array_size**2,
            )
        )
    return found


def roof(config: HwConfig, intensity: float) -> float:
    """MACs per cycle that are possible at so many MACs per byte."""
    return min(float(config.array_size**2), intensity * config.bus_bits / 8)


@dataclass(frozen=True)
class _Plot:
    """Two logarithmic axes, given as the exponents of 2 at which they begin and end."""

    x: tuple[int, int]
    y: tuple[int, int]

    def at(self, intensity: float, rate: float) -> tuple[float, float]:
        """Pixel of a point."""
        (x0, x1), (y0, y1) = self.x, self.y
        right = (math.log2(intensity) - x0) / (x1 - x0)
        up = (math.log2(rate) - y0) / (y1 - y0)
        return (
            _LEFT + right * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM),
        )


def draw(config: HwConfig, found: Sequence[RooflinePoint], title: str) -> str:
    """The figure. Some point of `found` is on the axes."""
    shown = [p for p in found if p.rate >= _LOWEST_RATE]
    exponents = [math.log2(p.intensity) for p in shown]
    peak = math.log2(config.array_size**2)
    plot = _Plot(
        x=(math.floor(min(exponents)) - 1, math.ceil(max(exponents)) + 1),
        y=(math.floor(math.log2(_LOWEST_RATE)), math.ceil(peak) + 1),
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        svg.text(_LEFT, 22, title, size=15),
        *_axes(plot),
        *_roof(plot, config),
        *_marks(plot, shown),
        *_named(config, shown),
        *_left_out(len(found) - len(shown)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _line(start: tuple[float, float], end: tuple[float, float], style: str) -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def _axes(plot: _Plot) -> Iterator[str]:
    (x0, x1), (y0, y1) = plot.x, plot.y
    grid = 'stroke="#e6e9ee"'
    for exponent in range(x0, x1 + 1):
        foot, head = plot.at(2.0**exponent, 2.0**y0), plot.at(2.0**exponent, 2.0**y1)
        yield _line(foot, head, grid)
        yield svg.text(foot[0], foot[1] + 18, _power(exponent), anchor="middle")
    for exponent in range(y0, y1 + 1):
        start, end = plot.at(2.0**x0, 2.0**exponent), plot.at(2.0**x1, 2.0**exponent)
        yield _line(start, end, grid)
        yield svg.text(start[0] - 8, start[1] + 4, _power(exponent), anchor="end")
    yield svg.text((_LEFT + _WIDTH) / 2, _HEIGHT - 12, "MACs per byte of operands", anchor="middle")
    yield svg.text(12, _TOP - 12, "MACs per cycle")


def _power(exponent: int) -> str:
    return str(2**exponent) if exponent >= 0 else f"1/{2**-exponent}"


def _roof(plot: _Plot, config: HwConfig) -> Iterator[str]:
    peak = float(config.array_size**2)
    ridge = peak / (config.bus_bits / 8)
    begin = max(2.0 ** plot.x[0], 2.0 ** plot.y[0] / (config.bus_bits / 8))
    path = [
        plot.at(begin, roof(config, begin)),
        plot.at(ridge, peak),
        plot.at(2.0 ** plot.x[1], peak),
    ]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in path)
    yield f'<polyline points="{corners}" fill="none" stroke="#22262e" stroke-width="1.5"/>'
    array = f"array: {config.array_size}×{config.array_size} MACs per cycle"
    yield svg.text(path[2][0], path[2][1] - 7, array, anchor="end")
    x, y = path[0][0] / 2 + path[1][0] / 2, path[0][1] / 2 + path[1][1] / 2
    yield svg.text(x - 10, y, f"bus: {config.bus_bits // 8} bytes per cycle", anchor="end")


def _marks(plot: _Plot, shown: Sequence[RooflinePoint]) -> Iterator[str]:
    groups = sorted({p.group for p in shown}, key=lambda name: (name != DIRECTED, name))
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(groups)}
    for point in sorted(shown, key=lambda p: groups.index(p.group)):
        x, y = plot.at(point.intensity, point.rate)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colours[point.group]}"/>'
    for i, name in enumerate(groups):
        x = _LEFT + 130 + i * 110
        yield f'<circle cx="{x + 5}" cy="48" r="4.5" fill="{colours[name]}"/>'
        yield svg.text(x + 14, 52, name)


def _named(config: HwConfig, shown: Sequence[RooflinePoint]) -> Iterator[str]:
    """The largest ops of the models, and how much of what is possible they reach. One that runs in
    several modes, as fast in each, is listed once."""
    models = sorted((p for p in shown if p.group != DIRECTED), key=lambda p: -p.macs)
    said = dict.fromkeys(
        f"{p.group} {p.name}: {p.rate / roof(config, p.intensity):.0%} of the roof" for p in models
    )
    for i, text in enumerate(reversed([*said][:_NAMED])):
        yield svg.text(_WIDTH - _RIGHT - 10, _HEIGHT - _BOTTOM - 12 - 17 * i, text, anchor="end")


def _left_out(count: int) -> Iterator[str]:
    if count:
        text = f"{count} ops below {_LOWEST_RATE:g} MAC per cycle are not shown"
        yield svg.text(_LEFT + 10, _HEIGHT - _BOTTOM - 12, text, size=11)


def figure(result: RunResult, config: HwConfig) -> str | None:
    """The picture of a run; None when it measured no product that the axes hold."""
    found = points(result.ops, config.array_size)
    if all(point.rate < _LOWEST_RATE for point in found):
        return None
    title = f"TEST={result.test} CONFIG={result.config} SEED={result.seed}"
    return draw(config, found, title)


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0, or 2 after one line that says what is wrong."""
    try:
        if len(arguments) != 2:
            raise InputError("command line", "arguments", len(arguments), "RESULT.json FIGURE.svg")
        result = read_json(Path(arguments[0]), RunResult)
        picture = figure(result, load_config(CONFIG_FILE, result.config))
        if picture is None:
            raise InputError(arguments[0], "ops", "none", "a run of matrix products on the RTL")
        write_text(Path(arguments[1]), picture)
    except NpuError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
