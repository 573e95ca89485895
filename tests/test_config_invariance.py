# SPDX-License-Identifier: Apache-2.0
"""One digest for the results of the same ops, whatever the configuration.

Here on the cmodel, which takes in the lowering; `npu-cosim test` compares the RTL's digests on
several configurations, DRAM timings and stalls (regress/steps.py), the nightly tier those of all.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
import torch

from driver.config import load_configs
from driver.results import OpRow, RunSpec
from tb.ops.case import Case
from tb.ops.session import Session
from tb.tests.ops import cases

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
CONFIGS = load_configs(CONFIG_FILE)
EVERY = 23
"""Of the cases of TEST=ops, so that some of all families run."""


def digest(out: Path, config: str, seed: int = 1, spoil: int | None = None) -> str:
    spec = RunSpec(
        test="ops", config=config, config_file=CONFIG_FILE, seed=seed, backend="cmodel",
        waves="none", out=out, capsules={}, op_filter=None, timeout_s=60.0,
    )  # fmt: skip
    session = Session(spec, CONFIGS[config])
    ran = 0
    for entry in islice(cases(spec, CONFIGS[config]), 0, None, EVERY):
        case = entry.make()
        ran += isinstance(session.run(spoilt(case) if ran == spoil else case), OpRow)
    session.close()
    assert ran > 40
    return session.digest


def spoilt(case: Case) -> Case:
    args = tuple(a + 1 if isinstance(a, torch.Tensor) and a.numel() else a for a in case.args)
    return Case(case.index, case.op, args, case.module, kwargs=case.kwargs)


@pytest.fixture(scope="module")
def on_default(tmp_path_factory: pytest.TempPathFactory) -> str:
    return digest(tmp_path_factory.mktemp("default"), "default")


@pytest.mark.parametrize("config", sorted(CONFIGS.keys() - {"default"}))
def test_every_configuration_has_the_same_bits(
    on_default: str, config: str, tmp_path: Path
) -> None:
    assert digest(tmp_path, config) == on_default


def test_the_digest_sees_other_operands(on_default: str, tmp_path: Path) -> None:
    assert digest(tmp_path, "default", seed=2) != on_default
    assert digest(tmp_path, "default", spoil=0) != on_default


def test_the_configurations_differ_where_bits_must_not() -> None:
    assert {c.array_size for c in CONFIGS.values()} == {8, 16, 32}
    assert {c.vector_lanes for c in CONFIGS.values()} == {4, 8, 16}
    assert {c.bus_bits for c in CONFIGS.values()} == {128, 256, 512}
    assert len({c.dram.latency_cycles for c in CONFIGS.values()}) > 1
