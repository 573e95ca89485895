# SPDX-License-Identifier: Apache-2.0
"""What the UVM bench says: the device's faults in words, its own as its own, and never nothing."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from driver.config import load_config
from driver.errors import InfrastructureError, VerdictError
from driver.results import OpEvent, RunResult, RunSpec
from tb.env import runner
from tb.env.handover import SUMMARY_FILE
from tb.env.tally import check_tally
from tb.env.verdict import Mismatch, expect, expect_bytes
from tb.ops.stopped import RunBroken
from tb.sim.cocotb_run import CocotbResult, CocotbRun

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
MODULE = SimpleNamespace(TESTS=("First", "Second", "Third"), MODULE="tb.tests._bus")


def test_a_mismatch_says_what_was_read_where_and_what_was_expected() -> None:
    with pytest.raises(Mismatch, match=r"^register ID: got 0x2, expected 0x0$"):
        expect("register ID", 2, 0)
    with pytest.raises(
        Mismatch, match=r"^memory: got 0x07, expected 0x01 in byte 0x1002 \(2 of 4 bytes differ\)$"
    ):
        expect_bytes("memory", 0x1000, b"\0\0\7\7", b"\0\0\1\1")
    with pytest.raises(Mismatch, match="got 3 bytes, expected 4"):
        expect_bytes("memory", 0, b"abc", b"abcd")
    expect("register ID", 2, 2)
    expect_bytes("memory", 0, b"ab", b"ab")


@pytest.mark.parametrize(
    ("compared", "host_bytes", "said"),
    [
        ({}, 0, "compared no registers and no memory and no host reads"),
        ({"registers": 5, "memory": 9}, 0, "compared no host reads"),
        ({"registers": 5, "memory": 9, "host reads": 31}, 32, "compared 31 bytes .* read 32"),
    ],
)
def test_a_scoreboard_that_does_not_see_what_the_test_does_is_no_pass(
    compared: dict[str, int], host_bytes: int, said: str
) -> None:
    required = ("registers", "memory", "host reads")
    with pytest.raises(InfrastructureError, match=said):
        check_tally(compared, required, host_bytes)  # type: ignore[arg-type]
    check_tally({"registers": 1, "memory": 1, "host reads": 32}, required, 32)


class Quiet:
    def plan(self, ops: int) -> None: ...

    def op(self, event: OpEvent) -> None: ...

    def note(self, text: str) -> None: ...


def bench(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    error: Exception | None = None,
    log: Path = Path("l"),
) -> RunResult:
    """Three tests of which the second ends with an exception of this kind."""

    def run(job: CocotbRun) -> CocotbResult:
        job.folder.mkdir(parents=True)
        good = CocotbResult(job.tests, {}, {}, Path("r"), log)
        if job.tests == ("Second",):
            if error is not None:
                raise error
            return replace(good, failures={"Second": "irq: 0x2"}, kinds={"Second": kind})
        (job.folder / SUMMARY_FILE).write_text('{"compared": 12}')
        return good

    monkeypatch.setattr(runner, "run_cocotb", run)
    monkeypatch.setattr(runner, "build", lambda spec: SimpleNamespace(binary=Path("sim")))
    spec = RunSpec(
        test="bus", config="small", config_file=CONFIG_FILE, seed=1, backend="rtl", waves="none",
        out=tmp_path, capsules={}, op_filter=None, timeout_s=60.0,
    )  # fmt: skip
    config = load_config(CONFIG_FILE, "small")
    return runner.run_bench(spec, config, MODULE, Quiet())  # type: ignore[arg-type]


def test_a_device_that_is_wrong_fails_its_test_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = bench(tmp_path, monkeypatch, "Mismatch")
    assert [row.status for row in result.ops] == ["pass", "fail", "pass"]
    assert result.ops[1].blame == "rtl" and result.reproduce.endswith("--op 1")


def test_an_assertion_of_the_rtl_is_a_failed_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = bench(tmp_path, monkeypatch, "", VerdictError("assertion AwLegal failed"))
    assert [row.status for row in result.ops] == ["pass", "fail", "pass"]
    assert result.ops[1].failure is not None
    assert result.ops[1].failure.detail == "assertion AwLegal failed"


@pytest.mark.parametrize(
    "kind", ["AttributeError", "AssertionError", "InfrastructureError", "SimTimeoutError", ""]
)
def test_a_broken_bench_is_not_the_devices_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with pytest.raises(RunBroken) as caught:
        bench(tmp_path, monkeypatch, kind)
    assert caught.value.exit_code == 3
    result = caught.value.result
    assert (result.status, len(result.ops)) == ("error", 1)
    assert result.message is not None
    assert result.message.startswith(f"Second: the bench broke, {kind or 'error'}: irq: 0x2")
    assert result.reproduce.endswith("--op 1")


def test_a_library_that_the_device_broke_is_the_devices_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As cocotbext-axi breaks where RLAST is missing, in the cycle in which the checker fails."""
    log = tmp_path / "sim.log"
    log.write_text(
        "AssertionError: missing rlast\n[127855000] %Error: npu_axi_checker.sv:213: Assertion "
        "failed in tb_top.u_npu.u_s_axi_checker.RLastPlace: s_axi: RLAST is 0 on beat 255\n"
    )
    result = bench(tmp_path, monkeypatch, "AssertionError", log=log)
    assert [row.status for row in result.ops] == ["pass", "fail", "pass"]
    assert result.ops[1].blame == "rtl" and result.ops[1].failure is not None
    assert "RLastPlace" in result.ops[1].failure.detail


@pytest.mark.parametrize("module", ["_bus", "_overlap"])
def test_what_runs_in_the_simulator_starts_without_torch(module: str) -> None:
    """Its import was three quarters of the time of a start, and every UVM test is one."""
    asked = f"import sys, tb.tests.{module}; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"
