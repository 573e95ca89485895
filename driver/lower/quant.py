# SPDX-License-Identifier: Apache-2.0
"""int8 and int4: quantise, dequantise, requantise; products with weights of four bits.

Scales and zero points are tensors of one element, or one for each index of `axis`.
"""

from __future__ import annotations

from driver.lower.convert import is_float
from driver.lower.matmul import combine
from driver.lower.program import ProgramBuilder
from driver.lower.registry import Rule, Table
from driver.lower.views import TensorView

TABLE = Table()


def _per_axis(values: TensorView, rank: int, axis: int | None) -> TensorView:
    """Scales or zero points beside a tensor of so many dimensions."""
    if axis is None or not values.rank:
        return values
    at = axis % rank
    return values.reshaped(
        [values.count if dim == at else 1 for dim in range(rank)],
        [values.strides[0] if dim == at else 0 for dim in range(rank)],
    )


def _rescaled(program: str) -> Rule:
    def rule(
        b: ProgramBuilder,
        out: TensorView,
        x: TensorView,
        scale: TensorView,
        zero_point: TensorView,
        axis: int | None = None,
    ) -> None:
        if is_float(x) != (program == "quantize"):
            kind = "a floating-point type" if program == "quantize" else "an integer type"
            raise b.unsupported("dtype", x.dtype.name, kind)
        if not is_float(scale) or is_float(zero_point):
            types = f"{scale.dtype.name} and {zero_point.dtype.name}"
            raise b.unsupported("scale, zero_point", types, "a float and an integer type")
        factors = (_per_axis(values, x.rank, axis) for values in (scale, zero_point))
        b.vector(program, (x, *factors), out)

    return rule


for _name in ("quantize", "dequantize", "requantize"):
    TABLE.op(f"npu.{_name}")(_rescaled(_name))


@TABLE.op("npu.int4_mm")
def int4_mm(
    b: ProgramBuilder,
    out: TensorView,
    x: TensorView,
    weight: TensorView,
    scales: TensorView,
    group_size: int,
) -> None:
    """x [M, K] · weights [K, N]: bytes [K ÷ 2, N] hold rows 2k in their low, 2k + 1 in their high
    nibbles; each is 8 less, times the scale of its group of rows and its column"""
    halves, columns = weight.sizes
    if group_size < 2 or group_size % 2 or 2 * halves % group_size:
        raise b.unsupported("group_size", group_size, f"an even divisor of {2 * halves}")
    groups = 2 * halves // group_size
    wide = b.temp(x.dtype, (2 * halves, columns))
    rows = wide.split(0, (groups, group_size // 2, 2))
    packed, factors = weight.split(0, (groups, group_size // 2)), scales.inserted(1)
    for at, program in enumerate(("int4_low", "int4_high")):
        b.vector(program, (packed, factors), rows.selected(2, at))
    combine(b, x, wide, out, None)
