# SPDX-License-Identifier: Apache-2.0
"""Small programs that a tester from outside found wrong: other types, masks, empty tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

Make = Callable[..., Tensor]
B, I8, U8 = torch.bool, torch.int8, torch.uint8


DOUBLE = torch.tensor(2.0, dtype=torch.float64)


def _stored(x: Tensor, index: Any, value: Tensor | float = 5.0) -> Tensor:
    x[index] = value
    return x


def _labels(make: Make, *labels: list[int], reduction: str = "mean") -> Tensor:
    scores = torch.linspace(0.1, 0.9, 4 * len(labels)).reshape(len(labels), 4).flip(0)
    return functional.multilabel_margin_loss(
        make(scores.tolist()), make([*labels]), reduction=reduction
    )


def _gradient_of_nothing(make: Make) -> Tensor:
    x = make([]).requires_grad_()
    functional.smooth_l1_loss(x, make([])).backward()
    assert x.grad is not None
    return x.grad


PROGRAMS: dict[str, Callable[[Make], Tensor]] = {
    "labels up to -1": lambda make: _labels(make, [3, 0, -1, 1], [2, -1, 1, 0]),
    "no label": lambda make: _labels(make, [-1, 0, 1, 2]),
    "labels of each row": lambda make: _labels(make, [3, 0, 2, 1], [2, 2, -1, 0], reduction="none"),
    "addcmul of integers": lambda make: torch.addcmul(make([0.5]), make([3]), make([2.0])),
    "addcmul of truth": lambda make: torch.addcmul(
        make([0.0]), make([True]), make([True]), value=2
    ),
    "a fraction into integers": lambda make: make([7]).masked_fill(make([True]), make(2.5)),
    "a fraction into int8": lambda make: make([7], dtype=torch.int8).masked_fill(
        make([True]), make(-2.5)
    ),
    "no boundaries": lambda make: torch.bucketize(make([1.0, 2.0]), make([])),
    "the truth of a sum": lambda make: torch.sum(make([[-1, 1], [256, 0], [0, 0]]), 1, dtype=B),
    "the truth of fractions": lambda make: torch.prod(make([0.5, 0.25]), dtype=B),
    "one element // a number": lambda make: make(7, dtype=I8) // 2,
    "a number // one element": lambda make: 7 // make(2, dtype=I8),
    "one element % a number": lambda make: make(200, dtype=U8) % -7,
    "one element and a fraction": lambda make: make(7, dtype=I8) // 2.5,
    "one place": lambda make: make([1.0, 2.0, 3.0]).gather(0, make(1)),
    "places of one element": lambda make: make(5.0).gather(0, make([0, 0])),
    "a source of one place": lambda make: make([1.0, 2.0]).scatter(0, make(1), make(9.0)),
    "a number of one place": lambda make: make([1.0, 2.0]).scatter(0, make(1), 9.0),
    "a place of one element": lambda make: make(5.0).scatter_add(0, make([0]), make([9.0])),
    "the larger of one place": lambda make: make([1.0, 2.0]).scatter_reduce(
        0, make(1), make(9.0), "amax"
    ),
    "the product of one place": lambda make: make([1.0, 2.0]).scatter_reduce(
        0, make(1), make(9.0), "prod"
    ),
    "one element backwards": lambda make: make(3.0).flip(0),
    "a copied number": lambda make: make([1.0, 2.0]).copy_(7),
    "phases of real numbers": lambda make: torch.fft.rfft(make([-1.0, -2.0, -1.0, -1.0])).angle(),
    "fractions of complex products": lambda make: (
        torch.addbmm(*(make([[1j]]), *[make([[[1j]]])] * 2), beta=0.5, alpha=0.5).real
    ),
    "a wide number": lambda make: make([1, 2], dtype=torch.int32) + 2**40,
    "a shift of no bit": lambda make: make([1, 200], dtype=U8) >> 256,
    "a NaN behind all": lambda make: torch.bucketize(make([math.nan, 1.5]), make([0.0, 1.0])),
    "a NaN among edges": lambda make: torch.bucketize(make([1.5]), make([0.0, 1.0, math.nan])),
    "pools of nothing": lambda make: functional.max_pool2d(make([]).reshape(0, 2, 4, 4), 2),
    "rows of nothing": lambda make: functional.layer_norm(make([[], []]), (0,)),
    "squares of nothing": lambda make: functional.rms_norm(make([[], []]), (0,)),
    "a gradient of nothing": _gradient_of_nothing,
    "a large norm": lambda make: torch.renorm(make([[300.0, 400.0]], dtype=torch.half), 2, 0, 1.0),
    "a factorial beyond": lambda make: torch.polygamma(171, make([1.0])),
    "a mask of rows": lambda make: _stored(make([[0.0, 0], [1, 2]]), make([True, False])),
    "a mask behind a place": lambda make: _stored(
        make([[0.0, 0], [1, 2]]), (make([1]), make([True, False]))
    ),
    "the largest into floats": lambda make: torch.max(make([1, 9]), out=make([]).float()),
    "integers into fp16": lambda make: (
        torch.amax(make([1, 9]), 0, out=make([]).half())
        if make is not torch.tensor
        else torch.tensor(9.0).half()
    ),
    "a fill by a tensor": lambda make: torch.tensor(3.0).fill_(make(2.0)),
    "a choice beside float64": lambda make: torch.where(
        make([True, False]), make([1.0, 2.0]), make(0.5, dtype=torch.float64)
    ),
    "float64 beside a choice": lambda make: torch.where(
        make([True, False]), make([1.0, 2.0], dtype=torch.float64), make(0.5)
    ),
    "a number of float64": lambda make: torch.maximum(make([1.0, 3.0]), DOUBLE) ** DOUBLE,
    "a fill by float64": lambda make: make([1.0, 3.0]).fill_(DOUBLE),
    "a mean of int16": lambda make: make([1, 2]) + torch.tensor(3, dtype=torch.int16),
    "a fill of what is repeated": lambda make: make([1.0]).expand(3).fill_(5.0),
    "truth over 0": lambda make: torch.div(make([True, False]), 0, rounding_mode=None),
    "integers over 0": lambda make: torch.div(make([1, 0, -1]), 0, rounding_mode=None),
    "a number to powers": lambda make: 2 ** make([0, 1, 40]),
    "a number to truth": lambda make: 2 ** make([True, False]),
    "a lower triangle": lambda make: torch.tril_indices(3, 4, -1, device=make([1]).device),
    "an upper triangle": lambda make: torch.triu_indices(3, 4, 1, device=make([1]).device),
    "a bound on int32 rows": lambda make: torch.embedding_renorm_(
        make([[3.0, 4.0], [0.1, 0.2]]), make([0, 0], dtype=torch.int32), 1.0, 2.0
    ),
    "a complex fill": lambda make: torch.full_like(make([1.0]), 2, dtype=torch.complex128),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_it_gives_on_the_cpu(name: str) -> None:
    found = PROGRAMS[name](lambda *a, **k: torch.tensor(*a, **k).to("npu")).cpu()
    expected = PROGRAMS[name](torch.tensor)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("number", [-(2**40), -1, 0, 1, 2, 256, 2**40])
@pytest.mark.parametrize("relation", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_truth_is_compared_with_a_number_as_an_integer(relation: str, number: int) -> None:
    x = torch.tensor([True, False])
    compare = getattr(torch, relation)
    assert torch.equal(compare(x.to("npu"), number).cpu(), compare(x, number))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_norm_without_eps_adds_that_of_fp32(dtype: torch.dtype) -> None:
    x = torch.tensor([0.01, 0.02, 0.03], dtype=dtype)
    with torch.npu.check():
        found = functional.rms_norm(x.to("npu"), (3,)).cpu()
    torch.testing.assert_close(found, functional.rms_norm(x, (3,)))


@pytest.mark.parametrize("shape", [[3], [1], [1, 4]])
def test_a_mask_of_another_size_is_refused(shape: list[int]) -> None:
    for device in ("cpu", "npu"):
        with pytest.raises(IndexError, match="The shape of the mask"):
            _stored(
                torch.zeros(4, 4, device=device), torch.ones(shape, dtype=torch.bool).to(device)
            )


def test_a_nan_changes_no_other_element() -> None:
    special = torch.special
    x, nan = torch.tensor([-10.5, 0.3, 2.0]), float("nan")
    for function in (
        lambda x: torch.polygamma(1, x),
        lambda x: special.zeta(torch.full_like(x, 2.0), x),
        lambda x: special.hermite_polynomial_h(torch.full_like(x, 0.3), x.abs().round()),
        lambda x: special.chebyshev_polynomial_t(x.clamp(-1, 1), torch.full_like(x, 4.0) + 0 * x),
    ):
        given = torch.cat([x, torch.tensor([nan])])
        found = function(given.to("npu")).cpu()
        torch.testing.assert_close(found[:3], function(given)[:3], rtol=1e-4, atol=1e-4)


def test_one_element_of_any_stride_is_copied() -> None:
    for x in (
        torch.arange(10.0).reshape(1, 10)[:, 3],
        torch.ones(1, 5)[:, 0],
        torch.ones(0, 5)[:, 0],
    ):
        assert torch.equal(x.to("npu").cpu(), x)


REFUSED: dict[str, Callable[[Make], object]] = {
    "a number beyond int8": lambda make: make([1, 2], dtype=I8).fill_(300),
    "a mask's beyond int8": lambda make: make([1], dtype=I8).masked_fill(make([True]), -129),
    "a border beyond uint8": lambda make: functional.pad(make([1], dtype=U8), (1, 1), value=256),
    "a place's beyond fp16": lambda make: make([1.0], dtype=torch.half).index_fill(
        0, make([0]), 1e6
    ),
    "a bound beyond uint8": lambda make: make([1], dtype=U8).clamp(min=-300),
    "a choice beyond int8": lambda make: torch.where(make([True]), make([1], dtype=I8), 300),
    "NaN as an integer": lambda make: make([1, 2]).fill_(math.nan),
    "a divisor of 0": lambda make: make([1, 2]) // 0,
    "a divisor that wraps to 0": lambda make: make([1, 2], dtype=I8) % 256,
    "bits of floats": lambda make: make([1.0]) & make([1.0]),
    "running sums of truth": lambda make: make([1.0]).cumsum(0, dtype=B),
    "a softmax of integers": lambda make: torch.softmax(make([1, 2]), 0),
    "a spread of integers": lambda make: make([1, 2]).std(),
    "products of truth": lambda make: make([[True]]) @ make([[True]]),
    "as many elements as places": lambda make: make([1.0, 2.0]).put_(make([0, 1]), make([5.0])),
    "a weight for each": lambda make: torch.bincount(make([0, 1]), make([1.0])),
    "bins below 0": lambda make: torch.bincount(make([0]), minlength=-1),
    "floats into integers": lambda make: torch.logaddexp(
        make([1.0]), make([2.0]), out=make([1], dtype=torch.int32)
    ),
    "a value of another type": lambda make: _stored(
        make([1.0, 2.0]), make([0, 1]), make([1, 2], dtype=I8)
    ),
    "integers beyond int8": lambda make: make([1], dtype=I8).random_(0, 1000),
    "a difference with truths": lambda make: torch.sub(make([1.0]), make([True]), out=make([1.0])),
    "more draws than categories": lambda make: torch.multinomial(make([1.0, 1.0]), 3),
    "a limit beyond int8": lambda make: functional.hardtanh(make([1, 2], dtype=I8), -300, 300),
    "a factor beyond int8": lambda make: torch.addcmul(*[make([1], dtype=I8)] * 3, value=300),
    "a sum's factor beyond int8": lambda make: torch.addmm(*[make([[1]], dtype=I8)] * 3, beta=300),
    "an infinite factor": lambda make: torch.addmm(*[make([[1]])] * 3, alpha=math.inf),
    "a row's factor beyond int8": lambda make: make([1], dtype=I8).index_add(
        0, make([0]), make([1], dtype=I8), alpha=300
    ),
    "a difference's factor beyond": lambda make: torch.rsub(make([1], dtype=I8), 1, alpha=300),
    "a power beyond int8": lambda make: make([3], dtype=I8) ** 257,
    "a factor beyond fp32": lambda make: torch.addcmul(*[make([1.0])] * 3, value=1e39),
    "a matrix of rank 1": lambda make: torch.linalg.lstsq(
        make([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), make([[1.0], [2.0], [3.0]]), driver="gels"
    ),
    "a divisor of False": lambda make: make([1, 2]) // False,
    "truth by 0": lambda make: make([True]) % 0,
    "a row that would grow": lambda make: torch.add(
        (row := make([[0.0], [1.0]])[0]), make([[1.0], [2.0]]), out=row
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_cpu_refuses_is_refused(name: str) -> None:
    refused = (RuntimeError, NotImplementedError, IndexError)
    with pytest.raises(refused):
        REFUSED[name](torch.tensor)
    with pytest.raises(refused):
        REFUSED[name](lambda *a, **k: torch.tensor(*a, **k).to("npu"))


@pytest.mark.parametrize(
    "program",
    [
        lambda result, x: torch.sum(x, 0, out=result),
        lambda result, x: result.logical_or_(x[0]),
        lambda result, x: result.masked_fill_(x[0] > 0, 9.0),
        lambda result, x: torch.add(x[0], 1, out=result),
    ],
)
def test_a_result_on_the_cpu_is_refused(program: Callable[[Tensor, Tensor], Tensor]) -> None:
    """A number on the CPU is an operand, no place for a result: that memory is not the NPU's."""
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        program(torch.tensor(0.0), torch.ones(3, device="npu"))
    assert torch.equal((torch.ones(3, device="npu") + 1).cpu(), torch.full((3,), 2.0))


