# SPDX-License-Identifier: Apache-2.0
"""What each command about stored failures and nights does: read the store, do the work, say so.

Every function returns the exit status: 0 good, 1 a verdict failed; errors are raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from rich.console import Console
from rich.text import Text

from driver.errors import InputError
from driver.results import PROGRAM
from regress import aftermath, notify
from regress import baseline as ratchet
from regress import bisect as search
from regress.nightly.model import Plan
from regress.nightly.store import Store
from regress.pages.figures import figures_of
from regress.pages.night import load_job, load_night
from regress.progress import Progress
from regress.replay import Sameness, failing_row, replay_job
from regress.report import show
from regress.shrink import shrink_job
from regress.waves import record_waves

Kind = Literal["fst", "vcd"]


@dataclass(frozen=True)
class Where:
    """Which store."""

    folder: Path
    url: str | None

    def open(self) -> Store:
        """The store. InputError where there is none: these commands only read."""
        if self.url is None and not self.folder.is_dir():
            expected = f"a folder of results, as `{PROGRAM} nightly` makes it"
            raise InputError(self.folder, "folder", "missing", expected)
        return Store.open(self.folder, self.url)


@dataclass(frozen=True)
class Recipients:
    """Who is told."""

    webhook: str | None
    mail: Path | None
    sender: str
    to: tuple[str, ...]


class Desk:
    """A console with its progress bars."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def say(self, text: str) -> None:
        """A line."""
        self.console.print(Text(text), soft_wrap=True, highlight=False)

    def progress(self, title: str) -> Progress:
        """A bar, or lines."""
        return Progress(self.console, title)


def reproduce(console: Console, where: Where, identity: str, op: int | None) -> int:
    """`npu-cosim reproduce`."""
    desk = Desk(console)
    with where.open() as store:
        found = replay_job(load_job(store, identity), desk.progress, op)
    show(console, found.outcome.result, map(str, found.outcome.artefacts))
    desk.say(f"stored  {found.stored}")
    desk.say(f"now     {found.now}")
    desk.say(f"{found.sameness.value}")
    return int(found.sameness is not Sameness.GONE)


def waves(console: Console, where: Where, identity: str, op: int | None, kind: str) -> int:
    """`npu-cosim waves`. The verdict of the recorded run is the exit status."""
    if kind not in get_args(Kind):
        raise InputError("command line", "kind", kind, f"one of {', '.join(get_args(Kind))}")
    desk = Desk(console)
    with where.open() as store:
        job = load_job(store, identity)
        found = record_waves(job, desk.progress, op, "vcd" if kind == "vcd" else "fst")
        aftermath.show_failure(store, load_job(store, identity))  # now with the strip
    for name, cycle in found.markers.items():
        desk.say(f"{name:18} cycle {cycle:,}")
    view, commands, strip = found.files
    desk.say(f"gtkwave {found.waves} {view}")
    desk.say(f"surfer -c {commands} {found.waves}")
    desk.say(f"strip   {strip}")
    return found.outcome.exit_code


def shrink(console: Console, where: Where, identity: str, op: int | None, rounds: int) -> int:
    """`npu-cosim shrink`."""
    desk = Desk(console)
    with where.open() as store:
        job = load_job(store, identity)
        found = shrink_job(job, op, rounds, note=desk.say)
    desk.say(f"{found.before} → {found.after}, {found.trials} trials in {found.rounds} runs")
    desk.say(f"test    {found.test}")
    desk.say(f"capsule {found.capsule}")
    return 0


def triage(console: Console, where: Where, plan_id: str | None) -> int:
    """`npu-cosim triage`."""
    desk = Desk(console)
    with where.open() as store:
        found = aftermath.study(store, _plan(store, None, plan_id).id)
    told = found.told
    for item, change in told.triage.changes.items():
        label = next(o.item.label for o in told.night.outcomes if o.item.id == item)
        desk.say(f"{change.value:6} {label}")
    for line in aftermath.lines_of(found):
        desk.say(line)
    return int(found.failed)


def bisect(
    console: Console, where: Where, identity: str, op: int | None, span: tuple[str, str]
) -> int:
    """`npu-cosim bisect`."""
    desk = Desk(console)
    with where.open() as store:
        job = load_job(store, identity)
        row = failing_row(job, op)
        found = search.bisect_job(job, row, span, note=desk.say)
    desk.say(f"first bad revision: {found.first_bad} {found.subject}")
    if found.untestable:
        desk.say(f"could not be tried, and may be it as well: {' '.join(found.untestable)}")
    return 0


def baseline(
    console: Console, where: Where, tier: str | None, plan_id: str | None, check: bool
) -> int:
    """`npu-cosim baseline`."""
    desk = Desk(console)
    with where.open() as store:
        plan = _plan(store, tier, plan_id)
        if check:
            moves = aftermath.study(store, plan.id).told.moves
            for move in moves:
                desk.say(str(move))
            desk.say(f"{len(moves)} moves against {ratchet.path_of(plan.tier)}")
            return int(any(move.step.red for move in moves))
        night = load_night(store, plan)
        now = ratchet.measure(night, figures_of(night).ratchets())
        path = ratchet.record(now, aftermath.tried(night))
    desk.say(f"recorded {len(now.passing)} jobs and {len(now.ops)} ops: commit {path}")
    return 0


def report(console: Console, where: Where, plan_id: str | None, who: Recipients) -> int:
    """`npu-cosim report`."""
    if who.webhook is not None:
        notify.check_webhook(who.webhook)
    desk = Desk(console)
    with where.open() as store:
        found = aftermath.conclude(store, _plan(store, None, plan_id).id)
    news = aftermath.news_of(found)
    if who.mail is not None:
        notify.write_mail(who.mail, news, who.sender, who.to)
        desk.say(f"wrote {who.mail}")
    if who.webhook is not None:
        notify.post(who.webhook, news)
        desk.say("told the webhook")
    desk.say(f"open {found.page}")
    return 0


def _plan(store: Store, tier: str | None, plan_id: str | None) -> Plan:
    """The plan meant. InputError when there is none."""
    if plan_id is not None:
        return store.plan(plan_id)
    plans = store.plans(tier, limit=1)
    if not plans:
        raise InputError(store.folder, "plan", "none" if tier is None else f"none of {tier}", "one")
    return plans[0]
