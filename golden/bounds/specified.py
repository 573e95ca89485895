# SPDX-License-Identifier: Apache-2.0
"""Bits that docs/numerics.md specifies of each element of a result, by integer arithmetic.

A bound admits sums in another order, and zeros of either sign. The contract does not: where an op's
elements are chains of its own operands, a few of them are computed anew, and have to be those bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import prod

import numpy as np

from driver.isa import DTYPE_BYTES, DType
from golden.formats import UINTS, Floats, Mask, Values, decode
from golden.products import Product, chain_bits

_MOST_STEPS, _LONGEST_CHAIN = 1 << 12, 1 << 16
"""Of the chains that are computed for one result, at about 10 µs each, and of a single one."""


class SpecifiedBits:
    """Those of the elements of one result, in row-major order; each is computed when asked for, in
    so many steps. The elements that are checked: the last, the first and the one in the middle, or
    fewer where that is much work."""

    def __init__(self, count: int, steps: int, dtype: DType, bits: Callable[[int], int]) -> None:
        self._dtype, self.bits = dtype, bits
        chosen = [count - 1, 0, count // 2] if count and steps <= _LONGEST_CHAIN else []
        self.sampled = sorted(set(chosen[: max(1, _MOST_STEPS // max(steps, 1))]))

    @cached_property
    def _wanted(self) -> Floats:
        found = np.array([self.bits(at) for at in self.sampled], UINTS[DTYPE_BYTES[self._dtype]])
        return decode(found, self._dtype).astype(np.float64)

    def admits(self, values: Values) -> Mask:
        """Whether those that are checked are as specified, the sign of a zero included; nothing is
        said of the others."""
        right = np.ones(values.size, np.bool_)
        found = values.reshape(-1)[self.sampled].astype(np.float64)
        equal = (found == self._wanted) & (np.signbit(found) == np.signbit(self._wanted))
        right[self.sampled] = equal | (np.isnan(found) & np.isnan(self._wanted))
        return right.reshape(values.shape)


def of_product(product: Product) -> SpecifiedBits:
    """Of a matrix product, [batch, M, N]."""

    def bits(flat: int) -> int:
        return chain_bits(product, [int(at) for at in np.unravel_index(flat, product.shape)])

    return SpecifiedBits(prod(product.shape), product.a.shape[-1], product.result, bits)
