# SPDX-License-Identifier: Apache-2.0
"""The one table from ATen ops to packets. Adding an op is adding a row.

Torch-free: operands are views of device memory, in the order of the op's tensor arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from driver.errors import UnsupportedOp
from driver.lower.program import Alloc, Program, ProgramBuilder
from driver.lower.views import TensorView, collapse

Scalars = Mapping[str, float]
Lowering = Callable[[ProgramBuilder, Sequence[TensorView], TensorView, Scalars], None]
"""Adds the packets that compute the result view from the operand views and named scalars."""

_NO_SCALARS: Scalars = MappingProxyType({})


def _batched(view: TensorView) -> TensorView:
    """A matrix as a batch of one."""
    return TensorView(view.address, view.dtype, (1, *view.sizes), (0, *view.strides))


def _check_ranks(
    builder: ProgramBuilder, ranks: tuple[int, ...], views: Sequence[TensorView]
) -> None:
    found = tuple(len(view.sizes) for view in views)
    if found != ranks:
        raise builder.unsupported("ranks", found, f"{ranks}, the result's last")


def _check_scalars(builder: ProgramBuilder, scalars: Scalars) -> None:
    """The array multiplies operands only: alpha 1, beta 1 or, as it drops the addend, 0."""
    for name, value in scalars.items():
        if name not in ("alpha", "beta"):
            raise builder.unsupported(name, value, "only alpha and beta")
        if value != 1 and (name, value) != ("beta", 0):
            raise builder.unsupported(name, value, "1" if name == "alpha" else "0 or 1")


def _start_from(builder: ProgramBuilder, addend: TensorView, result: TensorView) -> None:
    """Put the addend, repeated where it is smaller, where the sums start; it may be there."""
    source = addend.expanded(result.sizes)
    if source is None:
        expected = f"a shape that broadcasts to {result.sizes}"
        raise builder.unsupported("addend", addend.sizes, expected)
    if source != result:
        builder.copy(source, result)


def _mm(
    builder: ProgramBuilder, views: Sequence[TensorView], result: TensorView, scalars: Scalars
) -> None:
    """mm(a, b)"""
    _check_ranks(builder, (2, 2, 2), [*views, result])
    _check_scalars(builder, scalars)
    a, b = views
    builder.matmul(_batched(a), _batched(b), _batched(result))


def _bmm(
    builder: ProgramBuilder, views: Sequence[TensorView], result: TensorView, scalars: Scalars
) -> None:
    """bmm(a, b)"""
    _check_ranks(builder, (3, 3, 3), [*views, result])
    _check_scalars(builder, scalars)
    a, b = views
    builder.matmul(a, b, result)


def _addmm(
    builder: ProgramBuilder, views: Sequence[TensorView], result: TensorView, scalars: Scalars
) -> None:
    """addmm(addend, a, b), baddbmm(addend, a, b). beta = 0 ignores the addend, NaN included."""
    _check_scalars(builder, scalars)
    if len(views) != 3:
        raise builder.unsupported("operands", len(views), "3: addend, a, b")
    addend, a, b = views
    rank = 3 if len(result.sizes) == 3 else 2
    _check_ranks(builder, (rank, rank, rank), [a, b, result])
    keep = scalars.get("beta", 1) != 0
    if keep:
        _start_from(builder, addend, result)
    if rank == 2:
        a, b, result = _batched(a), _batched(b), _batched(result)
    builder.matmul(a, b, result, accumulate=keep)


def _linear(
    builder: ProgramBuilder, views: Sequence[TensorView], result: TensorView, scalars: Scalars
) -> None:
    """linear(x [..., K], weight [N, K], bias [N] or absent): x·weightᵀ, result [..., N]."""
    _check_scalars(builder, scalars)
    if len(views) not in (2, 3):
        raise builder.unsupported("operands", len(views), "2 or 3: input, weight, bias")
    x, weight, *bias = views
    _check_ranks(builder, (2, len(x.sizes)), [weight, result])
    if not x.sizes or x.sizes[:-1] != result.sizes[:-1]:
        raise builder.unsupported("shapes", x.sizes, f"[..., K] for the result {result.sizes}")
    if bias:
        _start_from(builder, bias[0], result)
    a, c = _as_batches(builder, x, result)
    b = weight.transposed().expanded((c.sizes[0], *weight.transposed().sizes))
    assert b is not None
    builder.matmul(a, b, c, accumulate=bool(bias))


def _as_batches(
    builder: ProgramBuilder, x: TensorView, result: TensorView
) -> tuple[TensorView, TensorView]:
    """x and result as [batch, rows, …]: one batch where both allow it, else as few as they do."""
    rows, (x_steps, result_steps) = collapse(x.sizes[:-1], x.strides[:-1], result.strides[:-1])
    if len(rows) > 2:
        x = builder.densely(x)
        rows, (x_steps, result_steps) = collapse(x.sizes[:-1], x.strides[:-1], result.strides[:-1])
    if len(rows) > 2:
        raise builder.unsupported("result", result.strides, "at most two separate row strides")
    lead = (1,) * (2 - len(rows))
    none = (0,) * len(lead)
    return (
        TensorView(
            x.address, x.dtype, (*lead, *rows, x.sizes[-1]), (*none, *x_steps, x.strides[-1])
        ),
        TensorView(
            result.address,
            result.dtype,
            (*lead, *rows, result.sizes[-1]),
            (*none, *result_steps, result.strides[-1]),
        ),
    )


LOWERINGS: dict[str, Lowering] = {
    "aten.mm.default": _mm,
    "aten._int_mm.default": _mm,
    "aten.bmm.default": _bmm,
    "aten.addmm.default": _addmm,
    "aten.baddbmm.default": _addmm,
    "aten.linear.default": _linear,
}
"""ATen overload → how the NPU computes it. What is not here runs on the CPU."""


def lower(
    op: str,
    operands: Sequence[TensorView],
    result: TensorView,
    alloc: Alloc,
    scalars: Scalars = _NO_SCALARS,
) -> Program:
    """The packets of one op. `operands`: its tensor arguments in order, absent ones left out.

    `alloc` gives memory for descriptors (and for dense copies of the rare operand that no
    descriptor expresses); it must stay allocated until the packets have run.
    UnsupportedOp when the NPU cannot run it: nothing is to be submitted then.
    """
    lowering = LOWERINGS.get(op)
    if lowering is None:
        raise UnsupportedOp(op, "op", op, f"one of {', '.join(LOWERINGS)}")
    builder = ProgramBuilder(op, alloc)
    lowering(builder, operands, result, scalars)
    return builder.program()
