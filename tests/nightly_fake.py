# SPDX-License-Identifier: Apache-2.0
"""Stands in for the bench in a nightly: what fake_runner.py does, and more ways to misbehave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import fake_runner
from fake_runner import ROW, event

Spec = dict[str, object]
_SIMULATOR = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(0.1)")


def _waiting(_spec: Spec) -> int:
    """The device never answers, and the bench itself gives up."""
    text = "no interrupt within 10 cycles"
    event("end", cpu_seconds=0.25, error="SimulatorTimeout", text=text)
    sys.stderr.write(f"error: {text}\n")
    return 3


def _simulating(spec: Spec) -> int:
    """A process of its own is the simulator; the folder says which."""
    simulator = subprocess.Popen(_SIMULATOR)
    (Path(str(spec["out"])) / "simulator").write_text(str(simulator.pid))
    if simulator.wait():
        sys.stderr.write("error: the simulator died\n")
        return 3
    return _pass(spec)


def _slow(spec: Spec) -> int:
    """As many tenths of a second as the seed."""
    time.sleep(int(str(spec["seed"])) / 10)
    return _pass(spec)


def _thirsty(spec: Spec) -> int:
    """Many cycles, without end."""
    while True:
        event("op", **{**ROW, "cycles": 10**8})
        time.sleep(0.01)


def _flaky(spec: Spec) -> int:
    """Another result each time."""
    return _pass(spec, cycles=time.monotonic_ns())


def _full(spec: Spec) -> int:
    """The disk is full when the log is written."""
    try:
        with open("/dev/full", "w") as file:  # noqa: PTH123
            file.write("waves")
    except OSError as error:
        sys.stderr.write(f"error: waves.vcd: {error.strerror}\n")
        return 3
    return _pass(spec)


def _fatal(_spec: Spec) -> int:
    """$fatal: the simulator says where, and the bench that it is gone."""
    sys.stderr.write("%Error: tb_top.sv:7: Assertion failed\n")
    sys.stderr.write("error: the simulator ended with status 134: tb_top.sv:7\n")
    return 3


def _spinning(spec: Spec) -> int:
    """Half a second of one processor."""
    while time.process_time() < 0.5:
        pass
    return _pass(spec)


def _reading(spec: Spec) -> int:
    """The capsule has to be there, whole."""
    capsules = spec["capsules"]
    assert isinstance(capsules, dict)
    for folder in capsules.values():
        names = sorted(path.name for path in Path(str(folder)).iterdir())
        if names != ["capsule.json", "tensors.safetensors"]:
            sys.stderr.write(f"error: {folder}: {names}\n")
            return 2
    return _pass(spec)


def _scanty(spec: Spec) -> int:
    """One op, in whatever part it is asked for."""
    shard = spec.get("shard")
    if isinstance(shard, dict) and shard["count"] > 1:
        sys.stderr.write(f"error: command line: shards: got {shard['count']}, expected 1 at most\n")
        return 2
    return _pass(spec)


def _pass(spec: Spec, **fields: object) -> int:
    status = fake_runner.main({**spec, "test": "passing"})
    file = Path(str(spec["out"])) / "result.json"
    result = {**json.loads(file.read_text()), "test": spec["test"], **fields}
    shard = spec.get("shard")
    if isinstance(shard, dict):
        result["ops"] = [{**ROW, "index": shard["index"]}]
    file.write_text(json.dumps(result))
    event("end", cpu_seconds=round(time.process_time(), 3))
    return status


BEHAVIOURS: dict[str, Callable[[Spec], int]] = {
    "waiting": _waiting,
    "simulating": _simulating,
    "slow": _slow,
    "thirsty": _thirsty,
    "flaky": _flaky,
    "full": _full,
    "fatal": _fatal,
    "spinning": _spinning,
    "reading": _reading,
    "scanty": _scanty,
    "quick": _pass,
}
INFOS = [*fake_runner.INFOS, *({**fake_runner.INFOS[0], "name": name} for name in BEHAVIOURS)]


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[-1]).read_text())
    os.environ.pop("PYTHONPATH", None)
    sys.exit(BEHAVIOURS.get(asked["test"], fake_runner.main)(asked))
