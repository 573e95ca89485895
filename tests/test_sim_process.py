# SPDX-License-Identifier: Apache-2.0
"""A simulator that dies, stops or hangs is a typed error within seconds, and leaves no process."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sim_host import FAIL, FINISH, HANG, ID, STANDIN, open_standin, standin

from driver.backend import simulator
from driver.backend.shared_memory import SharedMemory
from driver.errors import (
    AssertionFailed,
    DeviceHung,
    InfrastructureError,
    SimulatorDied,
    SimulatorTimeout,
)

SECONDS = 15.0
"""Generous for a loaded machine; the limits under test are far below."""


def during_a_run(act: Callable[[int], None]) -> tuple[Exception, float]:
    """Act on the process of a simulator in the middle of an endless run: the error, and how many
    seconds after the act it came."""
    backend = open_standin()
    acted: list[float] = []

    def later() -> None:
        time.sleep(0.5)
        acted.append(time.monotonic())
        act(backend.simulator.pid)

    thread = threading.Thread(target=later)
    thread.start()
    with pytest.raises(InfrastructureError) as caught:
        backend.run(10**12, 600)
    delay = time.monotonic() - acted[0]
    thread.join()
    assert not is_running(backend.simulator.pid)
    with pytest.raises(SimulatorDied, match="closed, or died before"):
        backend.read_csr(ID)
    backend.close()
    return caught.value, delay


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_gone(pid: int) -> bool:
    deadline = time.monotonic() + SECONDS
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(pid)


def test_killed_in_the_middle_of_a_run() -> None:
    error, delay = during_a_run(lambda pid: os.kill(pid, signal.SIGKILL))
    assert isinstance(error, SimulatorDied)
    assert "SIGKILL" in str(error)
    assert "\n" not in str(error)
    assert delay < SECONDS


def test_stopped_in_the_middle_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "ANSWER_S", 2.0)
    error, delay = during_a_run(lambda pid: os.kill(pid, signal.SIGSTOP))
    assert isinstance(error, SimulatorTimeout)
    assert "no answer to RUN" in str(error)
    assert delay < SECONDS


def test_a_request_that_ctrl_c_ends_leaves_no_answer_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend = open_standin()
    receive = simulator.Simulator._receive

    def interrupted(*_arguments: object) -> bytes:
        monkeypatch.setattr(simulator.Simulator, "_receive", staticmethod(receive))
        raise KeyboardInterrupt

    monkeypatch.setattr(simulator.Simulator, "_receive", staticmethod(interrupted))
    with pytest.raises(KeyboardInterrupt):
        backend.read_csr(HANG)
    with pytest.raises(SimulatorDied, match="closed, or died before"):
        backend.read_csr(ID)


def test_killed_between_two_requests() -> None:
    backend = open_standin()
    os.kill(backend.simulator.pid, signal.SIGTERM)
    with pytest.raises(SimulatorDied, match="SIGTERM"):
        backend.read_csr(ID)


def test_device_that_does_not_answer_is_a_timeout_until_reset() -> None:
    with open_standin() as backend:
        backend.write_csr(HANG, 1)
        before = backend.cycle
        for access in (lambda: backend.read_csr(ID), lambda: backend.write_csr(HANG, 1)):
            with pytest.raises(DeviceHung, match=r"register 0x.*within 10000 cycles") as caught:
                access()
            assert caught.value.standstill.cycle == backend.cycle
            assert caught.value.standstill.state is None
        assert backend.cycle - before == 20_000
        backend.reset()
        assert backend.read_csr(ID) == 0x4E50_5530


def test_failed_assertion_is_quoted() -> None:
    backend = open_standin("check")
    before = backend.cycle
    with pytest.raises(AssertionFailed, match="standin: asked to fail") as caught:
        backend.write_csr(FAIL, 1)
        backend.run(10, 10)
    error = caught.value
    assert (error.exit_code, error.file) == (1, "npu_top.sv")
    assert error.scope.startswith("tb_top.u_npu.")
    source = (STANDIN / error.file).read_text().splitlines()[error.line - 1]
    assert error.scope.rpartition(".")[2] in source or "asked to fail" in source
    assert before < error.cycle <= backend.cycle
    assert error.log == str(backend.simulator.log)
    backend.close()


def test_an_assertion_of_an_earlier_run_is_not_told_again(tmp_path: Path) -> None:
    log = tmp_path / "sim.log"
    with pytest.raises(AssertionFailed):
        backend = open_standin("check", log=log)
        backend.write_csr(FAIL, 1)
        backend.run(10, 10)
    second = open_standin("check", log=log)
    os.kill(second.simulator.pid, signal.SIGKILL)
    with pytest.raises(SimulatorDied, match="SIGKILL"):
        second.read_csr(ID)


def test_finish_of_the_design_is_an_error() -> None:
    backend = open_standin()
    with pytest.raises(SimulatorDied, match=r"\$finish"):
        backend.write_csr(FINISH, 1)
    backend.close()


def test_binary_that_does_not_start(tmp_path: Path) -> None:
    descriptor = os.memfd_create("empty")
    log = tmp_path / "sim.log"
    with pytest.raises(InfrastructureError, match="does not start"):
        simulator.Simulator(tmp_path / "missing", descriptor, log)
    with pytest.raises(SimulatorDied, match=r"exit status 3.*not a memory file"):
        simulator.Simulator(standin("fast"), descriptor, log)
    os.close(descriptor)


def test_a_start_that_is_interrupted_leaves_no_process(tmp_path: Path) -> None:
    descriptor, script, pid = os.memfd_create("empty"), tmp_path / "silent", tmp_path / "pid"
    script.write_text(f"#!/bin/sh\necho $$ > {pid}\nexec sleep 60\n")
    script.chmod(0o755)
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a package has its own
    threading.Timer(0.5, _thread.interrupt_main).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            simulator.Simulator(script, descriptor, tmp_path / "sim.log")
    finally:
        signal.signal(signal.SIGINT, former)
    os.close(descriptor)
    assert wait_gone(int(pid.read_text()))


def test_requests_that_the_server_refuses_say_why() -> None:
    with open_standin() as backend:
        with pytest.raises(InfrastructureError, match="built without tracing"):
            backend.record_waves(Path("x.vcd"))
        assert backend.read_csr(ID) == 0x4E50_5530


ORPHAN = """
import sys, threading
from driver.backend.simulator import Verb
from sim_host import HANG, open_standin
backend = open_standin()
print(backend.simulator.pid, flush=True)
if sys.argv[1] == "running":
    endless = (Verb.RUN, 10**12, 600_000, 0)
    threading.Thread(target=backend.simulator.request, args=endless, daemon=True).start()
if sys.argv[1] == "in reset":
    endless = (Verb.RESET, 2**32 - 1)
    threading.Thread(target=backend.simulator.request, args=endless, daemon=True).start()
if sys.argv[1] == "in a register access":
    backend.write_csr(HANG, 1)
    endless = (Verb.CSR_READ, 0, 2**40)
    threading.Thread(target=backend.simulator.request, args=endless, daemon=True).start()
sys.stdin.read()
"""


@pytest.mark.parametrize("state", ["idle", "running", "in reset", "in a register access"])
def test_simulator_ends_with_a_killed_parent(state: str) -> None:
    standin("fast")
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHAN, state],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.5)
    assert is_running(pid)
    parent.kill()
    parent.communicate()
    assert wait_gone(pid)


def test_simulator_ends_when_nobody_talks(tmp_path: Path) -> None:
    descriptor = SharedMemory.create(0, 4096)
    process = simulator.Simulator(
        standin("fast"), descriptor, tmp_path / "sim.log", ["--idle-seconds=1"]
    )
    os.close(descriptor)
    assert wait_gone(process.pid)
    process.close()
