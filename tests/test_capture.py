# SPDX-License-Identifier: Apache-2.0
"""What `capture` records: ops, views, sources, constants; and that it leaves nothing behind."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from driver.capture import Capsule, Constant, Op, TensorRef, as_tensor, capture
from driver.capture.npu_ops import int4_weights
from driver.capture.tensors import to_torch
from driver.errors import InputError


class Block(torch.nn.Module):
    """Linear, in-place, broadcast, constant and composite calls in one small model."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = torch.nn.Linear(6, 4)
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.inner(self.proj(x))
        hidden.add_(1.0)
        mask = torch.full((4, 4), float("-inf")).triu(1)
        scores = torch.softmax(hidden @ hidden.transpose(-1, -2) + mask, -1)
        return torch.cat([scores, hidden], -1).to(torch.float16)


@pytest.fixture(scope="module")
def block() -> Capsule:
    torch.manual_seed(1)
    return capture(Block(), torch.randn(2, 4, 6), name="block", seed=3)


def ops_named(capsule: Capsule, name: str) -> list[Op]:
    return [op for op in capsule.ops if op.op == name]


def tensors(op: Op) -> Iterator[TensorRef]:
    return (value for value in op.inputs if isinstance(value, TensorRef))


def test_progress_hears_of_every_recorded_op() -> None:
    heard: list[int] = []
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    found = capture(model, torch.ones(1, 3), name="m", progress=lambda: heard.append(len(heard)))
    assert len(heard) == len(found.ops) > 1


def test_linear_is_an_addmm_of_the_parameters(block: Capsule) -> None:
    (op,) = ops_named(block, "aten.addmm.default")
    assert op.module == "proj"
    parameters = [block.document.storages[ref.storage].parameter for ref in tensors(op)]
    assert parameters == ["proj.bias", None, "proj.weight"]
    weight = list(tensors(op))[2]
    assert (weight.sizes, weight.strides) == ((6, 4), (1, 6))
    assert not weight.is_dense


def test_source_is_the_users_line_relative_to_its_package(block: Capsule) -> None:
    first_line = Block.forward.__code__.co_firstlineno
    sources = {op.source for op in block.ops}
    assert sources == {
        f"{__name__.replace('.', '/')}.py:{first_line + offset}" for offset in (1, 2, 3, 4, 5)
    }


def test_source_of_torchs_own_module_is_torchs_line() -> None:
    capsule = capture(torch.nn.Linear(2, 2), torch.ones(1, 2), name="plain")
    assert {op.source.split(":")[0] for op in capsule.ops} == {"torch/nn/modules/linear.py"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "a b"}, "name: got 'a b', expected text that matches"),
        ({"name": "x", "seed": -1}, "seed: got -1, expected greater than or equal to 0"),
        ({"name": "x", "threads": 0}, "threads: got 0, expected greater than 0"),
    ],
)
def test_what_is_no_name_seed_or_thread_count_is_refused_first(
    given: dict[str, Any], said: str
) -> None:
    ran: list[bool] = []
    model = torch.nn.Identity()
    model.register_forward_hook(lambda *_: ran.append(True))
    with pytest.raises(InputError, match=f"capture: {said}"):
        capture(model, torch.ones(1), **given)
    assert not ran


def test_module_path_is_the_innermost_module(block: Capsule) -> None:
    assert {op.module for op in block.ops} == {"", "proj", "inner.0", "inner.1"}
    assert ops_named(block, "aten.relu.default")[0].module == "inner.1"


