# SPDX-License-Identifier: Apache-2.0
"""Ranks and pseudoinverses on the NPU, and the former names of scatter_reduce."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, linalg

Program = Callable[[Tensor], Tensor]


def matrices() -> Tensor:
    """Three of five rows and four columns; the second has rank 2."""
    generator = torch.Generator().manual_seed(2)
    found = torch.randn(3, 5, 4, generator=generator)
    found[1, :, 2:] = found[1, :, :2] @ torch.tensor([[1.0, 2], [3, -1]])
    return found


def tolerances(x: Tensor) -> Tensor:
    return torch.tensor([1e-3, 1e-4, 10.0]).to(x.device)


RANKS: dict[str, Program] = {
    "rank": linalg.matrix_rank,
    "rank, rtol": lambda x: linalg.matrix_rank(x, rtol=0.3),
    "rank, atol": lambda x: linalg.matrix_rank(x, atol=0.9),
    "rank, tol": lambda x: linalg.matrix_rank(x, 0.9),
    "rank, a tolerance each": lambda x: linalg.matrix_rank(x, atol=tolerances(x)),
    "rank, a tol each": lambda x: linalg.matrix_rank(x, tolerances(x)),
    "rank, hermitian": lambda x: linalg.matrix_rank(x.mT @ x, hermitian=True),
    "rank, out": lambda x: linalg.matrix_rank(
        x, out=torch.empty(3, dtype=torch.long, device=x.device)
    ),
    "rank of nothing": lambda x: linalg.matrix_rank(x[:, :0]),
}
INVERSES: dict[str, Program] = {
    "pinv": linalg.pinv,
    "pinv of rows": lambda x: linalg.pinv(x.mT),
    "pinv, rtol": lambda x: linalg.pinv(x, rtol=0.3),
    "pinv, rcond": lambda x: linalg.pinv(x, 0.3),
    "pinv, a tolerance each": lambda x: linalg.pinv(x, atol=tolerances(x)),
    "pinv, hermitian": lambda x: linalg.pinv(x.mT @ x, 1e-3, hermitian=True),
    "pinverse": lambda x: torch.pinverse(x[0]),
    "pinv of nothing": lambda x: linalg.pinv(x[:, :0]),
}


@pytest.mark.parametrize("name", RANKS)
def test_ranks_are_those_of_the_cpu(name: str) -> None:
    found = RANKS[name](matrices().to("npu"))
    assert torch.equal(found.cpu(), RANKS[name](matrices()))


@pytest.mark.parametrize("name", INVERSES)
def test_pseudoinverses_are_those_of_the_cpu(name: str) -> None:
    found = INVERSES[name](matrices().to("npu"))
    torch.testing.assert_close(found.cpu(), INVERSES[name](matrices()), rtol=1e-4, atol=1e-4)


def test_check_mode_compares_both_as_a_whole(tmp_path: Path) -> None:
    x = torch.tensor([[2.0, 1], [1, 3], [0, 1]]).to("npu")
    with torch.npu.check(tmp_path) as report:  # of one small matrix: each of its ops is judged
        linalg.matrix_rank(x)
        linalg.pinv(x)
    assert report.whole["aten.linalg_matrix_rank.atol_rtol_tensor"] == 1
    assert report.whole["aten.linalg_pinv.atol_rtol_tensor"] == 6


def test_the_gradient_of_a_pseudoinverse_is_that_of_the_cpu() -> None:
    leaves = [matrices()[::2].to(device).requires_grad_() for device in ("cpu", "npu")]
    for x in leaves:
        linalg.pinv(x).square().sum().backward()
    theirs, mine = (x.grad for x in leaves)
    assert theirs is not None
    assert mine is not None
    torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("reduce", ["add", "multiply"])
@pytest.mark.parametrize("number", [False, True])
def test_scatter_reduces_by_its_former_names(
    number: bool, reduce: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    def run(device: str) -> Tensor:
        places = torch.tensor([[0, 1, 2, 0], [0, 0, 2, 2]]).to(device)
        given = 3 if number else torch.arange(1, 9, device=device).view(2, 4).to(dtype)
        return torch.ones(3, 4, dtype=dtype, device=device).scatter_(
            0, places, given, reduce=reduce
        )  # type: ignore[call-overload, no-any-return]

    with torch.npu.check(tmp_path):
        found = run("npu").cpu()
    assert torch.equal(found, run("cpu"))


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_another_reduction_is_refused(device: str) -> None:
    x = torch.ones(3, device=device)
    with pytest.raises(RuntimeError, match="add or multiply"):
        x.scatter_(0, torch.tensor([0], device=device), 2.0, reduce="mean")
