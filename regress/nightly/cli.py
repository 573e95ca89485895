# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim nightly`: names and options of the command line. The work is done in tier.py."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from driver.errors import InputError
from driver.results import MAX_SEED, PROGRAM
from regress.console import console
from regress.options import ConfigFile, path_option
from regress.paths import CONFIG_FILE, NIGHTLY

_UNITS = {"s": 1, "m": 60, "h": 3600}
_LONGEST_S = 365 * 86_400
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smh])")


def duration_s(text: str) -> float:
    """Seconds of `90m`, `2h`, `45s`. InputError for anything else."""
    found = _DURATION.fullmatch(text)
    seconds = 0.0 if found is None else float(found[1]) * _UNITS[found[2]]
    if not 0 < seconds <= _LONGEST_S:
        raise InputError("command line", "budget", text, "a time such as 90m, 2h or 45s")
    return seconds


def nightly(
    tier: Annotated[str, typer.Argument(help="A tier of the file.")] = "nightly",
    *,
    resume: Annotated[bool, typer.Option(help="Run what is missing of the last plan.")] = False,
    only_failed: Annotated[bool, typer.Option(help="Only what was red last time.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Show the plan and run nothing.")] = False,
    filter: Annotated[str | None, typer.Option(help="As `test=mat* config=small`.")] = None,
    reseed: Annotated[
        int | None, typer.Option(help="Another first seed.", min=0, max=MAX_SEED)
    ] = None,
    budget: Annotated[str | None, typer.Option(help="As 90m: the most valuable first.")] = None,
    jobs: Annotated[int | None, typer.Option("-j", "--jobs", help="At once.", min=1)] = None,
    scheduler: Annotated[str | None, typer.Option(help="dask: tcp://HOST:PORT.")] = None,
    store: Annotated[str | None, typer.Option(help="Database URL; default: SQLite.")] = None,
    out: Annotated[Path, path_option("Folder of the store.")] = NIGHTLY,
    config_file: ConfigFile = CONFIG_FILE,
) -> int:
    """Run a tier of tests, keep every result, and say what is wrong."""
    from regress.nightly.request import Request  # noqa: PLC0415 (SQLAlchemy)
    from regress.nightly.tier import run_tier  # noqa: PLC0415

    request = Request(
        tier=tier,
        resume=resume,
        only_failed=only_failed,
        dry_run=dry_run,
        filter=filter,
        reseed=reseed,
        budget_s=None if budget is None else duration_s(budget),
        jobs=jobs,
        scheduler=scheduler,
        store_url=store,
        folder=out,
        config_file=config_file,
        command=shlex.join([PROGRAM, *sys.argv[1:]]),
    )
    return run_tier(console(), request)
