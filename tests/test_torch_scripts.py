# SPDX-License-Identifier: Apache-2.0
"""Programs as users write them, tests/scripts: on device "npu" what they give on the CPU.

A script takes its device from the environment, DEVICE=npu or cpu, and knows nothing else of it.
Compared is what it leaves in its global variables `losses`, `outputs` and `predictions`.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True)
class ScriptCase:
    """How far the NPU's numbers may be from the CPU's, and a larger form of the script.

    Both devices round, each in its own order, so a training run drifts. The distances are recorded:
    four times what was seen. That each op alone keeps its derived bound is what
    `test_every_op_of_a_script_keeps_its_derived_bound` proves.
    """

    compared: int
    """So many numbers are compared."""
    losses: float = 1e-6
    """Relative distance."""
    outputs: float = 1.5e-6
    """Distance relative to the largest output."""
    larger: dict[str, str] = field(default_factory=dict)
    """Environment of the larger form."""
    larger_drift: float = 2.5e-6
    """Of losses and outputs there, unless the CPU's own drift on this machine allows more."""


CASES = {
    "autoencoder": ScriptCase(1027, larger={"STEPS": "20"}),
    "char_gpt": ScriptCase(171, larger={"STEPS": "60"}),
    "checkpoints": ScriptCase(16),
    "lenet_inference": ScriptCase(640, larger={"IMAGES": "1797"}),
    "lenet_train": ScriptCase(52, larger={"IMAGES": "1437"}, larger_drift=2e-4),
    "lora_trainer": ScriptCase(2051, larger={"STEPS": "12"}),
    "lstm_tagger": ScriptCase(39, larger={"EPOCHS": "12"}),
    "qwen_generate": ScriptCase(960, larger={"NEW_TOKENS": "24"}),
    "resnet18": ScriptCase(41, larger={"WIDTH": "32", "STEPS": "3"}, larger_drift=2e-4),
    "training_recipe": ScriptCase(54, larger={"STEPS": "20"}),
    "transformer": ScriptCase(291, larger={"STEPS": "40"}),
}


OWN_DRIFTS = 8
"""A long training amplifies roundings, and which the CPU makes depends on its vector instructions:
on one machine LeNet's losses end 5e-5 apart with one thread and with two, on another 1.5e-4. The
NPU, whose every sum has an order of its own, may be so many times as far from the CPU as the CPU is
from itself."""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """A script may seed torch and leave tensors behind; the next test starts without them."""
    before = torch.npu.cpu_fallbacks()
    with torch.random.fork_rng(devices=()), warnings.catch_warnings():
        yield
    assert torch.npu.cpu_fallbacks() == before


def run(name: str, device: str, monkeypatch: pytest.MonkeyPatch, **larger: str) -> dict[str, Any]:
    """The global variables of the script at its end."""
    for variable, value in {"DEVICE": device, **larger}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", device)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        found = runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")
    assert printed.getvalue()
    return found


def tensors_of(found: dict[str, Any]) -> list[torch.Tensor]:
    """The parameters of all modules that the script leaves, and its outputs."""
    modules = [x for x in found.values() if isinstance(x, torch.nn.Module)]
    return [found["outputs"], *(x for module in modules for x in module.parameters())]


def drifts(found: dict[str, Any], expected: dict[str, Any]) -> tuple[float, float, int]:
    """Largest relative distance of a loss, that of an output, and how many were compared."""
    losses, wanted_losses = found.get("losses", []), expected.get("losses", [])
    assert len(losses) == len(wanted_losses)
    assert found.get("predictions") == expected.get("predictions")
    outputs, wanted = found["outputs"].float().cpu(), expected["outputs"].float()
    assert outputs.shape == wanted.shape
    hidden = wanted.isinf() & (outputs == wanted)
    distance = (outputs - wanted).masked_fill(hidden, 0).abs().max()
    return (
        max([abs(a / b - 1) for a, b in zip(losses, wanted_losses, strict=True)], default=0.0),
        (distance / wanted[~hidden].abs().max()).item(),
        len(losses) + outputs.numel() - int(hidden.sum()),
    )


@pytest.mark.parametrize("name", CASES)
def test_a_script_gives_what_it_gives_on_the_cpu(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(name, "cpu", monkeypatch)
    found = run(name, "npu", monkeypatch)
    assert {x.device.type for x in tensors_of(expected)} == {"cpu"}
    assert {x.device.type for x in tensors_of(found)} == {"npu"}
    case = CASES[name]
    losses, outputs, compared = drifts(found, expected)
    assert losses <= case.losses
    assert outputs <= case.outputs
    assert compared == case.compared


@pytest.mark.broad
@pytest.mark.parametrize("name", CASES)
def test_every_op_of_a_script_keeps_its_derived_bound(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with torch.npu.check(tmp_path) as report:
        run(name, "npu", monkeypatch)
    assert report.ops > 30
    assert report.elements > 9000


@pytest.mark.broad
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.larger])
def test_a_larger_script_stays_close_to_the_cpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    expected = run(name, "cpu", monkeypatch, **case.larger)
    found = run(name, "npu", monkeypatch, **case.larger)
    losses, outputs, compared = drifts(found, expected)
    assert compared > case.compared
    drift = max(losses, outputs)
    if drift > case.larger_drift:
        assert drift <= OWN_DRIFTS * own_drift(name, expected, monkeypatch)


def own_drift(name: str, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> float:
    """Between the CPU's run and the same with another number of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if threads > 1 else 2)
    try:
        again = run(name, "cpu", monkeypatch, **CASES[name].larger)
    finally:
        torch.set_num_threads(threads)
    return max(drifts(again, expected)[:2])
