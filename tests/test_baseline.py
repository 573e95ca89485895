# SPDX-License-Identifier: Apache-2.0
"""Ratchets: a cost beyond the tolerance is red, a gain asks to be recorded, nothing else counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from night_host import add, attempt, item, plan, result, row, spec

from driver.errors import InputError
from driver.results import OpRow, write_json
from regress.analysis.baseline import (
    FOLDER,
    ChangeKind,
    JobBaseline,
    TierBaseline,
    compare,
    load,
    measure,
    path_of,
    record,
    to_text,
)
from regress.analysis.night_report import planned_labels
from regress.nightly.settings import Tolerances
from regress.results.model import JobStatus, PlannedJob, PreparationRecord
from regress.results.night import Night, load_night
from regress.results.store import Store

LIMITS = Tolerances()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def night(
    store: Store, number: int, ops: tuple[OpRow, ...], state: JobStatus = JobStatus.PASS
) -> Night:
    of = item()
    made = attempt(plan(number), of, state)
    return load_night(store, add(store, plan(number), [(of, made, result(of, ops))]))


def steps(
    before: TierBaseline, now: TierBaseline, tried: list[str]
) -> list[tuple[ChangeKind, str]]:
    return [(move.kind, move.measure) for move in compare(before, now, tried, LIMITS)]


@pytest.mark.parametrize(
    ("cycles", "utilisation", "expected"),
    [
        (1010, 0.5, []),
        (990, 0.505, []),
        (1011, 0.5, [(ChangeKind.WORSE, "cycles")]),
        (989, 0.5, [(ChangeKind.BETTER, "cycles")]),
        (1000, 0.4949, [(ChangeKind.WORSE, "utilisation")]),
        (1000, 0.5051, [(ChangeKind.BETTER, "utilisation")]),
    ],
)
def test_the_ratchet_turns_at_one_percent_both_ways(
    store: Store, cycles: int, utilisation: float, expected: list[tuple[ChangeKind, str]]
) -> None:
    before = measure(night(store, 1, (row(cycles=1000, utilisation=0.5),)))
    now = measure(night(store, 2, (row(cycles=cycles, utilisation=utilisation),)))
    assert len(before.ops) == len(now.ops) == 1
    assert steps(before, now, [item().label]) == expected


@pytest.mark.parametrize(
    ("compared", "expected"),
    [
        (950, []),
        (949, [(ChangeKind.WORSE, "compared")]),
        (1051, [(ChangeKind.BETTER, "compared")]),
        (None, []),
    ],
)
def test_a_pass_that_compares_less_is_red(
    compared: int | None, expected: list[tuple[ChangeKind, str]]
) -> None:
    def tier(count: int | None) -> TierBaseline:
        job = JobBaseline(digest="a", inputs="x", seconds=3.0, compared=count)
        return TierBaseline(tier="ci", passing=("lenet",), jobs={"lenet": job}, ops={})

    assert steps(tier(1000), tier(compared), ["lenet"]) == expected


def test_only_losses_and_other_bits_are_red() -> None:
    red = [ChangeKind.WORSE, ChangeKind.LOST, ChangeKind.GONE, ChangeKind.BITS]
    assert [kind for kind in ChangeKind if kind.red] == red


def test_other_bits_on_equal_inputs_are_red_and_on_other_inputs_nothing() -> None:
    def tier(digest: str | None, inputs: str) -> TierBaseline:
        jobs = {"lenet": JobBaseline(digest=digest, inputs=inputs, seconds=3.0)}
        return TierBaseline(tier="ci", passing=("lenet",), jobs=jobs, ops={})

    assert steps(tier("a", ""), tier("b", ""), ["lenet"]) == [(ChangeKind.BITS, "digest")]
    assert steps(tier("a", "x"), tier("b", "y"), ["lenet"]) == []
    assert steps(tier("a", "x"), tier("a", "x"), ["lenet"]) == []


def test_the_digest_and_the_capsules_of_a_job_are_recorded(store: Store) -> None:
    of, left = PlannedJob("replay", "small", 1, "rtl", workload="mlp"), plan(1)
    bits = result(of, (row(),)).model_copy(update={"digest": "d" * 64})
    stored = add(store, left, [(of, attempt(left, of, JobStatus.PASS), bits)])
    folder = load_night(store, stored).jobs[0].folder
    asked = spec(of.test, folder).model_copy(update={"capsules": {"capsule": folder}})
    write_json(folder / "run.json", asked)
    before = measure(load_night(store, stored)).jobs[of.label]
    assert (before.digest, before.seconds) == ("d" * 64, 10)
    store.add_preparation(PreparationRecord(stored.id, "capsule mlp 1", True, False, 1.0, 1.0, "h"))
    after = measure(load_night(store, stored)).jobs[of.label]
    assert before.inputs != after.inputs


def test_the_bits_of_two_lists_of_ops_are_not_compared(store: Store) -> None:
    def inputs(number: int, rows: tuple[OpRow, ...]) -> set[str]:
        return {job.inputs for job in measure(night(store, number, rows)).jobs.values()}

    longer = (row(), row().model_copy(update={"index": 1}))
    first, again, other = inputs(1, (row(),)), inputs(2, (row(),)), inputs(3, longer)
    assert first == again != other


def test_a_job_that_no_longer_passes_is_lost_and_one_not_tried_is_not(store: Store) -> None:
    before = measure(night(store, 1, (row(),)))
    failed = measure(night(store, 2, (row(),), JobStatus.TIMEOUT))
    assert failed.passing == ()
    assert steps(before, failed, [item().label]) == [(ChangeKind.LOST, "pass")]
    assert steps(before, failed, []) == []


def test_a_new_job_is_gained_once_and_a_new_op_of_an_old_job_as_well(store: Store) -> None:
    before = measure(night(store, 1, (row(),)))
    now = measure(night(store, 2, (row(), row(1))))
    assert steps(before, now, [item().label]) == [(ChangeKind.GAINED, "cycles")]
    assert steps(TierBaseline(tier="nightly", passing=(), ops={}), now, [item().label]) == [
        (ChangeKind.GAINED, "pass")
    ]


def test_an_op_that_is_no_longer_measured_is_red(store: Store) -> None:
    before = measure(night(store, 1, (row(), row(1), row(2))))
    now = measure(night(store, 2, (row(), row(1))))
    assert steps(before, now, [item().label]) == [
        (ChangeKind.WORSE, "compared"),
        (ChangeKind.WORSE, "rows"),
        (ChangeKind.GONE, "cycles"),
    ]


def test_an_op_between_others_hides_no_loss_of_those_behind_it(store: Store) -> None:
    former = (row(), row(1, op="aten.b", cycles=7), row(2, op="aten.c", cycles=8))
    before = measure(night(store, 1, former))
    ops = (row(op="aten.new"), row(1, cycles=400), row(2, op="aten.b", cycles=7))
    ops = (*ops, row(3, op="aten.c", cycles=9))
    now = measure(night(store, 2, ops))
    assert steps(before, now, [item().label]) == [
        (ChangeKind.WORSE, "cycles"),
        (ChangeKind.GAINED, "cycles"),
    ]


def test_ops_of_the_cpu_and_of_failed_jobs_are_no_baseline(store: Store) -> None:
    on_cpu = row(1, where="cpu", cycles=None, elements_compared=0)
    assert len(measure(night(store, 1, (row(), on_cpu))).ops) == 1
    assert measure(night(store, 2, (row(),), JobStatus.FAIL)).ops == {}


def test_what_is_recorded_is_read_back_and_jobs_not_tried_keep_theirs(
    store: Store, tmp_path: Path
) -> None:
    now = measure(night(store, 1, (row(), row(1))), {"coverage": 0.5})
    path = record(now, [item().label], tmp_path)
    assert path == path_of("nightly", tmp_path)
    assert load("nightly", tmp_path) == now
    figures = {"coverage": 0.1, "speed": 2.0}
    other = TierBaseline(tier="nightly", passing=("other",), ops={}, figures=figures)
    record(other, ["other"], tmp_path)
    merged = load("nightly", tmp_path)
    assert merged is not None
    assert (merged.passing, len(merged.ops)) == (("other", item().label), 2)
    assert merged.figures == {"coverage": 0.5}  # of the whole night, which this one is not
    assert path.read_text().count("\n") == 16
    record(other, ["other", item().label], tmp_path)
    assert load("nightly", tmp_path) == merged  # tried and failed: what was recorded still holds
    whole = other.model_copy(update={"passing": ("other", item().label)})
    record(whole, whole.passing, tmp_path)
    recorded = load("nightly", tmp_path)
    assert recorded is not None
    assert (recorded.figures, recorded.ops) == (figures, {})


def test_a_night_in_which_nothing_passed_is_not_recorded(store: Store, tmp_path: Path) -> None:
    now = measure(night(store, 1, (row(),), JobStatus.FAIL))
    with pytest.raises(InputError, match="got nothing, expected a night with a pass"):
        record(now, [item().label], tmp_path)
    assert not list(tmp_path.glob("*.json"))


def test_a_pass_without_its_result_is_none(store: Store) -> None:
    before = measure(night(store, 1, (row(),)))
    found = night(store, 2, (row(),))
    (found.jobs[0].folder / "result.json").write_text("{")
    assert steps(before, measure(found), [item().label]) == [(ChangeKind.LOST, "pass")]


def test_a_night_of_another_seed_drops_nothing(store: Store) -> None:
    ran = night(store, 1, (row(),))
    assert planned_labels(replace(ran, plan=replace(ran.plan, seed=1))) == {item().label}
    assert planned_labels(ran) is None  # of seed 7


def test_a_fall_of_coverage_is_red(store: Store) -> None:
    ran = night(store, 1, (row(),))
    pair = measure(ran, {"coverage": 0.5}), measure(ran, {"coverage": 0.49})
    assert steps(*pair, [item().label]) == [(ChangeKind.WORSE, "figure")]
    assert steps(*pair, []) == []  # less was run: that covers less


def test_a_job_that_its_tier_no_longer_has_is_said_and_holds_up_nothing(
    store: Store, tmp_path: Path
) -> None:
    ran = night(store, 1, (row(),))
    label = item().label
    now = measure(ran, {"coverage": 0.4})
    before = measure(ran, {"coverage": 0.5})
    before = before.model_copy(update={"passing": (label, "was renamed")})
    changed = compare(before, now, [label], LIMITS, {label, "is new"})
    assert [(move.kind, move.what) for move in changed] == [
        (ChangeKind.WORSE, "coverage"),
        (ChangeKind.GONE, "was renamed"),
    ]
    assert compare(before, now, [label], LIMITS) == ()  # of a selection nothing is known
    record(before, [], tmp_path)
    record(now, [label], tmp_path, planned={label})
    assert load("nightly", tmp_path) == now


def test_no_baseline_is_none_and_a_damaged_one_an_error(tmp_path: Path) -> None:
    assert load("nightly", tmp_path) is None
    path_of("nightly", tmp_path).write_text('{"tier": 3}')
    with pytest.raises(InputError, match=r"nightly\.json: tier"):
        load("nightly", tmp_path)


def test_the_committed_baselines_are_whole_and_in_their_own_form() -> None:
    files = sorted(FOLDER.glob("*.json"))
    assert files
    for path in files:
        found = load(path.stem)
        assert found is not None
        assert found.tier == path.stem
        assert found.passing
        assert found.ops
        assert to_text(found) == path.read_text()
