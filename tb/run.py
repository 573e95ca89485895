# SPDX-License-Identifier: Apache-2.0
"""`python -m tb.run RUN.json`: one test, as the command line starts it.

Events go to stdout as JSON lines, logs to stderr, the outcome to OUT/result.json. Exit status:
0 pass, 1 a verdict failed, 2 bad input, 3 infrastructure. `--list` prints the tests as JSON.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
from pathlib import Path

from driver.config import load_config
from driver.custom_ops import load_custom_ops, named_user_errors
from driver.errors import InputError, Interrupted, NpuError
from driver.results import (
    RESULT_FILE,
    AnyEvent,
    EndEvent,
    NoteEvent,
    OpEvent,
    PlanEvent,
    RunResult,
    RunSpec,
    event_line,
    read_json,
    write_json,
)
from tb.ops.runner import RunObserver, run_ops
from tb.ops.stopped import RunBroken
from tb.tests import infos, load

_SECOND = "SIM=cxxrtl"
_PLAIN_BUILD = {"array": "rtl", "variant": "plain"}
"""Fields that choose another build than that of the RTL as it is."""


def _print(event: AnyEvent) -> None:
    sys.stdout.write(event_line(event) + "\n")
    sys.stdout.flush()


class _StdoutProgress(RunObserver):
    """Events as lines, each at once: the reader may be a progress bar."""

    def plan(self, ops: int) -> None:
        _print(PlanEvent(ops=ops))

    def op(self, event: OpEvent) -> None:
        _print(event)

    def note(self, text: str) -> None:
        _print(NoteEvent(text=text))


class _NoteHandler(logging.Handler):
    """What the build and the device say while the user waits."""

    def __init__(self, progress: RunObserver) -> None:
        super().__init__(logging.INFO)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self._progress.note(record.getMessage())


def _check_plain(spec: RunSpec, last: str, wanted: str, what: str) -> None:
    """InputError unless the RTL runs as it is and the field `last` as wanted: `what` needs it."""
    expected = {"backend": "rtl", **_PLAIN_BUILD, last: wanted}
    for field, only in expected.items():
        value = getattr(spec, field)
        if value != only:
            raise InputError("command line", field, value, f"{only}, with {what}")


def _check_plain_build(spec: RunSpec) -> None:
    """InputError for a choice of build that only an ops test on RTL follows."""
    for field, plain in _PLAIN_BUILD.items():
        value = getattr(spec, field)
        if value != plain:
            raise InputError("command line", field, value, f"{plain}, or an ops test on rtl")


def _check_second_simulator(spec: RunSpec, kind: str) -> None:
    """InputError for what the other simulator cannot do."""
    if kind not in ("ops", "cocotb"):
        raise InputError("command line", "kind of test", kind, f"ops or cocotb, with {_SECOND}")
    _check_plain(spec, "waves", "none", _SECOND)


def _check_mutant(spec: RunSpec, kind: str) -> None:
    """InputError where no mutant can be planted, or for one that does not exist."""
    from tb.mutants.activation import mutant_set  # noqa: PLC0415 (only here)

    assert spec.mutant is not None
    mutant_set(spec.mutant)
    if kind not in ("ops", "cocotb", "unit"):
        raise InputError("command line", "mutant", spec.mutant, "none, with a test of this kind")
    _check_plain(spec, "simulator", "verilator", f"MUTANT={spec.mutant}")


def run(spec: RunSpec) -> RunResult:
    """Run the test of `spec`. NpuError for whatever is not a verdict."""
    progress = _StdoutProgress()
    for name in ("driver.backend.rtl", "tb.ops.evidence", "tb.sim.progress"):
        logging.getLogger(name).addHandler(_NoteHandler(progress))
    if spec.custom_ops is None:
        return _run(spec, progress)
    load_custom_ops(spec.custom_ops)
    with named_user_errors(spec.custom_ops):
        return _run(spec, progress)


def _run(spec: RunSpec, progress: _StdoutProgress) -> RunResult:
    module = load(spec.test)
    if spec.name_filter is not None and not getattr(module, "FILTERS_BY_NAME", False):
        raise InputError("command line", "filter", spec.name_filter, "TEST=ops")
    if spec.backend not in module.INFO.backends:
        known = ", ".join(module.INFO.backends)
        raise InputError("command line", "backend", spec.backend, f"one of {known}")
    config = load_config(spec.config_file, spec.config)
    if spec.backend != "rtl" or module.INFO.kind != "ops":
        _check_plain_build(spec)
    if spec.backend != "rtl" and spec.waves != "none":
        raise InputError("command line", "waves", spec.waves, "none, or a run on rtl")
    if spec.simulator != "verilator":
        _check_second_simulator(spec, module.INFO.kind)
    if spec.mutant is not None:
        _check_mutant(spec, module.INFO.kind)
    if module.INFO.kind == "cocotb" and spec.simulator != "verilator":
        from tb.env.on_backend import run_on_backend  # noqa: PLC0415 (needs pyuvm)

        return run_on_backend(spec, config, module, progress)
    if module.INFO.kind == "cocotb":
        from tb.env.runner import run_bench  # noqa: PLC0415 (needs cocotb)

        return run_bench(spec, config, module, progress)
    if module.INFO.kind == "unit":
        from tb.unit.suite import run_suite  # noqa: PLC0415 (only here)

        return run_suite(spec, progress)
    if module.INFO.kind == "pytest":
        from tb.pytest_suite import run_pytest  # noqa: PLC0415 (only here)

        return run_pytest(spec, progress, module.INFO.name)
    if module.INFO.kind == "program":
        from tb.programs.runner import run_program  # noqa: PLC0415 (only here: it opens device "npu")

        return run_program(spec, config, module, progress)
    return run_ops(spec, config, module, progress)


def _cpu_seconds() -> float:
    """Of this process and those it has waited for."""
    own = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(sum(usage.ru_utime + usage.ru_stime for usage in own), 3)


def _ended(error: NpuError) -> int:
    """Say why there is no verdict; the exit status."""
    _print(EndEvent(cpu_seconds=_cpu_seconds(), error=type(error).__name__, text=str(error)))
    sys.stderr.write(f"error: {error}\n")
    return error.exit_code


def main(arguments: list[str]) -> int:
    """Exit status."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    if arguments == ["--list"]:
        sys.stdout.write(json.dumps([info.model_dump(mode="json") for info in infos()]) + "\n")
        return 0
    try:
        if len(arguments) != 1:
            raise InputError("command line", "arguments", arguments, "RUN.json or --list")
        spec = read_json(Path(arguments[0]), RunSpec)
        started = time.monotonic()
        result = run(spec)
        wall_seconds = round(time.monotonic() - started, 3)
        write_json(spec.out / RESULT_FILE, result.model_copy(update={"wall_seconds": wall_seconds}))
    except RunBroken as broken:
        wall_seconds = round(time.monotonic() - started, 3)
        result = broken.result.model_copy(update={"wall_seconds": wall_seconds})
        write_json(spec.out / RESULT_FILE, result)
        return _ended(broken.cause)
    except NpuError as error:
        return _ended(error)
    except KeyboardInterrupt:  # by the user, or at the time limit: the parent knows which
        sys.stderr.write("interrupted\n")
        return Interrupted.exit_code
    _print(EndEvent(cpu_seconds=_cpu_seconds()))
    return 0 if result.status == "pass" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
