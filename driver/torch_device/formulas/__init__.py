# SPDX-License-Identifier: Apache-2.0
"""Ops that neither have a row nor a definition in torch: formulas of ops with rows.

Each module has a table DEFINITIONS, op → function with the op's arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from driver.torch_device.formulas import (
    bessel,
    complex_numbers,
    distances,
    distributions,
    embedding_bag,
    fake_quantize,
    fourier,
    gamma,
    grid_sample,
    indices,
    integers,
    linear_equations,
    matrix_decompositions,
    matrix_ranks,
    places,
    polynomials,
    resampling,
    special,
    unsupported_dtypes,
)

_MODULES = (
    *(bessel, complex_numbers, distances, distributions, fake_quantize, fourier, gamma),
    *(grid_sample, indices, places, polynomials, resampling, matrix_decompositions, special),
    *(linear_equations, integers, unsupported_dtypes, embedding_bag),
    matrix_ranks,
)


def _merged() -> dict[str, Callable[..., Any]]:
    table: dict[str, Callable[..., Any]] = {}
    for module in _MODULES:
        twice = table.keys() & module.DEFINITIONS.keys()
        assert not twice, f"two formulas of {sorted(twice)}"
        table |= module.DEFINITIONS
    return table


FORMULAS: dict[str, Callable[..., Any]] = _merged()
_ANY_DTYPE = (distributions, indices, places, integers, matrix_ranks, unsupported_dtypes)
IN_FP32 = frozenset(
    name for module in _MODULES if module not in _ANY_DTYPE for name in module.DEFINITIONS
)
"""Those that compute in fp32, and so nothing of float64."""
