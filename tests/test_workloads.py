# SPDX-License-Identifier: Apache-2.0
"""The workloads: found by name, offline, seeded, with the matmuls that they are known for."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import Qwen2ForCausalLM

from driver.capture import Capsule, TensorRef
from driver.errors import InputError
from regress import capsules
from regress.capsules import _fingerprint
from workloads import available, capture_workload, load_workload
from workloads.lenet import TRAINING, digits, train

MATMULS = ("aten.mm.default", "aten.addmm.default", "aten.bmm.default", "aten.linear.default")


def matmul_shapes(capsule: Capsule) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """Op, shape of A and shape of B of each matmul, in order."""
    found = []
    for op in capsule.ops:
        if op.op in MATMULS:
            refs = [value for value in op.inputs if isinstance(value, TensorRef)]
            found.append((op.op.split(".")[1], refs[-2].sizes, refs[-1].sizes))
    return found


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a workload asked for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_ours_are_there_and_an_unknown_one_lists_all() -> None:
    assert {"lenet", "mlp", "qwen_layer"} <= set(available())
    with pytest.raises(InputError, match=", ".join(available())) as caught:
        load_workload("../secrets")
    assert caught.value.value == "../secrets"


def test_mlp_is_three_addmms() -> None:
    assert matmul_shapes(capture_workload("mlp")) == [
        ("addmm", (16, 64), (64, 128)),
        ("addmm", (16, 128), (128, 64)),
        ("addmm", (16, 64), (64, 10)),
    ]


def test_lenet_is_two_convolutions_and_three_addmms() -> None:
    capsule = capture_workload("lenet")
    assert [op.module for op in capsule.ops if "convolution" in op.op] == ["conv1", "conv2"]
    assert matmul_shapes(capsule) == [
        ("addmm", (64, 400), (400, 120)),
        ("addmm", (64, 120), (120, 84)),
        ("addmm", (64, 84), (84, 10)),
    ]


def test_lenet_has_learnt_digits_that_it_was_not_shown() -> None:
    images, labels = digits()
    with torch.no_grad():
        right = train(3)(images[TRAINING:]).argmax(1) == labels[TRAINING:]
    assert right.numel() == 360
    assert right.float().mean() > 0.85


def test_a_variant_is_its_file_with_options() -> None:
    short, long = (load_workload(name) for name in ("qwen_layer", "qwen_layer_bf16_32"))
    assert (short.build(0, None)[1][0].shape, short.build(0, None)[1][0].dtype) == (
        (1, 16, 896),
        torch.float32,
    )
    module, (hidden,) = long.build(0, None)
    assert (hidden.shape, hidden.dtype) == ((1, 32, 896), torch.bfloat16)
    assert {p.dtype for p in module.parameters()} == {torch.bfloat16}
    assert long.description.endswith("dtype bfloat16, tokens 32")


@pytest.mark.usefixtures("no_network")
def test_qwen_chooses_the_tokens_that_transformers_own_generation_does() -> None:
    """Two layers of the real sizes: prefill, cache and step in one capture."""
    module, (prompt,) = load_workload("qwen_small").build(5, None)
    model = Qwen2ForCausalLM(module.model.config)
    model.model, model.lm_head = module.model, module.lm_head
    with torch.no_grad():
        chosen = module(prompt)
        expected = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=2, do_sample=False,
            eos_token_id=None, pad_token_id=0,
        )  # fmt: skip
    assert chosen.shape == (1, 2)
    assert torch.equal(chosen, expected[:, prompt.shape[1] :])


@pytest.mark.usefixtures("no_network")
def test_qwen_layer_has_the_matmuls_of_qwen2_5_0_5b() -> None:
    capsule = capture_workload("qwen_layer")
    assert matmul_shapes(capsule) == [
        ("addmm", (16, 896), (896, 896)),
        ("addmm", (16, 896), (896, 128)),
        ("addmm", (16, 896), (896, 128)),
        ("bmm", (14, 16, 64), (14, 64, 16)),
        ("bmm", (14, 16, 16), (14, 16, 64)),
        ("mm", (16, 896), (896, 896)),
        ("mm", (16, 896), (896, 4864)),
        ("mm", (16, 896), (896, 4864)),
        ("mm", (16, 4864), (4864, 896)),
    ]
    query = next(op for op in capsule.ops if op.op == "aten.addmm.default")
    assert query.module == "model.layers.0.self_attn.q_proj"
    assert query.source.startswith("transformers/models/qwen2/modeling_qwen2.py:")


def test_qwen_layers_input_is_independent_of_its_weights() -> None:
    """Two generators of one seed once made token 0 a multiple of the first row of q_proj."""
    module, (hidden,) = load_workload("qwen_layer").build(0, None)
    compared = 0
    for parameter in module.parameters():
        if parameter.dim() == 2 and parameter.shape[1] == hidden.shape[2]:
            cosine = (
                torch.nn.functional.normalize(hidden[0])
                @ torch.nn.functional.normalize(parameter.detach()).t()
            )
            assert cosine.abs().max() < 0.25
            compared += cosine.numel()
    assert compared == 16 * (896 + 128 + 128 + 896 + 4864 + 4864)


@pytest.mark.parametrize("name", ["lenet", "mlp"])
def test_seed_decides_the_capsule(name: str) -> None:
    hashes = [capture_workload(name, seed=seed).hash for seed in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]


def write_checkpoint(folder: Path, name: str, *, sharded: bool) -> dict[str, torch.Tensor]:
    module, _ = load_workload(name).build(77, None)
    tensors = {key: value.detach().clone() for key, value in module.named_parameters()}
    folder.mkdir()
    if not sharded:
        save_file(tensors, folder / "model.safetensors")
        return tensors
    weight_map = {}
    for index, key in enumerate(tensors):
        file = f"model-{index % 2}.safetensors"
        weight_map[key] = file
    for file in set(weight_map.values()):
        save_file({k: tensors[k] for k, f in weight_map.items() if f == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return tensors


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("name", ["mlp", "lenet", "qwen_layer"])
def test_checkpoint_folder_replaces_the_random_weights(
    tmp_path: Path, name: str, sharded: bool
) -> None:
    tensors = write_checkpoint(tmp_path / "ckpt", name, sharded=sharded)
    module, _ = load_workload(name).build(0, tmp_path / "ckpt")
    loaded = dict(module.named_parameters())
    assert loaded.keys() == tensors.keys()
    assert all(torch.equal(loaded[key], value) for key, value in tensors.items())


def test_no_kept_capsule_stands_for_a_checkpoint_without_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capsules, "KEPT", tmp_path / "kept")
    notes: list[str] = []
    capsules.kept_capsules(["mlp"], 1, notes.append)
    (tmp_path / "empty").mkdir()
    for folder in ("empty", "missing"):
        with pytest.raises(InputError, match=str(tmp_path / folder)):
            capsules.kept_capsules(["mlp"], 1, notes.append, tmp_path / folder)


def remove_tensor(folder: Path) -> None:
    save_file({"0.weight": torch.zeros(128, 64)}, folder / "model.safetensors")


def reshape_tensor(folder: Path) -> None:
    save_file({"0.weight": torch.zeros(64, 128)}, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        (lambda f: (f / "model.safetensors").unlink(), "file"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\x10"), "file"),
        (lambda f: (f / "model.safetensors.index.json").write_text("{}"), "weight_map"),
        (remove_tensor, "0.bias"),
        (reshape_tensor, "0.weight"),
    ],
)
def test_damaged_checkpoint_is_named(
    tmp_path: Path, damage: Callable[[Path], object], field: str
) -> None:
    write_checkpoint(tmp_path / "ckpt", "mlp", sharded=False)
    damage(tmp_path / "ckpt")
    with pytest.raises(InputError) as caught:
        load_workload("mlp").build(0, tmp_path / "ckpt")
    assert caught.value.field == field and str(tmp_path / "ckpt") in str(caught.value)


def test_missing_checkpoint_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        load_workload("mlp").build(0, tmp_path / "absent")


def test_a_kept_capsule_is_of_one_checkpoint_in_one_state(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"1")
    before = _fingerprint(tmp_path)
    assert before == _fingerprint(tmp_path) != _fingerprint()
    (tmp_path / "model.safetensors").write_bytes(b"12")
    assert _fingerprint(tmp_path) != before
