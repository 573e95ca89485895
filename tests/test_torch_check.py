# SPDX-License-Identifier: Apache-2.0
"""torch.npu.check: every op of a torch program is judged as it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from judged_call import CONFIG, open_pair
from test_torch_device import run_python
from test_torch_training import OPTIMIZERS, lenet_of_tutorials, train
from torch import nn

from driver.capture import Capsule, load_capsule
from driver.capture.single import recall
from driver.config import load_config
from driver.lower import LOWERINGS
from driver.torch_device.pool import POOL
from driver.torch_device.programs import ProgramCache
from driver.torch_device.settings import CONFIG_FILE
from golden.judge import Verdict, judge
from tb.ops.case import Case


def verdict_of(capsule: Capsule) -> Verdict:
    """Of a capsule's only op, lowered as the table says now."""
    call = recall(capsule, 0, {})
    case = Case(0, call.op, tuple(call.args), "test", kwargs=dict(call.kwargs))
    result = open_pair().run(case, 1)
    return judge(case.call, result.cmodel.bits, None, CONFIG.array_size)


def lower_as(monkeypatch: pytest.MonkeyPatch, op: str, other: str) -> None:
    """Break a lowering: the op becomes the packets of another one."""
    table: Any = LOWERINGS
    monkeypatch.setitem(table, op, LOWERINGS[other])
    monkeypatch.setattr(POOL[0], "_programs", ProgramCache(load_config(CONFIG_FILE, "default")))


def test_a_training_step_is_checked() -> None:
    torch.manual_seed(5)
    model = lenet_of_tutorials().to("npu")
    with torch.npu.check() as report:
        train(model, OPTIMIZERS["sgd"](model.parameters()), "npu")
    assert report.ops > 100
    assert report.elements > 100_000
    assert not report.not_judged
    before = report.ops
    torch.ones(2, device="npu") + 1
    assert report.ops == before


@pytest.mark.filterwarnings("ignore:Error detected in")
@pytest.mark.parametrize(
    ("op", "other", "place"),
    [
        ("aten.tanh.default", "aten.sigmoid.default", "in Sequential.1:"),
        ("aten.tanh_backward.default", "aten.sigmoid_backward.default", "in TanhBackward0:"),
    ],
)
def test_a_wrong_op_is_caught_named_and_kept(
    op: str, other: str, place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh()).to("npu")
    with monkeypatch.context() as broken:
        lower_as(broken, op, other)
        with torch.npu.check(tmp_path) as report, pytest.raises(torch.npu.WrongResult) as caught:
            model(torch.randn(3, 4).to("npu")).sum().backward()
        capsule = load_capsule(tmp_path / op)
        assert verdict_of(capsule).blame == "lowering"
    text = str(caught.value)
    assert f"{op} is wrong (lowering) at " in text
    assert place in text
    assert "test_torch_check.py:" in text
    assert f"make replay CAPSULE={tmp_path / op}" in text
    assert report.ops >= 2
    assert verdict_of(capsule).ok


def test_every_check_counts_anew(tmp_path: Path) -> None:
    with torch.npu.check(tmp_path) as report:
        torch.ones(2, device="npu").add_(1)
    assert (report.ops, report.elements) == (2, 4)
    assert not torch.is_anomaly_enabled()


def test_the_programs_random_numbers_are_those_without_a_check() -> None:
    def drawn() -> list[torch.Tensor]:
        torch.manual_seed(4)
        here = nn.functional.dropout(torch.ones(50, device="npu"))
        return [here.cpu(), torch.rand(3)]

    expected = drawn()
    with torch.npu.check() as report:
        found = drawn()
    assert report.elements > 50
    for a, b in zip(expected, found, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_a_whole_process_is_checked_by_its_environment() -> None:
    source = "import torch\nx = torch.ones(3, device='npu')\nprint((x * 2 + x).sum().item())"
    done = run_python(source, NPU_CHECK="1")
    assert done.stdout == "9.0\n", done.stderr
    assert "[NPU] 4 ops checked, 10 elements within their bounds" in done.stderr
    refused = run_python("import torch", NPU_CHECK="yes")
    assert "NPU_CHECK: " in refused.stderr
