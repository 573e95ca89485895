# SPDX-License-Identifier: Apache-2.0
"""Bugs planted in the bench itself that no other test notices: what a row and a digest say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from judged_call import scratch_in

from driver.backend.shared_memory import FaultRange
from driver.config import load_config
from driver.isa import DType, ErrorCode, Opcode
from driver.lower.operands import OperandEncoder
from driver.results import OpRow, RunSpec
from driver.runtime import Buffer, TensorView
from golden import judge as judges
from golden.backend import CmodelBackend
from golden.bounds.matmul import product_bounds
from golden.calls import OpCall
from golden.formats import Bits
from golden.judge import judge
from golden.tensors import tensor_bits
from tb.ops.case import Case
from tb.ops.placing import outside
from tb.ops.session import Session

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
CONFIG = load_config(CONFIG_FILE, "small")


class Device(CmodelBackend):
    """Stands in for an RTL; spoils one byte, `offset` from the destination of vector commands."""

    cycle = 0
    offset: int | None = None

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        code = super()._execute(packet, seq)
        if self.offset is not None and int.from_bytes(packet[:4], "little") == Opcode.VECTOR:
            self.memory[int.from_bytes(packet[24:32], "little") + self.offset] ^= 0x40
        return code

    def last_writer(self, address: int) -> int | None:
        return 7


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device(CONFIG)
    monkeypatch.setattr(Session, "_open_rtl", lambda *_: made)
    return made


def session(out: Path, backend: Literal["cmodel", "rtl"] = "rtl") -> Session:
    spec = RunSpec(
        test="smoke", config="small", config_file=CONFIG_FILE, seed=1, backend=backend,
        waves="none", out=out, capsules={}, op_filter=None, timeout_s=60.0,
    )  # fmt: skip
    return Session(spec, CONFIG)


def case(index: int = 0) -> Case:
    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(3))
    return Case(index, "aten.add.Tensor", (x, 1.5), "test")


def test_a_row_counts_the_elements_that_differ(tmp_path: Path, device: Device) -> None:
    device.offset = 9
    row = session(tmp_path).run(case())
    assert isinstance(row, OpRow)
    assert (row.status, row.rtl_vs_cmodel_mismatches, row.elements_compared) == ("fail", 1, 40)


def test_the_error_of_a_row_is_that_of_the_rtl(tmp_path: Path, device: Device) -> None:
    sound = session(tmp_path).run(case())
    device.offset = 2  # the uppermost bit of the first mantissa
    wrong = session(tmp_path).run(case())
    assert isinstance(sound, OpRow)
    assert isinstance(wrong, OpRow)
    assert sound.torch_max_error is not None
    assert wrong.torch_max_error is not None
    assert wrong.torch_bound is not None
    assert sound.torch_max_error < wrong.torch_bound < wrong.torch_max_error


def test_a_fault_of_the_rtl_alone_is_the_rtls(tmp_path: Path, device: Device) -> None:
    made = session(tmp_path)
    device.set_faults([FaultRange(CONFIG.memory.base + (64 << 20), CONFIG.memory.limit)])
    row = made.run(case())
    assert isinstance(row, OpRow)
    assert (row.status, row.blame) == ("fail", "rtl")
    assert row.failure is not None and "rtl: device fault BUS_" in row.failure.detail


def test_the_digest_is_of_the_rtls_bits(tmp_path: Path, device: Device) -> None:
    digests = []
    for offset in (None, 9, None):
        device.offset = offset
        made = session(tmp_path)
        made.run(case())
        digests.append(made.digest)
    assert digests[0] == digests[2] != digests[1]


def test_a_page_that_the_rtl_alone_wrote_is_compared(tmp_path: Path, device: Device) -> None:
    made = session(tmp_path)
    pages = device.dirty_pages
    far = CONFIG.memory.limit - 4096
    device.dirty_pages = lambda: sorted({*pages(), far})  # type: ignore[method-assign]
    device.memory[far - CONFIG.memory.base] ^= 1
    row = made.run(case())
    assert isinstance(row, OpRow) and row.failure is not None
    assert f"outside the result, first at {far:#x}" in row.failure.detail


def test_a_byte_between_the_elements_of_a_result_is_no_element() -> None:
    view = TensorView(Buffer(0, base=64), 0, DType.FP32, (3, 2), (4, 1))
    near = np.arange(60, 64 + 48, dtype=np.int64)
    inside = {64 + 16 * row + byte for row in range(3) for byte in range(8)}
    assert outside(near, [view]).tolist() == [at for at in near.tolist() if at not in inside]


def test_a_reference_that_breaks_its_own_bound_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    call = OpCall("aten.exp.default", (torch.linspace(0, 1, 9),))
    right = tensor_bits(torch.exp(call.args[0]))
    assert judge(call, [right], None, 4).ok
    monkeypatch.setattr(judges, "answers", lambda call: (torch.exp(call.args[0]) * 1.001,))
    verdict = judge(call, [right], None, 4)
    assert (verdict.blame, verdict.comparison.npu_violations) == ("precision", 0)


def test_an_operand_that_a_lowering_overwrites_is_its_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch_in(monkeypatch, "aten.add.Tensor", lambda x: x.sliced(0, 2, 1))
    row = session(tmp_path, "cmodel").run(case())
    assert isinstance(row, OpRow)
    assert (row.status, row.blame) == ("fail", "lowering")
    assert row.failure is not None
    assert row.failure.detail.startswith("memory is overwritten where no result lies, first at")


@pytest.mark.parametrize("backend", ["cmodel", "rtl"])
def test_what_a_lowering_writes_behind_all_tensors_is_its_fault(
    backend: Literal["cmodel", "rtl"],
    tmp_path: Path,
    device: Device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both devices run the same packet, and no tensor lies there. The lowering would refuse it."""
    monkeypatch.setattr(OperandEncoder, "check", lambda *_: None)
    scratch_in(
        monkeypatch, "aten.add.Tensor", lambda x: replace(x, offset_bytes=4096, sizes=(1, 1))
    )
    row = session(tmp_path, backend).run(case())
    assert isinstance(row, OpRow)
    assert (row.status, row.blame) == ("fail", "lowering")
    assert not row.rtl_vs_cmodel_mismatches
    assert row.failure is not None
    assert row.failure.detail.startswith("memory is overwritten")


