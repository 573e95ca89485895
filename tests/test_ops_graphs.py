# SPDX-License-Identifier: Apache-2.0
"""Random small models through torch and the cmodel: every op within its bound, on the NPU's own
earlier results. TEST=graphs runs some of them on the RTL."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driver.capture import capture
from driver.config import load_config
from driver.results import OpRow, RunSpec
from tb.ops.capsules import capsule_steps
from tb.ops.chained import ChainedRun
from tb.ops.graphs import MAX_ELEMENTS, random_graph
from tb.ops.session import Session

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
CONFIG = load_config(CONFIG_FILE, "small")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    spec = RunSpec(
        test="graphs", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=tmp_path_factory.mktemp("graphs"), capsules={}, op_filter=None,
        timeout_s=60.0,
    )  # fmt: skip
    made = Session(spec, CONFIG)
    yield made
    made.close()


def judged(session: Session, module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> int:
    """Run chained, every op judged; elements compared. Every graph has an op."""
    capsule = capture(module, inputs, name="graph")
    steps = list(capsule_steps(capsule, iter(range(10_000))))
    if not steps:
        return 0
    run = ChainedRun(session, capsule)
    try:
        rows = list(run.rows(steps, {step.index for step in steps}))
    finally:
        run.chain.close()
    failed = [row for row in rows if isinstance(row, OpRow) and row.status == "fail"]
    assert not failed, [(row.op, row.dtype, row.shapes, row.failure) for row in failed]
    assert len(rows) == len(steps)
    return sum(row.elements_compared for row in rows if isinstance(row, OpRow))


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_any_small_model_is_computed_within_the_bounds_of_its_ops(
    session: Session, data: st.DataObject
) -> None:
    def choose(count: int) -> int:
        return data.draw(st.integers(0, count - 1))

    module, inputs = random_graph(choose, length=8)
    assert judged(session, module, inputs) >= 0


def test_graphs_vary_and_stay_small() -> None:

    names: set[str] = set()
    for seed in range(60):
        module, inputs = random_graph(random.Random(seed).randrange, 12)
        capsule = capture(module, inputs, name="graph")
        names |= {op.op for op in capsule.ops}
        sizes = [ref.numel for op in capsule.ops for ref in op.outputs if ref is not None]
        assert max(sizes) <= 4 * MAX_ELEMENTS
    assert len(names) > 35
