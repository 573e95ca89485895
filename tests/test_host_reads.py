# SPDX-License-Identifier: Apache-2.0
"""`.item()` and `if tensor:`: the host reads an element of the NPU's memory, and it is judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from driver.capture import Capsule, TensorRef, as_tensor, capture, save_capsule
from driver.capture.format import HOST_READ
from driver.config import load_config
from driver.errors import InputError
from driver.results import Mode, OpEvent, RunResult, RunSpec
from golden.backend import CmodelBackend
from regress.run_report.text import ledger_line
from tb.ops.pair import DevicePair
from tb.ops.runner import run_ops
from tb.tests import replay

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"


class Branches(torch.nn.Module):
    """Reads a truth value, a count and a scale; what follows depends on each."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if (x > 0).any():
            x = x * 2
        for _ in range(int(x[:, :1].long().amax().item())):
            x = x + 1
        return x * float(x[0, 0].to(torch.bfloat16).item())


def model() -> Capsule:
    return capture(Branches(), torch.tensor([[1.5, -2.0], [0.5, 3.0]]), name="branches")


class Quiet:
    def plan(self, ops: int) -> None: ...

    def op(self, event: OpEvent) -> None: ...

    def note(self, text: str) -> None: ...


def run(folder: Path, mode: Mode) -> RunResult:
    save_capsule(model(), folder / "capsule")
    spec = RunSpec(
        test="replay", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=folder, capsules={"capsule": folder / "capsule"}, op_filter=None,
        timeout_s=60.0, modes=(mode,),
    )  # fmt: skip
    return run_ops(spec, load_config(CONFIG_FILE, "small"), replay, Quiet())


def test_a_read_is_recorded_with_the_tensor_that_was_read() -> None:
    reads = [op for op in model().ops if op.op == HOST_READ]
    assert [op.inputs for op in reads] == [op.outputs for op in reads]
    (values,) = zip(*(op.inputs for op in reads), strict=True)
    assert [ref.dtype for ref in values if isinstance(ref, TensorRef)] == [
        "bool", "int64", "bfloat16",
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["isolated", "chained"])
def test_reads_are_compared_and_stand_in_the_ledger_as_such(tmp_path: Path, mode: Mode) -> None:
    result = run(tmp_path, mode)
    reads = [row for row in result.ops if row.op == HOST_READ]
    assert [row.elements_compared for row in reads] == [1, 1, 1]
    assert {row.status for row in result.ops} == {"pass"}
    sites = {row.where: row.count for row in result.ledger if row.op == HOST_READ}
    assert sites == {"host": 3}
    ran = len(result.ops) - 3
    assert ledger_line(result).startswith(f"ledger: {ran} of {ran} ops on cmodel, 100.0%; 3 reads")


def test_a_read_of_another_value_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device whose memory does not hold what was written there."""
    write = DevicePair.write

    def damaged(pair: DevicePair, address: int, data: object) -> None:
        write(pair, address, data)  # type: ignore[arg-type]
        backend = pair._cmodel
        assert isinstance(backend, CmodelBackend)
        backend.memory[address - pair._base] ^= 1

    monkeypatch.setattr(DevicePair, "write", damaged)
    result = run(tmp_path, "isolated")
    assert {row.status for row in result.ops if row.op == HOST_READ} == {"fail"}


class ReadsWhole(torch.nn.Module):
    """Takes lists and arrays of values; what follows depends on each."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for count in x.long().sum(1).tolist():
            x = x * count
        return x + float((x * 2).numpy()[1, 0]) + float(np.asarray(x[0])[1])


def test_lists_and_arrays_are_recorded_element_by_element() -> None:
    """Their values became numbers of the capsule without a trace."""
    x = torch.tensor([[1.5, -2.0], [0.5, 3.0]])
    capsule = capture(ReadsWhole(), x, name="whole")
    assert [op.op for op in capsule.ops].count(HOST_READ) == 2 + 4 + 2
    assert torch.equal(as_tensor(capsule, capsule.document.outputs[0]), ReadsWhole()(x))


def test_a_list_of_too_many_elements_is_refused() -> None:
    class Reads(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * len(x.tolist())

    with pytest.raises(InputError, match="tolist of 5000 elements, expected at most 4096"):
        capture(Reads(), torch.zeros(5000), name="reads")


def test_a_truth_value_that_an_op_returns_is_recorded_as_a_tensor() -> None:
    class Same(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1 if torch.equal(x, x.clone()) else x

    capsule = capture(Same(), torch.ones(3), name="same")
    (op,) = (op for op in capsule.ops if op.op == "aten.equal.default")
    (output,) = op.outputs
    assert output is not None
    assert (output.dtype, output.sizes) == ("bool", ())
    assert capsule.array(output).item() is True
