# SPDX-License-Identifier: Apache-2.0
"""`python -m tb.mutants [NAME …]`: all planted mutants, or these, planted or sampled.
`python -m tb.mutants --seed N`: the planted ones with other random commands.
`python -m tb.mutants --sample SEED`: the mutants that a seed samples.

A run that breaks is a row as well; the others go on. Exit status: 0 when each planted mutant was
caught and reproduced and each sampled one detected, 1 when not, 2 for a name that does not exist,
3 when a run broke, 130 when interrupted.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar

from driver.errors import InfrastructureError, InputError, NpuError
from tb.mutants.activation import is_sound, mutant_set
from tb.mutants.campaign import BrokenRun, PlantedRun, run_planted
from tb.mutants.sampled import SAMPLED, parse_sampled, sample
from tb.mutants.score import Fate, SampledResult, build_all, judge, summary
from tb.mutants.table import PLANTED
from tb.sim.spec import PLANTED_SET

_INTERRUPTED = 130
_EVERY_S = 30.0
_Row = TypeVar("_Row", PlantedRun, SampledResult)


def main(arguments: list[str]) -> int:
    """Print a row per mutant as it comes; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tb.mutants")
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants; default: all planted")
    parser.add_argument("--sample", type=int, metavar="SEED", help="those that this seed samples")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="of the runs of planted mutants; default: 1"
    )
    parser.add_argument(
        "-j", "--jobs", type=int, default=2, metavar="N", help="at once; default: 2"
    )
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs: got {options.jobs}, expected 1 or more")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    names: list[str] = options.names or ([] if options.sample is not None else list(PLANTED))
    try:
        if options.sample is not None:
            names += sample(parse_sampled(f"{SAMPLED}{options.sample}-1").seed)
        sets = {name: mutant_set(name) for name in names}  # each once
        for name in filter(is_sound, sets):
            raise InputError("command line", "mutant", name, "one that is active")
        planted = [name for name, of in sets.items() if of == PLANTED_SET]
        sampled = [name for name, of in sets.items() if of != PLANTED_SET]
        if sampled and options.seed is not None:
            raise InputError("command line", "--seed", options.seed, f"none with {sampled[0]}")
        with (
            tempfile.TemporaryDirectory(prefix="npu-mutants-") as folder,
            ThreadPoolExecutor(options.jobs) as pool,
        ):
            seed = 1 if options.seed is None else options.seed
            status = _planted(planted, seed, pool, Path(folder)) if planted else 0
            return max(status, _sampled(sampled, pool, Path(folder)) if sampled else 0)
    except NpuError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:  # what was finished is told
        sys.stderr.write("interrupted\n")
        return _INTERRUPTED


def _planted(names: Sequence[str], seed: int, pool: ThreadPoolExecutor, folder: Path) -> int:
    rows = _rows(names, pool, lambda name: run_planted(name, folder, seed))
    right = sum(row.right for row in rows if isinstance(row, PlantedRun))
    _print(f"{right} of {len(names)} caught, blamed on the RTL and reproduced")
    if any(isinstance(row, BrokenRun) for row in rows):
        return InfrastructureError.exit_code
    return 0 if right == len(names) else 1


def _sampled(names: Sequence[str], pool: ThreadPoolExecutor, folder: Path) -> int:
    build_all(names)  # a build that breaks is no mutant detected
    rows = _rows(names, pool, lambda name: judge(name, folder / name))
    judged = [row for row in rows if isinstance(row, SampledResult)]
    _print(summary(judged) if judged else "no mutant was judged")
    if len(judged) < len(rows):
        _print(
            f"{len(rows) - len(judged)} of {len(rows)} not judged: the score is not the sample's"
        )
        return InfrastructureError.exit_code
    return int(any(row.fate is Fate.SURVIVED for row in judged))


def _or_broken(run: Callable[[str], _Row], name: str) -> _Row | BrokenRun:
    """A run that breaks is a row, and the others go on."""
    try:
        return run(name)
    except InfrastructureError as error:
        return BrokenRun(name, str(error))


def _rows(
    names: Sequence[str], pool: ThreadPoolExecutor, run: Callable[[str], _Row]
) -> list[_Row | BrokenRun]:
    """What `run` gives for each name, printed in this order as it comes."""
    began = time.monotonic()
    futures = [pool.submit(_or_broken, run, name) for name in names]
    rows: list[_Row | BrokenRun] = []
    try:
        _tell(futures, began)
        for future in futures:
            while not future.done():
                wait([future], _EVERY_S)
                _tell(futures, began)
            rows.append(future.result())
            _print(rows[-1].line())
    finally:
        for future in futures:
            future.cancel()
    return rows


def _tell(futures: Sequence[Future[_Row | BrokenRun]], began: float) -> None:
    done, of = sum(future.done() for future in futures), len(futures)
    seconds = time.monotonic() - began
    left = f"{seconds / done * (of - done) / 60:.0f} min left" if done else f"{seconds:.0f} s"
    sys.stderr.write(f"{done} of {of} mutants, {left}\n")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
