# SPDX-License-Identifier: Apache-2.0
"""Stands in for `python -m tb.run`: the spec's test names how it behaves. Run as a script."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

ROW = {
    "index": 0,
    "op": "aten.mm.default",
    "module": "model.layers.0.mlp.gate_proj",
    "source": "model.py:3",
    "where": "rtl",
    "dtype": "fp32",
    "shapes": [[2, 3], [3, 4]],
    "elements_compared": 8,
    "rtl_vs_cmodel_mismatches": 0,
    "torch_max_error": 0.5e-6,
    "torch_bound": 1.0e-6,
    "cycles": 100,
    "macs": 24,
    "utilisation": 0.25,
    "status": "pass",
    "blame": "none",
    "failure": None,
}
FAILURE = {
    "element": [0, 3],
    "tile": [0, 0],
    "expected_bits": "0x40490fdb",
    "actual_bits": "0x3f800000",
    "expected": 3.1415927410125732,
    "actual": 1.0,
    "cycle": 4242,
    "detail": "first of 1\x1b",
}
FAILED_ROW = {
    **ROW,
    "index": 1,
    "rtl_vs_cmodel_mismatches": 1,
    "status": "fail",
    "blame": "rtl",
    "failure": FAILURE,
}
TESTS = (
    "passing",
    "failing",
    "dying",
    "hanging",
    "leaving",
    "silent",
    "lying",
    "short",
    "refusing",
    "evident",
    "elsewhere",
)
OF_ANOTHER_RUN = {"other": {"seed": 99}, "planted": {"mutant": "hazard-write"}}
"""What the result of a run says that is not so."""
INFOS = [
    {
        "name": name,
        "summary": name,
        "kind": "ops",
        "backends": ["rtl", "cmodel"],
        "workloads": [],
        "takes_modes": name != "short",
        "checks": ["First", "Second"] if name == "passing" else [],
    }
    for name in (*TESTS, "stale", *OF_ANOTHER_RUN, "broken", "replay")
]
PECULIAR = {
    **INFOS[0],
    "name": "peculiar",
    "config": "qwen",
    "modes": ["isolated", "chained"],
}
CMODEL_ONLY = {**INFOS[0], "name": "modelled", "backends": ["cmodel"]}


def event(kind: str, **fields: object) -> None:
    """Print one event."""
    sys.stdout.write(json.dumps({"event": kind, **fields}) + "\n")
    sys.stdout.flush()


def wait_for_interrupt() -> NoReturn:
    """A longer sleep can miss a signal that comes just before it."""
    while True:
        time.sleep(0.01)


def _line(spec: dict[str, object]) -> str:
    line = f"npu-cosim run {spec['test']} --config default --seed {spec['seed']}"
    return f"{line} --config-file {spec['config_file']}" if spec["test"] == "elsewhere" else line


def main(spec: dict[str, object]) -> int:
    """Behave as the test's name says."""
    test, out = str(spec["test"]), Path(str(spec["out"]))
    result = {
        "schema_version": 1,
        "status": "pass",
        **{name: spec[name] for name in ("test", "config", "seed", "backend")},
        "cycles": 200,
        "wall_seconds": 0.5,
        "reproduce": _line(spec),
        "message": None,
        "ops": [ROW],
        "ledger": [{"op": "aten.relu.default", "where": "cpu", "count": 2, "reason": "no such op"}],
    }
    sys.stderr.write("a line of the log\n")
    sys.stdout.write("a library's chatter\n")
    event("plan", ops=2 if test == "short" else 1)
    event("note", text="building the simulator")
    event("op", **ROW)
    status = 0
    if test == "failing":
        result |= {"status": "fail", "ops": [ROW, FAILED_ROW]}
        event("op", **FAILED_ROW)
        status = 1
    if test == "evident":
        (out / "failures" / "op1").mkdir(parents=True)
        (out / "failures" / "op1" / "map.json").write_text("{}")
        (out / "waves.vcd").write_text("")
    if test == "dying":
        os.kill(os.getpid(), signal.SIGSEGV)
    if test in ("hanging", "leaving"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (out / "child").write_text(str(child.pid))
        if test == "hanging":
            time.sleep(600)
    if test.startswith("long"):
        try:
            wait_for_interrupt()
        except KeyboardInterrupt:
            result |= {"message": "after 1 of 2 ops"}
            result |= {"status": "pass" if test == "long-green" else "error"}
            if test == "long-red":
                result["ops"] = [ROW, FAILED_ROW]
            result["seed"] = 99 if test == "long-other" else spec["seed"]
            (out / "result.json").write_text(json.dumps(result))
            return 130
    if test in ("silent", "stale"):
        return 0
    if test == "lying":
        status = 1
    if test == "refusing":
        sys.stderr.write("error: capsule.json: hash: got 1, expected 2\n")
        return 2
    if test == "broken":
        sys.stderr.write("error: no usable Verilator\n")
        return 3
    result |= OF_ANOTHER_RUN.get(test, {})
    (out / "result.json").write_text(json.dumps(result))
    return status


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        sys.stdout.write(json.dumps([*INFOS, PECULIAR, CMODEL_ONLY]) + "\n")
        sys.exit(0)
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text())))
