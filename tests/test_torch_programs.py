# SPDX-License-Identifier: Apache-2.0
"""Small programs as users of PyTorch write them: what works on the CPU works on device "npu"."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn import functional

Tensor = torch.Tensor


def on_both(function: Callable[..., Tensor], *given: Tensor) -> tuple[Tensor, Tensor]:
    return function(*given), function(*(x.to("npu") for x in given)).cpu()


INDICES = {
    "places": torch.tensor([0, 2, 2]),
    "mask": torch.tensor([True, False, True]),
}


@pytest.mark.parametrize("name", INDICES)
def test_an_index_on_the_cpu_has_a_gradient(name: str) -> None:
    def gradient(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        (x[INDICES[name]] * 2).sum().backward()
        assert x.grad is not None
        return x.grad

    cpu, npu = on_both(gradient, torch.rand(3, 4))
    assert torch.equal(cpu, npu)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear"])
def test_an_empty_batch_is_enlarged(mode: str) -> None:
    cpu, npu = on_both(
        lambda x: functional.interpolate(x, scale_factor=2, mode=mode), torch.rand(0, 3, 4, 4)
    )
    assert cpu.shape == npu.shape == (0, 3, 8, 8)


def test_classes_in_bytes_are_classes() -> None:
    def gradient(x: Tensor, classes: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        functional.cross_entropy(x, classes).backward()
        assert x.grad is not None
        return x.grad

    cpu, npu = on_both(gradient, torch.rand(4, 3), torch.tensor([0, 1, 2, 1], dtype=torch.uint8))
    torch.testing.assert_close(npu, cpu)


@pytest.mark.parametrize("sizes", [(3, 2), (0, 2), (2, 3, 4), ()])
def test_places_that_are_not_zero_lie_as_on_the_cpu(sizes: tuple[int, ...]) -> None:
    x = torch.ones(sizes)
    assert x.to("npu").nonzero().stride() == x.nonzero().stride()
    for cpu, npu in zip(x.nonzero(as_tuple=True), x.to("npu").nonzero(as_tuple=True), strict=True):
        assert torch.equal(npu.view(torch.int32).cpu(), cpu.view(torch.int32))


def test_the_median_of_nothing_is_no_number() -> None:
    assert torch.empty(0, device="npu").median().isnan().item()
    with pytest.raises(NotImplementedError):
        torch.empty(0, dtype=torch.int32, device="npu").median()


def test_whether_two_tensors_are_the_same_elements() -> None:
    x = torch.ones(4, device="npu")
    assert x.is_set_to(x[:])
    assert not x.is_set_to(x[1:])
    assert not x.is_set_to(x.clone())


def test_a_product_of_two_types_is_an_error_of_the_program() -> None:
    with pytest.raises(RuntimeError, match="same dtype, but got: float32 != float16") as caught:
        torch.ones(3, 4, device="npu") @ torch.ones(4, 3, device="npu").half()
    assert caught.type is RuntimeError


def test_check_mode_blames_nobody_where_only_torch_overflows(tmp_path: Path) -> None:
    with torch.npu.check(tmp_path) as report:
        functional.layer_norm(torch.full((2, 5), 1e20, device="npu"), (5,))
    assert report.reference_outside_bound == {"aten.native_layer_norm.default": 1}
    assert "where CPU torch is outside its bound: aten.native_layer_norm" in str(report)


COMPILED = """
import torch
@torch.compile(backend="eager")
def broken(x):
    kept = x.cumsum(0)[x > 0]
    return kept * 2 if kept.sum() > -100 else kept
print(broken(torch.tensor([-1.0, -2.0, 0.5]).to("npu")).tolist())
"""


def test_the_compiler_looks_at_no_kernel_behind_a_break_in_its_graph() -> None:
    own = [sys.executable, "-W", "error", "-c", COMPILED]
    done = subprocess.run(own, capture_output=True, text=True, check=False, timeout=300)
    assert (done.stdout.strip(), done.returncode) == ("[-5.0]", 0), done.stderr
