# SPDX-License-Identifier: Apache-2.0
"""A stored failure is run again by its ID, and its first mismatch compared with the stored one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from night_host import RUNNER, add, attempt, item, plan, result, row, silent

from driver.errors import InputError
from driver.results import RESULT_FILE, OpRow, RunResult, read_json, write_json
from regress.failures.replay import ReplayVerdict, replay_job, spec_of
from regress.failures.shrink.search import shrink_job
from regress.failures.waves import FETCH, FIRST_BEAT, WRONG_WRITE, gtkwave_view, record_waves
from regress.pages.strip import draw_strip
from regress.paths import ROOT
from regress.results.model import JobStatus
from regress.results.night import StoredJob, load_job
from regress.results.store import Store


@pytest.fixture(scope="module")
def night(
    wrong_store: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, StoredJob]]:
    folder = tmp_path_factory.mktemp("copy") / "store"
    shutil.copytree(wrong_store[0], folder)
    with Store.open(folder) as store:
        yield store, load_job(store, wrong_store[1])


def test_the_stored_failure_comes_again_bit_for_bit(
    night: tuple[Store, StoredJob], tmp_path: Path
) -> None:
    store, job = night
    assert len(job.failing) >= 3
    for row_of in (job.failing[0], job.failing[-1]):
        again = replay_job(
            load_job(store, job.attempt.id[:8]), silent, row_of.index, tmp_path, RUNNER
        )
        assert again.verdict is ReplayVerdict.SAME, (again.stored, again.now)
        assert again.stored == again.now
        assert again.outcome.exit_code == 1
        (only,) = again.outcome.result.ops
        assert only.failure is not None
        assert row_of.failure is not None
        assert only.failure.actual_bits == row_of.failure.actual_bits
        assert only.failure.element == row_of.failure.element


def test_without_an_op_the_first_failing_one_is_meant(
    night: tuple[Store, StoredJob], tmp_path: Path
) -> None:
    again = replay_job(night[1], silent, None, tmp_path, RUNNER)
    assert [op.index for op in again.outcome.result.ops] == [night[1].failing[0].index]


def altered(job: StoredJob, folder: Path, change: Callable[[OpRow], OpRow]) -> StoredJob:
    """The job with another first failing op in its record."""
    shutil.copytree(job.folder, folder)
    left = read_json(folder / RESULT_FILE, RunResult)
    first = job.failing[0].index
    ops = tuple(change(op) if op.index == first else op for op in left.ops)
    write_json(folder / RESULT_FILE, left.model_copy(update={"ops": ops}))
    return replace(job, folder=folder)


def test_another_mismatch_is_not_taken_for_the_stored_one(
    night: tuple[Store, StoredJob], tmp_path: Path
) -> None:
    def lie(row_of: OpRow) -> OpRow:
        assert row_of.failure is not None
        wrong = row_of.failure.model_copy(update={"actual_bits": "0x1"})
        return row_of.model_copy(update={"failure": wrong})

    stored = altered(night[1], tmp_path / "other", lie)
    again = replay_job(stored, silent, None, tmp_path / "out", RUNNER)
    assert again.verdict is ReplayVerdict.DIFFERENT
    assert "0x1" in again.stored
    assert "0x1" not in again.now.split()


def test_a_failure_that_is_gone_is_said_to_be_gone(
    night: tuple[Store, StoredJob], tmp_path: Path
) -> None:
    again = replay_job(night[1], silent, None, tmp_path, (*RUNNER[:1], "-c", CORRECT))
    assert again.verdict is ReplayVerdict.GONE
    assert again.outcome.exit_code == 0


def test_an_op_that_took_the_number_of_the_stored_one_is_not_said_to_pass(
    night: tuple[Store, StoredJob], tmp_path: Path
) -> None:
    other = altered(
        night[1], tmp_path / "other", lambda op: op.model_copy(update={"dtype": "was another"})
    )
    again = replay_job(other, silent, None, tmp_path / "out", (*RUNNER[:1], "-c", CORRECT))
    assert again.verdict is ReplayVerdict.OTHER_OP
    assert "was another" in again.stored
    assert night[1].failing[0].dtype in again.now


CORRECT = """
import sys
import tb.ops.session as session
from golden.backend import CmodelBackend
class Right(CmodelBackend):
    cycle = 0
    last_writer = lambda self, address: None
    set_dram = lambda self, *_: None
