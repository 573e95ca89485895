# SPDX-License-Identifier: Apache-2.0
"""The page of one failure: all that is known of it, and the line that reproduces it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from markupsafe import Markup

from driver.evidence import CAPSULE, folder_of
from driver.results import OpRow, RunSpec
from regress.failures.waves import waves_folder
from regress.pages.errormap import overview_picture, tile_picture
from regress.pages.render import write_page
from regress.results.model import Plan
from regress.results.night import StoredJob

FOLDER = "failures"
STRIP_FILE = "strip.svg"
"""The key signals of a recorded op, beside its waves."""
_NEIGHBOURS = 3
"""Ops shown before and after the failing one."""
MOST_OPS = 16
"""Failing ops of a job that have a page: where everything fails, the first few say it."""

BLAMES = {
    "rtl": "the RTL: cmodel and integer-only chain agree, the RTL does not",
    "cmodel": "the cmodel: RTL and integer-only chain agree, the cmodel does not",
    "lowering": "the lowering: RTL and cmodel agree on something else than the op asked for",
    "precision": "precision: the contract is kept, and yet torch is outside the derived bound",
    "unknown": "a Python test failed: its message and the log say what is wrong",
}


def write_failures(site: Path, plan: Plan, job: StoredJob) -> Iterator[Path]:
    """The pages of a job that did not pass: one per failing op (of many, the first), or one for
    the job."""
    for row in job.failing[:MOST_OPS]:
        yield _write(site / FOLDER / job.page(row), plan, job, row)
    if not job.failing:
        yield _write(site / FOLDER / job.page(), plan, job, None)


def _write(path: Path, plan: Plan, job: StoredJob, row: OpRow | None) -> Path:
    return write_page(
        path,
        "failure.html.j2",
        root="../",
        here="",
        plan=plan,
        job=job,
        row=row,
        blames=BLAMES,
        pictures=_pictures(job, row),
        map=None if row is None else job.error_map(row),
        strip=_strip(job, row),
        neighbours=[] if row is None else _neighbours(job, row),
        linked={other.index for other in job.failing[:MOST_OPS]},
        replay=job.replay_line(row),
        commands={} if row is None else _commands(job, row),
        facts=_facts(plan, job, job.spec),
        log=job.log(row),
    )


def _commands(job: StoredJob, row: OpRow) -> dict[str, str]:
    """The further commands that can do something about this op: not all have waves or operands."""
    has_operands = (folder_of(job.folder, row.index) / CAPSULE).is_dir()
    on_rtl = job.item.backend == "rtl" and row.cycles is not None
    wanted = {"Waves": ("waves", on_rtl), "smaller": ("shrink", has_operands)}
    found = {what: job.line(name, row) for what, (name, useful) in wanted.items() if useful}
    return {**found, "since when": f"{job.line('bisect', row)} GOOD=revision"}


def _pictures(job: StoredJob, row: OpRow | None) -> tuple[Markup, Markup] | None:
    found = None if row is None else job.error_map(row)
    return None if found is None else (tile_picture(found), overview_picture(found))


def _strip(job: StoredJob, row: OpRow | None) -> Markup | None:
    """The key signals, where waves have been recorded (`npu-cosim waves` draws them)."""
    if row is None:
        return None
    try:
        text = (waves_folder(job.folder, row.index) / STRIP_FILE).read_text(encoding="utf-8")
    except OSError:
        return None
    return Markup(text)  # noqa: S704 (escaped where it was made)


def _neighbours(job: StoredJob, row: OpRow) -> list[OpRow]:
    assert job.result is not None
    ops = job.result.ops
    at = ops.index(row)
    return list(ops[max(at - _NEIGHBOURS, 0) : at + _NEIGHBOURS + 1])


def _facts(plan: Plan, job: StoredJob, spec: RunSpec | None) -> dict[str, str]:
    """What decides the outcome: sources, tools, seeds."""
    dirty = " with uncommitted changes" if plan.dirty else ""
    facts = {
        "revision": f"{plan.revision or 'not a repository'}{dirty}",
        "seed": f"{job.item.seed} of this job, {plan.seed} of the plan",
        "configuration": f"{job.item.config} of {plan.config_file} ({plan.config_digest[:12]})",
        "backend": job.item.backend,
        **{f"{name}": version for name, version in plan.tools.items()},
        "worker": job.attempt.worker,
        "attempt": f"{job.attempt.number}, {job.attempt.started_utc}",
        "files": str(job.folder),
    }
    for name, folder in () if spec is None else spec.capsules.items():
        facts[f"capsule {name}"] = str(folder)
    return {name: value for name, value in facts.items() if value}
