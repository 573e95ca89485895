# SPDX-License-Identifier: Apache-2.0
"""`python -m tb.mutants [NAME …]`: all planted mutants, or these, planted or sampled.
`python -m tb.mutants --sample SEED`: the mutants that a seed samples.

A run that breaks is a row as well; the others go on. Exit status: 0 when each planted mutant was
caught and reproduced and each sampled one detected, 1 when not, 2 for a name that does not exist,
3 when the run of a planted one broke.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from driver.errors import InfrastructureError, NpuError
from tb.mutants.activation import mutant_set
from tb.mutants.campaign import run_planted
from tb.mutants.sampled import SAMPLED, parse_sampled, sample
from tb.mutants.score import Fate, judge_all, summary
from tb.mutants.table import PLANTED
from tb.sim.spec import PLANTED_SET


def main(arguments: list[str]) -> int:
    """Print a row per mutant as it comes; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tb.mutants")
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants; default: all planted")
    parser.add_argument("--sample", type=int, metavar="SEED", help="those that this seed samples")
    options = parser.parse_args(arguments)
    names = options.names or ([] if options.sample is not None else list(PLANTED))
    try:
        if options.sample is not None:
            names += sample(parse_sampled(f"{SAMPLED}{options.sample}-1").seed)
        sets = {name: mutant_set(name) for name in names}
        planted = [name for name in names if sets[name] == PLANTED_SET]
        sampled = [name for name in names if sets[name] != PLANTED_SET]
        with tempfile.TemporaryDirectory(prefix="npu-mutants-") as folder:
            status = _planted(planted, Path(folder)) if planted else 0
            return max(status, _sampled(sampled, Path(folder)) if sampled else 0)
    except NpuError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code


def _planted(names: Sequence[str], folder: Path) -> int:
    right = broken = 0
    for name in names:
        try:
            found = run_planted(name, folder)
            right += found.right
            line = found.line()
        except InfrastructureError as error:
            broken += 1
            line = f"{name:20} BROKE     {error}"
        _print(line)
    _print(f"{right} of {len(names)} caught, blamed on the RTL and reproduced")
    if broken:
        return InfrastructureError.exit_code
    return 0 if right == len(names) else 1


def _sampled(names: Sequence[str], folder: Path) -> int:
    results = []
    for result in judge_all(names, folder):
        results.append(result)
        _print(result.line())
    _print(summary(results))
    return int(any(result.fate is Fate.SURVIVED for result in results))


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
