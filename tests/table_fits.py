# SPDX-License-Identifier: Apache-2.0
"""Where the words of driver/isa/tables come from: a polynomial per segment, rounded to fp32.

A segment's polynomial is in t = |a| − m. m is the number nearest to the middle of the segment at
which the function is an fp32 number but for 2^-9 ULP: that is the constant coefficient, so that
rounding it costs nothing (Gal, Computing elementary functions, 1986). The others are minimax fits,
rounded one at a time as in tests/minimax.py.

    .venv/bin/python tests/table_fits.py tanh
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import numpy.typing as npt
from minimax import lawson

from driver.isa.assembler import float_bits
from driver.isa.programs.activations import (
    LOGISTIC_MIRROR,
    LOGISTIC_SCALE,
    SIGMOID_16_OFFSET,
    SIGMOID_16_SCALE,
)
from driver.isa.tables import TABLE_NUMBER, TABLES, Table, words_file

Floats = npt.NDArray[np.float64]
_GRID = 48
_ROUNDS = 60
_CANDIDATES = 1 << 11
"""Numbers looked at on either side of the middle, first neighbours, then over 1.5 segments."""
_NEAR = 2.0**-9


@dataclass(frozen=True)
class TableFit:
    """Σ c·t^k for k = 0 … degree near `target`, errors relative to it."""

    table: str
    target: Callable[[mp.mpf], mp.mpf]
    degree: int
    first: int
    shift: int
    end: float
    """Inside the last segment."""
    centred: bool = False
    """m is just the middle and the constant is fitted too: for 16-bit results."""
    extra: float | None = None
    """In the last column of segment 0, 0 in the others: the part of the slope that is apart."""
    first_row: tuple[float, ...] = ()
    last_row: tuple[float, ...] = ()
    """Given, not fitted."""
    start: float = 0.0
    """Of segment 0, as far as it is fitted."""
    mirror: float | None = None
    """|a| is this less the function's x, and the polynomial is in x − m."""
    place: float = 0.5
    """Of m in a segment, from its least x on: off the middle where that makes |t·v| less."""

    @property
    def segments(self) -> int:
        """How many there are."""
        return (float_bits(self.end) - self.first >> self.shift) + 1

    def ends(self, segment: int) -> tuple[int, int]:
        """Bits of the first number of a segment and of the one behind its last."""
        start = self.first + (segment << self.shift) if segment else float_bits(self.start)
        return start, self.first + (segment + 1 << self.shift)

    def points(self, segment: int, count: int) -> Floats:
        """Numbers x of a segment."""
        magnitudes = grid(*self.ends(segment), count)
        return magnitudes if self.mirror is None else self.mirror - magnitudes

    def given(self, segment: int) -> tuple[float, ...]:
        """The row where it is not fitted."""
        if segment == self.segments - 1 and self.last_row:
            return self.last_row
        return () if segment else self.first_row

    def true(self, values: Floats) -> Floats:
        """The function, correct in float64."""
        with mp.workdps(30):
            return np.array([float(self.target(mp.mpf(float(value)))) for value in values])


def number(bits: int) -> float:
    """The fp32 number of these bits."""
    return float(np.uint32(bits).view(np.float32))


def _centre(fit: TableFit, x: Floats) -> tuple[float, float]:
    """m and the function's value there."""
    middle = float_bits(x.min() + fit.place * (x.max() - x.min()))
    offsets = sorted(range(-_CANDIDATES, _CANDIDATES), key=abs)
    wide = 1.5 * (x.max() - x.min()) / np.spacing(np.float32(number(middle)))
    for step in (1, max(1, round(wide / _CANDIDATES))):
        bits = np.array([middle + step * offset for offset in offsets], np.uint32)
        candidates = bits.view(np.float32).astype(np.float64)
        true = fit.true(candidates)
        single = true.astype(np.float32)
        near = np.abs(single - true) / np.spacing(single) <= _NEAR
        if near.any():
            best = int(np.argmax(near))
            return float(candidates[best]), float(single[best])
    raise ValueError(f"{fit.table}: no m for the segment from {x.min()} on")


