# SPDX-License-Identifier: Apache-2.0
"""The one table from ATen ops to packets, put together from the families. Torch-free.

Adding an op is adding a function to a family, or a file here: docs/adding-an-op.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from driver.errors import UnsupportedOp
from driver.lower import (
    attention,
    batch_norm,
    bits,
    border,
    compare,
    conv,
    counting,
    division,
    elementwise,
    equality,
    functions,
    host,
    index,
    index_tensors,
    loss,
    masks,
    matmul,
    norm,
    pool,
    pool_adaptive,
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
    turned,
    unique,
)
from driver.lower.operands import Alloc
from driver.lower.program import Program, ProgramBuilder
from driver.lower.registry import Arg, Lowering, Table
from driver.lower.views import TensorView
from driver.random_stream import RandomStream

_MODULES = (
    *(division, products, turned),
    *(elementwise, functions, compare, equality, bits, reduce, scan, norm, attention, matmul),
    *(
        shape,
        index,
        index_tensors,
        masks,
        scatter,
        scatter_reduce,
        counting,
        unique,
        sort,
        conv,
        pool,
        quant,
        host,
    ),
    *(random, random_integers, random_choices),
    *(batch_norm, border, resample, rearrange, pool_mean, pool_adaptive, loss),
)
FAMILIES: tuple[Table, ...] = tuple(module.TABLE for module in _MODULES)


def _merged(families: Sequence[Table]) -> dict[str, Lowering]:
    table: dict[str, Lowering] = {}
    for family in families:
        twice = table.keys() & family.rows.keys()
        assert not twice, f"two lowerings of {sorted(twice)}"
        table |= family.rows
    return table


LOWERINGS: Mapping[str, Lowering] = _merged(FAMILIES)
"""ATen overload → how the NPU computes it. What is not here runs on the CPU."""


def lower(
    op: str,
    args: Sequence[Arg],
    kwargs: Mapping[str, Arg],
    results: Sequence[TensorView | None],
    alloc: Alloc,
    stream: RandomStream | None = None,
) -> Program:
    """The packets of one op, called with torch's arguments, tensors as views of device memory.

    `results`: where the outputs go, in the op's order, with torch's sizes and types; None for what
    is no tensor. Without an element to compute there are no packets. `alloc` gives memory for
    descriptors and temporaries; it must stay allocated until the packets have run. `stream`: what a
    random op draws.
    UnsupportedOp when the NPU cannot run it: nothing is to be submitted then.
    """
    lowering = LOWERINGS.get(op)
    if lowering is None:
        raise UnsupportedOp(op, "op", op, f"one of {', '.join(LOWERINGS)}")
    builder = ProgramBuilder(op, alloc, stream)
    if any(view is not None and view.count for view in results):
        lowering.apply(builder, args, kwargs, tuple(results))
    return builder.program()