def test_memory_that_was_given_back_is_neither_read_nor_written() -> None:
    for use in (lambda x: x.fill_(7.0), torch.sum, torch.exp, Tensor.cpu, Tensor.tolist):
        x = torch.ones(1000).to("npu")
        x.untyped_storage().resize_(0)
        with pytest.raises(RuntimeError, match=r"the memory of this tensor of .* is gone"):
            use(x)


def test_a_copy_within_one_memory_by_the_host_reads_first() -> None:
    x = torch.arange(9.0, dtype=torch.float64).reshape(3, 3).to("npu")
    assert torch.equal(x.t().copy_(x).cpu(), torch.arange(9.0, dtype=torch.float64).reshape(3, 3))
    line = torch.arange(5, dtype=torch.int16).to("npu")
    line[1:].copy_(line[:-1])
    assert line.tolist() == [0, 0, 1, 2, 3]


def test_weights_that_torch_normalises_train() -> None:
    def gradients(device: str) -> list[Tensor]:
        layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
        rows = torch.nn.Embedding(4, 3, max_norm=1.0)
        for parameter in (*layer.parameters(), *rows.parameters()):
            torch.nn.init.constant_(parameter, 0.75)
        layer, rows = layer.to(device), rows.to(device)
        layer(rows(torch.tensor([1, 2], device=device))).sum().backward()
        made = [x.grad for x in (*layer.parameters(), *rows.parameters())]
        return [rows.weight.detach().cpu(), *(x.cpu() for x in made if x is not None)]

    torch.testing.assert_close(gradients("npu"), gradients("cpu"), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shrink", [functional.softshrink, functional.hardshrink])
def test_the_gradient_of_a_nan_passes(shrink: Callable[[Tensor], Tensor]) -> None:
    def gradient(device: str) -> Tensor:
        x = torch.tensor([math.nan, 1.0, 0.2], device=device, requires_grad=True)
        shrink(x).sum().backward()
        assert x.grad is not None
        return x.grad.cpu()

    assert torch.equal(gradient("npu"), gradient("cpu"))
