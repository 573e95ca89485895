# SPDX-License-Identifier: Apache-2.0
"""Faults around a nightly: nothing hangs, nothing is lost, and the state says what happened."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from nightly_host import FAKE_RUNNER, context, go, item_results, spec_of, states, write_config

from driver.errors import InputError
from regress.folder import LOCK_FILE
from regress.nightly.job import JobSpec, perform
from regress.nightly.prepare import PrepareResult, PrepareStep
from regress.nightly.provenance import sources
from regress.nightly.run_plan import PlanRunner
from regress.nightly.scheduler import RunControl
from regress.results.model import JobStatus, Plan, PlannedJob
from regress.results.store import Store

SMALL = "[small] seed 1"


def test_a_hanging_job_is_killed_with_all_its_processes(tmp_path: Path) -> None:
    limits = {"wall_s": 0.5, "cycles": 10**6}
    rows = {"hanging": {"test": "hanging", "limits": limits}}
    config = write_config(tmp_path / "c.yaml", {"hanging": 1}, tests=rows)
    code, _ = go(config, tmp_path / "s")
    assert code == 3
    (item_result,) = item_results(tmp_path / "s")
    assert item_result.last is not None
    assert item_result.last.status is JobStatus.TIMEOUT
    child = int((tmp_path / "s" / item_result.last.folder / "child").read_text())
    assert not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text()


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    (tmp_path / "s").mkdir()
    with (
        FileLock(tmp_path / "s" / LOCK_FILE),
        pytest.raises(InputError, match="in use by another run"),
    ):
        go(config, tmp_path / "s")


def test_what_cannot_be_prepared_is_skipped_and_red(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 2, "failing": 1})

    def steps(item: object, _tests: object) -> tuple[PrepareStep, ...]:
        wanted = getattr(item, "test", "") == "passing"
        return (PrepareStep("build", "no_such", "check"),) if wanted else ()

    own = context(config, steps_of=steps)
    code, shown = go(config, tmp_path / "s", context=own)
    assert code == 1  # the failing test, which had nothing to prepare
    found = {o.item.test: o.last for o in item_results(tmp_path / "s")}
    skipped = found["passing"]
    assert skipped is not None
    assert skipped.status is JobStatus.SKIPPED
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

    item = PlannedJob("quick", "small", 1, "rtl", wall_s=30)
    job = JobSpec("p", item, 1, spec_of(item, tmp_path / "job"), "i", FAKE_RUNNER)
    monkeypatch.setattr("regress.nightly.job._durable", full)
    attempt = perform(job, tmp_path)
    assert attempt.status is JobStatus.ERROR
    assert attempt.reason.endswith("No space left on device; the run: pass")
    assert attempt.result_hash is None
    assert attempt.artefacts == ()


def test_ctrl_c_while_building_starts_no_other_build_and_no_job(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1, "failing": 1})
    control, notes = RunControl(), []
    own = context(config, steps_of=lambda item, tests: (PrepareStep("build", item.test, "check"),))
    items = [PlannedJob(test, "small", 1, "rtl") for test in ("passing", "failing")]
    with Store.open(tmp_path / "s") as store:
        plan = store.add_plan(Plan("p", "t", "", 1, "", False, {}, "", "", ""), items)

        def build(
            step: PrepareStep, _config: Path, _wanted: Callable[[], bool]
        ) -> tuple[PrepareResult, bool]:
            control.interrupt()
            return PrepareResult(True, f"key of {step.what}"), False

        ready = PlanRunner(store, plan, own, control, notes.append).prepare(items, build)
        assert [item.test for item in ready] == ["passing"]  # in the order of the items
        assert [row.name for row in store.preparations("p")] == ["build passing check"]
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
    go(config, folder)
    shutil.rmtree(folder / "plans")
    (folder / "plans").write_text("in the way")
    code, shown = go(config, folder)
    assert code == 3
    assert "error: reports: " in shown  # no place for junit.xml either
    assert states(folder) == {f"passing{SMALL}": "error"}


def test_reports_that_cannot_be_written_are_said_and_cost_no_result(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"passing": 1})
    folder = tmp_path / "s"
    go(config, folder)
    shutil.rmtree(folder / "report")
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


def test_sources_that_change_during_a_run_are_said_and_told_apart(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 2})
    digests = iter(("planned", "planned", "edited", "edited"))
    own = context(config, sources=lambda: next(digests))
    code, shown = go(config, tmp_path / "s", context=own, jobs=1)
    assert code == 3
    assert "warning: sources changed during the run" in shown
    first, second = (o.last for o in item_results(tmp_path / "s"))
    assert first is not None
    assert second is not None
    assert first.inputs_hash != second.inputs_hash


def test_an_edit_changes_the_digest_of_the_sources(tmp_path: Path) -> None:
    (tmp_path / "rtl").mkdir()
    file = tmp_path / "rtl" / "a.sv"
    file.write_text("module a;")
    first = sources(tmp_path)
    (tmp_path / "rtl" / "note.md").write_text("decides nothing")
    assert sources(tmp_path) == first
    file.write_text("module b;")
    os.utime(file, ns=(1, 1))
    second = sources(tmp_path)
    assert second != first
    (tmp_path / "rtl" / "table.txt").write_text("1 2 3")
    (tmp_path / "CMakeLists.txt").write_text("project(x)")
    third = sources(tmp_path)
    assert third != second
    (tmp_path / "regress" / "baselines").mkdir(parents=True)
    (tmp_path / "regress" / "baselines" / "ci.json").write_text("{}")
    assert sources(tmp_path) == third  # what results are compared with


def test_the_lock_of_an_editor_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "a.py").write_text("a = 1\n")
    before = sources(tmp_path)
    (tmp_path / "driver" / ".#a.py").symlink_to("user@host.1:2")
    (tmp_path / "driver" / "b.py").symlink_to("nowhere")
    (tmp_path / "driver" / "c.py").mkdir()
    assert sources(tmp_path) == before
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("assert True\n")
    assert sources(tmp_path) != before  # a tier runs tests of Python as well