def test_a_result_that_no_rule_speaks_of_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    call = OpCall("aten.exp.default", (torch.linspace(0, 1, 9),))
    monkeypatch.setitem(judges.RULES, "exp", lambda subject: (None,))
    verdict = judge(call, [tensor_bits(torch.exp(call.args[0]))], None, 4)
    assert verdict.failure is not None
    assert "says nothing" in verdict.failure.detail


def test_in_place_only_the_elements_of_the_view_may_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Case(0, "aten.add_.Tensor", (torch.zeros(5, 8)[:, :6], 1.5), "test")
    sound = session(tmp_path, "cmodel").run(part)
    assert isinstance(sound, OpRow)
    assert sound.status == "pass"
    scratch_in(
        monkeypatch, "aten.add_.Tensor", lambda x: replace(x, offset_bytes=6 * 4, sizes=(1, 1))
    )
    row = session(tmp_path, "cmodel").run(part)
    assert isinstance(row, OpRow)
    assert row.failure is not None
    assert row.failure.detail.startswith("memory is overwritten")


def test_one_gross_element_makes_it_a_matter_of_packets() -> None:
    x = torch.arange(1.0, 9.0, dtype=torch.bfloat16)
    call = OpCall("aten.exp.default", (x,))
    near, far = (tensor_bits(torch.exp(x)) for _ in range(2))
    near[2] += 4  # some units in the last place, which may be a rounding
    far[2] += 4
    far[5] += 400
    for bits, blame, element in ((near, "precision", 2), (far, "lowering", 5)):
        verdict = judge(call, [bits], None, 4)
        assert verdict.failure is not None
        assert (verdict.blame, verdict.failure.element) == (blame, (element,))


@pytest.mark.parametrize("output", [0, 1])
def test_every_output_is_judged(output: int) -> None:
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    call = OpCall("aten.max.dim", (x, 1))
    right: list[Bits | None] = [tensor_bits(t) for t in torch.max(x, 1)]
    assert judge(call, right, right, 4).ok
    assert judge(call, right, right, 4).elements_compared == 8
    wrong = list(right)
    spoilt = right[output]
    assert spoilt is not None
    wrong[output] = spoilt ^ np.array(1, spoilt.dtype)
    assert not judge(call, wrong, None, 4).ok
    assert not judge(call, right, wrong, 4).ok


def test_a_nan_that_is_required_is_not_any_value() -> None:
    call = OpCall("aten.mm.default", (torch.tensor([[np.nan]]), torch.tensor([[1.0]])))
    assert call.product is not None
    limits = product_bounds(call.product)
    assert limits.npu.admits(np.array([[[np.nan]]])).all()
    assert not limits.npu.admits(np.array([[[1.0]]])).any()
