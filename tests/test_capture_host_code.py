# SPDX-License-Identifier: Apache-2.0
"""Code of the model that is no op: what it makes is taken from the record, and said; what torch
refuses is refused; what one CPU fuses is recorded as what it means."""

from __future__ import annotations

import dataclasses
import random
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from test_host_reads import CONFIG_FILE, Quiet

from driver.capture import Capsule, as_tensor, capture, save_capsule
from driver.config import load_config
from driver.errors import InputError, UnsupportedOp
from driver.results import RunResult, RunSpec
from tb.ops.runner import run_ops
from tb.tests import replay
from workloads import capture_workload

Tensor = torch.Tensor


class Of(torch.nn.Module):
    """A module of a function."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> object:
        return self.function(*args)


def chained(capsule: Capsule, folder: Path) -> RunResult:
    save_capsule(capsule, folder / "capsule")
    spec = RunSpec(
        test="replay", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=folder, capsules={"capsule": folder / "capsule"}, op_filter=None,
        timeout_s=60.0, modes=("chained",),
    )  # fmt: skip
    return run_ops(spec, load_config(CONFIG_FILE, "small"), replay, Quiet())


def frames(x: Tensor) -> Tensor:
    """The read-only operand of an op in place is written by numpy between the ops."""
    frame = np.zeros(4, np.float32)
    shown, state = torch.from_numpy(frame), x + 0
    for step in range(3):
        frame[:] = 100 * (step + 1)
        state.add_(shown)
    return state * 2


def in_a_thread(x: Tensor) -> Tensor:
    found: list[Tensor] = []
    thread = threading.Thread(target=lambda: found.append(torch.exp(x) * 3))
    thread.start()
    thread.join()
    return found[0] + x


def at_the_end(x: Tensor) -> Tensor:
    y = x + 1
    y.numpy()[...] = 7
    return y


@pytest.mark.parametrize(
    ("function", "tensors", "before"),
    [
        (frames, 3, "aten.add_.Tensor"),
        (in_a_thread, 1, "aten.add.Tensor"),
        (at_the_end, 1, "its result"),
    ],
)
def test_what_no_op_made_is_said(
    function: Callable[..., object], tensors: int, before: str, tmp_path: Path
) -> None:
    result = chained(capture(Of(function), torch.rand(4), name="host"), tmp_path)
    assert result.status == "pass"
    (note,) = result.notes
    assert f"wrote {tensors} tensors, {16 * tensors} bytes, that no op made, first before" in note
    assert before in note
    assert all(row.drift is None or row.drift.max_abs < 1e-5 for row in result.ops)


def test_a_model_of_ops_alone_has_no_such_note(tmp_path: Path) -> None:
    def ops(x: Tensor) -> Tensor:
        y = x * torch.tensor(3.0) + torch.arange(4)
        y.add_(x).mul_(2)
        return torch.cat([y, y[:2]])

    assert chained(capture(Of(ops), torch.rand(4), name="ops"), tmp_path).notes == ()


def test_an_op_with_a_kernel_of_its_own_is_recorded_and_refused(tmp_path: Path) -> None:
    @torch.library.custom_op("npu_tests::scaled", mutates_args=())
    def scaled(x: Tensor, factor: float) -> Tensor:
        return torch.from_numpy(x.numpy() * factor)

    capsule = capture(Of(lambda x: scaled(x, 3.0) + 1), torch.rand(4), name="own")
    assert capsule.ops[0].op == "npu_tests.scaled.default"
    with pytest.raises(UnsupportedOp, match=r"npu_tests\.scaled\.default"):
        chained(capsule, tmp_path)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.sqrt(x, out=torch.empty(4, dtype=torch.int64)),
        lambda x: torch.arange(4).rad2deg_(),
        lambda x: torch.arange(4).add_(x),
    ],
)
def test_a_type_that_torch_does_not_convert_is_no_record(call: Callable[..., object]) -> None:
    with pytest.raises(RuntimeError, match="can't be cast"):
        call(torch.rand(4))
    with pytest.raises(RuntimeError, match="can't be cast"):
        capture(Of(call), torch.rand(4), name="cast")


RNN = {"input_size": 4, "hidden_size": 5}
FUSED: dict[str, Callable[[], torch.nn.Module]] = {
    "LSTM": lambda: torch.nn.LSTM(**RNN),
    "LSTM, both directions": lambda: torch.nn.LSTM(**RNN, num_layers=2, bidirectional=True),
    "LSTM without bias": lambda: torch.nn.LSTM(**RNN, bias=False, batch_first=True),
    "attention": lambda: Of(torch.nn.MultiheadAttention(4, 2).eval()),
    "encoder": lambda: torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
}


@pytest.mark.parametrize("name", FUSED)
def test_layers_that_this_cpu_fuses_are_their_definition(name: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = FUSED[name]().eval()
    given = (torch.rand(3, 2, 4),) * (3 if name == "attention" else 1)
    with torch.no_grad():
        eager = torch.utils._pytree.tree_leaves(model(*given))
    capsule = capture(model, given, name="fused")
    for ref, expected in zip(capsule.document.outputs, eager, strict=True):
        torch.testing.assert_close(as_tensor(capsule, ref), expected)
    result = chained(capsule, tmp_path)
    assert (result.status, {row.where for row in result.ops}) == ("pass", {"cmodel"})


@dataclasses.dataclass
class Answer:
    """What torch's pytree does not look into."""

    scores: Tensor


def nested(x: Tensor) -> Tensor:
    return torch.nested.nested_tensor([x, x])


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (nested, "got nested tensor on cpu, expected a plain strided"),
        (torch._neg_view, r"ops\[0\] aten._neg_view.default: got negated tensor"),
        (Answer, "outputs: got a Answer, expected tensors in tuples"),
        (
            lambda x: torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,)),
            "got torch.ops.higher_order.cond, expected ops on tensors",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*nested:UserWarning")
def test_what_has_no_record_is_one_line(function: Callable[..., object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        capture(Of(function), torch.rand(4), name="odd")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_buffers_without_a_place_and_scripted_parts_do_not_matter() -> None:
    class Odd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("sparse", torch.eye(3).to_sparse())
            self.register_buffer("ragged", torch.nested.nested_tensor([torch.ones(2)]))
            self.scripted = torch.jit.script(torch.nn.ReLU())

        def forward(self, x: Tensor) -> Tensor:
            made: Tensor = self.scripted(x + 1)
            return made

    assert len(capture(Odd(), torch.rand(4), name="odd").ops) == 2


def test_a_memory_that_a_parameter_left_gives_no_name_to_the_next() -> None:
    class Moves(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(64))

        def forward(self, x: Tensor) -> Tensor:
            self.w.data = self.w.data * 2.0
            return (x * self.w + 1) * 3

    for _ in range(4):
        storages = capture(Moves(), torch.rand(64), name="moves").document.storages
        assert [name for name, one in storages.items() if one.parameter] == ["s1"]


def test_all_random_numbers_follow_the_seed(tmp_path: Path) -> None:
    file = tmp_path / "distributions.py"
    file.write_text(
        "import random\nimport numpy as np\nimport torch\n"
        'DESCRIPTION = "random in every way"\n'
        "class Model(torch.nn.Linear):\n"
        "    def forward(self, x):\n"
        "        return super().forward(x) * random.random() + float(np.random.rand())\n"
        "def build(seed, checkpoint):\n"
        "    return Model(4, 4), (torch.randn(2, 4),)\n"
    )
    before = random.getstate()
    hashes = [capture_workload(str(file), seed=seed).hash for seed in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert random.getstate() == before
