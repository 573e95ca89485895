# SPDX-License-Identifier: Apache-2.0
"""Special functions of device "npu", on a grid over their whole range, against torch in float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import special

Tensor = torch.Tensor
Function = Callable[[Tensor], Tensor]
POINTS = 601


def _of_degree(function: Callable[..., Tensor], degree: int) -> Function:
    return lambda x: function(x, torch.full_like(x, degree))


def _with_mirrored(function: Callable[..., Tensor]) -> Function:
    return lambda x: function(x, x.flip(0))


FUNCTIONS: dict[str, tuple[Function, float, float, float]] = {
    "erfc": (torch.erfc, -6, 10, 1e-6),
    "erfcx": (special.erfcx, -8, 50, 5e-6),
    "erfinv": (torch.erfinv, -1, 1, 1e-6),
    "ndtri": (special.ndtri, 0, 1, 1e-6),
    "lgamma": (torch.lgamma, -9.03, 30, 1e-5),
    "digamma": (torch.digamma, -9.03, 30, 2e-6),
    "polygamma_1": (lambda x: torch.polygamma(1, x), -9.03, 30, 2e-6),
    "polygamma_3": (lambda x: torch.polygamma(3, x), 0.1, 30, 2e-6),
    "zeta": (lambda x: special.zeta(x, torch.full_like(x, 1.5)), 1.1, 30, 2e-6),
    "igamma": (_with_mirrored(torch.igamma), 0.05, 40, 1e-5),
    "igammac": (_with_mirrored(torch.igammac), 0.05, 40, 1e-5),
    "i0": (torch.i0, -20, 20, 2e-6),
    "i0e": (special.i0e, -60, 60, 2e-6),
    "i1": (special.i1, -20, 20, 2e-6),
    "i1e": (special.i1e, -60, 60, 2e-6),
    "bessel_j0": (special.bessel_j0, -50, 50, 2e-6),
    "bessel_j1": (special.bessel_j1, -50, 50, 2e-6),
    "bessel_y0": (special.bessel_y0, 0, 50, 2e-6),
    "bessel_y1": (special.bessel_y1, 0, 50, 2e-6),
    "modified_bessel_k0": (special.modified_bessel_k0, 0, 30, 2e-6),
    "modified_bessel_k1": (special.modified_bessel_k1, 0, 30, 2e-6),
    "scaled_modified_bessel_k0": (special.scaled_modified_bessel_k0, 0, 30, 2e-6),
    "scaled_modified_bessel_k1": (special.scaled_modified_bessel_k1, 0, 30, 2e-6),
    "spherical_bessel_j0": (special.spherical_bessel_j0, -30, 30, 1e-6),
    "airy_ai": (special.airy_ai, -20, 10, 5e-6),
    "hypot": (_with_mirrored(torch.hypot), -3, 1000, 1e-6),
    "frexp": (lambda x: torch.frexp(x)[0], -3, 1000, 0),
    "chebyshev_t": (_of_degree(special.chebyshev_polynomial_t, 5), -2, 2, 2e-6),
    "chebyshev_u": (_of_degree(special.chebyshev_polynomial_u, 5), -2, 2, 2e-6),
    "chebyshev_v": (_of_degree(special.chebyshev_polynomial_v, 5), -2, 2, 2e-6),
    "chebyshev_w": (_of_degree(special.chebyshev_polynomial_w, 5), -2, 2, 2e-6),
    "hermite_h": (_of_degree(special.hermite_polynomial_h, 6), -2, 2, 5e-5),
    "hermite_he": (_of_degree(special.hermite_polynomial_he, 6), -2, 2, 1e-5),
    "laguerre": (_of_degree(special.laguerre_polynomial_l, 6), -2, 2, 2e-6),
    "legendre": (_of_degree(special.legendre_polynomial_p, 6), -2, 2, 2e-6),
}
"""Function, interval, and the largest difference, as a share of the value or of 1.

The difference is that of fp32 sums and products of the formula: 2⁻²⁴ times their number, 8 to 80;
where terms cancel (lgamma, Hermite) times the size of the largest term.
"""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_function_over_its_range(name: str) -> None:
    function, low, high, bound = FUNCTIONS[name]
    x = torch.linspace(low, high, POINTS)
    found, expected = function(x.to("npu")).cpu().double(), function(x.double())
    expected = expected.where(
        expected.abs() <= torch.finfo(torch.float32).max, expected * torch.inf
    )
    finite = expected.isfinite()
    assert int(finite.sum()) >= POINTS - 12
    error = (found - expected).abs()[finite] / expected.abs().clamp(min=1)[finite]
    assert float(error.max()) <= bound, float(x[finite][error.argmax()])
    torch.testing.assert_close(found[~finite], expected[~finite], equal_nan=True)


def test_log_gamma_of_the_least_and_the_largest_numbers() -> None:
    least = [1e-45, -3e-45, 1e-42, 1e-38, 1e-20, 0.0, -0.0]
    x = torch.tensor([*least, -(2.0**-21), 3e38, -3e38, -2.0, -8388607.5])
    found, expected = torch.lgamma(x.to("npu")).cpu(), torch.lgamma(x.double())
    expected = expected.where(expected < torch.finfo(torch.float32).max, torch.inf)
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=0)


def test_the_quantile_of_the_least_probabilities() -> None:
    x = torch.tensor([1e-45, 3e-45, 1e-42, 1e-40, 2.0**-126, 1e-30, 1e-10])
    found, expected = special.ndtri(x.to("npu")).cpu(), special.ndtri(x.double())
    torch.testing.assert_close(found.double(), expected, rtol=5e-7, atol=0)


def test_numbers_next_to_each_other() -> None:
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, torch.inf, torch.nan, 2.0**-126, 3.0])
    target = torch.tensor([1.0, -1.0, 2.0, 0.0, 0.0, 1.0, 0.0, 3.0])
    found = torch.nextafter(x.to("npu"), target.to("npu")).cpu()
    expected = torch.nextafter(x, target)
    words = [y.view(torch.int32).where(~y.isnan(), 0) for y in (found, expected)]
    assert torch.equal(*words)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_power_of_two_beyond_all_numbers_moves_the_exponent(dtype: torch.dtype) -> None:
    made = torch.Generator().manual_seed(1)
    words = torch.randint(-(2**31), 2**31, (20_000,), generator=made).to(torch.int32)
    x = words.view(torch.float32).to(dtype)
    n = torch.randint(-320, 320, (20_000,), generator=made)
    found = torch.ldexp(x.to("npu"), n.to("npu")).cpu()
    torch.testing.assert_close(found, torch.ldexp(x, n), rtol=0, atol=0, equal_nan=True)
    same = torch.ldexp(*torch.frexp(x.to("npu"))).cpu()
    torch.testing.assert_close(same, x, rtol=0, atol=0, equal_nan=True)


def test_a_degree_that_takes_too_many_steps_is_refused() -> None:
    x = torch.full((2,), 0.5, device="npu")
    with pytest.raises(NotImplementedError, match="at most 1024"):
        special.chebyshev_polynomial_t(x, 5000)
