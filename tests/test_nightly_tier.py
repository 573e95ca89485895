# SPDX-License-Identifier: Apache-2.0
"""A whole nightly of fake tests: each way a job can end has its state, and nothing is left out."""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from pathlib import Path

import pytest
from junitparser import JUnitXml
from nightly_host import context, go, item_results, states, write_config
from rich.console import Console

from driver.errors import InputError
from regress.nightly import summary
from regress.results.location import StoreLocation
from regress.results.model import Attempt, ItemResult, JobStatus, Plan, PlannedJob
from regress.results.store import Store

SMALL = "[small] seed 1"

ENDS = [
    ("passing", "pass", ""),
    ("failing", "fail", "op 1 aten.mm.default model.layers.0.mlp.gate_proj: blame rtl"),
    ("dying", "error", "was ended by SIGSEGV"),
    ("silent", "error", "ended with status 0 and left no result"),
    ("lying", "error", "ended with status 1, but its result says pass"),
    ("short", "error", "planned 2 ops, but its result has 1"),
    ("other", "error", "left the result of another run"),
    ("refusing", "error", "capsule.json: hash: got 1, expected 2"),
    ("broken", "error", "no usable Verilator"),
    ("fatal", "error", "tb_top.sv:7"),
    ("full", "error", "waves.vcd: No space left on device"),
    ("waiting", "timeout", "no interrupt within 10 cycles"),
    ("thirsty", "timeout", "cycles after 11 ops, limit 1000000000"),
]


def test_every_way_to_end_has_its_state_and_reason(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {name: 1 for name, _, _ in ENDS})
    code, shown = go(config, tmp_path / "s")
    assert code == 1
    found = {
        item_result.item.test: item_result.last for item_result in item_results(tmp_path / "s")
    }
    assert len(found) == len(ENDS)
    for name, state, reason in ENDS:
        last = found[name]
        assert last is not None
        assert (last.status.value, reason in last.reason) == (state, True), (name, last.reason)
    assert f"{len(ENDS)} of {len(ENDS)} executed, 1 passed" in shown


def test_artefacts_are_hashed_and_none_is_missing(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    go(config, tmp_path / "s")
    (item_result,) = item_results(tmp_path / "s")
    assert item_result.last is not None
    names = [artefact.name for artefact in item_result.last.artefacts]
    assert names == ["junit.xml", "result.json", "run.json", "sim.log"]
    for artefact in item_result.last.artefacts:
        data = (tmp_path / "s" / artefact.path).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (
            artefact.sha256,
            artefact.size_bytes,
        )


def test_a_green_night_exits_0_and_says_so(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 3})
    code, shown = go(config, tmp_path / "s")
    assert code == 0
    assert "3 of 3 executed, 3 passed" in shown
    (report,) = (tmp_path / "s" / "plans").glob("*/junit.xml")
    (suite,) = JUnitXml.fromfile(str(report))
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (3, 0, 0, 0)


def test_junit_tells_failures_errors_and_skips_apart(tmp_path: Path) -> None:
    tier = {"failing": 1, "dying": 1, "passing": 1, "quick": {"skip": "no hardware yet"}}
    go(write_config(tmp_path / "c.yaml", tier), tmp_path / "s")
    (report,) = (tmp_path / "s" / "plans").glob("*/junit.xml")
    (suite,) = JUnitXml.fromfile(str(report))
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (4, 1, 1, 1)


def test_a_night_that_runs_nothing_is_red(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": {"skip": "not today"}})
    code, shown = go(config, tmp_path / "s")
    assert code == 3
    assert states(tmp_path / "s") == {f"passing{SMALL}": "skipped"}
    assert "0 of 1 executed" in shown


def test_resume_runs_exactly_what_is_missing(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 4, "failing": 1})
    go(config, tmp_path / "s")
    before = item_results(tmp_path / "s")
    lost = before[1].item
    with Store.open(tmp_path / "s") as store, store._engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM npu_attempts WHERE item_id = ?", (lost.id,))
    code, shown = go(config, tmp_path / "s", resume=True)
    assert "1 jobs" in shown
    assert code == 1
    after = item_results(tmp_path / "s")
    assert [o.item for o in after] == [o.item for o in before]
    for old, new in zip(before, after, strict=True):
        if new.item == lost:
            assert len(new.attempts) == 1
        else:
            assert new.attempts == old.attempts


@pytest.mark.parametrize("former", ["resume", "only_failed"])
def test_what_was_never_started_cannot_be_resumed_and_leaves_nothing(
    tmp_path: Path, former: str
) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    with pytest.raises(InputError, match="plan of t: got none"):
        go(config, tmp_path / "s", **{former: True})
    assert not (tmp_path / "s").exists()


def test_resume_of_a_complete_plan_runs_nothing(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 2, "dying": 1})
    go(config, tmp_path / "s")
    before = item_results(tmp_path / "s")
    code, shown = go(config, tmp_path / "s", resume=True)
    assert (code, "0 jobs" in shown) == (3, True)
    assert item_results(tmp_path / "s") == before


def test_resume_only_failed_adds_attempts_and_keeps_the_old(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1, "failing": 1})
    go(config, tmp_path / "s")
    go(config, tmp_path / "s", resume=True, only_failed=True)
    counts = {o.item.test: len(o.attempts) for o in item_results(tmp_path / "s")}
    assert counts == {"passing": 1, "failing": 2}
    folders = [a.folder for o in item_results(tmp_path / "s") for a in o.attempts]
    assert len(set(folders)) == 3