session.Session._open_rtl = lambda self, _: Right(self._config)
import tb.run
sys.exit(tb.run.main(sys.argv[1:]))
"""


def test_an_op_that_did_not_fail_is_refused(night: tuple[Store, StoredJob]) -> None:
    with pytest.raises(InputError, match="OP: got 9999, expected one that failed"):
        replay_job(night[1], silent, 9999)


def test_a_damaged_result_is_named(night: tuple[Store, StoredJob]) -> None:
    store, job = night
    file, text = job.folder / "result.json", (job.folder / "result.json").read_text()
    failed = job.failing[0].index  # read before the file is damaged, and kept for the other tests
    file.write_text(text[:200])
    try:
        with pytest.raises(InputError, match=r"result.json: file: got missing or unreadable"):
            replay_job(load_job(store, job.attempt.id), silent, failed)
    finally:
        file.write_text(text)


def test_a_job_that_passed_or_never_started_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        good, idle = item("smoke"), item("stalls")
        night = plan(1)
        passed = attempt(night, good, JobStatus.PASS)
        killed = attempt(night, idle, JobStatus.KILLED)
        add(store, night, [(good, passed, result(good, (row(),))), (idle, killed, None)])
        with pytest.raises(InputError, match="expected a failed job"):
            replay_job(load_job(store, passed.id), silent)
        with pytest.raises(InputError, match=r"expected a job that was started"):
            spec_of(load_job(store, killed.id), tmp_path)
        stopped = load_job(store, killed.id)
        line = f"got killed, expected a job with an op that failed; make replay ID={killed.id}"
        with pytest.raises(InputError, match=line):
            record_waves(stopped, silent)
        with pytest.raises(InputError, match=line):
            shrink_job(stopped)


def test_waves_come_with_markers_views_and_a_strip(night: tuple[Store, StoredJob]) -> None:
    found = record_waves(night[1], silent, None, "vcd", RUNNER)
    assert found.markers == {FETCH: 5, FIRST_BEAT: 32, WRONG_WRITE: 44}
    assert found.waves.is_file()
    view, commands = (path.read_text() for path in (found.gtkwave_view, found.surfer_commands))
    strip = draw_strip(found.file, found.markers)
    assert f'[dumpfile] "{found.waves}"' in view
    assert "*-17.000000 87000 9000 63000 87000 -1" in view
    assert "[markername] Cfirst wrong write" in view
    committed = (ROOT / "tb/sim/views/npu.gtkw").read_text()
    own = committed.replace("data[255:0]", "data[127:0]")  # as wide as in the recording
    assert own != committed
    assert view.endswith(own.partition("[timestart] 0\n")[2])
    assert "bc2a" in strip  # what was written
    assert "[timestart] 0\n" in view  # 44 cycles are less than what is shown before the marker
    assert "cursor_set 87000\nmarker_set first_wrong_write\ngoto_cursor\n" in commands
    assert strip.startswith("<svg")
    assert "C first wrong write, cycle 44" in strip
    assert "not in these waves: command step" in strip
    (only,) = found.outcome.result.ops
    assert only.index == night[1].failing[0].index


def test_a_late_marker_is_in_view_when_the_viewer_opens() -> None:
    view = gtkwave_view("[timestart] 0\nrest\n", Path("/w.fst"), {FETCH: 10, WRONG_WRITE: 5000})
    assert "[timestart] 9899000\nrest\n" in view
