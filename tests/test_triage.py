# SPDX-License-Identifier: Apache-2.0
"""Triage: one bug is one bucket, the known is expected until its day, flaky is never hidden."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from night_host import attempt, item, plan, result, row

from driver.errors import InputError
from driver.failures import normalised
from driver.results import Failure, OpRow, RunResult
from regress.analysis.known_issues import KNOWN_ISSUES, KnownIssue, load_known_issues
from regress.analysis.triage import StatusChange, TriageResult, op_signature, triage
from regress.results.model import Attempt, ItemResult, JobStatus, PlannedJob, SkipCause
from tb.checks import no_element
from tb.ops.replay_prefix import signature

TODAY = date(2026, 11, 21)


def failing(index: int = 0, detail: str = "the RTL does not", **fields: object) -> OpRow:
    found = Failure(
        element=(0, index), tile=(0, 0), expected_bits="0x1", actual_bits="0x2", expected=1.0,
        actual=2.0, cycle=100 + index, detail=detail,
    )  # fmt: skip
    return row(index, status="fail", blame="rtl", failure=found, **fields)


def job(
    of: PlannedJob, state: JobStatus, *ops: OpRow, night: int = 1, **fields: object
) -> tuple[ItemResult, dict[str, RunResult | None]]:
    made = attempt(plan(night), of, state, **fields)
    return ItemResult(of, (made,)), {made.id: result(of, ops, None if ops else "dead")}


def sort(
    *jobs: tuple[ItemResult, dict[str, RunResult | None]],
    issues: tuple[KnownIssue, ...] = (),
    before: tuple[ItemResult, ...] = (),
) -> TriageResult:
    results = {key: value for _, found in jobs for key, value in found.items()}
    return triage([item_result for item_result, _ in jobs], results, issues, TODAY, before)


def issue(**fields: object) -> KnownIssue:
    known = {
        "id": "#1", "owner": "Ada", "why": "rounding", "expires": TODAY,
        "signature": r"blame rtl: aten\.mm",
    }  # fmt: skip
    return KnownIssue.model_validate({**known, **fields})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("died at 0x1f in /tmp/a/x.sv:17", "died at 0xABC in /home/b/c/x.sv:9"),
        ("no interrupt after 500 cycles", "no interrupt after 1e6  cycles"),
        ("torch says nan", "torch says -3.5"),
    ],
)
def test_numbers_addresses_and_paths_do_not_tell_failures_apart(one: str, other: str) -> None:
    assert normalised(one) == normalised(other) != normalised("something else")


def test_failures_of_one_kind_share_a_bucket_largest_first() -> None:
    sorted_out = sort(
        job(item(seed=1), JobStatus.FAIL, failing(3)),
        job(item(seed=2), JobStatus.FAIL, failing(8, shapes=((1, 2), (2, 3)))),
        job(item(seed=3), JobStatus.FAIL, failing(3, dtype="fp16")),
        job(item(seed=4), JobStatus.PASS, row()),
        job(item(seed=5), JobStatus.TIMEOUT, reason="stopped after 1800 s"),
    )
    assert [len(bucket.jobs) for bucket in sorted_out.buckets] == [2, 1, 1]
    assert sorted_out.buckets[0].signature == op_signature(failing())
    assert {b.signature for b in sorted_out.buckets[1:]} >= {"timeout: stopped after N s"}
    assert len(sorted_out.unexpected) == 4
    assert sorted_out.red


def test_a_known_issue_is_expected_and_comes_last() -> None:
    sorted_out = sort(
        job(item(seed=1), JobStatus.FAIL, failing()),
        job(item(seed=2), JobStatus.FAIL, failing()),
        job(item(seed=3), JobStatus.FAIL, failing(dtype="fp16")),
        issues=(issue(signature="fp32"),),
    )
    assert [b.issue is not None for b in sorted_out.buckets] == [False, True]
    assert [red.item.seed for red in sorted_out.unexpected] == [3]
    only_known = sort(job(item(), JobStatus.FAIL, failing()), issues=(issue(),))
    assert not only_known.red


def test_a_new_bug_does_not_hide_behind_a_known_one() -> None:
    sorted_out = sort(
        job(item(), JobStatus.FAIL, failing(0), failing(1, dtype="fp16")),
        issues=(issue(signature="fp32"),),
    )
    assert sorted_out.red
    assert sorted_out.unexpected[0].signature == op_signature(failing(dtype="fp16"))


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (JobStatus.ERROR, None),
        (JobStatus.TIMEOUT, None),
        (JobStatus.FAIL, "torch has other tokens"),
    ],
)
def test_what_ends_or_fails_a_job_does_not_hide_behind_a_known_op(
    status: JobStatus, said: str | None
) -> None:
    failed = job(item(), status, failing(), reason="the simulator died")
    [(key, found)] = failed[1].items()
    assert found is not None
    failed[1][key] = found.model_copy(update={"message": said})
    sorted_out = sort(failed, issues=(issue(),))
    assert sorted_out.red
    assert sorted_out.unexpected[0].signature == f"{status.value}: {said or 'the simulator died'}"
    ended = issue(id="#2", signature=f"{status.value}: (torch|the simulator)")
    assert not sort(failed, issues=(issue(), ended)).red


def test_an_issue_ends_with_its_day_and_holds_only_where_it_says() -> None:
    failed = job(item(), JobStatus.FAIL, failing())
    late = issue(expires=date(2026, 11, 20))
    assert sort(failed, issues=(late,)).expired == (late,)
    assert sort(failed, issues=(late,)).red
    assert sort(failed, issues=(issue(config="large"),)).red
    assert sort(failed, issues=(issue(test="matmul"),)).red
    assert not sort(failed, issues=(issue(test="smoke", config="small"),)).red


def test_a_known_issue_that_passes_is_a_surprise_and_one_not_run_is_not() -> None:
    known = issue(test="smoke")
    assert sort(job(item(), JobStatus.PASS, row()), issues=(known,)).unexpected_passes == (known,)
    assert sort(job(item(), JobStatus.KILLED), issues=(known,)).unexpected_passes == ()
    assert sort(job(item("stalls"), JobStatus.PASS, row()), issues=(known,)).unexpected_passes == ()
    failed = job(item(), JobStatus.FAIL, failing())
    assert sort(failed, issues=(known,)).unexpected_passes == ()
    passed = job(item(), JobStatus.PASS, row())
    assert sort(passed, issues=(issue(),)).unexpected_passes == ()  # another tier may have it


def test_a_job_that_was_stopped_from_outside_is_no_failure_of_its_test() -> None:
    found = sort(job(item(), JobStatus.KILLED))
    assert not found.buckets and not found.changes and not found.red


def test_a_known_issue_behind_another_failure_does_not_pass() -> None:
    known = issue(test="smoke", signature="fp16")
    both = job(item(), JobStatus.FAIL, failing(), failing(1, dtype="fp16"))
    assert sort(both, issues=(known,)).unexpected_passes == ()
    assert sort(both, issues=(known,)).red


def test_new_fixed_and_still_against_the_former_night() -> None:
    items = {name: item(seed=seed) for seed, name in enumerate(("new", "fixed", "still", "ok"))}
    was = {
        "new": JobStatus.PASS,
        "fixed": JobStatus.FAIL,
        "still": JobStatus.FAIL,
        "ok": JobStatus.PASS,
    }
    now = {
        "new": JobStatus.FAIL,
        "fixed": JobStatus.PASS,
        "still": JobStatus.FAIL,
        "ok": JobStatus.PASS,
    }

    def ops(state: JobStatus) -> OpRow:
        return failing() if state is JobStatus.FAIL else row()

    before = tuple(job(items[n], s, ops(s))[0] for n, s in was.items())
    found = sort(*(job(items[n], s, ops(s), night=2) for n, s in now.items()), before=before)
    assert found.changes == {
        items[name].id: StatusChange(name) for name in ("new", "fixed", "still")
    }


def test_a_failure_that_was_skipped_is_not_fixed() -> None:
    of = item()
    before = (job(of, JobStatus.FAIL, failing())[0],)
    skipped = job(of, JobStatus.SKIPPED, night=2, skip_cause=SkipCause.BUDGET)
    assert sort(skipped, before=before).changes == {}


def test_equal_inputs_with_different_results_are_flaky_even_when_the_last_try_passed() -> None:
    of = item()
    failed = attempt(plan(1), of, JobStatus.FAIL)
    passed = replace(failed, number=2, status=JobStatus.PASS, result_hash="b")

    def flaky(*attempts: Attempt, before: tuple[ItemResult, ...] = ()) -> TriageResult:
        return triage([ItemResult(of, attempts)], {}, (), TODAY, before)

    assert flaky(failed, passed).flaky == (of,)
    assert flaky(failed, passed).red
    assert flaky(failed, replace(failed, number=2)).flaky == ()
    assert flaky(passed, before=(ItemResult(of, (failed,)),)).flaky == (of,)
    other_inputs = replace(passed, inputs_hash="other")
    assert flaky(other_inputs, before=(ItemResult(of, (failed,)),)).flaky == ()


def test_the_committed_file_of_known_issues_is_valid() -> None:
    assert isinstance(load_known_issues(KNOWN_ISSUES), tuple)


GOOD = """issues:
  - id: "#7"
    owner: Ada Lovelace
    why: rounding
    expires: 2026-12-31
    signature: "blame rtl"