def test_only_failed_is_a_plan_of_what_was_red(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 2, "failing": 1, "dying": 1})
    go(config, tmp_path / "s")
    go(config, tmp_path / "s", only_failed=True)
    assert sorted(states(tmp_path / "s")) == [f"dying{SMALL}", f"failing{SMALL}"]
    with Store.open(tmp_path / "s") as store:
        assert [plan.partial for plan in store.plans()] == [True, False]


def test_only_failed_after_a_green_night_says_so(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    go(config, tmp_path / "s")
    with pytest.raises(InputError, match="--only-failed: got nothing to run"):
        go(config, tmp_path / "s", only_failed=True)


def test_resume_refuses_other_sources(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    go(config, tmp_path / "s")
    with pytest.raises(InputError, match="got other sources"):
        go(config, tmp_path / "s", resume=True, context=context(config, sources=lambda: "changed"))


def test_resume_without_a_plan_says_so(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    with pytest.raises(InputError, match="plan of t: got none"):
        go(config, tmp_path / "s", resume=True)


@pytest.mark.parametrize("option", [{"filter": "x"}, {"reseed": 3}])
def test_a_resumed_plan_stays_as_it_was_made(tmp_path: Path, option: dict[str, object]) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    with pytest.raises(InputError, match="a plan is resumed as it was made"):
        go(config, tmp_path / "s", resume=True, **option)


def test_filter_reseed_and_dry_run(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 2, "failing": 2})
    code, shown = go(config, tmp_path / "s", dry_run=True, filter="test=pass*", reseed=7)
    assert code == 0
    assert "passing[small] seed 7" in shown
    assert "passing[small] seed 8" in shown
    assert "2 jobs" in shown
    with Store.open(tmp_path / "s") as store:
        assert store.plans() == []


def test_flaky_is_seen_within_a_plan(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"flaky": 1, "quick": 1})
    go(config, tmp_path / "s")
    with Store.open(tmp_path / "s") as store, store._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE npu_attempts SET state = 'killed'")
    go(config, tmp_path / "s", resume=True)
    flaky = {o.item.test: o.flaky for o in item_results(tmp_path / "s")}
    assert flaky == {"flaky": True, "quick": False}


def test_results_do_not_depend_on_the_number_of_jobs(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 4, "failing": 2})
    hashes = []
    for jobs in (1, 4):
        go(config, tmp_path / f"s{jobs}", jobs=jobs)
        found = item_results(tmp_path / f"s{jobs}")
        hashes.append({o.item.id: o.last and o.last.result_hash for o in found})
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) == 6
    assert None not in hashes[0].values()


def test_ten_thousand_jobs_are_planned_and_shown_in_time(tmp_path: Path) -> None:
    """Aim: planned in 5 s, reported in 10 s of a quiet machine; processor time counts here."""
    config = write_config(tmp_path / "c.yaml", {"passing": 10_000})
    before = time.process_time()
    _, shown = go(config, tmp_path / "s", dry_run=True)
    assert "10000 jobs" in shown
    assert time.process_time() - before < 10


def test_ten_thousand_jobs_are_reported_in_time(tmp_path: Path) -> None:
    """Aim: reported in 10 s."""
    items = [PlannedJob("quick", "small", seed, "rtl", ordinal=seed) for seed in range(10_000)]
    done = [ItemResult(item, (Attempt("p", item.id, 1, JobStatus.PASS),)) for item in items]
    plan = Plan("p", "t", "", 1, "", False, {}, "", "", "")
    before = time.process_time()
    summary.show(Console(file=io.StringIO()), plan, done, StoreLocation())
    summary.write_plan_junit(plan, done, tmp_path / "junit.xml")
    assert time.process_time() - before < 10
    (suite,) = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    assert suite.tests == 10_000


def test_overhead_per_job_is_small(tmp_path: Path) -> None:
    """Aim: 50 ms of processor time of the runner per job."""
    count = 40
    config = write_config(tmp_path / "c.yaml", {"quick": count})
    before = time.process_time()
    go(config, tmp_path / "s")
    per_job_s = (time.process_time() - before) / count
    assert per_job_s < 0.1, f"{per_job_s * 1000:.0f} ms"


def test_the_spec_of_each_job_is_what_was_planned(tmp_path: Path) -> None:
    rows = {"quick": {"test": "quick", "shards": 2}}
    config = write_config(tmp_path / "c.yaml", {"quick": 1}, tests=rows)
    go(config, tmp_path / "s")
    specs = [
        json.loads((tmp_path / "s" / o.last.folder / "run.json").read_text())
        for o in item_results(tmp_path / "s")
        if o.last is not None
    ]
    assert [spec["shard"] for spec in specs] == [{"index": n, "count": 2} for n in (0, 1)]
    assert {spec["waves"] for spec in specs} == {"none"}
    assert os.path.isabs(specs[0]["out"])  # noqa: PTH117


def test_what_was_red_two_nights_ago_runs_first(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 3, "quick": 1})
    for _ in range(3):
        go(config, tmp_path / "s")
    with Store.open(tmp_path / "s") as store, store._engine.begin() as connection:
        third = next(o.item for o in item_results(tmp_path / "s") if o.item.seed == 3).id
        oldest = store.plans()[-1].id
        connection.exec_driver_sql(
            "UPDATE npu_attempts SET state = 'fail' WHERE item_id = ? AND plan_id = ?",
            (third, oldest),
        )
    _, shown = go(config, tmp_path / "s", dry_run=True)
    assert shown.splitlines()[0].split()[0] == third