def test_module_path_survives_an_error_that_the_model_handles() -> None:
    class Refuses(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("on purpose")

    class Handles(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Refuses(), torch.nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                return self.first(x)
            except ValueError:
                return self.second(x) + 1

    capsule = capture(Handles(), torch.ones(2), name="handles")
    assert [op.module for op in capsule.ops] == ["second", ""]


def test_in_place_op_keeps_what_it_read_apart_from_what_it_wrote(block: Capsule) -> None:
    (op,) = ops_named(block, "aten.add_.Tensor")
    before, after = next(tensors(op)), op.outputs[0]
    assert after is not None and before.storage != after.storage and not op.view
    assert torch.equal(as_tensor(block, before) + 1, as_tensor(block, after))


def test_view_shares_its_storage(block: Capsule) -> None:
    views = [op for op in block.ops if op.view]
    assert {"aten.t.default", "aten.transpose.int", "aten._unsafe_view.default"} <= {
        op.op for op in views
    }
    for op in views:
        assert op.outputs[0] is not None
        assert op.outputs[0].storage == next(tensors(op)).storage


def test_buffers_tell_aliases_from_equal_bytes() -> None:
    class Cache(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            first, second = torch.zeros(3), torch.zeros(3)
            first[1:].copy_(x)
            return first + second

    capsule = capture(Cache(), torch.ones(2), name="cache")
    made = [op.outputs[0] for op in ops_named(capsule, "aten.zeros.default")]
    (copy,) = ops_named(capsule, "aten.copy_.default")
    added = list(tensors(ops_named(capsule, "aten.add.Tensor")[0]))
    assert made[0] is not None and made[1] is not None and copy.outputs[0] is not None
    assert made[0].storage == made[1].storage and made[0].buffer != made[1].buffer
    assert {made[0].buffer} == {copy.outputs[0].buffer, added[0].buffer}
    assert made[0].storage != added[0].storage and made[1].buffer == added[1].buffer


def test_a_buffer_that_died_lends_its_number_to_no_other() -> None:
    class Many(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(50):
                x = x + 1
            return x

    capsule = capture(Many(), torch.ones(64), name="many")
    numbers = [op.outputs[0].buffer for op in capsule.ops if op.outputs[0] is not None]
    assert len(set(numbers)) == 50


def test_a_parameter_that_changes_during_the_run_is_recorded_anew() -> None:
    class Learns(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            before = x * self.weight
            self.weight.add_(1)
            return before + x * self.weight

    capsule = capture(Learns(), torch.ones(2), name="learns")
    first, second = ops_named(capsule, "aten.mul.Tensor")
    weights = [list(tensors(op))[1] for op in (first, second)]
    assert [as_tensor(capsule, ref).tolist() for ref in weights] == [[1, 1], [2, 2]]
    assert weights[0].buffer == weights[1].buffer


def test_broadcast_operand_stays_a_view_of_its_one_copy() -> None:
    class Broadcast(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.bmm(x.expand(3, 2, 4), y)

    capsule = capture(Broadcast(), (torch.randn(1, 2, 4), torch.randn(3, 4, 2)), name="broadcast")
    (op,) = ops_named(capsule, "aten.bmm.default")
    operand = next(tensors(op))
    assert (operand.sizes, operand.strides) == ((3, 2, 4), (0, 4, 1))
    assert capsule.document.storages[operand.storage].size_bytes == 2 * 4 * 4


def test_slice_keeps_offset_and_strides() -> None:
    class Slice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.mm(x[1:3, 2:8:2], x[:3, :2])

    x = torch.arange(32.0).reshape(4, 8)
    (op,) = ops_named(capsule := capture(Slice(), x, name="slice"), "aten.mm.default")
    left, right = tensors(op)
    assert (left.sizes, left.strides, left.offset) == ((2, 3), (8, 2), 10)
    assert left.storage == right.storage
    assert torch.equal(torch.from_numpy(capsule.array(left).copy()), x[1:3, 2:8:2])


def test_constants_survive(block: Capsule) -> None:
    (full,) = ops_named(block, "aten.full.default")
    assert full.inputs == ((4, 4), Constant(kind="float", value="-inf"))
    assert full.kwargs["device"] == Constant(kind="device", value="cpu")
    (cast,) = ops_named(block, "aten._to_copy.default")
    assert cast.kwargs == {"dtype": Constant(kind="dtype", value="float16")}


def test_every_recorded_op_repeats_to_the_same_bits(block: Capsule) -> None:
    compared = 0
    for op in block.ops:
        namespace, name, overload = op.op.split(".")
        call = getattr(getattr(getattr(torch.ops, namespace), name), overload)
        arguments = [to_torch(block, value) for value in op.inputs]
        named = {key: to_torch(block, value) for key, value in op.kwargs.items()}
        result = call(*arguments, **named)
        assert op.outputs[0] is not None
        assert result.stride() == op.outputs[0].strides
        assert torch.equal(result, as_tensor(block, op.outputs[0])), op.op
        compared += result.numel()
    assert compared == sum(op.outputs[0].numel for op in block.ops if op.outputs[0] is not None)


def test_outputs_of_the_model_are_recorded(block: Capsule) -> None:
    torch.manual_seed(1)
    model, x = Block(), torch.randn(2, 4, 6)
    assert torch.equal(as_tensor(block, block.document.inputs[0]), x)
    (output,) = block.document.outputs
    assert torch.equal(as_tensor(block, output), model(x)) and output.numel == 64


def test_inference_mode_inside_the_model_hides_no_matmul() -> None:
    class Frozen(torch.nn.Module):
        @torch.inference_mode()
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.matmul(x, x.transpose(-1, -2)).chunk(2)[0]

    capsule = capture(Frozen(), torch.randn(2, 3, 3), name="frozen")
    names = [op.op for op in capsule.ops]
    assert "aten.bmm.default" in names and "aten.matmul.default" not in names


def test_fused_attention_is_taken_apart() -> None:
    class Attention(torch.nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.scaled_dot_product_attention(q, q, q)

    capsule = capture(Attention(), torch.randn(1, 2, 4, 8), name="sdpa")
    assert len(ops_named(capsule, "aten.bmm.default")) == 2


def test_equal_seeds_give_equal_dropout_and_the_callers_generator_goes_on() -> None:
    model = torch.nn.Dropout(0.5).train()
    torch.manual_seed(7)
    expected_next = torch.rand(3)
    torch.manual_seed(7)
    hashes = [capture(model, torch.ones(64), name="d", seed=s).hash for s in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert torch.equal(torch.rand(3), expected_next)


def test_equal_seeds_give_equal_random_numbers_of_numpy_and_python() -> None:
    class Drawing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * float(np.random.rand(1)[0]) + random.random()

    hashes = []
    for seed in (1, 1, 2):
        hashes.append(capture(Drawing(), torch.ones(3), name="d", seed=seed).hash)
        np.random.rand(1)
        random.random()
    assert hashes[0] == hashes[1] != hashes[2]


def test_an_output_given_twice_is_two_outputs() -> None:
    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = x + 1
            return y, y

    outputs = capture(Twice(), torch.ones(3), name="twice").document.outputs
    assert len(outputs) == 2 and outputs[0] == outputs[1]


def test_settings_and_hooks_are_gone_afterwards_even_if_the_model_raises() -> None:
    class Broken(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("on purpose")

    model = torch.nn.Sequential(Broken())
    threads = torch.get_num_threads()
    with pytest.raises(RuntimeError, match="on purpose"):
        capture(model, torch.ones(1), name="broken", threads=threads + 1)
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()
    for module in model.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks


def test_uninitialised_memory_does_not_reach_the_hash() -> None:
    class Empty(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            made = torch.empty(1000)
            made[:1] = x
            return made[:1]

    hashes = set()
    for _ in range(3):
        torch.randn(1000).mul_(2)
        hashes.add(capture(Empty(), torch.ones(1), name="empty").hash)
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("bad", "value"),
    [
        (torch.ones(2, dtype=torch.complex64), "torch.complex64"),
        (torch.eye(2).to_sparse(), "torch.sparse_coo tensor on cpu"),
        (torch.ones(2, device="meta"), "torch.strided tensor on meta"),
    ],
)
def test_tensor_that_no_capsule_holds_is_refused(bad: torch.Tensor, value: str) -> None:
    with pytest.raises(InputError) as caught:
        capture(torch.nn.Identity(), bad, name="bad")
    assert (caught.value.file, caught.value.value) == ("bad", value)


def test_an_op_that_makes_a_sparse_tensor_is_refused_by_name() -> None:
    class Sparse(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to_sparse().to_dense() + 1

    with pytest.raises(
        InputError, match=r"_to_sparse.*sparse_coo tensor on cpu.*expected a plain strided"
    ):
        capture(Sparse(), torch.ones(3), name="sparse")


def test_an_op_of_ours_is_recorded_whole_and_means_what_it_says() -> None:
    class Quantized(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scale, zero = torch.tensor([0.5, 0.25]), torch.tensor([1, 0])
            codes = torch.ops.npu.quantize(x, scale, zero, 1)
            return torch.ops.npu.dequantize(codes, scale, zero, 1)

    x = torch.tensor([[0.25, 100.0], [0.75, -0.125], [-200.0, 0.5]])
    capsule = capture(Quantized(), x, name="q")
    names = [op.op for op in capsule.ops if op.op.startswith("npu.")]
    assert names == ["npu.quantize.default", "npu.dequantize.default"]
    codes = ops_named(capsule, "npu.quantize.default")[0].outputs[0]
    assert codes is not None
    assert as_tensor(capsule, codes).tolist() == [[1, 127], [3, 0], [-128, 2]]
    assert as_tensor(capsule, capsule.document.outputs[0]).tolist() == [
        [0.0, 31.75],
        [1.0, 0.0],
        [-64.5, 0.5],
    ]


def test_int4_weights_come_out_of_their_nibbles() -> None:
    weight = torch.tensor([[0x7A19, -0x7FFFFF08], [0x8, 0x9]], dtype=torch.int32)
    scales = torch.tensor([[0.5, 2.0], [1.0, 0.25]], dtype=torch.float16)
    zeros = [[-4.0, -16.0]] * 3
    dense = torch.tensor([[0.5, 0.0], [-3.5, 14.0], [1.0, -16.0], [-0.5, -16.0], *zeros])
    wide = int4_weights(weight, scales, 8).float()
    assert wide.shape == (16, 2)
    assert torch.equal(wide[:7], dense)
    assert wide[7:9].tolist() == [[-4.0, 0.0], [0.0, 0.25]]
    x = torch.arange(1.0, 10.0, dtype=torch.float16)[None]
    made = torch.ops.npu.int4_mm(x, weight, scales, 8)
    dense = wide[:9]
    assert made.dtype == torch.float16
    assert torch.equal(made.float(), x.float() @ dense)


def test_reading_a_capsule_does_not_import_torch() -> None:
    code = "import sys, driver.capture; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
