# SPDX-License-Identifier: Apache-2.0
"""Random small models, chained: the RTL's bits are the cmodel's, and every op is within its bound.

tests/test_ops_graphs.py has Hypothesis look for graphs that fail on the cmodel; here some run on
the RTL.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

from driver.capture import capture
from driver.config import HwConfig
from driver.results import RunSpec
from driver.test_info import TestInfo
from tb.ops.capsules import capsule_steps
from tb.ops.graphs import random_graph
from tb.ops.runner import Runnable

INFO = TestInfo(
    name="graphs",
    summary="random small models on the NPU's own results, every op judged",
    kind="ops",
    backends=("rtl", "cmodel"),
    modes=("chained",),
)

GRAPHS = 24
STEPS = 12


def cases(spec: RunSpec, config: HwConfig) -> Iterator[Runnable]:
    """The steps of so many graphs, one after the other."""
    numbers = count()
    for number in range(GRAPHS):
        dice = random.Random(spec.seed * 1_000_003 + number)
        module, inputs = random_graph(dice.randrange, STEPS)
        capsule = capture(module, inputs, name=f"graph{number}", seed=spec.seed)
        yield from capsule_steps(capsule, numbers)
