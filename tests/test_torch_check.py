# SPDX-License-Identifier: Apache-2.0
"""torch.npu.check: every op of a torch program is judged as it runs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from judged_call import CONFIG, open_pair, scratch_in
from test_ops_chained import Quiet, spec
from test_torch_device import run_python
from test_torch_training import OPTIMIZERS, lenet_of_tutorials, train
from torch import Tensor, nn
from torch.nn import functional
from wrong_runner import WrongDevice

from driver.backend import BACKENDS
from driver.capture import Capsule, load_capsule
from driver.capture.single import recall
from driver.config import load_config
from driver.lower import LOWERINGS
from driver.lower.operands import OperandEncoder
from driver.results import OpRow
from driver.torch_device.pool import POOL
from driver.torch_device.programs import ProgramCache
from driver.torch_device.settings import CONFIG_FILE
from golden.judge import judge
from golden.verdict import Verdict
from tb.ops.case import Case
from tb.ops.runner import run_ops
from tb.tests import replay


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
        (
            "aten.tanh_backward.default",
            "aten.sigmoid_backward.default",
            "in Sequential.1 (TanhBackward0):",
        ),
    ],
)
def test_a_wrong_op_is_caught_named_and_kept(
    op: str, other: str, place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh()).to("npu")
    with monkeypatch.context() as broken:
        lower_as(broken, op, other)
        with pytest.raises(torch.npu.WrongResult) as caught, torch.npu.check(tmp_path) as report:
            model(torch.randn(3, 4).to("npu")).sum().backward()
        capsule = load_capsule(tmp_path / op)
        assert verdict_of(capsule).blame == "lowering"
    text = str(caught.value)
    assert f"{op} is wrong (lowering or cmodel, a run on the RTL decides) at " in text
    assert place in text
    assert "test_torch_check.py:" in text
    assert f"make replay CAPSULE={tmp_path / op}" in text
    assert report.ops >= 2
    assert verdict_of(capsule).ok


def test_a_wrong_op_of_an_optimizer_names_it_and_its_group(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = (torch.ones(3, device="npu", requires_grad=True) for _ in range(2))
    optimizer = torch.optim.SGD([{"params": [first]}, {"params": [second]}], lr=0.1, foreach=False)
    second.grad = torch.ones(3).to("npu")
    with monkeypatch.context() as broken:
        lower_as(broken, "aten.add.Tensor", "aten.sub.Tensor")
        with pytest.raises(torch.npu.WrongResult) as caught, torch.npu.check(tmp_path):
            optimizer.step()
    assert "in SGD group 1: element [0] of [3] is 1.1" in str(caught.value)
    assert "test_torch_check.py:" in str(caught.value)


def test_an_argument_that_an_op_overwrites_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    x = torch.ones(4, 3, device="npu")
    with monkeypatch.context() as broken:
        scratch_in(broken, "aten.add.Tensor", lambda view: view.sliced(0, 1, 1))
        broken.setattr(POOL[0], "_programs", ProgramCache(load_config(CONFIG_FILE, "default")))
        caught = pytest.raises(RuntimeError, match=r"\(lowering\).* overwrites its argument self")
        with caught, torch.npu.check(tmp_path):
            torch.add(x, x[:1].clone())
    with torch.npu.check(tmp_path) as report:
        x += 1
        torch.add(x[1:], 1, out=x[1:])
    assert report.ops >= 2


@pytest.mark.parametrize("rows", [1, 2])
def test_a_row_beside_the_result_that_an_op_overwrites_is_caught(
    rows: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    x = torch.ones(4, 3, device="npu")
    y = x.clone()
    with monkeypatch.context() as broken:
        broken.setattr(OperandEncoder, "check", lambda *_: None)  # which would refuse it
        scratch_in(
            broken,
            "aten.add.Tensor",
            lambda view: replace(view, offset_bytes=view.offset_bytes + 12 * rows),
        )
        broken.setattr(POOL[0], "_programs", ProgramCache(load_config(CONFIG_FILE, "default")))
        with pytest.raises(RuntimeError, match="beside its result of"), torch.npu.check(tmp_path):
            x[1] += y[1]
        with pytest.raises(RuntimeError, match="beside its result of"), torch.npu.check(tmp_path):
            torch.add(y[1], 1, out=y[:3, 0])


@pytest.fixture
def wrong_backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A device beside the cmodel, whose products of K ≥ 3 have one wrong element."""
    monkeypatch.setitem(BACKENDS, "wrong", "wrong_runner:WrongDevice")
    torch.npu.set_backend("wrong")
    yield
    torch.npu.set_backend("cmodel")


@pytest.mark.usefixtures("wrong_backend")
def test_a_backend_that_differs_from_the_cmodel_is_to_blame(tmp_path: Path) -> None:
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
    with pytest.raises(torch.npu.WrongResult) as caught, torch.npu.check(tmp_path):
        x.to("npu") @ x.to("npu")
    assert "aten.mm.default is wrong (rtl) at " in str(caught.value)
    assert "element [0, 1] of [4, 4]" in str(caught.value)


