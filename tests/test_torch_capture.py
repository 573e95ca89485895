# SPDX-License-Identifier: Apache-2.0
"""torch.npu.capture: a stretch of a running program becomes a capsule that the bench replays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from capsule_host import edit
from judged_call import scratch_in
from test_ops_chained import Quiet, spec
from test_torch_check import lower_as
from torch import Tensor, nn
from torch.nn import functional

from driver.backend import BACKENDS
from driver.capture import Capsule, load_capsule
from driver.config import load_config
from driver.errors import InputError
from driver.results import RunResult
from driver.torch_device.pool import POOL
from driver.torch_device.programs import ProgramCache
from driver.torch_device.settings import CONFIG_FILE
from regress import capsules
from tb.ops.runner import run_ops
from tb.tests import replay

CONFIG = load_config(CONFIG_FILE, "default")


class Net(nn.Module):
    """Convolution, statistics that training moves, random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(48, 5)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.drop(torch.relu(self.norm(self.conv(x))))
        made: Tensor = self.head(hidden.flatten(1))
        return made


class Training:
    """A program that trains, step by step."""

    def __init__(self) -> None:
        torch.manual_seed(2)
        self.net = Net().to("npu")
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-2)
        self.images = torch.randn(2, 1, 6, 6).to("npu")
        self.classes = torch.tensor([1, 4]).to("npu")

    def step(self) -> float:
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.net(self.images), self.classes)
        loss.backward()
        self.optimizer.step()
        return loss.item()


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tensor, str]:
    """From the middle of a training: its second step, and the forward pass of new images. The
    folder, a weight after it, and the report."""
    folder = tmp_path_factory.mktemp("capture") / "training"
    training = Training()
    training.step()
    with torch.npu.capture(folder) as report:
        training.step()
        training.images.copy_(torch.ones(2, 1, 6, 6))
        training.net(training.images)
    return folder, training.net.head.weight.detach().cpu(), str(report)


def run(folder: Path, **changes: Any) -> RunResult:
    """The bench's replay of a capsule."""
    asked = spec(folder.parent, config="default", capsules={"capsule": folder}, **changes)
    return run_ops(asked, CONFIG, replay, Quiet())


def test_a_training_step_is_recorded_whole(captured: tuple[Path, Tensor, str]) -> None:
    capsule = load_capsule(captured[0])
    assert captured[2].startswith(f"{len(capsule.ops)} ops, ")
    assert captured[2].endswith("1 operands written by the host")
    places = {op.module for op in capsule.ops}
    assert {"Net.conv", "Net.head", "Net.head (AddmmBackward0)", "AdamW group 0"} <= places
    assert "Net.norm (NativeBatchNormBackward0)" in places
    assert {op.source.split(":")[0].split("/")[-1] for op in capsule.ops} == {
        "test_torch_capture.py"
    }
    drawn = [op.stream for op in capsule.ops if op.op == "aten.native_dropout.default"]
    assert len(drawn) == len(set(drawn)) == 2
    assert None not in drawn
    parameters = {storage.parameter for storage in capsule.document.storages.values()}
    assert {"conv.weight", "norm.running_mean", "head.bias"} <= parameters
    assert holds(capsule, captured[1])


def holds(capsule: Capsule, tensor: Tensor) -> bool:
    """Whether a tensor is among what the run left in living memory."""
    wanted = tensor.numpy()
    found = [capsule.array(ref) for ref in capsule.document.outputs]
    return any(x.shape == wanted.shape and np.array_equal(x, wanted) for x in found)


@pytest.mark.parametrize("mode", [pytest.param("isolated", marks=pytest.mark.broad), "chained"])
def test_the_bench_replays_it(captured: tuple[Path, Tensor, str], mode: str) -> None:
    result = run(captured[0], modes=(mode,))
    assert result.status == "pass"
    ops = load_capsule(captured[0]).ops
    assert len(result.ops) == len(ops) > 50
    made = sum(ref.numel for op in ops for ref in op.outputs if ref is not None)
    assert sum(row.elements_compared for row in result.ops) >= made > 4000
    if mode == "chained":  # the NPU again, from the same operands: the same bits
        drifts = [row.drift for row in result.ops if row.drift is not None]
        assert len(drifts) == len(ops)
        assert {drift.max_abs for drift in drifts} == {0.0}


STRETCHES: dict[str, Callable[[], Tensor]] = {
    "a factory of another type": lambda: torch.arange(9, dtype=torch.int32, device="npu") + 1,
    "an empty view behind its memory": lambda: (
        torch.randn(3, 3, device="npu")[3:].unsqueeze(0)[:, :, 2:] * 2
    ),
    "a number beside 16 bits": lambda: torch.tensor([-3.14, 1]).half().to("npu") + 3.14,
    "a permutation": lambda: torch.randperm(5, device="npu"),
    "a transform": lambda: torch.fft.rfft(torch.randn(8, device="npu")),
    "an inverse": lambda: torch.linalg.inv(torch.randn(3, 3, device="npu")),
}


@pytest.mark.parametrize("name", STRETCHES)
def test_what_is_captured_can_be_replayed(name: str, tmp_path: Path) -> None:
    with torch.npu.capture(tmp_path / "c"):
        torch.ones(2, device="npu").add_(1)
        STRETCHES[name]()
    assert run(tmp_path / "c").status == "pass"


def test_a_value_that_is_not_true_is_refused(
    captured: tuple[Path, Tensor, str], tmp_path: Path
) -> None:
    with torch.npu.capture(tmp_path / "sum"):
        torch.ones(3, device="npu") + 1
    assert run(tmp_path / "sum").status == "pass"
    edit(tmp_path / "sum", lambda fields: fields["ops"][1]["outputs"][0].update(other(fields)))
    with pytest.raises(InputError, match=r"ops\[1\] aten.add.Tensor: got 1.0 at \[0\]"):
        run(tmp_path / "sum")


