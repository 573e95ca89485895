# SPDX-License-Identifier: Apache-2.0
"""A whole nightly of fake tests: each way a job can end has its state, and nothing is left out."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock
from junitparser import JUnitXml
from nightly_host import FAKE_RUNNER, go, outcomes, setting, spec_of, states, write_config
from rich.console import Console

from driver.errors import InputError
from regress.nightly import summary
from regress.nightly.job import Job, perform
from regress.nightly.model import Attempt, Outcome, Plan, PlanItem, State
from regress.nightly.prepare import Prepared, Step
from regress.nightly.run_plan import PlanRun
from regress.nightly.scheduler import Control
from regress.nightly.store import Store

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
    found = {outcome.item.test: outcome.last for outcome in outcomes(tmp_path / "s")}
    assert len(found) == len(ENDS)
    for name, state, reason in ENDS:
        last = found[name]
        assert last is not None
        assert (last.state.value, reason in last.reason) == (state, True), (name, last.reason)
    assert f"{len(ENDS)} of {len(ENDS)} executed, 1 passed" in shown


def test_a_hanging_job_is_killed_with_all_its_processes(tmp_path: Path) -> None:
    limits = {"wall_s": 0.5, "cycles": 10**6}
    rows = {"hanging": {"test": "hanging", "limits": limits}}
    config = write_config(tmp_path / "c.yaml", {"hanging": 1}, tests=rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regress.run._GRACE_S", 0.2)
        code, _ = go(config, tmp_path / "s")
    assert code == 3
    (outcome,) = outcomes(tmp_path / "s")
    assert outcome.last is not None
    assert outcome.last.state is State.TIMEOUT
    child = int((tmp_path / "s" / outcome.last.folder / "child").read_text())
    assert not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text()


def test_artefacts_are_hashed_and_none_is_missing(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    go(config, tmp_path / "s")
    (outcome,) = outcomes(tmp_path / "s")
    assert outcome.last is not None
    names = [artefact.name for artefact in outcome.last.artefacts]
    assert names == ["junit.xml", "result.json", "run.json", "sim.log"]
    for artefact in outcome.last.artefacts:
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
    before = outcomes(tmp_path / "s")
    lost = before[1].item
    with Store.open(tmp_path / "s") as store, store._engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM npu_attempts WHERE item_id = ?", (lost.id,))
    code, shown = go(config, tmp_path / "s", resume=True)
    assert "1 jobs" in shown
    assert code == 1
    after = outcomes(tmp_path / "s")
    assert [o.item for o in after] == [o.item for o in before]
    for old, new in zip(before, after, strict=True):
        if new.item == lost:
            assert len(new.attempts) == 1
        else:
            assert new.attempts == old.attempts


def test_resume_of_a_complete_plan_runs_nothing(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 2, "dying": 1})
    go(config, tmp_path / "s")
    before = outcomes(tmp_path / "s")
    code, shown = go(config, tmp_path / "s", resume=True)
    assert (code, "0 jobs" in shown) == (3, True)
    assert outcomes(tmp_path / "s") == before


def test_resume_only_failed_adds_attempts_and_keeps_the_old(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1, "failing": 1})
    go(config, tmp_path / "s")
    go(config, tmp_path / "s", resume=True, only_failed=True)
    counts = {o.item.test: len(o.attempts) for o in outcomes(tmp_path / "s")}
    assert counts == {"passing": 1, "failing": 2}
    folders = [a.folder for o in outcomes(tmp_path / "s") for a in o.attempts]
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
        go(config, tmp_path / "s", resume=True, setting=setting(config, sources=lambda: "changed"))


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


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    (tmp_path / "s").mkdir()
    with (
        FileLock(tmp_path / "s" / ".runner.lock"),
        pytest.raises(InputError, match="in use by another run"),
    ):
        go(config, tmp_path / "s")


def test_flaky_is_seen_within_a_plan(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"flaky": 1, "quick": 1})
    go(config, tmp_path / "s")
    with Store.open(tmp_path / "s") as store, store._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE npu_attempts SET state = 'killed'")
    go(config, tmp_path / "s", resume=True)
    flaky = {o.item.test: o.flaky for o in outcomes(tmp_path / "s")}
    assert flaky == {"flaky": True, "quick": False}


def test_results_do_not_depend_on_the_number_of_jobs(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 4, "failing": 2})
    hashes = []
    for jobs in (1, 4):
        go(config, tmp_path / f"s{jobs}", jobs=jobs)
        found = outcomes(tmp_path / f"s{jobs}")
        hashes.append({o.item.id: o.last and o.last.result_hash for o in found})
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) == 6
    assert None not in hashes[0].values()


def test_what_cannot_be_prepared_is_skipped_and_red(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 2, "failing": 1})

    def steps(item: object, _tests: object) -> tuple[Step, ...]:
        wanted = getattr(item, "test", "") == "passing"
        return (Step("build", "no_such", "check"),) if wanted else ()

    own = setting(config, steps_of=steps)
    code, shown = go(config, tmp_path / "s", setting=own)
    assert code == 1  # the failing test, which had nothing to prepare
    found = {o.item.test: o.last for o in outcomes(tmp_path / "s")}
    skipped = found["passing"]
    assert skipped is not None
    assert skipped.state is State.SKIPPED
    assert skipped.red
    assert "build no_such check: " in skipped.reason
    assert "configs: got no_such" in skipped.reason
    with Store.open(tmp_path / "s") as store:
        (row,) = store.preparations(store.plans()[0].id)
        assert (row.ok, row.name) == (False, "build no_such check")
    assert "2" in shown


def test_files_that_cannot_be_made_durable_are_that_jobs_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up between the end of a run and its record: a pass without evidence."""

    def full(path: Path) -> tuple[str, int]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    item = PlanItem("quick", "small", 1, "rtl", wall_s=30)
    job = Job("p", item, 1, spec_of(item, tmp_path / "job"), "i", FAKE_RUNNER)
    monkeypatch.setattr("regress.nightly.job._durable", full)
    attempt = perform(job, tmp_path)
    assert attempt.state is State.ERROR
    assert attempt.reason.endswith("No space left on device; the run: pass")
    assert attempt.result_hash is None
    assert attempt.artefacts == ()


