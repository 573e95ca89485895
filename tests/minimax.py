# SPDX-License-Identifier: Apache-2.0
"""Where the coefficients of driver/isa/programs come from: minimax fits rounded to fp32.

The fit is Lawson's: least squares on a Chebyshev grid, with weights that grow where the error is
large, tends to the polynomial of least largest error. Coefficients are then rounded to fp32 one at
a time, lowest power first since it weighs most, and the others are fitted again.

    .venv/bin/python tests/minimax.py EXP_6
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import numpy.typing as npt

from driver.isa.programs import _math as m
from driver.isa.programs import exponentials, gelu, power, trigonometry

Floats = npt.NDArray[np.float64]
Real = Callable[[mp.mpf], mp.mpf]
_GRID = 400
_ROUNDS = 120
_HALF_LN2 = 0.34665
_ROOTS = (0.5**0.5 - 1 - 1e-6, 2**0.5 - 1 + 1e-6)


@dataclass(frozen=True)
class Fit:
    """Σ c·x^power over `powers`, near `target` − `known` on an interval.

    The error counts relative to `scale`, which is `target` unless given.
    """

    coefficients: tuple[float, ...]
    """As the programs have them, highest power first."""
    powers: tuple[int, ...]
    """The same order."""
    low: float
    high: float
    target: Real
    known: Real = lambda x: mp.mpf(0)
    scale: Real | None = None
    fixed: int = 0
    """So many coefficients at the end are given, not fitted."""

    def grid(self) -> tuple[Floats, Floats, Floats]:
        """Chebyshev points, what is to be fitted there, and the weight of an error."""
        angle = np.pi * (np.arange(_GRID) + 0.5) / _GRID
        x = (self.low + self.high) / 2 + (self.high - self.low) / 2 * np.cos(angle)
        with mp.workdps(40):
            exact = [mp.mpf(float(value)) for value in x]
            wanted = np.array([float(self.target(v) - self.known(v)) for v in exact])
            scale = np.array([float((self.scale or self.target)(v)) for v in exact])
        return x, wanted, 1 / np.abs(scale)

    def error(self, coefficients: Sequence[float]) -> float:
        """Largest weighted error on the grid, evaluated in float64."""
        x, wanted, weight = self.grid()
        terms = zip(self.powers, coefficients, strict=True)
        return float(np.max(np.abs(sum(c * x**p for p, c in terms) - wanted) * weight))


def lawson(columns: Floats, wanted: Floats, rounds: int = _ROUNDS) -> Floats:
    """The coefficients of least largest error, nearly."""
    share = np.full(wanted.size, 1 / wanted.size)
    best, least = np.zeros(columns.shape[1]), np.inf
    for _ in range(rounds):
        root = np.sqrt(share)
        solution = np.linalg.lstsq(columns * root[:, None], wanted * root, rcond=None)[0]
        error = np.abs(columns @ solution - wanted)
        if error.max() < least:
            best, least = solution, float(error.max())
        if not error.any():
            break
        share *= error
        share /= share.sum()
    return best


def solve(fit: Fit) -> tuple[float, ...]:
    """Coefficients rounded to fp32, highest power first."""
    x, wanted, weight = fit.grid()
    given = len(fit.powers) - fit.fixed
    chosen = dict(zip(fit.powers[given:], fit.coefficients[given:], strict=True))
    reach = max(abs(fit.low), abs(fit.high))
    for _ in range(given):
        free = [power for power in fit.powers if power not in chosen]
        rest = wanted - sum(c * x**power for power, c in chosen.items())
        columns = np.stack([(x / reach) ** power * weight for power in free], 1)
        solution = dict(zip(free, lawson(columns, rest * weight), strict=True))
        lowest = min(free)
        chosen[lowest] = float(np.float32(solution[lowest] / reach**lowest))
    return tuple(chosen[power] for power in fit.powers)


def _down(top: int, low: int = 0, step: int = 1) -> tuple[int, ...]:
    return tuple(range(top, low - 1, -step))


def _mills(u: mp.mpf) -> mp.mpf:
    """(a + s)·e^(a²/2)·Φ(−a) for u = (s − a) / (s + a)."""
    s = mp.mpf(gelu._MILLS_SHIFT)
    a = s * (1 - u) / (1 + u)
    return (a + s) * mp.exp(a * a / 2) * mp.erfc(a / mp.sqrt(2)) / 2


def _one(_: mp.mpf) -> mp.mpf:
    return mp.mpf(1)


_MILLS_END = (gelu._MILLS_SHIFT - 14) / (gelu._MILLS_SHIFT + 14)

FITS: dict[str, Fit] = {
    "EXP_6": Fit(m.EXP_6, _down(6), -_HALF_LN2, _HALF_LN2, mp.exp, fixed=2),
    "EXP_3": Fit(m.EXP_3, _down(3), -_HALF_LN2, _HALF_LN2, mp.exp),
    "EXPM1_7": Fit(
        m.EXPM1_7, _down(7, 2), -_HALF_LN2, _HALF_LN2, mp.expm1, known=lambda r: r
    ),
    "EXP2_6": Fit(
        exponentials._EXP2_6, _down(6), -0.5001, 0.5001, lambda r: mp.mpf(2) ** r, fixed=1
    ),
    "LOG_10": Fit(m.LOG_10, _down(10, 2), *_ROOTS, mp.log1p, known=lambda f: f),
    "SIN_3": Fit(m.SIN_3, _down(7, 3, 2), 1e-3, 0.795, mp.sin, known=lambda r: r),
    "COS_5": Fit(m.COS_5, _down(8, 0, 2), 1e-3, 0.795, mp.cos, fixed=2),
    "ATAN_4": Fit(
        trigonometry._ATAN_4, _down(9, 3, 2), 1e-3, 0.4143, mp.atan, known=lambda t: t
    ),
    "ATANH_3": Fit(
        power._ATANH_3, _down(9, 5, 2), 1e-3, 0.1716, mp.atanh, known=lambda s: s + s**3 / 3
    ),
    "MILLS_10": Fit(gelu._MILLS_10, _down(10), _MILLS_END, 1.0, _mills),
    "LOG_TAIL_9": Fit(
        gelu._LOG_TAIL_9, _down(9), 0.0, 14.5, lambda a: mp.log(mp.erfc(a / mp.sqrt(2)) / 2),
        scale=_one,
    ),
}  # fmt: skip
"""Every table of coefficients in the programs, with what it approximates."""


def main() -> None:
    """Fit the tables named on the command line, or all."""
    for name in sys.argv[1:] or FITS:
        found = solve(FITS[name])
        bits = np.log2(FITS[name].error(found))
        sys.stdout.write(f"{name}: relative error 2^{bits:.2f}\n    {found}\n")


if __name__ == "__main__":
    main()
