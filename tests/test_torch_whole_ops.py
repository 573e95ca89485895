# SPDX-License-Identifier: Apache-2.0
"""Ops that run by smaller ones: check mode compares them as a whole with CPU torch."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import pytest
import torch
from torch import Tensor, nn, tensor
from torch.nn import functional

from driver.torch_device import overloads
from driver.torch_device.check import WrongResult

Program = Callable[[str], object]
DOUBLE = torch.float64
TALL = tensor([[3.0, 1], [4, 2], [0, 5]])
SMALL = tensor([[0.3, 0.1], [0.2, 0.4]])


def gradient_of_a_complex_product(device: str) -> Tensor:
    z = torch.ones(2, dtype=torch.complex64, device=device, requires_grad=True)
    (z * 2j).real.sum().backward()
    assert z.grad is not None
    return z.grad


AS_ON_THE_CPU: dict[str, Callable[[str], Tensor]] = {
    "ldexp of complex numbers": lambda d: torch.ldexp(
        tensor([1 + 2j, 3j]).to(d), tensor([1, 2]).to(d)
    ),
    "matrix_exp beside a large matrix": lambda d: torch.matrix_exp(
        torch.stack([-1e6 * torch.eye(2), SMALL]).to(d)
    )[1],
    "matrix_exp beside NaN": lambda d: torch.matrix_exp(
        torch.stack([nan * torch.eye(2), 30 * SMALL]).to(d)
    )[1],
    **{
        f"qr of 1e{power}": lambda d, power=power: torch.cat(
            torch.linalg.qr((TALL * 10.0**power).to(d))
        ).abs()
        for power in (-36, -24, 18, 37)
    },
    "singular values of 1e-24": lambda d: torch.linalg.svdvals((TALL * 1e-24).to(d)) * 1e24,
    "singular values of 1e30": lambda d: torch.linalg.svdvals((TALL * 1e30).to(d)),
    "cond of 1e-23": lambda d: torch.linalg.cond((TALL * 1e-23).to(d)),
    "lstsq of 1e-22": lambda d: (
        torch.linalg.lstsq((TALL * 1e-22).to(d), TALL[:, :1].to(d), driver="gels").solution * 1e-22
    ),
    "linspace of int64": lambda d: torch.linspace(0, 10**9 + 7, 2, dtype=torch.int64, device=d),
    "linspace of int32": lambda d: torch.linspace(0, 2**24 + 1, 3, dtype=torch.int32, device=d),
    "threshold of int64": lambda d: functional.threshold(tensor([16777217, 5]).to(d), 16777216, 0),
    "threshold to int32": lambda d: functional.threshold(
        tensor([5, -5], dtype=torch.int32).to(d), 0, 16777217
    ),
    "threshold of NaN": lambda d: functional.threshold(tensor([nan, -1.0, 2]).to(d), 0, 7),
    "mode of NaN": lambda d: tensor([nan, nan, 1.0]).to(d).mode()[0],
    "cdist of NaN": lambda d: torch.cdist(
        tensor([[nan, 2], [1, inf]]).to(d), tensor([[1.0, 2.0]]).to(d), p=0
    ),
    "fake quantization of NaN": lambda d: torch.fake_quantize_per_tensor_affine(
        tensor([nan, 1.0]).to(d), 0.1, 3, -128, 127
    ),
    "a float times 2**63": lambda d: tensor([1.0, 3]).to(d) * 2**63,
    "an integer plus 2**64 - 1": lambda d: tensor([1, 3]).to(d) + (2**64 - 1),
    "histc of bfloat16": lambda d: tensor([0, 1, 2, 3, 3.0]).bfloat16().to(d).histc(4, 0, 3),
    "logspace": lambda d: torch.logspace(-3, 3, 7, base=2.5, device=d),
    "logspace of int64": lambda d: torch.logspace(0, 12, 4, dtype=torch.int64, device=d),
    "logspace of float16": lambda d: torch.logspace(-3, 3, 7, dtype=torch.float16, device=d),
    "logspace of a tensor": lambda d: torch.logspace(tensor(0.5).to(d), 2, 4, device=d),
    "logspace into a tensor": lambda d: torch.logspace(0, 2, 3, out=torch.empty(3).to(d)),
    "i0 of infinity": lambda d: torch.i0(tensor([inf, -inf, nan, 100, 2]).to(d)),
    "i1 of infinity": lambda d: torch.special.i1(tensor([inf, -inf, nan, 100, 2]).to(d)),
    "kaiser_window": lambda d: torch.kaiser_window(5, device=d),
    "the gradient of a complex product": gradient_of_a_complex_product,
    "a gradient without distances": lambda d: torch.autograd.grad(
        torch.cdist(
            (x := torch.ones(3, 5, device=d, requires_grad=True)), torch.ones(0, 2, 5, device=d)
        ).sum(),
        x,
    )[0],
}


NUMBERED = torch.arange(1.0, 7).view(1, 1, 2, 3)
WITH_INFINITY = torch.where(NUMBERED == 1, inf, NUMBERED)
OUTSIDE = tensor([[[[5.0, 5], [-5, -5], [1, 1], [1e30, 1], [-3e9, 0.5], [1.2, -1.1]]]])
NO_PLACE = tensor([[[[nan, 0.0], [0, 0], [inf, 0], [-inf, nan]]]])


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_samples_of_a_grid_are_those_of_cpu_torch(
    mode: str, padding_mode: str, align_corners: bool
) -> None:
    torch.manual_seed(1)
    pairs = [
        (torch.randn(2, 3, 5, 7), torch.randn(2, 3, 4, 2) * 1.7),
        (torch.randn(1, 2, 1, 1), torch.randn(1, 3, 4, 2)),
    ]
    if mode != "bicubic":
        pairs += [(NUMBERED, OUTSIDE), (WITH_INFINITY, OUTSIDE), (NUMBERED, NO_PLACE)]
    for image, grid in pairs:
        options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
        expected = functional.grid_sample(image, grid, **options)
        found = functional.grid_sample(image.to("npu"), grid.to("npu"), **options).cpu()
        torch.testing.assert_close(found, expected, equal_nan=True, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", AS_ON_THE_CPU)
def test_the_value_is_that_of_cpu_torch(name: str) -> None:
    program = AS_ON_THE_CPU[name]
    found, expected = program("npu").cpu(), program("cpu")
    torch.testing.assert_close(found, expected, equal_nan=True, rtol=2e-5, atol=1e-6)


REFUSED: dict[str, tuple[Program, str]] = {
    "a histogram of NaN": (lambda d: torch.histc(tensor([1.0, nan]).to(d), 4), "is not finite"),
    "a histogram of infinity": (lambda d: torch.histc(tensor([1, inf]).to(d), 4), "is not finite"),
    "an imaginary fill": (lambda d: torch.ones(2, device=d).fill_(1j), "cannot be converted"),
    "elu of integers": (lambda d: functional.elu(tensor([1, 2]).to(d)), "Long|floating-point"),
    "an empty range": (lambda d: torch.randint(5, 5, (2,), device=d), "from=5 >= to=5"),
    "median of nothing": (lambda d: torch.empty(0, 3, device=d).median(-2), "reduction dim 0 to"),
    "a negative class": (lambda d: functional.one_hot(tensor([-1]).to(d)), "out of bounds|negativ"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cpu_torch_refuses_is_refused(name: str) -> None:
    program, text = REFUSED[name]
    for device in ("cpu", "npu"):
        with pytest.raises((RuntimeError, IndexError), match=text):
            program(device)


def one_double(device: str) -> Tensor:
    return torch.ones(1, dtype=DOUBLE).to(device)


FLOAT64: dict[str, Program] = {
    "scatter_reduce": lambda d: one_double(d).scatter_reduce(
        0, tensor([0]).to(d), one_double(d), "prod"
    ),
    "index_reduce": lambda d: one_double(d).index_reduce(
        0, tensor([0]).to(d), one_double(d), "prod"
    ),
    "weight_norm": lambda d: torch._weight_norm(one_double(d), one_double(d), 0),
    "mish_backward": lambda d: torch.ops.aten.mish_backward(one_double(d), one_double(d)),
}


@pytest.mark.parametrize("name", FLOAT64)
def test_nothing_of_float64_is_computed_in_fp32(name: str) -> None:
    with pytest.raises(NotImplementedError, match="float64"):
        FLOAT64[name]("npu")


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_fused_optimizer_on_the_cpu_keeps_float64(momentum: float) -> None:
    weight = tensor([0.1], dtype=DOUBLE).to("npu").requires_grad_()
    weight.grad = torch.ones_like(weight)
    torch.npu.allow_cpu_fallback(True)
    try:
        with pytest.warns(RuntimeWarning, match=r"npu\.sgd"):
            torch.optim.SGD([weight], lr=0.0, momentum=momentum, fused=True).step()
    finally:
        torch.npu.allow_cpu_fallback(False)
    assert weight.item() == 0.1


def test_an_op_without_a_kernel_on_the_cpu_says_so() -> None:
    x = torch.ones(2, 4, dtype=DOUBLE).to("npu").requires_grad_()
    torch.npu.allow_cpu_fallback(True)
    try:
        with pytest.raises(NotImplementedError, match="has no kernel on the CPU either"):
            nn.functional.rms_norm(x, (4,)).sum().backward()
    finally:
        torch.npu.allow_cpu_fallback(False)


@pytest.mark.parametrize(
    "run", [torch.linalg.inv, torch.linalg.cholesky, torch.matrix_exp, torch.fft.fft]
)
def test_autocast_does_not_reach_the_smaller_ops(run: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(6, 6, generator=torch.Generator().manual_seed(3))
    x = (x @ x.mT + torch.eye(6)).to("npu")
    with torch.autocast("npu", dtype=torch.bfloat16):
        found = run(x)
    assert torch.equal(found.cpu(), run(x).cpu())


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
def test_integers_are_counted_as_other_accelerators_do(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 2, 3, 3, 9]).to(dtype).to("npu")
    assert x.histc(4, 0, 3).tolist() == [1, 1, 1, 2]
    assert x.histc(4, 0, 3).dtype is dtype


@pytest.mark.parametrize("x", [tensor([1 << 25]), tensor([0.0], dtype=DOUBLE), tensor([True])])
def test_what_fp32_does_not_hold_is_not_counted(x: Tensor) -> None:
    with pytest.raises(NotImplementedError, match="histc"):
        x.to("npu").histc(4, 0, 3)


# ---------------------------------------------------------------------- check mode
def test_a_wrong_definition_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.linspace(-1, 1, 5).to("npu")
    wrong = overloads.DEFINITIONS["aten.erfc.default"]
    monkeypatch.setitem(overloads.DEFINITIONS, "aten.erfc.default", lambda x: wrong(x) * 1.01)
    overloads.smaller_ops.cache_clear()
    try:
        with (
            pytest.raises(WrongResult, match=r"aten\.erfc\.default is wrong \(its smaller ops\)"),
            torch.npu.check() as report,
        ):
            torch.erfc(x)
        assert report.wrong
    finally:
        overloads.smaller_ops.cache_clear()


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda x: x.sgn().to(torch.int32), "is int32"),
        (lambda x: x.reshape(5, 1), r"\[5, 1\], on the CPU float32 \[5\]"),
        (lambda x: torch.full_like(x, inf), "is inf, on the CPU"),
        (lambda x: torch.full_like(x, nan), "is nan, on the CPU"),
    ],
)
def test_another_type_size_or_infinity_is_found(
    monkeypatch: pytest.MonkeyPatch, made: Callable[[Tensor], Tensor], text: str
) -> None:
    monkeypatch.setitem(overloads.DEFINITIONS, "aten.erfc.default", made)
    overloads.smaller_ops.cache_clear()
    try:
        with pytest.raises(WrongResult, match=text), torch.npu.check():
            torch.erfc(torch.linspace(-1, 1, 5).to("npu"))
    finally:
        overloads.smaller_ops.cache_clear()


def test_what_was_compared_as_a_whole_is_counted() -> None:
    x = torch.randn(4, 3).to("npu")
    with torch.npu.check() as report:
        torch.linalg.svd(x)
        torch.linalg.eigh(x[:3])
        torch.empty(3, device="npu").cauchy_()
    assert report.whole["aten._linalg_svd.default"] == 3 + 12
    assert report.whole["aten._linalg_eigh.default"] == 3 + 9
    assert "aten.cauchy_.default" in report.decomposed
    assert "aten.cauchy_.default" not in report.whole  # its numbers are the NPU's own
    assert not report.refused_by_cpu


def test_what_the_cpu_has_not_in_16_bits_is_compared_with_float32() -> None:
    x = torch.randn(4, 3, dtype=torch.float16)
    with pytest.raises(NotImplementedError, match="Half"):
        torch.cdist(x, x)
    with torch.npu.check() as report:
        torch.cdist(x.to("npu"), x.to("npu"))
    assert report.whole["aten._cdist_forward.default"] == 16
    assert not report.refused_by_cpu


def test_a_number_beyond_16_bits_is_infinite_for_both() -> None:
    with torch.npu.check() as report:
        torch.special.log_ndtr(tensor([-400.0]).half().to("npu"))
    assert report.whole["aten.special_log_ndtr.default"] == 1


def test_a_solution_of_least_squares_is_compared() -> None:
    with torch.npu.check() as report:
        torch.linalg.lstsq(torch.eye(4, 3, device="npu"), torch.ones(4, 2, device="npu"))
    assert report.whole["aten.linalg_lstsq.default"] == 6


def test_what_the_cpu_refuses_is_counted_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(overloads.DEFINITIONS, "aten.erfc.default", lambda x: x + 0)
    overloads.smaller_ops.cache_clear()
    try:
        with torch.npu.check() as report:
            torch.erfc(torch.ones(3, dtype=torch.complex64).to("npu"))
    finally:
        overloads.smaller_ops.cache_clear()
    assert report.refused_by_cpu["aten.erfc.default"] == 1
    assert not report.whole
    assert "refused by CPU torch: aten.erfc.default (1)" in str(report)


SINGULAR: dict[str, Callable[[Tensor], object]] = {
    "inv_ex": torch.linalg.inv_ex,
    "cholesky_ex": lambda x: torch.linalg.cholesky_ex(x @ x.mT),
    "lu": torch.linalg.lu,
    "lu_factor_ex": torch.linalg.lu_factor_ex,
    "solve_ex": lambda x: torch.linalg.solve_ex(x, torch.ones_like(x)),
    "qr": torch.linalg.qr,
    "geqrf": torch.geqrf,
    "svd": torch.linalg.svd,
    "slogdet": torch.linalg.slogdet,
}


@pytest.mark.parametrize("name", SINGULAR)
def test_what_a_singular_matrix_leaves_open_is_no_difference(name: str) -> None:
    torch.manual_seed(6)
    matrices = torch.randn(4, 5, 5)
    matrices[1, :, 0] = matrices[1, :, 1]  # singular but for roundings
    matrices[2] = 0
    with torch.npu.check() as report:
        SINGULAR[name](matrices.to("npu"))
    assert sum(report.whole.values()) > 0
