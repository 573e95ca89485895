# SPDX-License-Identifier: Apache-2.0
"""Runs cocotb tests in a built simulator, in a process group of its own, and reads the results.

A run passes only when exactly the planned tests were executed, every one passed, and the process
ended by itself with status 0. Its results file is trusted only when all of that can be seen in it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import cocotb_tools.config
import find_libpython
from junitparser import JUnitXml, TestCase

from driver.backend.rtl_errors import rtl_error
from driver.backend.shared_memory import SharedMemory
from driver.config import HwConfig
from driver.errors import InfrastructureError, SimulatorDied, SimulatorTimeout
from tb.sim.spec import REPOSITORY, TOP

SHARED_FD = "NPU_SIM_SHARED_FD"
"""Environment variable in which the simulator tells the Python inside it the memory file."""
_LOG_LINES = 3
_SEEDS = (1 << 31) - 2
_REWRITTEN = "COCOTB_REWRITE_ASSERTION_FILES"
"""Environment variable of cocotb: files whose assertions pytest rewrites, so that they say more.
All that are imported, if it says nothing: torch, too, eight seconds of every start where Python may
not write bytecode."""


@dataclass(frozen=True)
class CocotbRun:
    """One start of the simulator."""

    binary: Path
    module: str
    """Dotted name of the Python module with the tests."""
    tests: tuple[str, ...]
    """Names of the tests to execute, each of which must exist and run once."""
    folder: Path
    """Where results.xml, sim.log and waves go; created."""
    config: HwConfig
    seed: int = 0
    timeout_s: float = 300.0
    waves: str = ""
    """File name in `folder`; the binary must have been built with that kind of waves."""
    waves_window: tuple[int, int] = (0, (1 << 64) - 1)
    """First cycle to record, and the first after it."""
    arguments: tuple[str, ...] = ()
    """Passed to the simulator: --name=value or +plusarg."""
    python_path: tuple[Path, ...] = ()
    """Searched for the module before everything else."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CocotbResult:
    """What a run left. `failures` has the first line of each, by test; `kinds` the type of what
    was raised."""

    executed: tuple[str, ...]
    failures: Mapping[str, str]
    kinds: Mapping[str, str]
    results: Path
    log: Path

    @property
    def passed(self) -> bool:
        """Whether every executed test passed; run_cocotb has seen that all planned ones ran."""
        return not self.failures


def attach_memory() -> SharedMemory:
    """The shared memory, from inside a cocotb test. InfrastructureError anywhere else."""
    descriptor = os.environ.get(SHARED_FD)
    if descriptor is None:
        raise InfrastructureError("not inside a simulation: no shared memory to attach to")
    return SharedMemory(int(descriptor))


def run_cocotb(run: CocotbRun) -> CocotbResult:
    """Execute the planned tests. AssertionFailed or NeverSettles when the RTL or a checker ended
    the run; SimulatorTimeout, SimulatorDied or InfrastructureError when the run itself went wrong;
    failed tests are in the result."""
    if not run.tests:
        raise InfrastructureError(f"{run.module}: no test planned")
    run.folder.mkdir(parents=True, exist_ok=True)
    results, log = run.folder / "results.xml", run.folder / "sim.log"
    results.unlink(missing_ok=True)
    window = run.config.memory
    descriptor = SharedMemory.create(window.base, window.limit - window.base)
    try:
        status = _execute(run, descriptor, results, log)
    finally:
        os.close(descriptor)
    return _read(run, status, results, log)


def _command(run: CocotbRun, descriptor: int) -> list[str]:
    command = [str(run.binary), f"--shared-fd={descriptor}", f"--parent={os.getpid()}"]
    command += ["+verilator+rand+reset+2", f"+verilator+seed+{run.seed % _SEEDS + 1}"]
    if run.waves:
        command.append(f"--waves={(run.folder / run.waves).absolute()}")
        command += [f"--waves-from={run.waves_window[0]}", f"--waves-to={run.waves_window[1]}"]
    return [*command, *run.arguments]


def _environment(run: CocotbRun, results: Path) -> dict[str, str]:
    libpython = find_libpython.find_libpython()
    if libpython is None:
        raise InfrastructureError(f"{sys.executable} has no shared libpython, which cocotb needs")
    searched = filter(None, sys.path)
    names = "|".join(re.escape(name) for name in run.tests)
    own = {
        "COCOTB_TEST_MODULES": run.module,
        "COCOTB_TEST_FILTER": rf"\.({names})$",
        "COCOTB_TOPLEVEL": TOP,
        "TOPLEVEL_LANG": "verilog",
        "COCOTB_RESULTS_FILE": str(results.resolve()),
        "COCOTB_RANDOM_SEED": str(run.seed),
        "COCOTB_TRUST_INERTIAL_WRITES": "1",
        "PYGPI_PYTHON_BIN": sys.executable,
        "GPI_USERS": f"{libpython};{cocotb_tools.config.pygpi_entry_point()}",
        "PYTHONPATH": os.pathsep.join([*map(str, run.python_path), str(REPOSITORY), *searched]),
    }
    inherited = {name: text for name, text in os.environ.items() if name != "COCOTB_TESTCASE"}
    unless_set = {_REWRITTEN: f"{run.module.rpartition('.')[2]}.py"}
    return {**unless_set, **inherited, **own, **run.environment}


def _execute(run: CocotbRun, descriptor: int, results: Path, log: Path) -> int:
    """The exit status. The process group is gone afterwards, whatever happened."""
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                _command(run, descriptor),
                cwd=run.folder,
                env=_environment(run, results),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[descriptor],
                start_new_session=True,
            )
    except OSError as error:
        raise InfrastructureError(f"simulator does not start: {error}") from error
    try:
        return process.wait(run.timeout_s)
    except subprocess.TimeoutExpired as error:
        raise SimulatorTimeout(
            f"{run.module}: killed after {run.timeout_s:g} s; {log}: {_last_lines(log)}"
        ) from error
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _last_lines(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    return " | ".join([line for line in lines if line][-_LOG_LINES:]) or "empty log"


def _read(run: CocotbRun, status: int, results: Path, log: Path) -> CocotbResult:
    cases = _cases(results)
    executed = tuple(sorted(case.name for case in cases if not _is_skipped(case)))
    failures = {case.name: _failure(case) for case in cases if not case.is_passed}
    if status != 0 and not failures:
        by_rtl = rtl_error(log)
        if by_rtl is not None:
            raise by_rtl
        ended = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        raise SimulatorDied(f"simulator ended with {ended}; {log}: {_last_lines(log)}")
    if executed != tuple(sorted(run.tests)):
        raise InfrastructureError(
            f"{run.module}: planned {', '.join(sorted(run.tests))}, executed "
            f"{', '.join(executed) or 'nothing'}; {log}: {_last_lines(log)}"
        )
    kinds = {case.name: str(case.result[0].type or "") for case in cases if not case.is_passed}
    return CocotbResult(executed, failures, kinds, results, log)


def _cases(results: Path) -> list[TestCase]:
    """The test cases of the file; none when the simulator did not come to write it."""
    if not results.exists():
        return []
    return [case for suite in JUnitXml.fromfile(str(results)) for case in suite]


def _is_skipped(case: TestCase) -> bool:
    return bool(case.is_skipped)


def _failure(case: TestCase) -> str:
    text = str(case.result[0].message or case.result[0].type or "failed")
    return text.strip().splitlines()[0]
