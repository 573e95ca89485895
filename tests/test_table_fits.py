# SPDX-License-Identifier: Apache-2.0
"""The words of the vector engine's tables are fits of what they say, as good as the derivation."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from table_fits import FITS, error, number, row, table_of

from driver.isa.assembler import float_bits
from driver.isa.tables import TABLES

BITS = {"tanh": 24.4, "erf": 26.0, "sigmoid_16": 12.5, "logistic": 24.9}
"""What the accuracy of the programs is built on: −log2 of the largest relative error."""
_NORMAL = {"sigmoid_16": 20}
"""From this segment on the coefficients are far from the subnormal numbers."""


def test_every_table_has_a_derivation() -> None:
    assert list(FITS) == [table.name for table in TABLES] == list(BITS)


@pytest.mark.parametrize("name", FITS)
def test_a_table_approximates_what_it_says(name: str) -> None:
    fit = FITS[name]
    table = table_of(fit)
    assert (table.first, table.shift, len(table.rows)) == (fit.first, fit.shift, fit.segments)
    for segment in range(_NORMAL.get(name, 0), fit.segments - bool(fit.last_row), 3):
        assert -math.log2(error(fit, segment, table.rows[segment])) >= BITS[name], segment


@pytest.mark.parametrize("name", ["tanh", "erf", "logistic"])
def test_rounding_the_constant_costs_nothing(name: str) -> None:
    fit = FITS[name]
    for words in table_of(fit).rows[1 : fit.segments - bool(fit.last_row)]:
        m, constant = -number(words[0]), number(words[1])
        with mp.workdps(30):
            lost = float(abs(fit.target(mp.mpf(m)) - mp.mpf(constant)))
        assert lost <= 2.0**-9 * float(np.spacing(np.float32(constant)))


@pytest.mark.parametrize("name", FITS)
def test_the_derivation_gives_the_words(name: str) -> None:
    fit = FITS[name]
    rows = table_of(fit).rows
    for segment in (0, fit.segments // 2, fit.segments - 1):
        derived = tuple(map(float_bits, row(fit, segment)))
        assert derived[:2] == rows[segment][:2] or name == "sigmoid_16"
        if not fit.given(segment):
            best = error(fit, segment, derived)
            assert error(fit, segment, rows[segment]) <= 1.1 * best


def test_a_wrong_word_shows() -> None:
    fit = FITS["tanh"]
    words = list(table_of(fit).rows[60])
    words[2] ^= 1 << 12
    assert -math.log2(error(fit, 60, tuple(words))) < BITS["tanh"]
