# SPDX-License-Identifier: Apache-2.0
"""A capsule on disk: same bytes for the same run, and no damage goes unnoticed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from capsule_host import edit
from safetensors.numpy import load_file, save_file

from driver.capture import Capsule, as_tensor, capture, load_capsule, save_capsule
from driver.errors import InfrastructureError, InputError

FILES = ("capsule.json", "tensors.safetensors")


def make(seed: int = 0) -> Capsule:
    class Mixed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            bits = x.to(torch.bfloat16)
            return bits @ bits.t(), x.to(torch.int8), x > 0, x[:0]

    generator = torch.Generator().manual_seed(seed)
    return capture(Mixed(), torch.randn(3, 5, generator=generator), name="mixed", seed=seed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_capsule(make(), tmp_path / "mixed")
    return tmp_path / "mixed"


def contents(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in FILES]


def refused(folder: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        load_capsule(folder)
    assert "\n" not in str(caught.value)
    return caught.value


def test_round_trip_keeps_document_and_every_byte(folder: Path) -> None:
    original, loaded = make(), load_capsule(folder)
    assert loaded.document == original.document
    assert {type(v) for op in loaded.ops for v in op.inputs} == {
        type(v) for op in original.ops for v in op.inputs
    }
    compared = 0
    for field, ref in loaded.document.refs():
        assert torch.equal(as_tensor(loaded, ref), as_tensor(original, ref)), field
        assert np.array_equal(loaded.array(ref), original.array(ref)), field
        compared += ref.numel
    assert compared == sum(ref.numel for _, ref in original.document.refs()) > 0


def test_equal_runs_give_byte_identical_files(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        save_capsule(make(seed), tmp_path / name)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a")[1] != contents(tmp_path / "c")[1]


def test_another_process_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    here = Path(__file__)
    code = (
        f"import sys, pathlib; sys.path.insert(0, {str(here.parent)!r}); import {here.stem} as t; "
        "t.save_capsule(t.make(), pathlib.Path(sys.argv[1]))"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "other")],
        check=True,
        cwd=here.parents[1],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
    )
    assert contents(tmp_path / "other") == contents(folder)


def test_saving_again_replaces_and_leaves_nothing_else(folder: Path) -> None:
    save_capsule(make(9), folder)
    assert load_capsule(folder).seed == 9
    assert [entry.name for entry in folder.parent.iterdir()] == ["mixed"]


def test_failed_save_leaves_the_former_capsule(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(folder)

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InfrastructureError, match="No space left"):
        save_capsule(make(9), folder)
    assert contents(folder) == before
    assert [entry.name for entry in folder.parent.iterdir()] == ["mixed"]


def test_save_never_replaces_a_folder_that_is_no_capsule(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"something else is there"):
        save_capsule(make(), tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_tensor_file_is_plain_safetensors(folder: Path) -> None:
    capsule = load_capsule(folder)
    first = capsule.document.inputs[0]
    (folder / "copy").mkdir()
    known = {n: s for n, s in capsule.document.storages.items() if s.dtype != "bfloat16"}
    assert first.storage in known
    raw = (folder / "tensors.safetensors").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert header[first.storage]["dtype"] == "F32"
    assert {header[name]["dtype"] for name in capsule.document.storages} >= {"BF16", "I8", "BOOL"}


@pytest.mark.parametrize("name", FILES)
def test_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert refused(folder).file == str(folder / name)


@pytest.mark.parametrize("name", FILES)
def test_any_truncation_is_refused(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    for length in (0, 1, 7, 8, 9, len(whole) // 2, len(whole) - 3):
        (folder / name).write_bytes(whole[:length])
        assert refused(folder).file == str(folder / name)


def test_any_flipped_data_bit_is_refused_and_names_the_storage(folder: Path) -> None:
    file = folder / "tensors.safetensors"
    whole = file.read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    for position in (start, (start + len(whole)) // 2, len(whole) - 1):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        file.write_bytes(damaged)
        error = refused(folder)
        assert re.fullmatch(r"s\d+", error.field) and "sha256" in str(error)


def test_changed_document_without_a_new_hash_is_refused(folder: Path) -> None:
    edit(folder, lambda f: f["ops"][0].update(module="other"), resign=False)
    assert refused(folder).field == "hash"


def bad_view(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda f: f["ops"][0]["inputs"][0].update({key: value})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda f: f.update(colour="red"), "colour"),
        (lambda f: f["ops"][1].update(colour="red"), "ops.1.colour"),
        (lambda f: f.pop("seed"), "seed"),
        (lambda f: f.update(schema_version=2), "schema_version"),
        (lambda f: f.update(seed="0"), "seed"),
        (lambda f: f.update(seed=True), "seed"),
        (lambda f: f["ops"][0].update(op="os.system"), "ops.0.op"),
        (lambda f: f["ops"][0].update(source="/home/me/x.py:1"), "ops.0.source"),
        (lambda f: f["ops"][0].update(index=1), "ops[0].index"),
        (
            lambda f: f["storages"].update({"../../x": f["storages"]["s0"]}),
            "storages.../../x.[key]",
        ),
        (bad_view("storage", "s99"), "ops[0].inputs[0].storage"),
        (bad_view("offset", 1), "ops[0].inputs[0]"),
        (bad_view("sizes", [3, 6]), "ops[0].inputs[0]"),
        (bad_view("strides", [1 << 40, 1]), "ops[0].inputs[0]"),
        (bad_view("strides", [1]), "ops[0].inputs[0].strides"),
        (bad_view("dtype", "float64"), "ops[0].inputs[0]"),
        (lambda f: f["storages"]["s0"].update(size_bytes=56), "inputs[0]"),
    ],
)
def test_wrong_field_is_named(
    folder: Path, change: Callable[[dict[str, Any]], None], field: str
) -> None:
    edit(folder, change)
    error = refused(folder)
    assert (error.file, error.field) == (str(folder / "capsule.json"), field)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("NaN", "ops.0.inputs.1.float"),
        ("1e999", "ops.0.inputs.1.float"),
        ("9" * 5000, "file"),
        ('{"kind": "code", "value": "x"}', "ops.0.inputs.1.constant.kind"),
        ('{"kind": "tensor"}', "ops.0.inputs.1.tensor.storage"),
        ("[[1]]", "ops.0.inputs.1.list.0"),
        ('"\\ud800"', "file"),
    ],
)
def test_argument_that_no_capture_writes_is_refused(tmp_path: Path, value: str, field: str) -> None:
    class Clamp(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.clamp(x, 0.5)

    save_capsule(capture(Clamp(), torch.ones(2), name="clamp"), tmp_path / "clamp")
    file = tmp_path / "clamp" / "capsule.json"
    file.write_text(file.read_text().replace("0.5", value))
    error = refused(tmp_path / "clamp")
    assert (error.file, error.field) == (str(file), field)


def test_folder_in_place_of_the_tensors_is_refused(folder: Path) -> None:
    (folder / "tensors.safetensors").unlink()
    (folder / "tensors.safetensors").mkdir()
    assert refused(folder).file == str(folder / "tensors.safetensors")


def test_negative_stride_is_refused(folder: Path) -> None:
    edit(folder, bad_view("strides", [-1, 1]))
    assert "strides" in refused(folder).field


def test_key_given_twice_is_refused(folder: Path) -> None:
    file = folder / "capsule.json"
    file.write_text(file.read_text().replace('"seed": 0', '"seed": 1, "seed": 0'))
    assert refused(folder).field == "seed"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda t: t.pop("s0"), "s0"),
        (lambda t: t.update({"../../etc/passwd": t["s0"]}), "../../etc/passwd"),
        (lambda t: t.update(s0=t["s0"].view(np.int32)), "s0"),
        (lambda t: t.update(s0=t["s0"].reshape(5, 3)), "s0"),
        (lambda t: t.update(s0=t["s0"][:-1]), "s0"),
    ],
)
def test_wrong_tensor_file_is_named(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], field: str
) -> None:
    folder = tmp_path / "relu"
    save_capsule(capture(torch.nn.ReLU(), torch.randn(3, 5), name="relu"), folder)
    tensors = load_file(folder / "tensors.safetensors")
    change(tensors)
    save_file(tensors, folder / "tensors.safetensors")
    error = refused(folder)
    assert (error.file, error.field) == (str(folder / "tensors.safetensors"), field)


def test_nothing_on_disk_can_name_a_file_to_run(folder: Path) -> None:
    (folder / "capsule.json").write_text("[" * 100_000)
    assert refused(folder).file == str(folder / "capsule.json")
