# SPDX-License-Identifier: Apache-2.0
"""Commands about nights and stored failures: names and options; night_commands does the work.

It is imported by the command that runs, because SQLAlchemy, numpy and jinja2 take long to import.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from driver.errors import InputError
from driver.results import MAX_SEED, PROGRAM
from regress.console import console
from regress.options import ConfigFile, Identity, path_option
from regress.paths import CONFIG_FILE, NIGHTLY

Op = Annotated[int | None, typer.Option(help="A failing op; the first by default.", min=0)]
StoreUrl = Annotated[str | None, typer.Option(help="Database URL; default: SQLite.")]
Folder = Annotated[Path, path_option("Folder of the store.")]
Plan = Annotated[str | None, typer.Option(help="Id of a plan; the last one by default.")]
Tier = Annotated[str | None, typer.Argument(help="A tier; the last plan's by default.")]


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
    from regress import night_commands  # noqa: PLC0415 (SQLAlchemy)
    from regress.nightly.request import TierRequest  # noqa: PLC0415

    request = TierRequest(
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
    return night_commands.nightly(console(), request)


def reproduce(
    identity: Identity, *, op: Op = None, store: StoreUrl = None, out: Folder = NIGHTLY
) -> int:
    """Run a stored failure again and compare its first mismatch with the stored one."""
    from regress import night_commands  # noqa: PLC0415

    return night_commands.reproduce(
        console(), night_commands.StoreLocation(out, store), identity, op
    )


def waves(
    identity: Identity,
    *,
    op: Op = None,
    kind: Annotated[str, typer.Option(help="fst or vcd.")] = "fst",
    store: StoreUrl = None,
    out: Folder = NIGHTLY,
) -> int:
    """Record the waves of a stored failure, with markers and views."""
    from regress import night_commands  # noqa: PLC0415

    return night_commands.waves(
        console(), night_commands.StoreLocation(out, store), identity, op, kind
    )


def shrink(
    identity: Identity,
    *,
    op: Op = None,
    store: StoreUrl = None,
    out: Folder = NIGHTLY,
    rounds: Annotated[int, typer.Option(help="At most.", min=1)] = 40,
) -> int:
    """Reduce a stored failure to the smallest op, shape and data that still fail, as a test."""
    from regress import night_commands  # noqa: PLC0415

    return night_commands.shrink(
        console(), night_commands.StoreLocation(out, store), identity, op, rounds
    )


def triage(*, plan: Plan = None, store: StoreUrl = None, out: Folder = NIGHTLY) -> int:
    """Sort the failures of a night: bugs, known issues, flaky jobs, changes."""
    from regress import night_commands  # noqa: PLC0415

    return night_commands.triage(console(), night_commands.StoreLocation(out, store), plan)


def bisect(
    identity: Identity,
    *,
    good: Annotated[str, typer.Option(help="A revision in which it passed.")],
    bad: Annotated[str, typer.Option(help="A revision in which it fails.")] = "HEAD",
    op: Op = None,
    store: StoreUrl = None,
    out: Folder = NIGHTLY,
) -> int:
    """Find the revision that broke a stored failure, by running it in each that is in question."""
    from regress import night_commands  # noqa: PLC0415

    return night_commands.bisect(
        console(), night_commands.StoreLocation(out, store), identity, op, (good, bad)
    )


def baseline(
    tier: Tier = None,
    *,
    plan: Plan = None,
    check: Annotated[bool, typer.Option("--check", help="Compare, write nothing.")] = False,
    store: StoreUrl = None,
    out: Folder = NIGHTLY,
) -> int:
    """Record cycles, utilisation, coverage and passes of a night as what later nights must keep."""
    from regress import night_commands  # noqa: PLC0415

    return night_commands.baseline(
        console(), night_commands.StoreLocation(out, store), tier, plan, check
    )


def report(
    *,
    plan: Plan = None,
    webhook: Annotated[str | None, typer.Option(help="Address that gets the news.")] = None,
    mail: Annotated[Path | None, path_option("File for the news as a message.")] = None,
    sender: Annotated[str, typer.Option(help="Of the message.")] = "npu-cosim@localhost",
    to: Annotated[list[str] | None, typer.Option(help="Readers of the message.")] = None,
    store: StoreUrl = None,
    out: Folder = NIGHTLY,
) -> int:
    """Write the dashboard of a night again; send the news where asked."""
    from regress import night_commands  # noqa: PLC0415

    readers = tuple(filter(None, to or ())) or ("root@localhost",)
    news = night_commands.Recipients(webhook or None, mail, sender, readers)
    return night_commands.report(console(), night_commands.StoreLocation(out, store), plan, news)


COMMANDS: Final = (nightly, reproduce, waves, shrink, triage, bisect, baseline, report)


def mount(app: typer.Typer) -> None:
    """Add the commands to the program's own."""
    for command in COMMANDS:
        app.command()(command)
