# SPDX-License-Identifier: Apache-2.0
"""The one table from ATen ops to packets, put together from the families. Torch-free.

Adding an op is adding a function to a family, or a file here: docs/adding-an-op.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from driver.config import HwConfig
from driver.errors import UnsupportedOp
from driver.lower import (
    activations,
    attention,
    attention_backward,
    batch_norm,
    bits,
    compare,
    conv,
    conv_backward,
    counting,
    division,
    elementwise,
    equality,
    extremes,
    flip_roll,
    functions,
    gradients,
    host,
    index,
    index_tensors,
    loss,
    loss_backward,
    masks,
    matmul,
    norm,
    norm_backward,
    optimizers,
    padding,
    pool,
    pool_adaptive,
    pool_backward,
    pool_mean,
    products,
    quant,
    random,
    random_choices,
    random_integers,
    rearrange,
    reduce,
    resample,
    scan,
    scatter,
    scatter_reduce,
    shape,
    sort,
    unique,
    vector_norm,
)
from driver.lower.builder import ProgramBuilder
from driver.lower.registry import Arg, Lowering, LoweringTable, RuleFunction, views_in
from driver.random_stream import RandomStream
from driver.runtime.buffer import Buffer
from driver.runtime.program import Program
from driver.runtime.views import TensorView

_MODULES = (
    *(division, products, flip_roll),
    *(elementwise, functions, compare, equality, bits, reduce, extremes, scan),
    *(norm, vector_norm, attention, attention_backward, matmul),
    *(shape, index, index_tensors, masks, scatter, scatter_reduce, counting, unique, sort),
    *(conv, pool, quant, host),
    *(random, random_integers, random_choices),
    *(batch_norm, padding, resample, rearrange, pool_mean, pool_adaptive, loss),
    *(
        activations,
        conv_backward,
        gradients,
        loss_backward,
        norm_backward,
        optimizers,
        pool_backward,
    ),
)
FAMILIES: tuple[LoweringTable, ...] = tuple(module.TABLE for module in _MODULES)


def _merged(families: Sequence[LoweringTable]) -> dict[str, Lowering]:
    table: dict[str, Lowering] = {}
    for family in families:
        twice = table.keys() & family.rows.keys()
        assert not twice, f"two lowerings of {sorted(twice)}"
        table |= family.rows
    return table


_ROWS = _merged(FAMILIES)
LOWERINGS: Mapping[str, Lowering] = _ROWS
"""ATen overload → how the NPU computes it. An op that is not here is refused."""


def add_row(name: str, function: RuleFunction, outputs: int) -> None:
    """Declare the only rule of a custom op, by its overload; in place of an older one. What is
    wrong with its types is an exception here, where its file is read."""
    table = LoweringTable(deferred=False)
    table.op(name, outputs=outputs)(function)
    _ROWS[name] = table.rows[name]


def lower(
    op: str,
    args: Sequence[Arg],
    kwargs: Mapping[str, Arg],
    results: Sequence[TensorView | None],
    hw: HwConfig,
    stream: RandomStream | None = None,
    rule: str | None = None,
    op_number: Buffer | None = None,
) -> Program:
    """The program of one op, called with torch's arguments, tensors as views of buffers.

    `results`: views for the outputs, in the op's order, with torch's sizes and types; None for a
    result that is no tensor. An op without elements has no packets. `stream`: what a random op
    draws. `rule`: the name of the rule to use (see `rules`), by default the best one. The buffers
    of args, kwargs and results are the program's operands, in this order; then comes `op_number`,
    if what the op draws needs it: its address is the op's number, and the stream's is 0.
    UnsupportedOp when the NPU cannot run it.
    """
    lowering = _row(op)
    operands = dict.fromkeys(view.buffer for view in views_in((*args, *kwargs.values(), *results)))
    builder = ProgramBuilder(op, hw, stream, tuple(operands), op_number)
    if any(view is not None and view.count for view in results):
        lowering.apply(builder, args, kwargs, tuple(results), rule)
    return builder.program()


def rules(
    op: str,
    args: Sequence[Arg],
    kwargs: Mapping[str, Arg],
    results: Sequence[TensorView | None],
    hw: HwConfig,
) -> tuple[str, ...]:
    """Names of the rules that compute this call, the one that `lower` takes first. UnsupportedOp
    for an op without a row."""
    found = _row(op).applicable(ProgramBuilder(op, hw), args, kwargs, tuple(results))
    return tuple(rule.name for rule in found)


def _row(op: str) -> Lowering:
    if op not in LOWERINGS:
        raise UnsupportedOp(op, "op", op, f"one of {', '.join(LOWERINGS)}")
    return LOWERINGS[op]
