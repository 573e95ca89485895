# SPDX-License-Identifier: Apache-2.0
"""Workloads that users wrote: anywhere, in other types, and broken in every way that files are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from driver.capture import TensorRef
from driver.errors import InputError
from regress import cli
from workloads import capture_workload, load_workload

GOOD = """
import torch
from beside import WIDTH

DESCRIPTION = "a linear layer"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, 2)

    def forward(self, x, positions):
        return self.linear(x) + positions[:, None]


def build(seed, checkpoint):
    torch.manual_seed(seed)
    return Model(), (torch.randn(3, WIDTH), torch.arange(3))
"""


def write(folder: Path, text: str, name: str = "mine.py") -> str:
    (folder / "beside.py").write_text("WIDTH = 4\n")
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_file_outside_the_repository_is_captured(tmp_path: Path) -> None:
    capsule = capture_workload(write(tmp_path, GOOD), seed=3)
    assert (capsule.name, capsule.seed) == ("mine", 3)
    addmm = next(op for op in capsule.ops if op.op == "aten.addmm.default")
    assert (addmm.module, addmm.source) == ("linear", "mine.py:14")


def test_a_file_named_like_a_package_is_itself(tmp_path: Path) -> None:
    assert capture_workload(write(tmp_path, GOOD, "torch.py")).name == "torch"
    assert torch.__file__ != str(tmp_path / "torch.py")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_another_type_converts_floats_and_leaves_integers(tmp_path: Path, dtype: str) -> None:
    capsule = capture_workload(write(tmp_path, GOOD), dtype=dtype)
    assert capsule.name == f"mine_{dtype}"
    assert [ref.dtype for ref in capsule.document.inputs] == [dtype, "int64"]
    addmm = next(op for op in capsule.ops if op.op == "aten.addmm.default")
    assert {ref.dtype for ref in addmm.inputs if isinstance(ref, TensorRef)} == {dtype}


def test_a_workload_that_takes_a_type_gets_it() -> None:
    capsule = capture_workload("qwen_layer", dtype="bfloat16")
    same = capture_workload("qwen_layer_bf16")
    assert [op.outputs for op in capsule.ops] == [op.outputs for op in same.ops]


BROKEN: dict[str, tuple[str, str, str]] = {
    "syntax": ("x = 1\ndef (:\n", "line 2", "invalid syntax"),
    "import": ("import nonesuch_package\n", "line 1", "ModuleNotFoundError"),
    "raises": ("x = 1\n\nraise ValueError('on\\npurpose')\n", "line 3", "ValueError: on purpose"),
    "exits": ("import sys\nsys.exit(0)\n", "line 2", "SystemExit"),
    "no description": (GOOD.replace("DESCRIPTION", "TITLE"), "DESCRIPTION", "nothing"),
    "no build": (GOOD.replace("def build", "def make"), "build", "nothing"),
    "build raises": (GOOD.replace("torch.manual_seed(seed)", "seed / 0"), "line 18", "ZeroDivis"),
    "build returns": (GOOD.replace("return Model(), ", "return "), "build", "a Tensor first"),
    "one result": (GOOD.replace("return Model(), (torch", "return Model() #"), "build", "a Model"),
    "inputs": (GOOD.replace("(torch.randn(3, WIDTH), torch.arange(3))", "3"), "build", "a int"),
    "forward": (
        GOOD.replace("randn(3, WIDTH)", "randn(3, 7)"),
        "line 14",
        "RuntimeError: mat1 and mat2",
    ),
    "complex": (GOOD.replace("torch.arange(3)", "torch.ones(3) * 1j"), "inputs", "complex64"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_code_is_one_line_with_its_file_and_line(tmp_path: Path, name: str) -> None:
    text, field, value = BROKEN[name]
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        capture_workload(path, seed=1)
    assert caught.value.field == field
    message = str(caught.value)
    assert value in message
    assert message.isprintable()
    assert message.startswith(("mine: ", f"{path}: "))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda file: None, "No such file"),
        (os.mkfifo, "a FIFO"),
        (lambda file: file.mkdir(), "a folder"),
        (lambda file: file.symlink_to("/dev/zero"), "a device"),
    ],
)
def test_what_is_no_file_is_named(
    tmp_path: Path, make: Callable[[Path], object], text: str
) -> None:
    make(tmp_path / "w.py")
    with pytest.raises(InputError, match=text):
        load_workload(str(tmp_path / "w.py"))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"dtype": "int8"}, "DTYPE"),
        ({"dtype": ""}, "DTYPE"),
        ({"device": "cuda"}, "DEVICE"),
        ({"device": "npu"}, "DEVICE"),
    ],
)
def test_an_unknown_type_or_device_is_refused(options: dict[str, str], field: str) -> None:
    with pytest.raises(InputError) as caught:
        capture_workload("mlp", **options)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_a_file_whose_name_is_no_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="letters, digits"):
        capture_workload(write(tmp_path, GOOD, "a b.py"))


def test_the_command_line_takes_file_type_and_device(tmp_path: Path) -> None:
    path, out = write(tmp_path, GOOD), str(tmp_path / "capsule")
    arguments = ["capture", path, "--dtype", "float16", "--device", "cpu", "--out", out]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 0, done.output
    assert "mine_float16" in done.output
    assert (tmp_path / "capsule" / "capsule.json").is_file()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors.index.json", "[" * 100_000),
        ("config.json", "[" * 100_000),
        ("config.json", '{"num_hidden_layers": "many"}'),
        ("config.json", "{"),
    ],
)
def test_a_damaged_checkpoint_of_json_is_named(tmp_path: Path, file: str, content: str) -> None:
    (tmp_path / file).write_text(content)
    with pytest.raises(InputError, match=file):
        load_workload("qwen_layer").build(0, tmp_path)


@pytest.mark.parametrize(
    "file", ["model.safetensors", "model.safetensors.index.json", "config.json"]
)
def test_a_fifo_in_a_checkpoint_does_not_hang(tmp_path: Path, file: str) -> None:
    os.mkfifo(tmp_path / file)
    with pytest.raises(InputError, match="a FIFO"):
        load_workload("qwen_layer").build(0, tmp_path)
