# SPDX-License-Identifier: Apache-2.0
"""Running cocotb tests: exactly the planned ones, within their time, on our own main loop."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sim_host import CONFIG, STANDIN, standin

from driver.errors import (
    AssertionFailed,
    InfrastructureError,
    SimulatorDied,
    SimulatorTimeout,
)
from tb.sim.cocotb_run import CocotbRun, attach_memory, run_cocotb


def plan(folder: Path, *tests: str, variant: str = "cocotb") -> CocotbRun:
    return CocotbRun(
        binary=standin(variant),
        module="standin_cocotb",
        tests=tests,
        folder=folder,
        config=CONFIG,
        seed=7,
        timeout_s=60,
        python_path=(STANDIN,),
    )


PASSING = (
    "copies_and_wakes_on_irq",
    "edge_shows_values_from_before_it",
    "sleeping_passes_exactly_the_cycles",
    "hidden_signals_stay_hidden",
    "its_assertions_alone_are_rewritten",
)


@pytest.mark.parametrize("test", PASSING)
def test_in_the_simulator(test: str, tmp_path: Path) -> None:
    result = run_cocotb(plan(tmp_path, test))
    assert result.failures == {}
    assert result.passed
    assert result.executed == (test,)
    assert result.results.exists()
    assert result.log.exists()


def test_own_clock_and_cocotbs_clock_give_the_same_transcript(tmp_path: Path) -> None:
    texts = []
    for clock in ("own", "cocotb"):
        path = tmp_path / clock
        environment = {"STANDIN_TRANSCRIPT": str(path)}
        if clock == "cocotb":
            environment["STANDIN_CLOCK"] = "1"
        run = replace(
            plan(tmp_path / f"run-{clock}", "transcript"),
            arguments=(f"--clock={clock}",),
            environment=environment,
        )
        assert run_cocotb(run).failures == {}
        texts.append(path.read_text())
    assert len(texts[0].splitlines()) > 500
    assert texts[0] == texts[1]


def test_seed_decides_the_power_up_state(tmp_path: Path) -> None:
    def state(seed: int, name: str) -> str:
        run = replace(plan(tmp_path / name, "seed_decides_power_up"), seed=seed)
        assert run_cocotb(run).passed
        return (tmp_path / name / "state").read_text()

    first = state(1, "a")
    assert state(2, "b") != first
    assert state(1, "c") == first


def test_failed_test_is_in_the_result(tmp_path: Path) -> None:
    result = run_cocotb(plan(tmp_path, "fails", "hidden_signals_stay_hidden"))
    assert not result.passed
    assert set(result.failures) == {"fails"}
    assert "not the expected ID" in result.failures["fails"]


@pytest.mark.parametrize("names", [("no_such_test",), ("fails", "no_such_test"), ()])
def test_unknown_test_is_not_a_pass(names: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="planned"):
        run_cocotb(plan(tmp_path, *names))


def test_module_that_does_not_import_is_not_a_pass(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError):
        run_cocotb(replace(plan(tmp_path, "fails"), module="no_such_module"))


def test_endless_test_is_killed(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(SimulatorTimeout, match="killed after 3 s"):
        run_cocotb(replace(plan(tmp_path, "never_ends"), timeout_s=3))
    assert time.monotonic() - start < 20


ORPHAN = """
import sys
from pathlib import Path
from test_sim_cocotb import plan
from tb.sim.cocotb_run import run_cocotb
run_cocotb(plan(Path(sys.argv[1]), "never_ends"))
"""


def read(path: Path) -> bytes:
    """Of a process that may end meanwhile."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_simulation_ends_with_a_killed_parent(tmp_path: Path) -> None:
    standin("cocotb")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([sys.executable, "-c", ORPHAN, str(tmp_path)], env=environment)

    def simulations() -> list[Path]:
        wanted = f"--parent={parent.pid}".encode()
        return [path for path in Path("/proc").glob("[0-9]*/cmdline") if wanted in read(path)]

    def wait_for(count: int) -> bool:
        deadline = time.monotonic() + 30
        while len(simulations()) != count and time.monotonic() < deadline:
            time.sleep(0.1)
        return len(simulations()) == count

    assert wait_for(1)
    parent.kill()
    parent.wait()
    assert wait_for(0)


def test_dying_simulator_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SimulatorDied, match="SIGKILL"):
        run_cocotb(plan(tmp_path, "dies"))


def test_assertion_of_the_design_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(AssertionFailed, match="standin: asked to fail"):
        run_cocotb(plan(tmp_path, "fails_an_assertion_of_the_design"))


def test_old_results_are_not_taken_for_new_ones(tmp_path: Path) -> None:
    run_cocotb(plan(tmp_path, "hidden_signals_stay_hidden"))
    with pytest.raises(SimulatorDied):
        run_cocotb(replace(plan(tmp_path, "hidden_signals_stay_hidden"), arguments=("--x",)))


def test_memory_cannot_be_attached_outside_a_simulation() -> None:
    with pytest.raises(InfrastructureError, match="not inside a simulation"):
        attach_memory()