"""


def test_an_entry_is_read(tmp_path: Path) -> None:
    path = tmp_path / "known.yaml"
    path.write_text(GOOD)
    (found,) = load_known_issues(path)
    assert (found.id, found.expires, found.test) == ("#7", date(2026, 12, 31), None)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    owner: Ada Lovelace\n", "", r"issues\[0\]\.owner"),
        ("2026-12-31", "soon", r"issues\[0\]\.expires"),
        ('"blame rtl"', '"blame (rtl"', r"issues\[0\]\.signature.*regular expression"),
        ("owner", "ownr", r"issues\[0\]"),
        (
            "    owner",
            "    test: products\n    owner",
            r"issues\[0\]\.test: got 'products', .*TEST=",
        ),
        ("issues:", "isues:", "one key `issues`"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_field(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = tmp_path / "known.yaml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError, match=said):
        load_known_issues(path)


def test_a_signature_that_takes_too_long_is_refused_by_its_id() -> None:
    slow = issue(id="#9", signature="^(?:(a)|(aa))+$")
    assert slow.matches("matmul", "default", "aaa")
    with pytest.raises(InputError, match=r"the signature of #9: got \^.*done .* within 1 s"):
        slow.matches("matmul", "default", "a" * 60 + "b")


def test_an_id_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "known.yaml"
    path.write_text(GOOD + GOOD.removeprefix("issues:\n"))
    with pytest.raises(InputError, match=r"issues\[1\]\.id: got #7"):
        load_known_issues(path)


def test_a_failure_is_the_same_wherever_its_log_lies() -> None:
    """The rerun that looks for the shortest line has a folder of its own."""
    said = "assertion u_x (x.sv:3) failed in cycle {}: stuck; see {}/sim.log"
    here, there = (
        row(status="fail", blame="rtl", failure=no_element(said.format(cycle, folder)))
        for cycle, folder in ((17, "/home/me/out"), (99, "/scratch/replay-abc"))
    )
    assert signature(here) == signature(there)
    other = row(status="fail", blame="rtl", failure=no_element("command 3: BAD_DESCRIPTOR"))
    assert signature(here) != signature(other)
