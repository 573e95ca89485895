# SPDX-License-Identifier: Apache-2.0
"""Capsules that somebody signed and that are not true: each is refused by one line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from capsule_host import Change, edit

from driver.capture import capture, load_capsule, save_capsule
from driver.config import load_config
from driver.errors import InputError
from driver.results import Mode, OpEvent, RunResult, RunSpec
from tb.ops.runner import run_ops
from tb.tests import replay

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"


class Chain(torch.nn.Module):
    """addmm, a view, a sum, a product of integers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        whole: torch.Tensor = self.linear(x)
        return whole + torch.softmax(whole, -1)


class Quiet:
    def plan(self, ops: int) -> None: ...

    def op(self, event: OpEvent) -> None: ...

    def note(self, text: str) -> None: ...


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(3)
    save_capsule(capture(Chain(), torch.randn(2, 4), name="chain"), tmp_path / "chain")
    return tmp_path / "chain"


def run(folder: Path, mode: Mode = "isolated") -> RunResult:
    spec = RunSpec(
        test="replay", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=folder.parent, capsules={"capsule": folder}, op_filter=None,
        timeout_s=60.0, modes=(mode,),
    )  # fmt: skip
    return run_ops(spec, load_config(CONFIG_FILE, "small"), replay, Quiet())


def refused(folder: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        run(folder)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 1000
    return caught.value


def test_the_capsule_as_it_was_recorded_passes(folder: Path) -> None:
    result = run(folder)
    assert [row.op for row in result.ops] == [
        "aten.addmm.default", "aten._softmax.default", "aten.add.Tensor",
    ]  # fmt: skip
    assert result.status == "pass"


def test_an_op_whose_shape_function_says_otherwise_is_what_the_cpu_computes(tmp_path: Path) -> None:
    """In eval mode batch_norm returns no statistics on the CPU; its shape function says it does."""
    norm = torch.nn.BatchNorm2d(3).eval()
    save_capsule(capture(norm, torch.randn(2, 3, 4, 4), name="norm"), tmp_path / "norm")
    assert run(tmp_path / "norm").status == "pass"


T, ADDMM, SOFTMAX, ADD = range(4)


def op(number: int, **fields: Any) -> Change:
    return lambda document: document["ops"][number].update(fields)


def operand(number: int, position: int, **fields: Any) -> Change:
    return lambda document: document["ops"][number]["inputs"][position].update(fields)


def result(number: int, **fields: Any) -> Change:
    return lambda document: document["ops"][number]["outputs"][0].update(fields)


def other_result(document: dict[str, Any]) -> None:
    """The softmax is said to be what the product was."""
    ops = document["ops"]
    ops[SOFTMAX]["outputs"][0]["storage"] = ops[ADDMM]["outputs"][0]["storage"]


def too_many(document: dict[str, Any]) -> None:
    document["ops"][ADD]["inputs"] += [1, 2]


def too_few(document: dict[str, Any]) -> None:
    document["ops"][ADD]["inputs"].pop()


def not_a_view(document: dict[str, Any]) -> None:
    """An op that computes is said to cost nothing."""
    document["ops"][SOFTMAX]["view"] = True


def room(document: dict[str, Any]) -> None:
    """The softmax is said to be memory that nobody filled."""
    document["ops"][SOFTMAX].update(op="aten.empty.memory_format", inputs=[[2, 3]], kwargs={})


def number_as_view(document: dict[str, Any]) -> None:
    """An op that returns a number is said to be a view."""
    size = document["ops"][ADDMM]["inputs"][1]
    document["ops"][SOFTMAX].update(op="aten.sym_numel.default", inputs=[size], view=True)


@pytest.mark.parametrize(
    "name",
    [
        *("load_library.__func__.__call__", "aten.from_file.default", "aten.__class__.__init__"),
        *("aten.mm", "aten.mm.default.name", "aten.mm.__call__", "", "aten", "os.system.default"),
    ],
)
@pytest.mark.parametrize("view", [False, True])
def test_a_name_that_is_no_op_or_one_of_files_is_refused(
    folder: Path, name: str, *, view: bool
) -> None:
    edit(folder, op(ADD, op=name, view=view))
    assert name in str(refused(folder)) or not name


def broadcast(document: dict[str, Any]) -> None:
    """A sum of 10^10 elements out of two rows of 10^5."""
    first, second = document["ops"][ADD]["inputs"]
    first.update(sizes=[100_000, 1], strides=[0, 0])
    second.update(sizes=[1, 100_000], strides=[0, 0])


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        pytest.param(other_result, "outputs[0]", "elements differ", id="another tensor"),
        pytest.param(result(ADD, sizes=[3, 2], strides=[2, 1]), "outputs[0]", "[3, 2]", id="sizes"),
        pytest.param(result(ADD, dtype="int32"), "outputs[0]", "int32", id="type of a result"),
        pytest.param(op(ADD, outputs=[]), "aten.add.Tensor", "0 outputs", id="no result"),
        pytest.param(too_many, "aten.add.Tensor", "4 positional", id="too many arguments"),
        pytest.param(too_few, "aten.add.Tensor", "nothing", id="too few arguments"),
        pytest.param(op(ADD, kwargs={"beta": 1}), "aten.add.Tensor", "beta", id="no such keyword"),
        pytest.param(op(ADD, op="aten.no_such.op"), "name", "no_such", id="no such op"),
        pytest.param(operand(ADDMM, 1, dtype="int32"), "addmm", "dtype", id="mixed types"),
        pytest.param(broadcast, "aten.add", "6 elements", id="large broadcast"),
        pytest.param(not_a_view, "view", "true", id="no view"),
        pytest.param(number_as_view, "view", "true", id="a number as a view"),
        pytest.param(room, "outputs[0]", "6 elements differ", id="room with values"),
        pytest.param(
            op(ADD, kwargs={"alpha": {"kind": "layout", "value": "strided"}}),
            "aten.add",
            "layout",
            id="a layout as a factor",
        ),
        pytest.param(result(T, offset=1, sizes=[3, 3]), "outputs[0]", "3", id="another view"),
        pytest.param(
            op(ADD, kwargs={"alpha": {"kind": "float", "value": "x"}}), "add", "x", id="no number"
        ),
        pytest.param(
            op(ADD, kwargs={"alpha": {"kind": "device", "value": "moon"}}), "add", "", id="device"
        ),
    ],
)
def test_an_op_that_torch_would_not_have_recorded_is_refused(
    folder: Path, change: Change, field: str, value: str
) -> None:
    edit(folder, change)
    error = refused(folder)
    assert field in error.field
    assert value in str(error.value)


