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
from regress.options import (
    MAX_PROCESSES,
    ConfigFile,
    Identity,
    StoreFolder,
    StoreOptions,
    StoreUrl,
    path_option,
    with_options,
)
from regress.paths import CONFIG_FILE, NIGHTLY

Op = Annotated[int | None, typer.Option(help="A failing op; the first by default.", min=0)]
Plan = Annotated[str | None, typer.Option(help="Id of a plan; the last one by default.")]
Tier = Annotated[str | None, typer.Argument(help="A tier; the last plan's by default.")]


_UNITS = {"s": 1, "m": 60, "h": 3600}
_LONGEST_S = 365 * 86_400
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smh])")


def _without_password(words: list[str], url: str | None) -> list[str]:
    """The command line is stored, and shown in reports."""
    if url is None:
        return words
    from regress.results.database import database_url  # noqa: PLC0415 (SQLAlchemy)

    shown = database_url(NIGHTLY, url).render_as_string(hide_password=True)
    return [word.replace(url, shown) for word in words]


def duration_s(text: str, option: str = "budget") -> float:
    """Seconds of `90m`, `2h`, `45s`. InputError for anything else."""
    found = _DURATION.fullmatch(text)
    seconds = 0.0 if found is None else float(found[1]) * _UNITS[found[2]]
    if not 0 < seconds <= _LONGEST_S:
        raise InputError("command line", option, text, "a time such as 90m, 2h or 45s")
    return seconds


def nightly(
    tier: Annotated[str, typer.Argument(help="A tier of sim_config.yaml.")] = "nightly",
    *,
    resume: Annotated[bool, typer.Option(help="Run the missing jobs of the last plan.")] = False,
    only_failed: Annotated[
        bool, typer.Option(help="Run only the jobs that were red last time.")
    ] = False,
    dry_run: Annotated[bool, typer.Option(help="Show the plan and run nothing.")] = False,
    filter: Annotated[
        str | None, typer.Option(help="Only these jobs: `test=mat* config=small`.")
    ] = None,
    reseed: Annotated[
        int | None, typer.Option(help="First seed, in place of the file's.", min=0, max=MAX_SEED)
    ] = None,
    budget: Annotated[str | None, typer.Option(help="Time limit, for example 90m.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", help="Jobs at the same time.", min=1, max=MAX_PROCESSES),
    ] = None,
    scheduler: Annotated[str | None, typer.Option(help="dask scheduler: tcp://HOST:PORT.")] = None,
    store: StoreUrl = None,
    out: StoreFolder = NIGHTLY,
    config_file: ConfigFile = CONFIG_FILE,
) -> int:
    """Run a tier of tests, store the results and write reports."""
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
        command=shlex.join([PROGRAM, *_without_password(sys.argv[1:], store)]),
    )
    return night_commands.nightly(console(), request)


@with_options(StoreOptions)
def reproduce(location: StoreOptions, identity: Identity, *, op: Op = None) -> int:
    """Run a stored failure again. Its first mismatch is compared with the stored one."""
    from regress import night_commands  # noqa: PLC0415

    return night_commands.reproduce(console(), location, identity, op)


@with_options(StoreOptions)
def waves(
    location: StoreOptions,
    identity: Identity,
    *,
    op: Op = None,
    kind: Annotated[str, typer.Option(help="fst or vcd.")] = "fst",
) -> int:
    """Record the waves of a stored failure, with markers."""
    from regress import night_commands  # noqa: PLC0415

    return night_commands.waves(console(), location, identity, op, kind)


@with_options(StoreOptions)
def shrink(
    location: StoreOptions,
    identity: Identity,
    *,
    op: Op = None,
    rounds: Annotated[int, typer.Option(help="Rounds at most.", min=1)] = 40,
) -> int:
    """Reduce a stored failure to a small test. Op, shape and data are the smallest found."""
    from regress import night_commands  # noqa: PLC0415

    return night_commands.shrink(console(), location, identity, op, rounds)


@with_options(StoreOptions)
def triage(location: StoreOptions, *, plan: Plan = None) -> int:
    """Sort the failures of a night into bugs and known issues."""
    from regress import night_commands  # noqa: PLC0415

    return night_commands.triage(console(), location, plan)


@with_options(StoreOptions)
def bisect(
    location: StoreOptions,
    identity: Identity,
    *,
    good: Annotated[str, typer.Option(help="A revision in which it passed.")],
    bad: Annotated[str, typer.Option(help="A revision in which it fails.")] = "HEAD",
    op: Op = None,
) -> int:
    """Find the revision that introduced a stored failure."""
    from regress import night_commands  # noqa: PLC0415

    return night_commands.bisect(console(), location, identity, op, (good, bad))


@with_options(StoreOptions)
def baseline(
    location: StoreOptions,
    tier: Tier = None,
    *,
    plan: Plan = None,
    check: Annotated[bool, typer.Option("--check", help="Compare only; write nothing.")] = False,
) -> int:
    """Record the figures of a night as the baseline."""
    from regress import night_commands  # noqa: PLC0415

    return night_commands.baseline(console(), location, tier, plan, check)


@with_options(StoreOptions)
def report(
    location: StoreOptions,
    *,
    plan: Plan = None,
    webhook: Annotated[str | None, typer.Option(help="URL that receives the summary.")] = None,
    mail: Annotated[Path | None, path_option("File for the summary as an e-mail message.")] = None,
    sender: Annotated[str, typer.Option(help="Sender of the message.")] = "npu-cosim@localhost",
    to: Annotated[list[str] | None, typer.Option(help="Recipients of the message.")] = None,
    newer_than: Annotated[
        str | None, typer.Option(help="Refuse a night that was planned longer ago: 20h.")
    ] = None,
) -> int:
    """Write the pages of a night again, and send its summary."""
    from regress import night_commands  # noqa: PLC0415

    readers = tuple(filter(None, to or ())) or ("root@localhost",)
    news = night_commands.Recipients(webhook or None, mail, sender, readers)
    age_s = None if newer_than is None else duration_s(newer_than, "newer_than")
    return night_commands.report(console(), location, plan, news, age_s)


COMMANDS: Final = (nightly, reproduce, waves, shrink, triage, bisect, baseline, report)


def mount(app: typer.Typer) -> None:
    """Add the commands to the program's own."""
    for command in COMMANDS:
        app.command()(command)
