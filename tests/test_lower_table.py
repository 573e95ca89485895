# SPDX-License-Identifier: Apache-2.0
"""The op table as a whole: rows are torch's overloads with torch's schemas; refusals are typed."""

from __future__ import annotations

import inspect

import pytest
import torch
from backend_host import CONFIG

import driver.capture.npu_ops  # noqa: F401 (registers torch.ops.npu)
from driver.errors import UnsupportedOp
from driver.isa import DType
from driver.lower import LOWERINGS, Arg, lower
from driver.lower.registry import LoweringRule, overload
from driver.runtime import UNBOUNDED_BYTES, Buffer, Program, TensorView, dense

ANY = inspect.Parameter.VAR_KEYWORD


def schema(name: str) -> torch._C.FunctionSchema:
    namespace, packet, which = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), which)._schema


RULES = [(name, rule) for name, row in LOWERINGS.items() for rule in row.rules]


@pytest.mark.parametrize(("name", "rule"), RULES, ids=[f"{op}-{rule.name}" for op, rule in RULES])
def test_a_rule_takes_every_call_that_torchs_schema_allows(name: str, rule: LoweringRule) -> None:
    _, _, *given = inspect.signature(rule.function).parameters.values()
    names = [parameter.name.removesuffix("_") for parameter in given]  # from_ is torch's `from`
    parameters = dict(zip(names, given, strict=True))
    arguments = [a for a in schema(name).arguments if a.name != "generator"]
    positional = [a.name for a in arguments if not a.kwarg_only and a.name != "memory_format"]
    assert names[: len(positional)] == positional
    takes_any = any(parameter.kind is ANY for parameter in given)
    for argument in arguments:
        parameter = parameters.pop(argument.name, None)
        if parameter is None:
            assert takes_any, argument.name
        elif argument.has_default_value():
            assert parameter.default is not inspect.Parameter.empty, argument.name
    for parameter in parameters.values():  # what other overloads of the row have
        assert parameter.kind is ANY or parameter.default is not inspect.Parameter.empty
    assert len(schema(name).returns) == (LOWERINGS[name].outputs or 1)


MEMORY = Buffer(UNBOUNDED_BYTES)
"""What all operands lie in."""


def view(*sizes: int, dtype: DType = DType.FP32) -> TensorView:
    return dense(MEMORY, dtype, sizes)


def lowered(op: str, *args: Arg, results: tuple[TensorView | None, ...], **kwargs: Arg) -> Program:
    return lower(overload(op), args, kwargs, results, CONFIG)


REPEATED = TensorView(MEMORY, 0, DType.FP32, (2,), (0,))
X, INT = view(2, 6), view(2, 6, dtype=DType.INT32)
REFUSED: list[tuple[str, tuple[Arg, ...], dict[str, Arg], tuple[TensorView, ...], str]] = [
    ("sgn", (X,), {}, (X,), "op: got aten.sgn.default, expected one of aten."),
    ("exp", (), {}, (X,), "argument self: got"),
    ("exp", (X, X), {}, (X,), "argument"),
    ("exp", (X,), {"out": X}, (X,), "argument out: got"),
    ("exp", (1.5,), {}, (X,), "argument self: got 1.5"),
    ("exp", (X,), {}, (X, X), "results: got 2, expected 1 tensor"),
    ("sum.dim_IntList", (X, "all"), {}, (view(2),), "argument dim"),
    ("add.Tensor", (X, view(5)), {}, (X,), "shape: got (5,), expected one that broadcasts"),
    ("add.Tensor", (INT, 0.5), {}, (INT,), "scalar: got 0.5, expected an integer"),
    ("mul.Tensor", (INT, 0.5), {}, (INT,), "scalar: got 0.5, expected an integer"),
    ("pow.Tensor_Scalar", (INT, -1), {}, (INT,), "exponent: got -1, expected 0 or more"),
    ("gelu", (X,), {"approximate": "sigmoid"}, (X,), "approximate: got sigmoid"),
    (
        "fill_.Scalar",
        (view(2), 1),
        {},
        (TensorView(MEMORY, 0, DType.FP32, (2,), (0,)),),
        "no stride of 0",
    ),
    (
        "uniform_",
        (X,),
        {},
        (X,),
        "stream: got None, expected the seed and the number of a random op",
    ),
    (
        "random_.to",
        (INT, 1 << 40),
        {},
        (INT,),
        "range: got (0, 1099511627776), expected fewer than",
    ),
    ("gather", (X, 1, X), {}, (X,), "index: got FP32, expected an integer type"),
    ("index.Tensor", (X, (INT, None, INT)), {}, (X,), "neighbouring dimensions"),
    (
        "native_batch_norm",
        (X, None, None, None, None, False, 0.1, 1e-5),
        {},
        (X, X, X),
        "running_mean: got None",
    ),
    (
        "scaled_dot_product_attention",
        (X, X, X),
        {"dropout_p": 0.5},
        (X,),
        "dropout_p: got 0.5, expected 0: inference",
    ),
    ("npu.quantize", (INT, view(), view(dtype=DType.INT32)), {}, (X,), "dtype: got INT32"),
    (
        "npu.int4_mm",
        (X, view(1, 5, dtype=DType.INT32), view(1, 5), 24),
        {},
        (view(2, 5),),
        "group_size: got 24, expected a power of two from 8 to 32768",
    ),
]


@pytest.mark.parametrize(("op", "args", "kwargs", "results", "message"), REFUSED)
def test_refusals_name_op_field_and_value(
    op: str,
    args: tuple[Arg, ...],
    kwargs: dict[str, Arg],
    results: tuple[TensorView, ...],
    message: str,
) -> None:
    with pytest.raises(UnsupportedOp) as caught:
        lowered(op, *args, results=results, **kwargs)
    assert str(caught.value).startswith(f"{overload(op)}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", LOWERINGS)
def test_without_an_element_there_are_no_packets(name: str) -> None:
    nothing = view(0, 3)
    program = lower(name, (), {}, (nothing,), CONFIG)
    assert program.packets == ()
