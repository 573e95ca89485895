# SPDX-License-Identifier: Apache-2.0
"""The RTL unit benches, started as `python -m tb.unit`. Knows their names and exit status only."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from driver.errors import InfrastructureError
from regress.paths import BUILD
from regress.process import execute, last_lines, terminable

RUNNER: tuple[str, ...] = (sys.executable, "-m", "tb.unit")
LIMIT_S = 1800.0
_LIST_LIMIT_S = 60.0


def known_units(runner: tuple[str, ...] = RUNNER) -> tuple[str, ...]:
    """Names of the benches. InfrastructureError when tb cannot say."""
    lines: list[str] = []
    with TemporaryDirectory(prefix="npu-") as folder:
        log = Path(folder) / "log"
        ended = execute([*runner, "--list"], log, _LIST_LIMIT_S, lines.append)
        if ended.status != 0 or ended.timed_out:
            why = " | ".join(last_lines(log, 1)) or "no message"
            raise InfrastructureError(f"listing the unit benches failed: {why}")
    return tuple(entry["name"] for entry in json.loads("\n".join(lines)))


def run_unit(name: str, vectors: Path | None, seed: int, runner: tuple[str, ...] = RUNNER) -> int:
    """Run a bench; its lines go to stdout as they come. The exit status of the bench."""
    options = [] if vectors is None else ["--vectors", str(vectors.absolute())]
    log = BUILD / "unit" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)

    def show(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    with terminable():
        command = [*runner, name, "--seed", str(seed), *options]
        ended = execute(command, log, LIMIT_S, show)
    for line in last_lines(log, 8) if ended.status else []:
        sys.stderr.write(f"{line}\n")
    if ended.timed_out or ended.status not in (0, 1, 2, 3):
        raise InfrastructureError(f"unit bench {name} {ended.describe(LIMIT_S)}; see {log}")
    return ended.status