def other(fields: dict[str, Any]) -> dict[str, Any]:
    """The operand in the place of the result."""
    return {"storage": fields["ops"][0]["outputs"][0]["storage"]}


def test_a_write_to_a_part_keeps_the_rest(tmp_path: Path) -> None:
    x = torch.arange(12.0).reshape(3, 4).to("npu")
    with torch.npu.capture(tmp_path / "parts"):
        torch.add(x[0], x[1], out=x[2])
        x[:, 1].mul_(3)
        torch.mm(x[:, :3], x[:, :3], out=x[:, 1:])
        x.t().add_(1)
        x.sum()
    result = run(tmp_path / "parts", modes=("chained",))
    assert result.status == "pass"
    assert {row.drift.max_abs for row in result.ops if row.drift} == {0.0}
    capsule = load_capsule(tmp_path / "parts")
    assert holds(capsule, x.t().cpu())


def test_what_an_op_leaves_in_its_arguments_is_no_write_of_the_host(tmp_path: Path) -> None:
    scale, tracker = torch.ones(1, device="npu"), torch.zeros(1, dtype=torch.int32, device="npu")
    inf = torch.zeros(1, device="npu")
    with torch.npu.capture(tmp_path / "scale") as report:
        for _ in range(3):
            torch._amp_update_scale_(scale, tracker, inf, 2.0, 0.5, 2)
        tracker + 1
    assert report.host_writes == 0
    assert (scale.item(), tracker.item()) == (2, 1)
    assert run(tmp_path / "scale", modes=("chained",)).status == "pass"


def test_wrong_values_are_not_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    x = torch.randn(3, 4).to("npu")
    with monkeypatch.context() as broken:
        lower_as(broken, "aten.tanh.default", "aten.sigmoid.default")
        wrong = pytest.raises(torch.npu.WrongResult, match=r"not written: ops\[0\] aten.tanh.def")
        with wrong, torch.npu.capture(tmp_path / "tanh"):
            torch.tanh(x)
    assert not (tmp_path / "tanh").exists()


def test_an_operand_that_an_op_overwrites_is_no_write_of_the_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as broken:
        scratch_in(broken, "aten.add.Tensor", lambda view: view)
        broken.setattr(POOL[0], "_programs", ProgramCache(load_config(CONFIG_FILE, "default")))
        wrong = r"not written: ops\[0\] aten.add.Tensor is wrong .* overwrites its argument self"
        for catches in (False, True):
            x = torch.ones(4, 3, device="npu")
            refused = pytest.raises(torch.npu.WrongResult, match=wrong)
            caught = suppress(RuntimeError) if catches else nullcontext()
            with refused, torch.npu.capture(tmp_path / "add"), caught:
                torch.add(x, 1)
    assert not (tmp_path / "add").exists()


@pytest.fixture
def wrong_backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A device beside the cmodel, whose products of K ≥ 3 have one wrong element."""
    monkeypatch.setitem(BACKENDS, "wrong", "wrong_runner:WrongDevice")
    torch.npu.set_backend("wrong")
    yield
    torch.npu.set_backend("cmodel")


@pytest.mark.usefixtures("wrong_backend")
def test_bits_that_the_cmodel_does_not_give_are_not_written(tmp_path: Path) -> None:
    x = torch.randn(4, 4)
    wrong = pytest.raises(torch.npu.WrongResult, match="left other bits in the program than")
    with wrong, torch.npu.capture(tmp_path / "mm"):
        x.to("npu") @ x.to("npu")
    assert not (tmp_path / "mm").exists()


def test_a_capture_has_limits(tmp_path: Path) -> None:
    x = torch.zeros(1000, device="npu")
    for limits, text in (
        ({"max_bytes": 6000}, "at most max_bytes=6000"),
        ({"max_ops": 2}, "ops"),
    ):
        with pytest.raises(InputError, match=text), torch.npu.capture(tmp_path / "big", **limits):
            for number in range(4):
                x += number
    assert not (tmp_path / "big").exists()
    assert (x + 1).numel() == 1000


def test_nothing_captured_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(torch.npu.NothingChecked), torch.npu.capture(tmp_path / "none"):
        torch.ones(3) + 1
    (tmp_path / "mine").write_text("something else")
    with pytest.raises(InputError, match="something else is there"):
        torch.npu.capture(tmp_path / "mine")
    with pytest.raises(InputError, match="name: got a b"):
        torch.npu.capture(tmp_path / "a b")


def test_what_runs_elsewhere_is_said(tmp_path: Path) -> None:
    x = torch.ones(3).to("npu")
    torch.npu.allow_cpu_fallback(True)
    try:
        with torch.npu.capture(tmp_path / "sinh") as report:
            with pytest.warns(RuntimeWarning, match="sinh"):
                y = (x + 1).double().sinh()
            y.float() + x
    finally:
        torch.npu.allow_cpu_fallback(False)
    assert "not recorded: a copy float32 → float64 by the host (1)" in str(report)
    assert "on the CPU" in str(report)
    assert run(tmp_path / "sinh").status == "pass"


def test_a_capsule_among_the_workloads_is_one(
    captured: tuple[Path, Tensor, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = captured[0]
    monkeypatch.setattr(capsules, "CAPTURED", folder.parent)
    assert folder.name in capsules.known_workloads()
    notes: list[str] = []
    found = capsules.kept_capsules([folder.name], 7, notes.append)
    assert (found, notes) == ({folder.name: folder}, [])
    with pytest.raises(InputError, match=f"CHECKPOINT: got /w, expected none for {folder.name}"):
        capsules.kept_capsules([folder.name], 7, notes.append, Path("/w"))