def test_a_chain_is_held_to_torchs_answers_as_well(folder: Path) -> None:
    assert run(folder, "chained").status == "pass"
    edit(folder, other_result)
    with pytest.raises(InputError, match="elements differ"):
        run(folder, "chained")


HUGE = 10**30


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param(operand(ADD, 0, offset=HUGE), "offset", id="offset"),
        pytest.param(operand(ADD, 0, sizes=[0], strides=[1], offset=2**62), "offset", id="empty"),
        pytest.param(operand(ADD, 0, sizes=[10**6] * 2, strides=[0, 0]), "sizes", id="broadcast"),
        pytest.param(operand(ADD, 0, sizes=[0, 2**40], strides=[1, 1]), "sizes", id="by zero"),
        pytest.param(operand(ADD, 0, strides=[int("9" * 4200), 1]), "strides", id="stride"),
        pytest.param(operand(ADD, 0, sizes=[int("9" * 4200), 0]), "sizes", id="digits"),
        pytest.param(op(ADD, inputs=[int("9" * 4200), 1]), "inputs", id="scalar"),
        pytest.param(lambda document: document.update(seed=HUGE), "seed", id="seed"),
        pytest.param(op(ADD, module="\x1b[31mred"), "module", id="escape"),
        pytest.param(op(ADD, source="\x9bx.py:1"), "source", id="control"),
    ],
)
def test_a_number_or_name_out_of_all_proportion_is_refused(
    folder: Path, change: Change, field: str
) -> None:
    edit(folder, change)
    assert field in refused(folder).field


def test_names_that_a_terminal_would_obey_are_recorded_as_escapes() -> None:
    model = torch.nn.Sequential()
    model.add_module("\x1b[2J", torch.nn.Linear(2, 2))
    capsule = capture(model, torch.ones(1, 2), name="names")
    assert {op.module for op in capsule.ops} == {"\\x1b[2J"}
    names = {storage.parameter for storage in capsule.document.storages.values()} - {None}
    assert names == {"\\x1b[2J.weight", "\\x1b[2J.bias"}


@pytest.mark.parametrize("name", ["capsule.json", "tensors.safetensors"])
def test_what_is_no_regular_file_is_refused_unopened(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match=f"{name}: file: got a FIFO"):
        load_capsule(folder)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(InputError, match=f"{name}: file: got a device"):
        load_capsule(folder)
