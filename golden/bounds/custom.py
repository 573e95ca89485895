# SPDX-License-Identifier: Apache-2.0
"""The ops of torch.ops.npu (driver.capture.npu_ops says what they mean).

*quantize, requantize*: each step is an fp32 primitive with one result, so equality; a NaN has no
int8 and is open. *dequantize*: the difference is exact, the product rounds once. *rotary*: two
products and a sum, three roundings of terms no larger than |x·cos| + |x'·sin|. *int4_mm*: weights
are rounded to their type before the product, which is then one of golden.bounds.matmul.
"""

from __future__ import annotations

import torch

from driver.capture.npu_ops import int4_weights
from golden.bounds.elementwise import running, true_of
from golden.bounds.exact import equal
from golden.bounds.expectation import Expectation, Rule, Subject, near, unclaimed
from golden.bounds.matmul import product_expectation
from golden.bounds.reductions import finite
from golden.calls import OpCall


def _quantized(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    (expectation,) = equal(subject)
    assert expectation is not None
    number = call["x"] if "x" in call.arguments else call["acc"]
    return (unclaimed(expectation, torch.isnan(number).numpy()),)


def _dequantized(subject: Subject) -> tuple[Expectation | None, ...]:
    return (near(subject.answer().dtype, true_of(subject), 0.0),)


def _turned(call: OpCall) -> torch.Tensor:
    x, cos, sin = (finite(call[name]).abs() for name in ("x", "cos", "sin"))
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat([high, low], -1) * sin


def _int4_mm(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    weights = int4_weights(call["weight"], call["scales"], call["group_size"])
    product = OpCall("aten.mm.default", (call["x"], weights[: call["x"].shape[1]])).product
    assert product is not None
    return (product_expectation(product).reshaped(tuple(subject.answer().shape)),)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("npu.quantize", "npu.requantize"), _quantized),
    "npu.dequantize": _dequantized,
    "npu.rotary": running(_turned, 3),
    "npu.int4_mm": _int4_mm,
}
