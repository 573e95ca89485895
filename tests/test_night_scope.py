# SPDX-License-Identifier: Apache-2.0
"""What a night's verdict rests on: none is green by what did not run, or is no longer there."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from night_host import add, attempt, item, plan, result, row, wrong_night
from nightly_host import context, go, write_config

from driver.errors import InfrastructureError, InputError
from driver.results import MAX_SEED, RESULT_FILE, SPEC_FILE
from regress import night_commands
from regress.analysis import baseline
from regress.analysis.known_issues import KnownIssue
from regress.analysis.night_report import (
    NightReport,
    ReferenceFiles,
    night_report,
    text_lines,
)
from regress.analysis.triage import triage
from regress.console import console
from regress.failures.replay import spec_of
from regress.nightly.plan import numbered
from regress.nightly.prepare import PrepareResult, PrepareStep
from regress.nightly.request import TierRequest
from regress.nightly.settings import load_nightly
from regress.nightly.tier import run_tier
from regress.options import StoreOptions
from regress.paths import CONFIG_FILE
from regress.results.model import ItemResult, JobStatus, PlannedJob, SkipCause
from regress.results.night import load_job
from regress.results.store import Store
from tb.checks import no_element


def reported(store: Store, plan_id: str, tmp_path: Path) -> NightReport:
    (tmp_path / "issues.yaml").write_text("issues: []\n")
    return night_report(store, plan_id, ReferenceFiles(tmp_path / "issues.yaml", tmp_path))


def passing(tmp_path: Path) -> tuple[Store, Path]:
    """A store with one night of one passing job, and the result of that."""
    store = Store.open(tmp_path / "store")
    found = add(
        store,
        plan(1),
        [(item(), attempt(plan(1), item(), JobStatus.PASS), result(item(), (row(),)))],
    )
    (made,) = store.attempts(found.id)
    return store, store.path(made.folder) / RESULT_FILE


def test_a_result_that_was_changed_afterwards_makes_no_pass(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 1})
    assert go(config, tmp_path / "s")[0] == 0
    with Store.open(tmp_path / "s") as store:
        name = store.plans()[0].id
        file = store.path(store.attempts(name)[0].folder) / RESULT_FILE
        assert not reported(store, name, tmp_path).failed
        file.write_text(file.read_text().replace('"cycles":', '"cycles": '))
        found = reported(store, name, tmp_path)
        assert found.failed
        label = found.night.jobs[0].item.label
        assert found.scope[0] == f"the result of a pass is gone or another one: {label}"
        file.unlink()
        assert reported(store, name, tmp_path).failed


def test_sources_that_changed_stay_with_the_night(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 1})
    digests = iter(("planned", "planned", "edited"))
    go(config, tmp_path / "s", context=context(config, sources=lambda: next(digests)), jobs=1)
    with Store.open(tmp_path / "s") as store:
        (only,) = store.plans()
        found = reported(store, only.id, tmp_path)
    assert found.failed
    assert found.mixed
    assert "sources changed during the run: results are of different states" in found.scope
    with pytest.raises(InputError, match="sources: got changed while it ran"):
        where = StoreOptions(out=tmp_path / "s")
        night_commands.baseline(console(), where, "t", None, check=False)


def test_a_pass_after_a_crash_on_equal_inputs_is_said() -> None:
    of = item()
    crash = replace(attempt(plan(1), of, JobStatus.ERROR), inputs_hash="a", result_hash=None)
    sound = replace(attempt(plan(1), of, JobStatus.PASS), number=2, inputs_hash="a")
    assert ItemResult(of, (crash, sound)).retried == "error"
    assert ItemResult(of, (crash, replace(sound, inputs_hash="b"))).retried is None
    assert ItemResult(of, (sound, crash)).retried is None


def test_what_did_not_run_is_said_beside_the_verdict(tmp_path: Path) -> None:
    red = item(seed=2)
    with Store.open(tmp_path / "store") as store:
        failed = attempt(plan(1), red, JobStatus.FAIL)
        add(
            store,
            plan(1),
            [(red, failed, None), (item(), attempt(plan(1), item(), JobStatus.PASS), None)],
        )
        left = replace(
            attempt(plan(2), red, JobStatus.SKIPPED), skip_cause=SkipCause.BUDGET, folder=""
        )
        made = attempt(plan(2), item(), JobStatus.PASS)
        add(store, plan(2), [(red, left, None), (item(), made, result(item(), (row(),)))])
        newest = store.plans()[0]
        found = reported(store, newest.id, tmp_path)
    assert "1 of 2 jobs were executed" in found.scope
    assert f"red the night before, and not run: {red.label}" in found.scope


def test_a_check_of_a_night_that_ran_nothing_recorded_is_no_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = passing(tmp_path)
    (tmp_path / "issues.yaml").write_text("issues: []\n")
    own = (tmp_path / "issues.yaml", tmp_path)
    monkeypatch.setattr(ReferenceFiles.__init__, "__defaults__", own)
    other = baseline.TierBaseline(tier=plan(1).tier, passing=("other[small] seed 1",), ops={})
    (tmp_path / f"{plan(1).tier}.json").write_text(baseline.to_text(other))
    with pytest.raises(InfrastructureError, match="nothing to compare with"):
        where = StoreOptions(out=store.folder)
        night_commands.baseline(console(), where, None, None, check=True)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("tier", "other", "tier: got other, expected t, as the file is named"),
        ("jobs", {"gone": {"digest": None, "inputs": "", "seconds": 1.0}}, "of a job in passing"),
        ("ops", {"here | x aten.mm": {"cycles": 1, "utilisation": None}}, "label | index op"),
        ("ops", {"gone | 1 aten.mm": {"cycles": 1, "utilisation": None}}, "of a job in passing"),
    ],
)
def test_a_baseline_that_would_compare_nothing_is_refused(
    tmp_path: Path, field: str, value: object, said: str
) -> None:
    whole = {"tier": "t", "passing": ["here"], "ops": {}, field: value}
    (tmp_path / "t.json").write_text(json.dumps(whole))
    with pytest.raises(InputError, match=said.replace("|", r"\|")):
        baseline.load("t", tmp_path)


def test_a_known_issue_is_green_although_the_baseline_has_a_pass(tmp_path: Path) -> None:
    broken = row(status="fail", blame="rtl", failure=no_element("wrong"))
    known = {"id": "#1", "owner": "Ada", "why": "rounding", "expires": "2026-12-31"}
    with Store.open(tmp_path / "store") as store:
        sound = attempt(plan(1), item(), JobStatus.PASS)
        first = add(store, plan(1), [(item(), sound, result(item(), (row(),)))])
        night = reported(store, first.id, tmp_path).night
        baseline.record(baseline.measure(night), [item().label], tmp_path)
        failed = attempt(plan(2), item(), JobStatus.FAIL)
        second = add(store, plan(2), [(item(), failed, result(item(), (broken,)))])
        found = reported(store, second.id, tmp_path)
        assert found.failed and [move.kind.value for move in found.moves] == ["no longer passes"]
        replay = f"    {found.night.jobs[0].replay_line()}"
        assert replay in text_lines(found)
        issues = [{**known, "signature": "blame rtl: aten.mm"}]
        files = ReferenceFiles(tmp_path / "known.yaml", tmp_path)
        files.issues.write_text(json.dumps({"issues": issues}))
        found = night_report(store, second.id, files)
        assert not found.failed and not found.moves
        assert replay not in text_lines(found)


def test_a_known_issue_whose_test_fails_otherwise_does_not_pass(tmp_path: Path) -> None:
    broken = row(status="fail", blame="rtl", failure=no_element("wrong"))
    known = {"id": "#1", "owner": "Ada", "why": "rounding", "expires": "2026-12-31"}
    issues = [{**known, "signature": "blame cmodel", "test": "smoke"}]
    files = ReferenceFiles(tmp_path / "known.yaml", tmp_path)
    files.issues.write_text(json.dumps({"issues": issues}))
    with Store.open(tmp_path / "store") as store:
        failed = attempt(plan(1), item(), JobStatus.FAIL)
        night = add(store, plan(1), [(item(), failed, result(item(), (broken,)))])
        lines = text_lines(night_report(store, night.id, files))
    assert any("known issue #1 (Ada) did not come, its test fails in another" in x for x in lines)


def test_less_compared_is_red_also_where_the_ops_are_others() -> None:
    def tier(inputs: str, compared: int, rows: int) -> baseline.TierBaseline:
        job = baseline.JobBaseline(
            digest=None, inputs=inputs, seconds=1.0, compared=compared, rows=rows
        )
        return baseline.TierBaseline(tier="t", passing=("units",), jobs={"units": job}, ops={})

    def moved(now: baseline.TierBaseline) -> list[str]:
        found = baseline.compare(tier("a", 537, 537), now, ["units"], baseline.Tolerances())
        return [move.measure for move in found if move.kind.red]

    assert moved(tier("b", 537, 537)) == []
    assert moved(tier("b", 536, 536)) == ["rows"]
    assert moved(tier("b", 1, 1)) == ["compared", "rows"]
    assert moved(tier("b", 9000, 9000)) == []


def test_a_failed_build_is_no_known_issue() -> None:
    known = KnownIssue(
        id="#1", owner="o", why="w", expires=date(2100, 1, 1), signature="skipped: build"
    )
    left = replace(
        attempt(plan(1), item(), JobStatus.SKIPPED),
        skip_cause=SkipCause.PREPARATION,
        reason="build small check: no compiler",
    )
    assert triage([ItemResult(item(), (left,))], {}, [known], date(2026, 1, 1)).red


@pytest.mark.parametrize("signature", [".", ".*", "", r"\S|x", "[^a]"])
def test_an_issue_that_fits_whatever_fails_is_refused(signature: str) -> None:
    with pytest.raises(ValueError, match="signature"):
        KnownIssue(id="#1", owner="o", why="w", expires=date(2100, 1, 1), signature=signature)


def test_two_jobs_of_one_label_are_refused() -> None:
    one = PlannedJob("quick", "small", 1, "rtl")
    assert replace(one, allow_cpu=True).label != one.label
    numbered([one, replace(one, allow_cpu=True)], Path("c.yaml"))
    with pytest.raises(InputError, match="every job once"):
        numbered([one, replace(one, array="rtl", wall_s=3.0)], Path("c.yaml"))


def test_a_budget_that_is_used_up_builds_nothing_more(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 3})
    built: list[str] = []

    def steps(job: PlannedJob, _tests: object) -> tuple[PrepareStep, ...]:
        return (PrepareStep("capsule", "mlp", str(job.seed)),)

    def slow(step: PrepareStep, *_rest: object) -> tuple[PrepareResult, bool]:
        time.sleep(0.3)
        built.append(step.how)
        return PrepareResult(True, "key", tmp_path), False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regress.nightly.run_plan.do_step", slow)
        own = context(config, steps_of=steps)
        go(config, tmp_path / "s", context=own, jobs=1, budget_s=0.2)
    assert built == ["1"]
    with Store.open(tmp_path / "s") as store:
        found = store.item_results(store.plans()[0].id)
    assert [r.last and r.last.skip_cause for r in found] == [SkipCause.BUDGET] * 3


def test_only_failed_finds_the_jobs_of_other_seeds(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"failing": 1})
    assert go(config, tmp_path / "s", reseed=7)[0] == 1
    code, shown = go(config, tmp_path / "s", only_failed=True)
    assert code == 1
    assert "failing[small] seed 7" in shown


def test_a_dry_run_and_a_refusal_leave_nothing(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 1})
    assert go(config, tmp_path / "s", dry_run=True)[0] == 0
    with pytest.raises(InputError, match="tier: got nope"):
        run_tier(console(), TierRequest("nope", folder=tmp_path / "s", config_file=config))
    with pytest.raises(InputError, match="first seed"):
        go(config, tmp_path / "s", reseed=MAX_SEED + 1)
    assert not (tmp_path / "s").exists()


def test_yesterdays_night_is_not_sent_as_tonights(tmp_path: Path) -> None:
    store, _ = passing(tmp_path)
    nobody = night_commands.Recipients(None, None, "a@b", ("c@d",))
    with pytest.raises(InputError, match="a newer one"):
        night_commands.report(console(), StoreOptions(out=store.folder), None, nobody, 3600.0)


def test_files_of_a_job_that_were_changed_tell_nothing(tmp_path: Path) -> None:
    """A run.json of another run would be run, a capsule of another op shrunk."""
    with Store.open(tmp_path / "store") as store:
        _, _, made = wrong_night(store, hashed=True)
        job = load_job(store, made.id)
        (failing,) = job.failing[:1]
        kept = job.capsule(failing)
        assert kept is not None and spec_of(job, tmp_path / "out").backend
        with (job.folder / SPEC_FILE).open("a", encoding="utf-8") as file:
            file.write("\n")
        changed = load_job(store, made.id)
        with pytest.raises(InputError, match=r"run\.json: got missing or unreadable"):
            spec_of(changed, tmp_path / "out")
        tensors = next(path for path in sorted(kept.rglob("*")) if path.is_file())
        tensors.write_bytes(tensors.read_bytes() + b" ")
        with pytest.raises(InputError, match="capsule: got changed files"):
            changed.capsule(failing)


def test_coverage_is_compared_without_jobs_that_are_dropped_and_not_without_those_that_did_not_run(
    tmp_path: Path,
) -> None:
    ran, idle = item(), item(seed=2)
    of = replace(plan(1), partial=False, seed=load_nightly(CONFIG_FILE).seed)
    left = replace(attempt(of, idle, JobStatus.SKIPPED), skip_cause=SkipCause.BUDGET, folder="")
    made = attempt(of, ran, JobStatus.PASS)
    recorded = tmp_path / f"{of.tier}.json"

    def said(passing: tuple[str, ...]) -> bool:
        known = baseline.TierBaseline(tier=of.tier, passing=tuple(sorted(passing)), ops={})
        recorded.write_text(baseline.to_text(known))
        scope = reported(store, newest.id, tmp_path).scope
        return any(line.startswith("coverage is not compared: 1 ") for line in scope)

    with Store.open(tmp_path / "store") as store:
        add(store, of, [(ran, made, result(ran, (row(),))), (idle, left, None)])
        newest = store.plans()[0]
        assert not said((ran.label, "dropped[small] seed 1"))
        assert said((ran.label, idle.label))
