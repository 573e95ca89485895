# SPDX-License-Identifier: Apache-2.0
"""What jobs share and must not race for: simulators and capsules, each made once, before the runs.

Each step is a process of its own with a log; a failure is reported to the caller, and ends nothing.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from driver.errors import ERROR_PREFIX, NpuError
from driver.test_info import TestInfo
from regress.nightly.job import capsule_names
from regress.process import execute, last_lines
from regress.results.model import PlannedJob, PreparationRecord

_LIMIT_S = 3600.0
_PROFILED = {name: f"{name}-pgo" for name in ("check", "behavioural")}
"""The same builds compiled with a profile."""
_VARIANTS = {"ops": "check", "cocotb": "cocotb", "program": "check"}
"""Kind of test → the build its simulator comes from (tb/sim/spec.py), with the array of the
RTL. Unit benches build their own programs."""


BUILD_STEP, CAPSULE_STEP = "build", "capsule"


@dataclass(frozen=True, order=True)
class PrepareStep:
    """A build or a capture."""

    kind: str
    """BUILD_STEP or CAPSULE_STEP."""
    what: str
    """Configuration or workload."""
    how: str
    """Variant or seed."""

    @property
    def name(self) -> str:
        """As reports show it."""
        return f"{self.kind} {self.what} {self.how}"

    def command(self, config_file: Path) -> tuple[str, ...]:
        """The process that does it; its last line of stdout is JSON."""
        if self.kind == BUILD_STEP:
            own = ["--config", self.what, "--sim-config", str(config_file), "--variant", self.how]
            return (sys.executable, "-m", "tb.sim.build", *own, "--json")
        return (sys.executable, "-m", "regress.nightly.prepare", self.what, self.how)


@dataclass(frozen=True)
class PrepareResult:
    """What a step left."""

    ok: bool
    detail: str
    """Key of the build, hash of the capsule; what went wrong where not ok."""
    folder: Path | None = None


BuildFunction = Callable[[PrepareStep, Path, Callable[[], bool]], tuple[PrepareResult, bool]]
"""Step and sim_config.yaml → what it left, and whether it had been there."""


def steps_of(item: PlannedJob, tests: Mapping[str, TestInfo]) -> tuple[PrepareStep, ...]:
    """What an item needs before it can start."""
    info = tests[item.test]
    workloads = capsule_names(item, info.workloads).values()
    steps = [PrepareStep(CAPSULE_STEP, workload, str(item.seed)) for workload in workloads]
    if item.backend == "rtl" and info.kind in _VARIANTS:
        variant = _VARIANTS[info.kind] if item.array == "rtl" else item.array
        steps.append(PrepareStep(BUILD_STEP, item.config, variant))
    return tuple(steps)


def profiled(step: PrepareStep) -> PrepareStep:
    """The step with a profile-guided build in place of a plain one, where there is one."""
    if step.kind != BUILD_STEP:
        return step
    return PrepareStep(step.kind, step.what, _PROFILED.get(step.how, step.how))


def prepare(
    steps: Iterable[PrepareStep],
    do: Callable[[PrepareStep], tuple[PrepareResult, bool]],
    record: Callable[[PrepareStep, PrepareResult, PreparationRecord], None],
    wanted: Callable[[], bool] = lambda: True,
) -> None:
    """Do each step once, in the order in which it is first asked for, as long as it is wanted;
    `record` hears of each.

    The plan's id in the records is empty: the caller knows it.
    """
    for step in dict.fromkeys(steps):
        if not wanted():
            return
        start = time.monotonic()
        before = _children_cpu_s()
        prepared, cached = do(step)
        seconds = round(time.monotonic() - start, 3)
        cpu_seconds = round(_children_cpu_s() - before, 3)
        row = PreparationRecord(
            "", step.name, prepared.ok, cached, seconds, cpu_seconds, prepared.detail
        )
        record(step, prepared, row)


class _Cancelled(Exception):
    """The user has stopped the run."""


def do_step(
    step: PrepareStep,
    config_file: Path,
    logs: Path,
    wanted: Callable[[], bool],
    note: Callable[[str], None] = lambda text: None,
) -> tuple[PrepareResult, bool]:
    """Do a step here: what it left, and whether it had been there. `note` hears what the step says
    while it lasts."""
    lines: list[str] = []
    log = logs / f"{step.name.replace(' ', '-')}.log"

    said = ""

    def idle() -> None:
        nonlocal said
        if not wanted():
            raise _Cancelled
        for last in last_lines(log, 1):
            if last != said and not last.startswith(ERROR_PREFIX):
                said = last
                note(last)

    try:
        logs.mkdir(parents=True, exist_ok=True)
        ended = execute(step.command(config_file), log, _LIMIT_S, lines.append, on_idle=idle)
        if ended.status != 0 or ended.timed_out:
            why = "".join(last_lines(log, 1)).removeprefix(ERROR_PREFIX)
            return PrepareResult(False, why or f"{step.name} {ended.describe(_LIMIT_S)}"), False
        answer = json.loads(lines[-1])
        folder = Path(answer["folder"])
        return PrepareResult(True, str(answer["key"]), folder), bool(answer["cached"])
    except _Cancelled:
        return PrepareResult(False, "stopped on request"), False
    except NpuError as error:
        return PrepareResult(False, str(error)), False
    except (OSError, ValueError, LookupError) as error:
        return PrepareResult(False, f"{step.name}: {error}"), False


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main(arguments: list[str]) -> int:
    """`python -m regress.nightly.prepare WORKLOAD SEED`: its capsule, recorded unless kept."""
    from driver.capture import load_capsule  # noqa: PLC0415 (numpy, safetensors)
    from regress.capsules import kept_capsules  # noqa: PLC0415

    parser = argparse.ArgumentParser(prog="python -m regress.nightly.prepare")
    parser.add_argument("workload")
    parser.add_argument("seed", type=int)
    asked = parser.parse_args(arguments)
    notes: list[str] = []
    try:
        folder = kept_capsules([asked.workload], asked.seed, notes.append)[asked.workload]
        key = load_capsule(folder).hash
    except NpuError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    answer = {"folder": str(folder), "key": key, "cached": not notes}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
