# SPDX-License-Identifier: Apache-2.0
"""The coefficients in the programs are fits of what they say, as good as the derivation gives."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from minimax import FITS, Fit, solve

from driver.isa import programs

BITS = {
    "EXP_6": 28.2,
    "EXP_3": 13.7,
    "EXPM1_7": 30.9,
    "EXP2_6": 28.2,
    "LOG_10": 27.7,
    "SIN_3": 27.8,
    "COS_5": 32.6,
    "ATAN_4": 25.5,
    "ATANH_3": 36.7,
    "MILLS_10": 28.3,
    "LOG_TAIL_9": 14.4,
}
"""What the programs' accuracy is built on."""


@pytest.mark.parametrize("name", FITS)
def test_a_table_approximates_what_it_says(name: str) -> None:
    fit = FITS[name]
    assert all(float(np.float32(c)) == c for c in fit.coefficients)
    assert -math.log2(fit.error(fit.coefficients)) >= BITS[name]


@pytest.mark.parametrize("name", FITS)
def test_the_derivation_gives_a_table_as_good(name: str) -> None:
    fit = FITS[name]
    assert fit.error(solve(fit)) <= 1.1 * fit.error(fit.coefficients)


def test_an_error_in_a_coefficient_shows() -> None:
    fit = FITS["EXP_6"]
    worse = (*fit.coefficients[:2], fit.coefficients[2] * 1.001, *fit.coefficients[3:])
    assert fit.error(worse) > 100 * fit.error(fit.coefficients)


def test_every_table_of_the_programs_has_a_derivation() -> None:
    source = "".join(path.read_text("utf-8") for path in Path(programs.__path__[0]).glob("*.py"))
    tables = re.findall(r"^_?([A-Z][A-Z0-9_]*) = \((?=-?\d+\.)", source, re.MULTILINE)
    assert set(tables) - set(FITS) == {"HALF_PI"}  # π/2 in three parts, not a polynomial
    assert isinstance(next(iter(FITS.values())), Fit)
