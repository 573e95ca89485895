# SPDX-License-Identifier: Apache-2.0
"""The command line: exit statuses, one-line errors, and what it hands to the bench."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from shutil import which

import pytest

from driver.errors import InfrastructureError
from driver.results import RESULT_FILE, SPEC_FILE, RunResult, RunSpec, read_json
from regress import cli, commands, make_options
from regress.paths import ROOT
from regress.process import environment
from regress.run import list_tests as list_real
from regress.run import run as run_real
from regress.variables import OPTIONS, VARIABLES

RUNNER = (sys.executable, str(Path(__file__).with_name("fake_runner.py")))

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Call:
    """Call the command line with the fake runner: (exit status, stdout, stderr)."""
    monkeypatch.setattr(commands, "list_tests", lambda: list_real(RUNNER, tmp_path / "lists"))
    monkeypatch.setattr(commands, "run", lambda spec, progress: run_real(spec, progress, RUNNER))
    monkeypatch.setattr(commands, "OUT", tmp_path / "out")
    monkeypatch.setenv("COLUMNS", "120")

    def invoke(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["npu-cosim", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return code, printed.out, printed.err

    return invoke


def test_a_passing_test_exits_0_and_prints_table_ledger_and_artefacts(
    call: Call, tmp_path: Path
) -> None:
    code, out, err = call("run", "passing")
    assert (code, err) == (0, "")
    assert "model.layers.0.mlp.gate_proj" in out
    assert "no such op" in out
    assert "PASS passing on rtl, config default, seed 1: 1 passed, 0 failed" in out
    folder = tmp_path / "out" / "passing-1"
    assert str(folder / RESULT_FILE) in out.replace("\n", "")
    assert read_json(folder / SPEC_FILE, RunSpec).seed == 1


def test_the_version_is_that_of_the_package(call: Call) -> None:
    assert call("--version") == (0, f"npu-cosim {version('npu-cosim')}\n", "")


def test_a_failing_test_exits_1_and_says_everything(call: Call) -> None:
    code, out, _ = call("run", "failing", "--seed", "9")
    assert code == 1
    for text in (
        "blame      rtl",
        "element    [0, 3]  in tile [0, 0]",
        "expected   0x40490fdb  3.1415927410125732",
        "actual     0x3f800000  1.0",
        "cycle      4242",
        "differing  1 of 8 elements",
        "reproduce  npu-cosim run failing --config default --seed 9 --op 1",
        "FAIL failing",
    ):
        assert text in out


def test_every_option_reaches_the_spec(call: Call, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text((ROOT / "sim_config.yaml").read_text())
    options = ["--config", "small", "--config-file", str(own), "--seed", "7", "--waves", "vcd"]
    options += ["--backend", "cmodel", "--op", "3", "--timeout", "50", "--out", str(tmp_path / "o")]
    assert call("run", "passing", *options)[0] == 0
    spec = read_json(tmp_path / "o" / SPEC_FILE, RunSpec)
    assert spec == RunSpec(
        test="passing",
        config="small",
        config_file=own,
        seed=7,
        backend="cmodel",
        waves="vcd",
        out=tmp_path / "o",
        capsules={},
        op_filter=3,
        timeout_s=50.0,
    )


def test_mode_and_leave_to_use_the_cpu_reach_the_spec(call: Call, tmp_path: Path) -> None:
    call("run", "passing", "--mode", "chained", "--allow-cpu", "--out", str(tmp_path / "o"))
    spec = read_json(tmp_path / "o" / SPEC_FILE, RunSpec)
    assert (spec.modes, spec.allow_cpu) == (("chained",), True)


def test_a_test_brings_its_own_configuration_and_modes(call: Call, tmp_path: Path) -> None:
    for asked, config in ((), "qwen"), (("--config", "small"), "small"):
        assert call("run", "peculiar", *asked, "--out", str(tmp_path / config))[0] == 0
        spec = read_json(tmp_path / config / SPEC_FILE, RunSpec)
        assert (spec.config, spec.modes) == (config, ("isolated", "chained"))


def test_a_run_of_one_op_does_not_overwrite_the_whole_run(call: Call, tmp_path: Path) -> None:
    call("run", "passing", "--op", "0")
    assert (tmp_path / "out" / "passing-1-op0" / RESULT_FILE).exists()
    call("run", "passing", "--filter", "../a b::c")
    assert (tmp_path / "out" / "passing-1-..-a-b-c" / RESULT_FILE).exists()


def test_a_run_without_a_build_may_have_a_space_in_its_folder(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "two words"
    assert call("run", "passing", "--backend", "cmodel", "--out", str(folder))[0] == 0
    assert (folder / RESULT_FILE).exists()


def test_a_check_is_run_by_its_name(call: Call, tmp_path: Path) -> None:
    call("run", "passing", "--op", "Second")
    assert read_json(tmp_path / "out" / "passing-1-op1" / SPEC_FILE, RunSpec).op_filter == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "nope"], "command line: TEST: got nope, expected one of passing, failing, "),
        (["run", "mlp"], "; it is a workload: npu-cosim capture mlp"),
        (["run", ""], "command line: TEST: got nothing, expected one of passing"),
        (["run", "passing", "--config", ""], "configs: got an empty text, expected one of default"),
        (["run", "passing", "--config", "x"], "configs: got x, expected one of default, small"),
        (["run", "passing", "--backend", "x"], "BACKEND: got x, expected one of rtl, cmodel"),
        (["run", "modelled"], "command line: BACKEND: got rtl, expected one of cmodel"),
        (["run", "passing", "--mode", "x"], "MODE: got x, expected one of isolated, chained"),
        (["run", "short", "--mode", "chained"], "MODE: got chained, expected isolated, as short"),
        (
            ["run", "passing", "--op", "Third"],
            "--op: got Third, expected an op's number, or FIRST..LA",
        ),
        (
            ["run", "failing", "--op", "x"],
            "--op: got x, expected an op's number, or FIRST..LAST as 3",
        ),
        (["run", "passing", "--waves", "x"], "WAVES: got x, expected one of none, vcd, fst"),
        (["run", "passing", "--seed", "-1"], "command line: Invalid value for '--seed'"),
        (["run", "passing", "--seed", "x"], "command line: Invalid value for '--seed'"),
        (["run", "passing", "--out", "a b"], "OUT: got "),
        (["run", "passing", "--config-file", "none.yaml"], "none.yaml: file: got No such file"),
        (["run"], "command line: TEST: got nothing, expected a test; `npu-cosim tests` lists"),
        (["bisect", "7"], "command line: GOOD: got nothing, expected a revision in which it"),
        (["nope"], "command line: No such command 'nope'"),
        (["replay", "none"], "none/capsule.json: file: got No such file"),
        (["capture", "nope"], "command line: WORKLOAD: got nope, expected one of lenet, "),
        (["test", "nope"], "command line: steps: got nope, expected one of lint, types"),
        (["bench", "nope"], "command line: BENCH: got nope, expected one of"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert line in err
    assert err.count("\n") == 1


def test_a_broken_configuration_is_named_with_file_and_field(call: Call, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text((ROOT / "sim_config.yaml").read_text().replace("fma_latency: 4", "fma_x: 4"))
    code, _, err = call("run", "passing", "--config-file", str(broken))
    assert (code, err.count("\n")) == (2, 1)
    assert f"error: {broken}: common.fma_x: got an unknown key" in err


def test_bad_input_found_by_the_bench_is_its_own_line(call: Call) -> None:
    code, _, err = call("run", "refusing")
    assert (code, err) == (2, "error: capsule.json: hash: got 1, expected 2\n")


def test_a_missing_compiler_is_bad_input_for_rtl_only(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    code, _, err = call("run", "passing")
    assert (code, err) == (
        2,
        "error: PATH: no-such-compiler: got nothing, expected a C++ compiler (g++ 11 or newer)\n",
    )
    assert call("run", "passing", "--backend", "cmodel")[0] == 0


def test_a_run_that_dies_exits_3_with_the_last_lines_of_its_log(call: Call, tmp_path: Path) -> None:
    code, out, _ = call("run", "dying")
    assert code == 3
    assert "ERROR dying" in out
    assert "a line of the log" in out
    status = read_json(tmp_path / "out" / "dying-1" / RESULT_FILE, RunResult).status
    assert status == "error"


def test_an_interrupt_is_one_line_and_exit_130(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "run", interrupt)
    code, out, err = call("run", "passing")
    assert (code, out, err) == (130, "", "error: interrupted\n")


def test_a_bench_that_cannot_start_is_one_line_and_exit_3(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise InfrastructureError("listing the tests ended with status 1: no cocotb")

    monkeypatch.setattr(commands, "list_tests", broken)
    code, out, err = call("run", "passing")
    assert (code, out) == (3, "")
    assert err == "error: listing the tests ended with status 1: no cocotb\n"


def test_what_make_exports_does_not_reach_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEED", "3")
    monkeypatch.setenv("MAKEFLAGS", "-j4")
    monkeypatch.setenv("HOME", "/somewhere")
    assert not {"SEED", "MAKEFLAGS"} & environment().keys()
    assert environment()["HOME"] == "/somewhere"


def test_threads_of_a_run_sleep_while_they_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert environment()["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert environment()["OMP_WAIT_POLICY"] == "ACTIVE"


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ([], 0, "make SIM=verilator TEST=matmul"),
        (["SIM=vcs", "TEST=matmul"], 2, "SIM=vcs is not supported; supported: verilator"),
        (["-n", "TEST=a; b 'c", "SEED=3"], 0, 'npu-cosim run --seed "$SEED" -- "$TEST"'),
        (["-n", "SIM=verilator"], 0, "npu-cosim run "),
        (["-n", "TEST=a", "ALLOW_CPU=1", "RESUME=Yes"], 0, " --allow-cpu --resume -- "),
        (["-n", "nightly", "DRY_RUN=on", "ONLY_FAILED=true"], 0, " --only-failed --dry-run -- "),
        (
            ["TEST=a", "ALLOW_CPU=2"],
            2,
            "ALLOW_CPU=2: expected 1, yes, true, on or 0, no, false, off",
        ),
        (["nightly", "RESUME=1 0"], 2, "RESUME=1 0: expected 1, yes, true, on or 0, no, "),
        (["-n", "unit", "TEST=fp_fma", "VECTORS=f"], 0, '--vectors "$VECTORS" -- "$TEST"'),
    ],
)
def test_make_is_a_thin_face(arguments: list[str], status: int, text: str) -> None:
    done = subprocess.run(
        [which("make") or "make", *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    assert text in done.stdout + done.stderr


def test_the_help_names_every_variable_and_no_other() -> None:
    help_text = "".join(
        (ROOT / "regress" / name).read_text() for name in ("help.txt", "variables.txt")
    )
    renamed = {"FPU"}  # still understood, to say that it is ARRAY now
    assert set(re.findall(r"\b([A-Z_]{2,})=", help_text)) == set(VARIABLES) - renamed


def test_every_variable_that_is_an_option_is_one_of_some_command() -> None:
    text = make_options.render()[make_options.MAKE_FILE]
    assert set(re.findall(r"call (?:flag|switch),(\w+),", text)) == set(OPTIONS)


@pytest.mark.parametrize("off", ["", "0", "no", "false", "OFF"])
@pytest.mark.parametrize(
    ("target", "name"),
    [("run", "ALLOW_CPU"), ("run", "RESUME"), ("nightly", "ONLY_FAILED"), ("nightly", "DRY_RUN")],
)
def test_a_switch_that_is_off_is_off(target: str, name: str, off: str) -> None:
    done = dry_make(target, f"{name}={off}")
    assert done.returncode == 0
    assert f"--{name.lower().replace('_', '-')}" not in done.stdout


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (("smoke", "CONFIG=large"), "CONFIG"),
        (("nightly", "TIER=weekly"), "TIER"),
        (("run", "TEST=ops", "BUDGET=1s"), "BUDGET"),
        (("replay", "ID=1", "SEED=2"), "SEED"),
        (("lint", "test", "OUT=x"), "OUT"),
    ],
)
def test_a_variable_that_a_target_does_not_take_is_refused(
    words: tuple[str, ...], refused: str
) -> None:
    done = dry_make(*words)
    assert done.returncode == 2
    assert f"does not take {refused}; it takes " in done.stderr


@pytest.mark.parametrize("words", [("run", "TEST=ops", "BACKNED=rtl"), ("help", "BACKNED=")])
def test_a_variable_that_no_target_takes_is_refused(words: tuple[str, ...]) -> None:
    done = dry_make(*words)
    assert done.returncode == 2
    assert "BACKNED: expected a variable that `make help` names" in done.stderr


def dry_make(*words: str) -> subprocess.CompletedProcess[str]:
    """What make would do."""
    command = [which("make") or "make", "-n", *words]
    own = environment()
    return subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=False)
