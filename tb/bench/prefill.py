# SPDX-License-Identifier: Apache-2.0
"""Seconds of the whole prefill of 16 tokens of Qwen2.5-0.5B, exact RTL, two processes at a time.

Wall clock, with the judging of every op: a figure of a machine that does nothing else. Recording
the model and building the simulator are not part of it.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
import time
from pathlib import Path

from driver.errors import InfrastructureError, VerdictError
from driver.results import PROGRAM, RESULT_FILE, RunResult, read_json
from tb.bench.measure import Measurement, Note
from tb.sim.spec import REPOSITORY

_COMMAND = (PROGRAM, "run", "qwen_prefill", "--config", "qwen")
_FIRST_OP = ("--op", "0")
_WHOLE = ("--shards", "16", "--jobs", "2")
_LIMIT_S = 3000.0


def measure(rounds: int, note: Note) -> Measurement:
    """One round: it takes minutes."""
    del rounds
    with tempfile.TemporaryDirectory(prefix="npu-bench-") as name:
        _run(_FIRST_OP, Path(name) / "first")
        start = time.monotonic()
        result = _run(_WHOLE, Path(name) / "whole")
        seconds = time.monotonic() - start
    cycles = sum(op.cycles or 0 for op in result.ops)
    note(f"{len(result.ops):,} ops, {cycles:,} cycles, {cycles / seconds:,.0f} cycles/s")
    return Measurement(seconds, 0.0)


def _run(words: tuple[str, ...], out: Path) -> RunResult:
    """A run that passes. VerdictError when it does not, InfrastructureError without a verdict."""
    command = [*_COMMAND, *words, "--out", str(out)]
    line = shlex.join(command)
    try:
        done = subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise InfrastructureError(f"{line}: no end in {_LIMIT_S:g} s") from error
    if done.returncode == VerdictError.exit_code:
        raise VerdictError(f"{line}: the run failed, expected a pass")
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise InfrastructureError(f"{line}: status {done.returncode}, {last}")
    return read_json(out / RESULT_FILE, RunResult)
