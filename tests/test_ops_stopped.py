# SPDX-License-Identifier: Apache-2.0
"""Runs that do not end well: a device that stops in an op, one that keeps state, stray writes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import tb.run
from driver.config import load_config
from driver.errors import AssertionFailed, InputError, SimulatorDied, VerdictError
from driver.isa import ErrorCode, Opcode
from driver.reproduce import parse_op_range
from driver.results import OpEvent, RunResult, RunSpec, read_json, write_json
from golden.backend import CmodelBackend
from tb.ops.case import Case, Entry
from tb.ops.runner import run_ops
from tb.ops.session import Session
from tb.ops.stopped import RunBroken
from tb.tests import smoke

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
CONFIG = load_config(CONFIG_FILE, "small")
OPS = 8


class Quiet:
    def plan(self, ops: int) -> None: ...

    def op(self, event: OpEvent) -> None: ...

    def note(self, text: str) -> None: ...


class Sums:
    """A test of eight sums of random numbers."""

    @staticmethod
    def cases(spec: RunSpec, config: object) -> list[Entry]:
        def case(index: int) -> Case:
            generator = torch.Generator().manual_seed(index)
            left, right = torch.randn(2, 6, 7, generator=generator)
            return Case(index, "aten.add.Tensor", (left, right), "net:sum", source="net.py:4")

        return [Entry(index, lambda index=index: case(index)) for index in range(OPS)]  # type: ignore[misc]


class Device(CmodelBackend):
    """Stands in for an RTL; `executed` counts its packets since it was brought up."""

    cycle = 0

    def __init__(self) -> None:
        super().__init__(CONFIG)
        self.executed = 0

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        code = super()._execute(packet, seq)
        self.executed += 1
        if int.from_bytes(packet[:4], "little") == Opcode.VECTOR:
            self.after(int.from_bytes(packet[24:32], "little"))
        return code

    def after(self, destination: int) -> None:
        """What it does wrong after a vector command."""

    def last_writer(self, address: int) -> int | None:
        return 7


def spec(out: Path, **changes: object) -> RunSpec:
    return RunSpec(
        test="smoke", config="small", config_file=CONFIG_FILE, seed=1, backend="rtl",
        waves="none", out=out, capsules={}, op_filter=None, timeout_s=60.0,
    ).model_copy(update=changes)  # fmt: skip


def run(
    out: Path, monkeypatch: pytest.MonkeyPatch, device: type[Device], **changes: object
) -> RunResult:
    monkeypatch.setattr(Session, "_open_rtl", lambda *_: device())
    return run_ops(spec(out, **changes), CONFIG, Sums, Quiet())  # type: ignore[arg-type]


# ---------------------------------------------------------------------- a device that stops
class Hanging(Device):
    """Stops for good in its sixth command."""

    error: BaseException = VerdictError("device hung at cycle 4711: no interrupt")

    def after(self, destination: int) -> None:
        if self.executed >= 6:
            raise self.error


def test_a_device_that_stops_fails_its_op_and_keeps_the_finished_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(tmp_path, monkeypatch, Hanging)
    assert result.status == "fail"
    assert [row.status for row in result.ops] == ["pass"] * 5 + ["fail"]
    row = result.ops[-1]
    assert (row.index, row.op, row.module) == (5, "aten.add.Tensor", "net:sum")
    assert row.source == "net.py:4"
    assert (row.blame, row.where) == ("rtl", "rtl")
    assert row.failure is not None
    assert row.failure.detail == "device hung at cycle 4711: no interrupt"
    assert result.message is None and result.notes == (
        "the device stopped in op 5, aten.add.Tensor in net:sum (net.py:4): no op after it was run",
    )
    assert sum(entry.count for entry in result.ledger) == 6


def test_the_line_of_a_device_that_stops_runs_the_prefix_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(tmp_path, monkeypatch, Hanging)
    assert result.reproduce.endswith("--op 0..5")
    again = run(tmp_path, monkeypatch, Hanging, op_filter=5, op_from=0)
    assert again.ops[-1].failure == result.ops[-1].failure


def test_a_device_that_stops_in_its_reset_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dead(Device):
        def __init__(self) -> None:
            raise AssertionFailed(("npu_fifo.sv", 64), "RoomForWord", "15 words", 1, "sim.log")

    result = run(tmp_path, monkeypatch, Dead)
    assert (result.status, result.ops) == ("fail", ())
    assert result.message is not None
    assert result.message.startswith("blame rtl: the device stopped before the first op: assertion")


class Dying(Hanging):
    error = SimulatorDied("simulator closed the connection (signal SIGKILL)")


def test_a_simulator_that_dies_is_no_verdict_but_its_op_and_the_finished_ones_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RunBroken) as caught:
        run(tmp_path, monkeypatch, Dying)
    assert caught.value.exit_code == 3
    monkeypatch.setattr(smoke, "cases", Sums.cases)
    write_json(tmp_path / "run.json", spec(tmp_path))
    assert tb.run.main([str(tmp_path / "run.json")]) == 3
    result = read_json(tmp_path / "result.json", RunResult)
    assert (result.status, len(result.ops)) == ("error", 5)
    assert result.message == (
        "op 5, aten.add.Tensor in net:sum (net.py:4): "
        "simulator closed the connection (signal SIGKILL)"
    )
    assert result.reproduce.endswith("--op 5")
    assert '"error":"SimulatorDied"' in capsys.readouterr().out


class InterruptedDevice(Hanging):
    error = KeyboardInterrupt()


def test_a_run_that_is_interrupted_tells_of_the_finished_ops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "_open_rtl", lambda *_: InterruptedDevice())
    monkeypatch.setattr(smoke, "cases", Sums.cases)
    write_json(tmp_path / "run.json", spec(tmp_path))
    assert tb.run.main([str(tmp_path / "run.json")]) == 130
    result = read_json(tmp_path / "result.json", RunResult)
    assert (result.status, len(result.ops)) == ("error", 5)
    assert result.message is not None and result.message.startswith("interrupted after 5 of ")


class WrongThenDying(Device):
    """Wrong in its third command, and gone for good in the one behind it: the first of the op's
    repetition, packet by packet."""

    def after(self, destination: int) -> None:
        if self.executed == 3:
            self.memory[destination + 5] ^= 0x40
        elif self.executed == 4:
            raise VerdictError("assertion one.of.them failed in cycle 4711")
        elif self.executed > 4:
            raise SimulatorDied("the simulator has been closed, or died before")


def test_a_device_that_stops_when_a_failed_op_is_repeated_keeps_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(tmp_path, monkeypatch, WrongThenDying)
    assert result.status == "fail"
    assert [row.status for row in result.ops] == ["pass"] * 2 + ["fail"]
    failure = result.ops[-1].failure
    assert failure is not None and failure.element == (0, 1)
    assert "packet by packet, the device stops: assertion one.of.them" in failure.detail
    (note,) = result.notes
    assert note.startswith("the device stopped in op 2, ") and note.endswith("was run")


# ---------------------------------------------------------------------- a line gives the same bits
class Stale(Device):
    """Wrong from its fourth command on: something that it should not have kept."""

    def after(self, destination: int) -> None:
        if self.executed >= 4:
            self.memory[destination + 5] ^= 0x40


class AlwaysWrong(Device):
    def after(self, destination: int) -> None:
        self.memory[destination + 5] ^= 0x40


def test_a_failure_that_needs_what_ran_before_it_is_repeated_with_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(tmp_path, monkeypatch, Stale)
    first = next(row for row in result.ops if row.status == "fail")
    assert (first.index, first.replay_from) == (3, 0)
    assert result.reproduce.endswith("--op 0..3")
    op, begin = parse_op_range(result.reproduce.rpartition(" ")[2])
    again = run(tmp_path, monkeypatch, Stale, op_filter=op, op_from=begin)
    assert again.ops[-1].failure == first.failure
    assert {row.index: row.replay_from for row in result.ops if row.status == "fail"} == {
        3: 0, 4: 1, 5: 2, 6: 0, 7: 0,
    }  # fmt: skip


def test_a_failure_that_the_op_shows_alone_needs_nothing_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(tmp_path, monkeypatch, AlwaysWrong)
    assert {row.replay_from for row in result.ops} == {None}
    assert result.reproduce.endswith("--op 0")


# ---------------------------------------------------------------------- beside the result
class Stray(Device):
    """A wrong element, and a byte beyond the result."""

    def after(self, destination: int) -> None:
        self.memory[destination + 5] ^= 0x40
        self.memory[destination + 6 * 7 * 4 + 1] ^= 1


def test_memory_beside_the_result_does_not_hide_the_wrong_element(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = run(tmp_path, monkeypatch, Stray, op_filter=2).ops[0]
    assert row.failure is not None and row.rtl_vs_cmodel_mismatches == 1
    assert row.failure.element == (0, 1) and row.failure.tile == (0, 0)
    assert int(row.failure.expected_bits, 16) ^ int(row.failure.actual_bits, 16) == 0x4000
    assert "; memory differs outside the result, first at 0x" in row.failure.detail


def test_numbers_of_ops_are_parsed_strictly() -> None:
    assert parse_op_range("7") == (7, None)
    assert parse_op_range("3..7") == (7, 3)
    for text in ("7..3", "..7", "3..", "-1", "x", "1...2", "9" * 30):
        with pytest.raises(InputError, match="--op"):
            parse_op_range(text)