def test_a_wrong_result_that_the_program_catches_is_not_forgotten(tmp_path: Path) -> None:
    done = run_python(
        """
import os
os.chdir(os.environ["FOLDER"])
import torch
from driver.lower import LOWERINGS
LOWERINGS["aten.tanh.default"] = LOWERINGS["aten.sigmoid.default"]
x = torch.ones(2, device="npu")
try:
    torch.tanh(x)
except RuntimeError:
    print("caught")
print((x + 1).tolist())
""",
        NPU_CHECK="1",
        FOLDER=str(tmp_path),
    )
    assert done.stdout == "caught\n[2.0, 2.0]\n", done.stderr
    assert done.returncode == 1
    assert "1 wrong, of which the first: npu: aten.tanh.default is wrong" in done.stderr


@pytest.mark.usefixtures("wrong_backend")
def test_a_check_whose_wrong_result_was_caught_ends_in_it(tmp_path: Path) -> None:
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
    with pytest.raises(torch.npu.WrongResult), torch.npu.check(tmp_path) as report:
        with pytest.raises(torch.npu.WrongResult):
            x.to("npu") @ x.to("npu")
        x.to("npu") + 1
    assert not report.ok
    assert len(report.wrong) == 1


def test_a_check_that_compared_nothing_is_an_error() -> None:
    nothing = pytest.raises(torch.npu.NothingChecked, match="nothing was checked: 0 ops")
    with nothing, torch.npu.check():
        torch.ones(3) + 1
    with pytest.raises(KeyError), torch.npu.check():
        raise KeyError("the program's own error")


def test_what_has_no_bound_is_counted_and_is_nobodys_fault() -> None:
    """A product that overflows was called wrong."""
    huge = torch.full((2, 2), 1e20, device="npu")
    with torch.npu.check() as report:
        assert (huge @ huge).isinf().all()
        torch.signbit(torch.full((3,), torch.nan, device="npu"))
    assert report.unbounded == 7


def test_what_is_not_judged_is_said() -> None:
    x = torch.ones(3).to("npu")
    torch.npu.allow_cpu_fallback(True)
    try:
        with torch.npu.check() as report, pytest.warns(RuntimeWarning, match="cosh"):
            (x + 1).double().cosh()
    finally:
        torch.npu.allow_cpu_fallback(False)
    expected = "1 ops checked, 3 elements within their bounds; not judged: "
    expected += "a copy float32 → float64 by the host (1), aten.cosh"
    assert str(report).startswith(expected)


def test_an_op_that_is_judged_by_its_smaller_ones_is_named() -> None:
    x = torch.linspace(-1, 1, 5).to("npu")
    with torch.npu.check() as report:
        torch.erfc(x)
        torch.tanh(x)
    assert report.decomposed == {"aten.erfc.default": 1}
    assert report.ops > 2
    assert "; judged by their smaller ops: aten.erfc.default (1)" in str(report)


def in_place() -> Tensor:
    x = torch.randn(4, 4).to("npu")
    x[1:3, ::2] += 2
    return x.t().mul_(3)


def into_out() -> Tensor:
    x = torch.randn(4, 4).to("npu")
    torch.add(x, x.t(), out=x[:4])
    return torch.mm(x, x, out=x)


def under_autocast() -> Tensor:
    layer = nn.Linear(5, 3).to("npu")
    with torch.autocast("npu", dtype=torch.bfloat16):
        made = layer(torch.randn(2, 5).to("npu")).softmax(1)
    made.sum().backward()
    return made


def at_random() -> Tensor:
    x = torch.randn(50).to("npu").requires_grad_()
    made = functional.dropout(x, 0.3)
    made.sum().backward()
    return made


@pytest.mark.parametrize("program", [in_place, into_out, under_autocast, at_random])
def test_every_form_of_an_op_is_judged(program: Callable[[], Tensor]) -> None:
    torch.manual_seed(3)
    with torch.npu.check() as report:
        made = program()
    assert report.elements >= made.numel()
    assert not report.not_judged
    assert not report.unbounded


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


def replayed(folder: Path) -> OpRow:
    """The row of a capsule's only op on the RTL, as `make replay CONFIG=small` runs it."""
    asked = spec(folder.parent, "rtl", capsules={"capsule": folder}, timeout_s=600.0)
    (row,) = run_ops(asked, CONFIG, replay, Quiet()).ops
    assert row.where == "rtl"
    return row


@pytest.mark.broad
def test_the_rtl_decides_who_is_to_blame(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
    with monkeypatch.context() as broken:  # packets
        lower_as(broken, "aten.tanh.default", "aten.sigmoid.default")
        with pytest.raises(torch.npu.WrongResult), torch.npu.check(tmp_path):
            torch.tanh(x.to("npu"))
        assert replayed(tmp_path / "aten.tanh.default").blame == "lowering"
    assert replayed(tmp_path / "aten.tanh.default").status == "pass"
    gc.collect()
    with monkeypatch.context() as broken:  # the model, in the device and in the bench
        broken.setitem(BACKENDS, "cmodel", "wrong_runner:WrongDevice")
        broken.setattr("tb.ops.session.CmodelBackend", WrongDevice)
        torch.npu.set_backend("cmodel")
        with pytest.raises(torch.npu.WrongResult, match="or cmodel"), torch.npu.check(tmp_path):
            x.to("npu") @ x.to("npu")
        assert replayed(tmp_path / "aten.mm.default").blame == "cmodel"
    gc.collect()
    torch.npu.set_backend("cmodel")
    assert replayed(tmp_path / "aten.mm.default").status == "pass"
