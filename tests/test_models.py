# SPDX-License-Identifier: Apache-2.0
"""Whole models on the cmodel, as their tests run them on the RTL: nothing left to the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from driver.capture import save_capsule
from driver.config import load_config
from driver.results import Mode, OpEvent, RunResult, RunSpec
from tb.ops.chain import ModelOutput
from tb.ops.runner import run_ops
from tb.tests import _tokens, lenet, qwen_layer, qwen_prefill
from workloads import capture_workload

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"

Record = Callable[[str], Path]


class Quiet:
    def plan(self, ops: int) -> None: ...

    def op(self, event: OpEvent) -> None: ...

    def note(self, text: str) -> None: ...


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Workload → its capsule, recorded once."""
    made: dict[str, Path] = {}

    def get(workload: str) -> Path:
        if workload not in made:
            made[workload] = tmp_path_factory.mktemp("capsules") / workload
            save_capsule(capture_workload(workload, seed=1), made[workload])
        return made[workload]

    return get


def run(
    module: ModuleType, record: Record, out: Path, workload: str, *modes: Mode, config: str
) -> RunResult:
    spec = RunSpec(
        test=module.INFO.name, config=config, config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=out, capsules={workload: record(workload)}, op_filter=None,
        timeout_s=60.0, modes=modes,
    )  # fmt: skip
    return run_ops(spec, load_config(CONFIG_FILE, config), module, Quiet())


def test_lenet_sees_the_digits_that_torch_sees(record: Record, tmp_path: Path) -> None:
    result = run(lenet, record, tmp_path, "lenet", "isolated", "chained", config="default")
    assert result.status == "pass"
    assert {row.where for row in result.ledger} == {"cmodel", "view"}
    assert len(result.ops) == 22
    (note,) = result.notes
    assert note.startswith("classes: 64 of 64 as torch predicts them, accuracy 6")


def test_a_class_that_is_not_torchs_fails_the_test(record: Record) -> None:
    scores = np.eye(10)[np.arange(64) % 10]
    other = scores.copy()
    other[5] = np.roll(other[5], 1)
    assert lenet.conclude(None, [ModelOutput(scores, scores)]).ok  # type: ignore[arg-type]
    wrong = lenet.conclude(None, [ModelOutput(other, scores)])  # type: ignore[arg-type]
    assert not wrong.ok and "63 of 64" in wrong.text


@pytest.mark.broad
@pytest.mark.parametrize("mode", ["isolated", "chained"])
def test_a_decoder_layer_leaves_nothing_to_the_cpu(
    record: Record, tmp_path: Path, mode: Mode
) -> None:
    result = run(qwen_layer, record, tmp_path, "qwen_layer_bf16", mode, config="default")
    assert result.status == "pass"
    assert {row.where for row in result.ledger} == {"cmodel", "view"}
    assert len(result.ops) == 59
    drifts = [row.drift for row in result.ops if row.drift is not None]
    assert len(drifts) == (59 if mode == "chained" else 0)
    assert all(drift.cosine > 0.9999 for drift in drifts)


@pytest.mark.broad
def test_two_layers_and_lm_head_choose_torchs_tokens_from_their_own_cache(
    record: Record, tmp_path: Path
) -> None:
    result = run(qwen_prefill, record, tmp_path, "qwen_small", "chained", config="qwen")
    assert result.status == "pass"
    assert {row.where for row in result.ledger} == {"cmodel", "view"}
    (note,) = result.notes
    assert note.startswith("greedy tokens [") and note.count(",") == 1


def test_another_token_fails_the_test() -> None:
    tokens = np.array([[3, 4]])
    assert _tokens.conclude(None, [ModelOutput(tokens, tokens)]).ok  # type: ignore[arg-type]
    wrong = _tokens.conclude(None, [ModelOutput(tokens, tokens + 1)])  # type: ignore[arg-type]
    assert not wrong.ok and wrong.text == "greedy tokens [3, 4], torch has [4, 5]"
