# SPDX-License-Identifier: Apache-2.0
"""Samples of every op in the op table: what the generated tests and TEST=ops try.

An op of driver.lower's table without a sample here fails a test. Adding one is adding a line to a
family; its types, layouts, sizes and values vary by themselves (`variants`).
"""

from __future__ import annotations

from driver.custom_ops import CUSTOM_OPS
from tb.ops.samples import (
    activations,
    attention,
    batch,
    counting,
    elementwise,
    gradients,
    images,
    index,
    long,
    loss,
    matmul,
    nn,
    random,
    reduce,
    shape,
    whole,
)
from tb.ops.samples.model import Sample, T

__all__ = ["SAMPLES", "Sample", "T", "with_custom_ops"]

_FAMILIES = (
    *(whole,),
    *(elementwise, reduce, matmul, nn, attention, shape, index, long, random),
    *(batch, images, loss, counting, gradients, activations),
)


def _by_op() -> dict[str, tuple[Sample, ...]]:
    found: dict[str, tuple[Sample, ...]] = {}
    for family in _FAMILIES:
        for sample in family.SAMPLES:
            found[sample.op] = (*found.get(sample.op, ()), sample)
    return found


SAMPLES = _by_op()
"""Overload → its samples."""


def with_custom_ops() -> dict[str, tuple[Sample, ...]]:
    """Those, and the samples of the custom ops of this process."""
    return SAMPLES | {
        op.name: tuple(Sample(op.name, args, op.dtypes, special=False) for args in op.samples)
        for op in CUSTOM_OPS.values()
    }
