# SPDX-License-Identifier: Apache-2.0
"""The device pair and the cases that run on it: everything written is compared, nothing drifts."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

import tb.run
from driver.backend.shared_memory import FaultRange
from driver.config import HwConfig, load_config
from driver.errors import InputError, UnsupportedOp
from driver.isa import ErrorCode
from driver.results import OpEvent, RunSpec, write_json
from driver.runtime import TensorView
from golden.backend import CmodelBackend
from golden.tensors import tensor_bits
from tb.ops.case import Case, Entry
from tb.ops.directed import directed_cases
from tb.ops.pair import DevicePair, PairResult
from tb.ops.runner import run_ops
from tb.ops.session import Session

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"


class WrongBackend(CmodelBackend):
    """A device that also writes where it must not, or whose last byte is wrong."""

    def __init__(self, config: HwConfig, offset_bytes: int) -> None:
        super().__init__(config)
        self._wrong_by = offset_bytes

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        code = super()._execute(packet, seq)
        destination = int.from_bytes(packet[24:32], "little")
        at = destination + self._wrong_by
        self.memory[at] ^= 0x40
        self._record_pages.add(at // 4096 * 4096)
        return code


@pytest.fixture
def config() -> HwConfig:
    return load_config(CONFIG_FILE, "small")


def case() -> Case:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(5, 7, generator=generator), torch.randn(7, 3, generator=generator)
    return Case(index=0, op="aten.mm.default", args=(a, b), module="test")


def result_of(result: PairResult) -> TensorView:
    (view,) = result.results
    assert view is not None
    return view


def test_equal_devices_leave_equal_memories(config: HwConfig) -> None:
    pair = DevicePair(config, CmodelBackend(config), CmodelBackend(config))
    result = pair.run(case(), seed=0)
    assert result.stray == ()
    assert result.bytes_compared >= 2 * 4096
    assert result.rtl is not None
    assert (result.rtl.bits[0] == result.cmodel.bits[0]).all()


def test_a_byte_outside_the_result_is_found(config: HwConfig) -> None:
    pair = DevicePair(config, CmodelBackend(config), WrongBackend(config, 5 * 3 * 4 + 2))
    result = pair.run(case(), seed=0)
    assert result.stray == (result_of(result).address + 5 * 3 * 4 + 2,)


def test_a_byte_on_a_page_that_the_cmodel_left_alone_is_found(config: HwConfig) -> None:
    far = 16 * 4096
    pair = DevicePair(config, CmodelBackend(config), WrongBackend(config, far))
    result = pair.run(case(), seed=0)
    assert result.stray == (result_of(result).address + far,)


def test_what_one_op_got_wrong_is_not_held_against_the_next(config: HwConfig) -> None:
    wrong = WrongBackend(config, 9)
    pair = DevicePair(config, CmodelBackend(config), wrong)
    first = pair.run(case(), seed=0)
    wrong._wrong_by = 5 * 3 * 4 + 3
    second = pair.run(case(), seed=0)
    assert result_of(first).address == result_of(second).address
    assert (first.stray, second.stray) == ((), (result_of(second).address + 5 * 3 * 4 + 3,))
    later = replace(case(), args=(case().args[0], case().args[1][:, :1]))
    wrong._execute = CmodelBackend._execute.__get__(wrong)  # type: ignore[method-assign]
    assert pair.run(later, seed=0).stray == ()


def test_a_byte_inside_the_result_is_an_element(config: HwConfig) -> None:
    pair = DevicePair(config, CmodelBackend(config), WrongBackend(config, 9))
    result = pair.run(case(), seed=0)
    assert result.stray == ()
    assert result.rtl is not None
    assert (result.rtl.bits[0] != result.cmodel.bits[0]).nonzero()[1].tolist() == [2]


def test_everything_placed_is_given_back(config: HwConfig) -> None:
    pair = DevicePair(config, CmodelBackend(config), None)
    used = [[use.used_bytes for use in d.memory_report()] for d in pair._devices]
    pair.run(case(), seed=0)
    assert [[use.used_bytes for use in d.memory_report()] for d in pair._devices] == used


def test_a_refused_command_is_a_failure_with_its_code(config: HwConfig, tmp_path: Path) -> None:
    spec = cmodel_spec(tmp_path)
    session = Session(spec, config)
    everything = FaultRange(config.memory.base + (64 << 20), config.memory.limit, True, False)
    session.pair._cmodel.set_faults([everything])
    row = session.run(case())
    assert row.status == "fail"
    assert row.failure is not None
    assert "BUS_READ" in row.failure.detail


@pytest.mark.parametrize(("last_write", "said"), [(None, None), (9, None), (10, 10), (12, 12)])
def test_a_write_of_an_earlier_case_is_none_of_this_one(
    config: HwConfig, tmp_path: Path, last_write: int | None, said: int | None
) -> None:
    class Written:
        def last_writer(self, address: int) -> int | None:
            return last_write

    session = Session(cmodel_spec(tmp_path), config)
    session.rtl, session._began = Written(), 10  # type: ignore[assignment]
    assert session.written(0) == said


def test_a_record_that_the_rtl_never_wrote_is_its_own_fault(
    config: HwConfig, tmp_path: Path
) -> None:
    class Silent:
        def last_writer(self, address: int) -> int | None:
            return None

    session = Session(cmodel_spec(tmp_path), config)
    result = session.pair.run(case(), seed=0)
    session.rtl = Silent()  # type: ignore[assignment]
    blamed = []
    record = session.pair._devices[0].completion_records.start
    for address in (record, result_of(result).address - 1):
        found = session.stray_finding(replace(result, stray=(address,)))
        assert found is not None
        blamed.append(found[0])
    assert blamed == ["rtl", "cmodel"]


def test_a_directed_case_has_the_same_bits_alone_and_in_the_list() -> None:
    def tensors(seed: int) -> dict[int, list[torch.Tensor]]:
        entries = directed_cases(8, seed, count())
        return {e.index: [t for _, t in e.make().tensors()] for e in entries}  # type: ignore[union-attr]

    everything, again, other = tensors(3), tensors(3), tensors(4)
    assert len(everything) > 80
    compared = 0
    for index in everything:
        for left, right in zip(everything[index], again[index], strict=True):
            assert np.array_equal(tensor_bits(left), tensor_bits(right))
            compared += left.numel()
    assert compared > 10_000
    assert not torch.equal(everything[0][0], other[0][0])


def test_directed_shapes_surround_the_array() -> None:
    shapes = {
        tuple(tensor.shape)
        for entry in directed_cases(8, 1, count())
        for _, tensor in entry.make().tensors()  # type: ignore[union-attr]
    }
    assert {(1, 1), (7, 7), (9, 9), (7, 9), (9, 7), (1, 4864), (4864, 1)} <= shapes


class OneCase:
    """A test of one op that the NPU does not have."""

    @staticmethod
    def cases(spec: RunSpec, config: HwConfig) -> list[Entry]:
        unknown = Case(0, "aten.lgamma.default", (torch.ones(3),), "net:layer")
        return [Entry(0, lambda: unknown)]


def test_an_op_the_npu_does_not_have_is_an_error_that_names_it(
    config: HwConfig, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedOp) as caught:
        run_ops(cmodel_spec(tmp_path), config, OneCase, Silent())
    assert str(caught.value).startswith("aten.lgamma.default (float32) in net:layer: ")
    assert "--allow-cpu" in str(caught.value)


def test_where_the_cpu_is_allowed_it_is_said_and_no_pass(config: HwConfig, tmp_path: Path) -> None:
    spec = cmodel_spec(tmp_path).model_copy(update={"allow_cpu": True})
    with pytest.raises(InputError, match="all on the CPU"):
        run_ops(spec, config, OneCase, Silent())


def test_an_interrupt_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(spec: RunSpec) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tb.run, "run", stop)
    write_json(tmp_path / "run.json", cmodel_spec(tmp_path))
    assert tb.run.main([str(tmp_path / "run.json")]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert not (tmp_path / "result.json").exists()


class Silent:
    def plan(self, ops: int) -> None: ...

    def op(self, event: OpEvent) -> None: ...

    def note(self, text: str) -> None: ...


def cmodel_spec(out: Path) -> RunSpec:
    return RunSpec(
        test="smoke", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=out, capsules={}, op_filter=None, timeout_s=60.0,
    )  # fmt: skip
