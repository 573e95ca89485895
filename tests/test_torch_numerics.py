# SPDX-License-Identifier: Apache-2.0
"""What device "npu" is as exact in as the CPU, or refuses: long sums, float64, sizes of identities,
statistics by the CPU, errors at the end of a program."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from test_torch_device import run_python
from torch import Tensor

LONG = 1_000_003
"""Elements: no multiple of the parts that a row is summed up in."""


@pytest.mark.parametrize(
    "name", ["sum", "mean", "norm", "var", "mse_loss", "dot", "sum of a column", "sum of rows"]
)
def test_a_sum_of_a_million_is_as_exact_as_on_the_cpu(name: str) -> None:
    """One chain of them was off by 6e-4."""
    programs: dict[str, Callable[[Tensor], Tensor]] = {
        "sum": torch.sum,
        "mean": torch.mean,
        "norm": lambda x: torch.linalg.vector_norm(x) ** 2,
        "var": lambda x: x.var(),
        "mse_loss": lambda x: torch.nn.functional.mse_loss(x, -x),
        "dot": lambda x: torch.dot(x, x),
        "sum of a column": lambda x: x[:-3].reshape(500_000, 2).sum(0),
        "sum of rows": lambda x: x[:-3].reshape(2, 500_000).sum(1),
    }
    x = 0.1 + torch.rand(LONG, generator=torch.Generator().manual_seed(1)) / 64
    made, true = (programs[name](given).cpu() for given in (x.to("npu"), x.double()))
    assert ((made - true).abs() <= 2e-6 * true.abs()).all()


def test_log_gamma_keeps_its_digits_near_its_zeros() -> None:
    """A difference of numbers near 8 had 1 % of error there."""
    x = torch.tensor([1.0001, 1.9999, 2.0004, 0.75, 2.75, 1.0, 2.0])
    made, true = torch.lgamma(x.to("npu")).cpu(), torch.lgamma(x.double())
    assert ((made - true).abs() <= 4e-7 * true.abs()).all()


def test_a_complex_number_by_0_is_infinite() -> None:
    x = torch.tensor([1 + 2j, -1 + 1j])
    assert torch.equal((x.to("npu") / 0).cpu(), x / 0)


FLOAT64: dict[str, Callable[[Tensor], Tensor]] = {
    "lgamma": torch.lgamma,
    "hypot": lambda x: torch.hypot(x, x),
    "erfc": torch.erfc,
    "i0": torch.special.i0,
    "addr": lambda x: torch.addr(x[:, None] * 0, x, x),
}


@pytest.mark.parametrize("name", FLOAT64)
def test_formulas_in_fp32_take_no_float64(name: str) -> None:
    x = torch.tensor([3.0, 1e200], dtype=torch.float64).to("npu")
    with pytest.raises(NotImplementedError, match="float64"):
        FLOAT64[name](x)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 300])
def test_an_identity_of_any_size(size: int) -> None:
    for dtype in (torch.float32, torch.int64, torch.bool):
        assert torch.equal(
            torch.eye(size, dtype=dtype, device="npu").cpu(), torch.eye(size, dtype=dtype)
        )
    assert torch.equal(torch.eye(3, size, device="npu").cpu(), torch.eye(3, size))


def test_a_batch_norm_by_the_cpu_updates_its_statistics() -> None:
    code = """
import torch
torch.npu.register_cpu_fallback("aten::native_batch_norm")
layer = torch.nn.BatchNorm1d(2).to("npu")
layer(torch.tensor([[1.0, 2.0], [3.0, 8.0]]).to("npu"))
print(layer.running_mean.tolist(), layer.running_var.tolist())
"""
    done = run_python(code)
    assert (
        done.stdout.split("\n")[0]
        == "[0.20000000298023224, 0.5] [1.100000023841858, 2.700000047683716]"
    )


def test_a_program_whose_last_op_fails_fails() -> None:
    code = """
import torch
x = torch.zeros(3, device="npu")
y = x[torch.tensor([7]).to("npu")]
"""
    done = run_python(code)
    assert done.returncode == 1
    assert "index" in done.stderr.lower()


def test_a_nested_tensor_is_refused_by_name() -> None:
    nested = torch.nested.nested_tensor([torch.ones(2, device="npu")])
    with pytest.raises(NotImplementedError, match=r"npu: aten::sum .* a nested tensor"):
        nested.sum()
