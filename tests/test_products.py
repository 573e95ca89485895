# SPDX-License-Identifier: Apache-2.0
"""torch's answer is torch's own op on the original operands, for each op and type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from driver.capture import Capsule, Op, as_tensor, capture
from driver.isa import DType
from golden.bounds.matmul import product_bounds
from golden.calls import OpCall
from golden.comparison import compare
from golden.products import Product, is_product, reference
from golden.tensors import values_of
from tb.ops.case import recorded_case
from workloads import capture_workload


def product_of(op: str, args: Any, kwargs: Any = None, result: DType | None = None) -> Product:
    """A call that is a product."""
    product = OpCall(op, args, kwargs or {}, result=result).product
    assert product is not None
    return product


def recorded_product(capsule: Capsule, op: Op) -> Product:
    product = recorded_case(capsule, op, 0).call.product
    assert product is not None
    return product


TYPES = [torch.float32, torch.float16, torch.bfloat16]


def operands(dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    shapes = {"a": (5, 7), "b": (7, 3), "bias": (3,), "c": (5, 3), "a3": (2, 5, 7), "b3": (2, 7, 3)}
    return {k: torch.randn(s, generator=generator).to(dtype) for k, s in shapes.items()}


@pytest.mark.parametrize("dtype", TYPES)
def test_each_op_is_torchs_own_to_the_bit(dtype: torch.dtype) -> None:
    t = operands(dtype)
    weight = t["b"].t().contiguous()
    cases: list[tuple[str, tuple[Any, ...], torch.Tensor]] = [
        ("mm", (t["a"], t["b"]), t["a"] @ t["b"]),
        ("addmm", (t["bias"], t["a"], t["b"]), torch.addmm(t["bias"], t["a"], t["b"])),
        ("addmm", (t["c"], t["a"], t["b"]), torch.addmm(t["c"], t["a"], t["b"])),
        ("bmm", (t["a3"], t["b3"]), torch.bmm(t["a3"], t["b3"])),
        ("baddbmm", (t["c"], t["a3"], t["b3"]), torch.baddbmm(t["c"], t["a3"], t["b3"])),
        ("linear", (t["a3"], weight), torch.nn.functional.linear(t["a3"], weight)),
        (
            "linear",
            (t["a3"], weight, t["bias"]),
            torch.nn.functional.linear(t["a3"], weight, t["bias"]),
        ),
    ]
    for name, args, expected in cases:
        result = reference(product_of(f"aten.{name}.default", args))
        assert result.dtype == dtype and result.shape == expected.shape
        assert torch.equal(result, expected), name


@pytest.mark.parametrize("threads", [1])
@pytest.mark.parametrize("name", ["mlp", "lenet"])
def test_recorded_matmuls_are_reproduced_to_the_bit(
    name: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        compared = recorded_elements(capture_workload(name))
    finally:
        torch.set_num_threads(before)
    assert compared == {"mlp": 16 * (128 + 64 + 10), "lenet": 64 * (120 + 84 + 10)}[name]


def recorded_elements(capsule: Capsule) -> int:
    """Compare every matmul of a capsule with its recorded output; how many elements agreed."""
    compared = 0
    for op in capsule.ops:
        if is_product(op.op):
            recorded = op.outputs[0]
            assert recorded is not None
            result = reference(recorded_product(capsule, op))
            assert torch.equal(result, as_tensor(capsule, recorded)), op
            compared += result.numel()
    return compared


def test_strided_and_broadcast_operands_keep_their_values() -> None:
    class Strided(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.bmm(x[None, ::2, 1:4].expand(3, 3, 3), x[:3, :3].t().expand(3, 3, 3))

    x = torch.arange(40.0).reshape(5, 8)
    capsule = capture(Strided(), x, name="strided")
    (op,) = [op for op in capsule.ops if op.op == "aten.bmm.default"]
    a, b, _ = recorded_product(capsule, op).values()
    expected = x[::2, 1:4].double() @ x[:3, :3].t().double()
    assert a.shape == (3, 3, 3)
    assert np.array_equal(a @ b, expected.expand(3, 3, 3).numpy())


@pytest.mark.parametrize("dtype", TYPES[1:])
def test_half_operands_may_keep_the_fp32_sum(dtype: torch.dtype) -> None:
    t = operands(dtype)
    c = torch.randn(5, 3)
    call = product_of("aten.addmm.default", (c, t["a"], t["b"]), result=DType.FP32)
    result = reference(call)
    assert result.dtype == torch.float32
    assert torch.equal(result, torch.addmm(c, t["a"].float(), t["b"].float()))


def test_int8_is_the_whole_sum_modulo_2_to_the_32() -> None:
    a = torch.full((2, 3), 100, dtype=torch.int8)
    c = torch.tensor([2**31 - 1, 0], dtype=torch.int32)
    plain = reference(product_of("aten.mm.default", (a, a.t())))
    assert plain.dtype == torch.int32 and plain.tolist() == [[30000] * 2] * 2
    wrapped = reference(product_of("aten.addmm.default", (c, a, a.t())))
    assert wrapped.tolist() == [[30000 - 2**31 - 1, 30000]] * 2
    expectation = product_bounds(product_of("aten.addmm.default", (c, a, a.t())))
    values = values_of(wrapped)[None]
    assert compare(expectation, values, values).ok


def test_int_mm_agrees_with_torchs_own() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (
        torch.randint(-128, 128, shape, dtype=torch.int8, generator=generator)
        for shape in ((32, 64), (64, 32))
    )
    assert torch.equal(reference(product_of("aten._int_mm.default", (a, b))), torch._int_mm(a, b))


def test_beta_zero_ignores_even_a_nan() -> None:
    t = operands()
    c = torch.full((5, 3), float("nan"))
    call = product_of("aten.addmm.default", (c, t["a"], t["b"]), {"beta": 0})
    assert call.c is None
    assert torch.equal(reference(call), torch.addmm(c, t["a"], t["b"], beta=0))


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        ("aten.add.Tensor", "cc", {}),
        ("aten.addmm.default", "cab", {"alpha": 2}),
        ("aten.addmm.default", "cab", {"beta": 0.5}),
    ],
)
def test_what_is_no_product_of_the_matrix_engine_is_not_read_as_one(
    op: str, args: str, kwargs: dict[str, Any]
) -> None:
    t = operands()
    assert OpCall(op, tuple(t[x] for x in args), kwargs).product is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32])
def test_nor_are_other_types(dtype: torch.dtype) -> None:
    a = torch.ones(2, 2, dtype=dtype)
    assert OpCall("aten.mm.default", (a, a)).product is None


def test_users_lower_precision_setting_does_not_reach_the_reference() -> None:
    """From 256×256 on, torch takes "medium" to mean bf16 where the CPU has it."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(256, 256, generator=generator) for _ in range(2))
    call = product_of("aten.mm.default", (a, b))
    expected = reference(call)
    torch.set_float32_matmul_precision("medium")
    try:
        assert torch.equal(reference(call), expected)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("dtype", TYPES)
def test_infinity_times_one_term_is_no_nan(dtype: torch.dtype) -> None:
    """Of a size at which oneDNN's bf16 product says NaN on some CPUs."""
    a, b = torch.linspace(-3, 3, 128)[:, None].to(dtype), torch.linspace(-2, 2, 128)[None].to(dtype)
    a[::5] = torch.inf
    a[1] = 0
    b[:, ::7] = -torch.inf
    product = product_of("aten.mm.default", (a, b))
    expected = a.double() @ b.double()
    assert 0 < int(expected.isnan().sum()) < expected.numel()
    assert torch.equal(reference(product).isnan(), expected.isnan())
    assert torch._C._get_mkldnn_enabled()