def test_ctrl_c_while_building_starts_no_other_build_and_no_job(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1, "failing": 1})
    control, notes = Control(), []
    own = setting(config, steps_of=lambda item, tests: (Step("build", item.test, "check"),))
    items = [PlanItem(test, "small", 1, "rtl") for test in ("passing", "failing")]
    with Store.open(tmp_path / "s") as store:
        plan = store.add_plan(Plan("p", "t", "", 1, "", False, {}, "", "", ""), items)

        def build(step: Step, _config: Path) -> tuple[Prepared, bool]:
            control.interrupt()
            return Prepared(True, f"key of {step.what}"), False

        ready = PlanRun(store, plan, own, control, notes.append).prepare(items, build)
        assert [item.test for item in ready] == ["failing"]  # in the order of the steps' names
        assert [row.name for row in store.preparations("p")] == ["build failing check"]
        assert store.attempts("p") == []


@pytest.mark.parametrize("size", [0, 20_000])
def test_a_full_disk_ends_the_run_and_loses_nothing(tmp_path: Path, size: int) -> None:
    """RLIMIT_FSIZE is a disk that is full at some size of a file: the store's, here."""
    config = write_config(tmp_path / "c.yaml", {"quick": 40})
    folder = tmp_path / "s"
    go(config, folder, filter="seed=1")  # the store exists
    host = Path(__file__).with_name("nightly_host.py")
    limit = (folder / "results.db").stat().st_size + size
    code = (
        "import resource, signal, sys;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        f"sys.argv = {[str(host), str(config), str(folder)]!r};"
        f"import runpy; sys.path.insert(0, {str(host.parent)!r});"
        f"runpy.run_path({str(host)!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
    acked = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("ack")}
    with Store.open(folder) as store:
        stored = {a.id for plan in store.plans() for a in store.attempts(plan.id)}
    assert acked <= stored
    assert len(acked) < 40
    if size:
        code_after, _ = go(config, folder, resume=True)
        assert code_after == 0
        assert set(states(folder).values()) == {"pass"}


def test_an_output_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    with pytest.raises(InputError, match="a folder of results"):
        go(config, Path("/proc/nightly"))


def test_a_job_folder_that_cannot_be_made_is_that_jobs_error(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    folder = tmp_path / "s"
    with Store.open(folder):
        (folder / "plans").write_text("in the way")
    code, shown = go(config, folder)
    assert code == 3
    assert "error: reports: " in shown  # no place for junit.xml either
    assert states(folder) == {f"passing{SMALL}": "error"}


def test_reports_that_cannot_be_written_are_said_and_cost_no_result(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    folder = tmp_path / "s"
    with Store.open(folder):
        (folder / "report").write_text("in the way")
    code, shown = go(config, folder)
    assert code == 3
    assert "error: reports: " in shown
    assert "1 of 1 executed, 1 passed" in shown
    assert states(folder) == {f"passing{SMALL}": "pass"}


def test_a_clock_that_jumps_changes_no_order_and_no_duration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 3})
    go(config, tmp_path / "s")
    times = iter(f"19{99 - n}-01-01T00:00:00+00:00" for n in range(90))
    monkeypatch.setattr("regress.nightly.job.utc_now", lambda: next(times))
    go(config, tmp_path / "s")
    with Store.open(tmp_path / "s") as store:
        newest, oldest = store.plans()
        assert newest.sequence > oldest.sequence
        attempts = store.attempts(newest.id)
        assert len(attempts) == 3
        assert all(0 < a.seconds < 60 for a in attempts)
        assert store.history(attempts[0].item_id)[0].plan_id == newest.id


def test_ten_thousand_jobs_are_planned_and_shown_in_time(tmp_path: Path) -> None:
    """Aim: planned in 5 s, reported in 10 s of a quiet machine; processor time counts here."""
    config = write_config(tmp_path / "c.yaml", {"passing": 10_000})
    before = time.process_time()
    _, shown = go(config, tmp_path / "s", dry_run=True)
    assert "10000 jobs" in shown
    assert time.process_time() - before < 10


def test_ten_thousand_jobs_are_reported_in_time(tmp_path: Path) -> None:
    """Aim: reported in 10 s."""
    items = [PlanItem("quick", "small", seed, "rtl", ordinal=seed) for seed in range(10_000)]
    done = [Outcome(item, (Attempt("p", item.id, 1, State.PASS),)) for item in items]
    plan = Plan("p", "t", "", 1, "", False, {}, "", "", "")
    before = time.process_time()
    summary.show(Console(file=io.StringIO()), plan, done)
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
        for o in outcomes(tmp_path / "s")
        if o.last is not None
    ]
    assert [spec["shard"] for spec in specs] == [{"index": n, "count": 2} for n in (0, 1)]
    assert {spec["waves"] for spec in specs} == {"none"}
    assert os.path.isabs(specs[0]["out"])  # noqa: PTH117
