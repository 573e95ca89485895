# SPDX-License-Identifier: Apache-2.0
"""A run is followed to its end, and only a result that can be trusted is believed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock
from junitparser import JUnitXml
from rich.console import Console

from driver.errors import InfrastructureError, InputError, ProcessRefused
from driver.results import RESULT_FILE, RunResult, RunSpec, read_json
from regress.paths import ROOT
from regress.progress import ProgressBar
from regress.run import RunOutcome, list_tests, run

FAKE = Path(__file__).with_name("fake_runner.py")
RUNNER = (sys.executable, str(FAKE))


def _spec(test: str, out: Path, timeout_s: float = 60.0) -> RunSpec:
    return RunSpec(
        test=test,
        config="default",
        config_file=ROOT / "sim_config.yaml",
        seed=5,
        backend="rtl",
        waves="none",
        out=out,
        capsules={},
        op_filter=None,
        timeout_s=timeout_s,
    )


def _run(test: str, out: Path, timeout_s: float = 60.0) -> tuple[RunOutcome, str]:
    console = Console(width=120, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    outcome = run(_spec(test, out, timeout_s), ProgressBar(console, test), RUNNER)
    return outcome, console.export_text()


def _gone(pid: int) -> bool:
    """Whether a process ends within seconds (a zombie has ended)."""
    for _ in range(50):
        try:
            if Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False


def test_a_passing_run_leaves_its_result_junit_and_log(tmp_path: Path) -> None:
    outcome, shown = _run("passing", tmp_path)
    assert outcome.exit_code == 0
    assert read_json(tmp_path / RESULT_FILE, RunResult) == outcome.result
    assert [path.name for path in outcome.artefacts] == ["result.json", "junit.xml", "sim.log"]
    assert (tmp_path / "sim.log").read_text() == "a line of the log\n"
    assert "building the simulator" in shown
    assert "chatter" not in shown


def test_a_failing_run_exits_1_and_junit_has_one_case_per_op(tmp_path: Path) -> None:
    outcome, shown = _run("failing", tmp_path)
    assert outcome.exit_code == 1
    assert "op 1 aten.mm.default" in shown
    assert "blame rtl" in shown
    (suite,) = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    assert (suite.tests, suite.failures, suite.errors) == (2, 1, 0)
    passed, failed = suite
    assert passed.is_passed
    assert failed.name == "1 aten.mm.default fp32 model.layers.0.mlp.gate_proj"
    assert "reproduce  npu-cosim run failing --config default --seed 5 --op 1" in (
        failed.result[0].text
    )


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("dying", "the run was ended by SIGSEGV and left no result"),
        ("silent", "the run ended with status 0 and left no result"),
        ("lying", "the run ended with status 1, but its result says pass"),
        ("short", "the run planned 2 ops, but its result has 1"),
        ("other", "the run left the result of another run"),
        ("planted", "the run left the result of another run"),
        ("broken", "no usable Verilator"),
    ],
)
def test_a_run_that_cannot_be_trusted_is_an_error(test: str, message: str, tmp_path: Path) -> None:
    outcome, _ = _run(test, tmp_path)
    assert outcome.exit_code == 3
    result = read_json(tmp_path / RESULT_FILE, RunResult)
    assert result.status == "error"
    assert result.message is not None
    assert result.message.splitlines()[0] == message
    assert "a line of the log" in result.message
    assert result.reproduce == f".venv/bin/npu-cosim run {test} --config default --seed 5"
    (suite,) = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    assert (suite.tests, suite.errors) == (1, 1)


def test_the_result_of_an_earlier_run_is_not_taken_for_the_new_one(tmp_path: Path) -> None:
    _run("passing", tmp_path)
    good = (tmp_path / RESULT_FILE).read_text().replace('"passing"', '"stale"')
    (tmp_path / RESULT_FILE).write_text(good)
    outcome, _ = _run("stale", tmp_path)
    assert outcome.exit_code == 3


def test_bad_input_found_by_the_bench_is_its_own_line_and_leaves_no_result(tmp_path: Path) -> None:
    with pytest.raises(ProcessRefused, match=r"^capsule\.json: hash: got 1, expected 2$"):
        _run("refusing", tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessRefused):
        _run("refusing", tmp_path / "new" / "folder")
    assert not (tmp_path / "new").exists()


def test_bad_input_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    _run("evident", tmp_path)
    (tmp_path / "mine.txt").write_text("")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ProcessRefused):
        _run("refusing", tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert _run("passing", tmp_path)[0].exit_code == 0


def test_a_hanging_run_is_ended_with_its_children(tmp_path: Path) -> None:
    start = time.monotonic()
    outcome, _ = _run("hanging", tmp_path, timeout_s=1.0)
    assert time.monotonic() - start < 30
    assert outcome.exit_code == 3
    assert outcome.result.message is not None
    assert outcome.result.message.startswith("the run was stopped after its time limit of 1 s")
    assert _gone(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize(("test", "ops"), [("long", 1), ("long-other", 0), ("long-green", 0)])
def test_a_run_at_its_limit_keeps_the_ops_that_it_had_finished(
    tmp_path: Path, test: str, ops: int
) -> None:
    outcome, _ = _run(test, tmp_path, timeout_s=1.0)
    result = read_json(tmp_path / RESULT_FILE, RunResult)
    assert (outcome.exit_code, result) == (3, outcome.result)
    assert (result.status, len(result.ops)) == ("error", ops)
    assert result.message is not None
    told = "the run was stopped after its time limit of 1 s"
    assert result.message.splitlines()[0] == told + (": after 1 of 2 ops" if ops else "")


def test_a_failure_before_the_limit_is_a_verdict(tmp_path: Path) -> None:
    outcome, _ = _run("long-red", tmp_path, timeout_s=1.0)
    assert (outcome.exit_code, outcome.result.status) == (1, "fail")
    assert outcome.result.message is not None
    assert "time limit of 1 s: after 1 of 2 ops" in outcome.result.message
    assert read_json(tmp_path / RESULT_FILE, RunResult) == outcome.result


def test_children_that_a_finished_run_leaves_behind_are_ended(tmp_path: Path) -> None:
    start = time.monotonic()
    outcome, _ = _run("leaving", tmp_path)
    assert outcome.exit_code == 0
    assert time.monotonic() - start < 30
    assert _gone(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_its_children_and_leaves_no_result(
    number: signal.Signals, tmp_path: Path
) -> None:
    # A shell that runs the tests in the background has its children ignore SIGINT.
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from pathlib import Path; sys.path.insert(0, 'tests')\n"
        "import test_cli_run as t; from regress.invoke import invoke\n"
        "sys.exit(invoke(lambda **_: t._run('hanging', Path(sys.argv[1]))))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(600):
        if (tmp_path / "child").exists() and (tmp_path / "child").read_text():
            break
        time.sleep(0.1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "error: interrupted\n")
    assert _gone(int((tmp_path / "child").read_text()))
    assert not (tmp_path / RESULT_FILE).exists()


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    with FileLock(tmp_path / ".lock"), pytest.raises(InputError, match="in use by another run"):
        _run("passing", tmp_path)


def test_a_folder_that_cannot_be_made_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="OUT: got Not a directory"):
        _run("passing", tmp_path / "file" / "out")


def test_the_tests_are_asked_for_once(tmp_path: Path) -> None:
    assert {"passing", "failing"} <= {test.name for test in list_tests(RUNNER, tmp_path)}
    (kept,) = tmp_path.iterdir()
    kept.write_text(kept.read_text().replace('"name": "passing"', '"name": "kept"'))
    assert "kept" in {test.name for test in list_tests(RUNNER, tmp_path)}
    kept.write_text("[")
    assert "passing" in {test.name for test in list_tests(RUNNER, tmp_path)}


@pytest.mark.parametrize("script", ["import sys; sys.exit('no cocotb')", "print('[3]')"])
def test_a_bench_that_cannot_list_its_tests_is_an_infrastructure_error(
    script: str, tmp_path: Path
) -> None:
    with pytest.raises(InfrastructureError, match=r"no cocotb|list of tests"):
        list_tests((sys.executable, "-c", script), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_runner_that_does_not_exist_is_an_infrastructure_error(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="does not start"):
        run(_spec("passing", tmp_path), ProgressBar(Console(), "x"), ("/none",))
