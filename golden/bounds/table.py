# SPDX-License-Identifier: Apache-2.0
"""The one table: ATen op, without overload, to the rule for its outputs."""

from __future__ import annotations

from golden.bounds import (
    activations,
    attention,
    attention_gradients,
    batchnorm,
    conv_gradients,
    convolution,
    custom,
    elementwise,
    factors,
    gradients,
    indexed,
    losses,
    matmul,
    moves,
    norm_gradients,
    norms,
    optimizer_steps,
    optimizers,
    pooling,
    products,
    random,
    reductions,
    remainders,
    resampling,
    softmax,
    softplus,
    vector_norm,
)
from golden.bounds.exact import converted, distinct, equal, moved
from golden.bounds.expectation import Rule
from golden.bounds.positions import in_order, selected, selected_one, sorted_positions

_MOVES = """
    clone contiguous cat stack repeat roll flip alias detach embedding index_select index
    gather scatter index_copy masked_select masked_scatter nonzero select_scatter slice_scatter
    constant_pad_nd pad
    tril triu where masked_fill fill full full_like zeros zeros_like ones ones_like new_zeros
    new_ones new_full empty_like scalar_tensor zero lift_fresh_copy view _unsafe_view reshape
    expand permute transpose t slice select squeeze unsqueeze _unsafe_index alias_copy concat
    split split_with_sizes unbind as_strided view_copy _local_scalar_dense
    neg abs sign floor ceil round trunc frac
"""
_EQUAL = """
    equal searchsorted bucketize isin bincount histc unique_consecutive
    eq ne lt le gt ge logical_not logical_and logical_or logical_xor bitwise_not bitwise_and
    bitwise_or bitwise_xor isnan any all relu clamp clamp_min clamp_max hardtanh
    maximum minimum max min amax amin argmax argmin __and__ __or__
    __xor__ __iand__ __ior__ __ixor__ __rshift__ __lshift__ __irshift__
    __ilshift__ bitwise_left_shift bitwise_right_shift isinf
    cummax cummin
"""

_FAMILIES = (
    *(factors, remainders),
    *(
        attention,
        batchnorm,
        convolution,
        custom,
        elementwise,
        indexed,
        norms,
        pooling,
        products,
        random,
    ),
    *(reductions, softmax, softplus),
    *(activations, attention_gradients, conv_gradients, gradients, norm_gradients, optimizers),
    *(losses, matmul, moves, resampling),
    *(optimizer_steps, vector_norm),
)


def _merged() -> dict[str, Rule]:
    table: dict[str, Rule] = {
        **dict.fromkeys(_MOVES.split(), moved),
        **dict.fromkeys(_EQUAL.split(), equal),
        "sort": in_order,
        "topk": selected,
        **dict.fromkeys(("kthvalue", "median"), selected_one),
        "argsort": sorted_positions,
        "_unique2": distinct,
        **dict.fromkeys(("_to_copy", "to", "copy"), converted),
    }
    for family in _FAMILIES:
        twice = table.keys() & family.RULES.keys()
        assert not twice, f"two rules for {sorted(twice)}"
        table |= family.RULES
    return table


RULES: dict[str, Rule] = _merged()
