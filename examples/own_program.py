# SPDX-License-Identifier: Apache-2.0
"""An op with a vector program of its own, which the device loads. docs/adding-an-op.md."""

from __future__ import annotations

import torch
from torch import Tensor

from driver.isa.assembler import Assembler, Value, vector_program
from driver.isa.micro import MicroOp
from driver.lower.builder import ProgramBuilder
from driver.runtime import TensorView
from golden.bounds import own
from tb.ops.samples import T


@vector_program(sources=1, imms=("slope",), text="src1² where src1 > 0, else slope·src1")
def squared_relu_program(p: Assembler) -> Value:
    """Four instructions per element."""
    positive = p.op(MicroOp.FLT, p.f(0.0), p.src1)
    return p.select(positive, p.mul(p.src1, p.src1), p.mul(p.imm(0), p.src1))


def squared_or_leaking(x: Tensor, slope: float) -> Tensor:
    """The op on the CPU."""
    return torch.where(x > 0, x * x, slope * x)


@torch.npu.custom_op(
    "mylib::squared_relu",
    reference=squared_or_leaking,
    bound=own.ulps(1),
    samples=[(T(), 0.125), (T((5, 33)), -0.3)],
    dtypes=(torch.float32, torch.float16, torch.bfloat16),
)
def squared_relu(b: ProgramBuilder, out: TensorView, x: TensorView, slope: float) -> None:
    """One pass."""
    b.vector(squared_relu_program, (x,), out, slope)
