# SPDX-License-Identifier: Apache-2.0
"""Matrix products: directed shapes, and every product of the captured workloads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from driver.capture import load_capsule
from driver.config import HwConfig
from driver.results import RunSpec
from driver.test_info import TestInfo
from golden.products import is_product
from tb.ops.capsules import capsule_cases
from tb.ops.case import Entry
from tb.ops.directed import directed_cases, long_cases

INFO = TestInfo(
    name="matmul",
    summary="directed and long matrix products and those of lenet, mlp and qwen_layer",
    kind="ops",
    backends=("rtl", "cmodel"),
    workloads=("lenet", "mlp", "qwen_layer"),
)


def cases(spec: RunSpec, config: HwConfig) -> Iterator[Entry]:
    """Numbered from 0: first the directed cases, then the capsules' products in program order, then
    those of long dimensions."""
    numbers = count()
    yield from directed_cases(config.array_size, spec.seed, numbers)
    for name in INFO.workloads:
        yield from capsule_cases(
            load_capsule(spec.capsules[name]), numbers, lambda op: is_product(op.op)
        )
    yield from long_cases(config.array_size, spec.seed, numbers)
