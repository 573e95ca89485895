# SPDX-License-Identifier: Apache-2.0
"""`python -m regress.nightly.overhead NAME ROUNDS`: what a nightly itself costs, for `make bench`.

Jobs here are a command that only burns processor time: no simulator, no bench.
"""

from __future__ import annotations

import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from driver.errors import InputError, NpuError
from driver.results import NoteEvent, event_line
from driver.test_info import TestInfo
from regress.nightly.display import PlanDisplay
from regress.nightly.pool import LocalPool
from regress.nightly.request import TierRequest, new_plan
from regress.nightly.run_plan import PlanContext, PlanRunner
from regress.nightly.scheduler import RunControl
from regress.paths import CONFIG_FILE
from regress.results.model import JobStatus, PlannedJob
from regress.results.store import Store

_BURN = """
import json, pathlib, sys, time
spec = json.loads(pathlib.Path(sys.argv[-1]).read_text())
while time.process_time() < BUSY_S:
    pass
row = dict(index=0, op="x", module="", source="", where="rtl", dtype="fp32", shapes=[],
  elements_compared=1, rtl_vs_cmodel_mismatches=0, torch_max_error=None, torch_bound=None,
  cycles=1, macs=None, utilisation=None, status="pass", blame="none", failure=None)
own = {name: spec[name] for name in ("test", "config", "seed", "backend", "array")}
result = dict(own, status="pass", cycles=1, wall_seconds=0.1, reproduce="", message=None,
  ops=[row], ledger=[])
(pathlib.Path(spec["out"]) / "result.json").write_text(json.dumps(result))
"""
_TEST = "smoke"
_PLANNED = 10_000


def _items(count: int) -> tuple[PlannedJob, ...]:
    return tuple(PlannedJob(_TEST, "small", seed, "rtl", ordinal=seed) for seed in range(count))


def _run(folder: Path, jobs: int, count: int, busy_s: float) -> float:
    """Wall-clock seconds of so many jobs, so many at once."""
    info = TestInfo(name=_TEST, summary="", kind="ops", backends=("rtl",))
    code = _BURN.replace("BUSY_S", str(busy_s))
    runner = (sys.executable, "-I", "-S", "-c", code)
    context = PlanContext(CONFIG_FILE, {_TEST: info}, runner, steps_of=lambda item, tests: ())
    items = _items(count)
    with Store.open(folder) as store:
        plan = store.add_plan(new_plan(TierRequest("figure"), 1, ""), items)
        run = PlanRunner(store, plan, context, RunControl(), lambda text: None)
        ready = run.prepare(items)
        display = PlanDisplay(Console(file=io.StringIO()), "", ready, jobs, lambda item: None)
        start = time.monotonic()
        run.run(ready, LocalPool(folder, jobs), display)
        seconds = time.monotonic() - start
        states = [attempt.status for attempt in store.attempts(plan.id)]
    assert states == [JobStatus.PASS] * count
    return seconds


def overhead_ms(folder: Path) -> float:
    """Processor time of the runner per job, in ms."""
    count = 40
    before = time.process_time()
    _run(folder, 2, count, 0.0)
    return (time.process_time() - before) / count * 1e3


def speed_up(folder: Path) -> float:
    """Wall-clock time of CPU-bound jobs one at a time ÷ two at a time."""
    alone = _run(folder / "1", 1, 8, 1.0)
    return alone / _run(folder / "2", 2, 8, 1.0)


def plan_s(folder: Path) -> float:
    """Processor time to plan and store 10,000 jobs, in s."""
    before = time.process_time()
    with Store.open(folder) as store:
        plan = store.add_plan(new_plan(TierRequest("figure"), 1, ""), _items(_PLANNED))
        assert len(store.items(plan.id)) == _PLANNED
    return time.process_time() - before


MEASUREMENTS: dict[str, Callable[[Path], float]] = {
    "nightly_overhead": overhead_ms,
    "nightly_speedup": speed_up,
    "nightly_plan": plan_s,
}


def main(arguments: list[str]) -> int:
    """Exit status of the error, whose text is the last line of stderr."""
    try:
        if len(arguments) != 2 or arguments[0] not in MEASUREMENTS or int(arguments[1]) < 1:
            known = f"one of {', '.join(MEASUREMENTS)} and a number of rounds"
            raise InputError("command line", "arguments", " ".join(arguments), known)
        values = []
        for number in range(int(arguments[1])):
            with tempfile.TemporaryDirectory(prefix="npu-figure-") as folder:
                values.append(MEASUREMENTS[arguments[0]](Path(folder)))
            note = NoteEvent(text=f"round {number + 1}: {values[-1]:.3g}")
            sys.stdout.write(event_line(note) + "\n")
            sys.stdout.flush()
    except NpuError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    value = {"value": statistics.median(values), "spread": max(values) - min(values)}
    sys.stdout.write(json.dumps(value) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
