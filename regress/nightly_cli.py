# SPDX-License-Identifier: Apache-2.0
"""Commands about stored failures and nights: names and options. regress.desk does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regress.console import console
from regress.options import Identity, path_option
from regress.paths import NIGHTLY

Op = Annotated[int | None, typer.Option(help="A failing op; the first by default.", min=0)]
StoreUrl = Annotated[str | None, typer.Option(help="Database URL; default: SQLite.")]
Folder = Annotated[Path, path_option("Folder of the store.")]
Plan = Annotated[str | None, typer.Option(help="Id of a plan; the last one by default.")]
Tier = Annotated[str | None, typer.Argument(help="A tier; the last plan's by default.")]


def reproduce(
    identity: Identity, *, op: Op = None, store: StoreUrl = None, out: Folder = NIGHTLY
) -> int:
    """Run a stored failure again and compare its first mismatch with the stored one."""
    from regress import desk  # noqa: PLC0415 (SQLAlchemy, numpy)

    return desk.reproduce(console(), desk.Where(out, store), identity, op)


def waves(
    identity: Identity,
    *,
    op: Op = None,
    kind: Annotated[str, typer.Option(help="fst or vcd.")] = "fst",
    store: StoreUrl = None,
    out: Folder = NIGHTLY,
) -> int:
    """Record the waves of a stored failure, with markers and views."""
    from regress import desk  # noqa: PLC0415

    return desk.waves(console(), desk.Where(out, store), identity, op, kind)


def shrink(
    identity: Identity,
    *,
    op: Op = None,
    store: StoreUrl = None,
    out: Folder = NIGHTLY,
    rounds: Annotated[int, typer.Option(help="At most.", min=1)] = 40,
) -> int:
    """Reduce a stored failure to the smallest op, shape and data that still fail, as a test."""
    from regress import desk  # noqa: PLC0415

    return desk.shrink(console(), desk.Where(out, store), identity, op, rounds)


def triage(*, plan: Plan = None, store: StoreUrl = None, out: Folder = NIGHTLY) -> int:
    """Sort the failures of a night: bugs, known issues, flaky jobs, changes."""
    from regress import desk  # noqa: PLC0415

    return desk.triage(console(), desk.Where(out, store), plan)


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
    from regress import desk  # noqa: PLC0415

    return desk.bisect(console(), desk.Where(out, store), identity, op, (good, bad))


def baseline(
    tier: Tier = None,
    *,
    plan: Plan = None,
    check: Annotated[bool, typer.Option("--check", help="Compare, write nothing.")] = False,
    store: StoreUrl = None,
    out: Folder = NIGHTLY,
) -> int:
    """Record cycles, utilisation, coverage and passes of a night as what later nights must keep."""
    from regress import desk  # noqa: PLC0415

    return desk.baseline(console(), desk.Where(out, store), tier, plan, check)


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
    from regress import desk  # noqa: PLC0415

    readers = tuple(filter(None, to or ())) or ("root@localhost",)
    news = desk.Recipients(webhook or None, mail, sender, readers)
    return desk.report(console(), desk.Where(out, store), plan, news)


def mount(app: typer.Typer) -> None:
    """Add the commands to the program's own."""
    for command in (reproduce, waves, shrink, triage, bisect, baseline, report):
        app.command()(command)
