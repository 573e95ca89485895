# SPDX-License-Identifier: Apache-2.0
"""Runs Verilator, for simulators and for the programs of unit benches."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from driver.errors import InfrastructureError, InputError
from tb.sim.rewrite.assertions import always_assert
from tb.sim.rewrite.orderings import defer_orderings
from tb.sim.spec import REPOSITORY
from tb.sim.toolchain import Verilator

_SUMMARY = "%Error: Exiting due to"
_LOCATED = re.compile(r"%\w+[^:]*: (?P<file>[^:]+):(?P<line>\d+):\d+: (?P<message>.*)")
_LIMIT_S = 1800
"""A cold build of the largest configuration takes less than one minute of it."""


def run_verilator(
    verilator: Verilator, arguments: Sequence[str], sources: Iterable[Path], folder: Path
) -> None:
    """Generate C++ into `folder`, which exists, and make it quicker to compile and to run.

    InputError when Verilator refuses the sources, InfrastructureError when it does not run, breaks
    or never ends.
    """
    # Relative names: the messages of assertions do not depend on where the project lies.
    names = [os.path.relpath(path, REPOSITORY) for path in sources]
    try:
        done = subprocess.run(
            [str(verilator.binary), *arguments, "-Mdir", str(folder), *names],
            cwd=REPOSITORY,
            env={**os.environ, "VERILATOR_ROOT": str(verilator.root)},
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )
    except OSError as error:
        raise InfrastructureError(f"verilator does not start: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise InfrastructureError(f"verilator ran for {_LIMIT_S} s") from error
    if done.returncode != 0:
        raise _refusal(done.stderr, done.returncode)
    defer_orderings(folder)
    always_assert(folder)


def _refusal(output: str, status: int) -> InputError | InfrastructureError:
    """Its first error, or else its first warning, which ends it as well unless -Wno-fatal."""
    lines = [line for line in output.splitlines() if not line.startswith(_SUMMARY)]
    said = [line for kind in ("%Error", "%Warning") for line in lines if line.startswith(kind)]
    if not said:
        return InfrastructureError(f"verilator ended with status {status}")
    located = _LOCATED.match(said[0])
    if located is None:
        return InputError("rtl", "verilator", said[0], "sources that elaborate")
    place = f"line {located['line']}"
    return InputError(located["file"], place, located["message"], "sources that elaborate")
