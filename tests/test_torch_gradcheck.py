# SPDX-License-Identifier: Apache-2.0
"""Gradients on device "npu" against finite differences in fp32, and torch's own device tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import TestLoader, TestResult

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional
from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase

Tensor = torch.Tensor
EPS, RTOL, ATOL = 2.0**-6, 2e-2, 2e-2
"""A step of 2⁻⁶ leaves 2⁻²⁴ ÷ 2⁻⁶ = 4e-6 of rounding, times the value, and 2⁻¹² ÷ 6 of the third
derivative."""

FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "exp": torch.exp,
    "sin": torch.sin,
    "silu": functional.silu,
    "gelu": functional.gelu,
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
    "matmul": lambda x: x @ x.transpose(0, 1),
    "prod": lambda x: x.prod(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "erfc": torch.erfc,
    "lgamma": lambda x: torch.lgamma(x + 3),
    "inverse": lambda x: torch.linalg.inv(x[:, :3] + 4 * torch.eye(3, device=x.device)),
    "cumsum": lambda x: x.cumsum(-1),
    "conv1d": lambda x: functional.conv1d(x[None], x[:, None, :2], groups=3),
    "interpolate": lambda x: functional.interpolate(x[None], size=5, mode="linear"),
}
TWICE = ("tanh", "sigmoid", "exp", "sin", "matmul", "softmax")


def _input() -> Tensor:
    steps = torch.arange(12).reshape(3, 4) * 0.618034 % 1
    return (steps * 1.5 - 0.7).to("npu").requires_grad_()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_gradient_is_the_slope_of_the_function(name: str) -> None:
    assert gradcheck(FUNCTIONS[name], _input(), eps=EPS, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("name", TWICE)
@pytest.mark.filterwarnings("ignore")
def test_second_gradient_is_the_slope_of_the_first(name: str) -> None:
    weights = torch.ones_like(FUNCTIONS[name](_input())).detach().requires_grad_()
    assert gradgradcheck(FUNCTIONS[name], _input(), weights, eps=EPS, rtol=RTOL, atol=ATOL)


def test_a_wrong_gradient_is_found() -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad * 2.1

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(Wrong.apply, _input(), eps=EPS, rtol=RTOL, atol=ATOL)


# ---------------------------------------------------------------------- torch's device tests
def _device_cases() -> type[TestCase]:
    """As torch writes tests for all devices: the device and the type are parameters."""

    class DeviceTypeCases(TestCase):
        @dtypes(torch.float32, torch.float16, torch.int64)
        def test_sum(self, device: str, dtype: torch.dtype) -> None:
            x = torch.ones(4, device=device, dtype=dtype)
            self.assertEqual(x.device.type, "npu")
            self.assertEqual(x.sum().cpu(), torch.tensor(4, dtype=dtype))

        @ops([op for op in op_db if op.name in {"tanh", "mm"}], allowed_dtypes=(torch.float32,))
        def test_op(self, device: str, dtype: torch.dtype, op: Any) -> None:
            for sample in list(op.sample_inputs(device, dtype))[:2]:
                found = op(sample.input, *sample.args, **sample.kwargs)
                self.assertEqual(found.device.type, "npu")

    return DeviceTypeCases


def test_instantiate_device_type_tests_makes_tests_of_the_device() -> None:
    generic = _device_cases()
    scope: dict[str, Any] = {"DeviceTypeCases": generic}
    instantiate_device_type_tests(generic, scope, only_for=("npu",))
    made = [value for value in scope.values() if isinstance(value, type)]
    assert [case.__name__ for case in made] == ["DeviceTypeCasesPRIVATEUSE1"]
    result = TestResult()
    TestLoader().loadTestsFromTestCase(made[0])(result)
    assert result.testsRun == 5
    assert (result.errors, result.failures, result.skipped) == ([], [], [])