def grid(low: int, high: int, count: int) -> Floats:
    """Chebyshev points between two numbers given by their bits."""
    a, b = number(low), number(high)
    angle = np.pi * (np.arange(count) + 0.5) / count
    points: Floats = (a + b) / 2 + (b - a) / 2 * np.cos(angle)
    return points


def row(fit: TableFit, segment: int) -> tuple[float, ...]:
    """−m and the coefficients, lowest power first."""
    if fit.given(segment):
        return fit.given(segment)
    x = fit.points(segment, _GRID)
    chosen: dict[int, float] = {}
    if fit.centred:
        low, high = fit.ends(segment)
        m = (number(low) + number(high)) / 2
    else:
        m, chosen[0] = _centre(fit, x) if segment or fit.start else (0.0, 0.0)
    t, true = x - m, fit.true(x)
    if fit.extra is not None and not segment:
        true -= fit.extra * t
    reach, weight = float(np.abs(t).max()), 1 / np.abs(fit.true(x))
    for power in range(len(chosen), fit.degree + 1):
        rest = true - sum((c * t**p for p, c in chosen.items()), np.zeros_like(t))
        free = range(power, fit.degree + 1)
        columns = np.stack([(t / reach) ** p * weight for p in free], 1)
        chosen[power] = float(np.float32(lawson(columns, rest * weight, _ROUNDS)[0] / reach**power))
    extra = () if fit.extra is None else ((0.0,) if segment else (fit.extra,))
    return (-m, *(chosen[power] for power in range(fit.degree + 1)), *extra)


def error(fit: TableFit, segment: int, words: tuple[int, ...]) -> float:
    """Largest relative error of a row's polynomial, evaluated in float64."""
    minus_m, *coefficients = (number(word) for word in words)
    if fit.extra is not None:
        coefficients[1] += coefficients.pop()
    x = fit.points(segment, 4 * _GRID)
    true = fit.true(x)
    got = np.polynomial.polynomial.polyval(x + minus_m, coefficients)
    return float(np.max(np.abs(got - true) / np.abs(true)))


def _sigmoid_16(y: mp.mpf) -> mp.mpf:
    """The logistic function of x, y being what activations.sigmoid_16 makes of it."""
    return 1 / (1 + mp.exp((mp.mpf(SIGMOID_16_OFFSET) - y) / SIGMOID_16_SCALE))


FITS: dict[str, TableFit] = {
    fit.table: fit
    for fit in (
        TableFit("tanh", mp.tanh, 3, 0x3D18_0000, 19, 9.25),
        TableFit("erf", mp.erf, 4, 0x3D70_0000, 19, 3.98, extra=1.0),
        TableFit(
            "sigmoid_16",
            _sigmoid_16,
            3,
            0x4300_0000,
            16,
            255.5,
            centred=True,
            first_row=(0.0,) * 5,
        ),
        TableFit(
            "logistic",
            lambda x: LOGISTIC_SCALE / (1 + mp.exp(-x)),
            6,
            0x42D2_0000,
            16,
            231.5,
            last_row=(110.5, *(0.0,) * 7),
            start=104.5,
            mirror=LOGISTIC_MIRROR,
            place=0.4,
        ),
    )
}
"""Every table, with what it approximates."""


def table_of(fit: TableFit) -> Table:
    """The table that the fit belongs to."""
    return TABLES[TABLE_NUMBER[fit.table]]


def main() -> None:
    """Fit the tables named on the command line, or all, and write their words."""
    for name in sys.argv[1:] or FITS:
        fit = FITS[name]
        rows = [tuple(map(float_bits, row(fit, at))) for at in range(fit.segments)]
        lines = [" ".join(f"{word:08x}" for word in words) for words in rows]
        head = "# -m, then the coefficients in |a| - m from the constant on; tests/table_fits.py"
        words_file(name).write_text("\n".join((head, *lines, "")), "ascii")
        fitted = [(at, words) for at, words in enumerate(rows) if not fit.given(at)]
        worst = max(error(fit, at, words) for at, words in fitted)
        sys.stdout.write(f"{name}: {len(rows)} segments, relative error 2^{np.log2(worst):.2f}\n")


if __name__ == "__main__":
    main()
