# SPDX-License-Identifier: Apache-2.0
"""The store: what was acknowledged stays, what is added twice is there once, none is replaced."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from driver.errors import InfrastructureError, InputError
from driver.results import Shard
from regress.results import tables
from regress.results.database import DATABASE_FILE
from regress.results.model import (
    Artefact,
    Attempt,
    ItemResult,
    JobStatus,
    Plan,
    PlannedJob,
    PreparationRecord,
    SkipCause,
)
from regress.results.store import Store

PLAN = Plan(
    id="p1",
    tier="smoke",
    created_utc="2026-01-01T00:00:00+00:00",
    seed=1,
    revision="abc",
    dirty=False,
    tools={"python": "3.11"},
    config_file="sim_config.yaml",
    config_digest="d",
    command="npu-cosim nightly smoke",
)
ITEMS = tuple(
    PlannedJob("matmul", "small", seed, "rtl", shard=Shard(index=1, count=3), ordinal=seed)
    for seed in range(4)
)
PASS = Attempt("p1", ITEMS[0].id, 1, JobStatus.PASS, ops=2, result_hash="r", inputs_hash="i")


@pytest.fixture(params=["sqlite", *(["server"] if os.environ.get("NPU_TEST_POSTGRES") else [])])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = None if request.param == "sqlite" else os.environ["NPU_TEST_POSTGRES"]
    with Store.open(tmp_path, url) as opened:
        if url is not None:
            _emptied(opened)
        opened.add_plan(PLAN, ITEMS)
        yield opened


def _emptied(store: Store) -> None:
    with store._engine.begin() as connection:
        for table in reversed(tables.METADATA.sorted_tables):
            if table is not tables.META:
                connection.execute(table.delete())


def test_a_plan_and_its_items_come_back_as_they_were(store: Store) -> None:
    kept = store.plan("p1")
    assert replace(kept, sequence=0) == PLAN
    assert kept.sequence >= 1
    assert tuple(store.items("p1")) == ITEMS


def test_plans_are_ordered_by_sequence_whatever_the_clock_did(store: Store) -> None:
    store.add_plan(replace(PLAN, id="p2", created_utc="1999-01-01T00:00:00+00:00"), ())
    store.add_plan(replace(PLAN, id="p3", tier="weekly"), ())
    assert [plan.id for plan in store.plans()] == ["p3", "p2", "p1"]
    assert [plan.id for plan in store.plans(tier="smoke", limit=1)] == ["p2"]


def test_an_attempt_comes_back_as_it_was(store: Store) -> None:
    attempt = replace(
        PASS,
        skip_cause=SkipCause.BUDGET,
        cpu_seconds=1.5,
        cycles=1 << 40,
        artefacts=(Artefact("sim.log", "a/sim.log", "0" * 64, 3),),
    )
    assert store.add_attempt(attempt)
    assert store.attempts("p1") == [attempt]
    assert store.attempt(attempt.id[:8]) == (ITEMS[0], attempt)


def test_the_same_attempt_again_changes_nothing(store: Store) -> None:
    assert store.add_attempt(PASS)
    assert not store.add_attempt(PASS)
    other = replace(PASS, item_id=ITEMS[1].id)
    assert store.add_attempts([PASS, other]) == 1
    assert sorted(a.item_id for a in store.attempts("p1")) == sorted([PASS.item_id, other.item_id])


def test_another_result_under_the_same_number_is_refused(store: Store) -> None:
    store.add_attempt(PASS)
    with pytest.raises(InputError, match="another result"):
        store.add_attempt(replace(PASS, status=JobStatus.FAIL))
    assert store.attempts("p1") == [PASS]


def test_an_attempt_of_no_plan_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="a planned item"):
        store.add_attempt(replace(PASS, plan_id="nowhere"))


def test_outcomes_join_items_and_attempts_in_order(store: Store) -> None:
    again = replace(PASS, number=2, status=JobStatus.FAIL)
    store.add_attempt(again)
    store.add_attempt(PASS)
    item_results = store.item_results("p1")
    assert [item_result.item for item_result in item_results] == list(ITEMS)
    assert item_results[0].attempts == (PASS, again)
    assert item_results[1] == ItemResult(ITEMS[1])


def test_history_is_of_the_same_work_newest_first(store: Store) -> None:
    store.add_plan(replace(PLAN, id="p2"), ITEMS[:1])
    later = replace(PASS, plan_id="p2")
    store.add_attempts([PASS, replace(PASS, number=2), later])
    assert store.history(PASS.item_id) == [later, replace(PASS, number=2), PASS]
    assert store.history(PASS.item_id, limit=1) == [later]


@pytest.mark.parametrize("identity", ["", "zzzz", "%"])
def test_an_id_that_names_no_attempt_is_bad_input(store: Store, identity: str) -> None:
    store.add_attempt(PASS)
    with pytest.raises(InputError, match="the id of one attempt"):
        store.attempt(identity)


def test_preparations_are_kept_in_order(store: Store) -> None:
    rows = [PreparationRecord("p1", f"build {n}", True, False, 1.0, 0.5, "k") for n in range(3)]
    for row in rows:
        store.add_preparation(row)
    assert store.preparations("p1") == rows


def test_a_store_of_another_schema_is_refused(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    with sqlite3.connect(tmp_path / DATABASE_FILE) as connection:
        connection.execute("UPDATE npu_meta SET schema_version = 99")
    with pytest.raises(InputError, match="schema version: got 99"):
        Store.open(tmp_path)


def test_commits_are_durable_and_readers_never_wait(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_plan(PLAN, ITEMS)
        with store._engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        writer = sqlite3.connect(tmp_path / DATABASE_FILE, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        assert len(store.items("p1")) == len(ITEMS)
        with Store.open(tmp_path) as other:
            assert len(other.items("p1")) == len(ITEMS)
        assert time.monotonic() - started < 5
        writer.close()


def test_a_locked_database_is_waited_for(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_plan(PLAN, ITEMS)
        locker = sqlite3.connect(
            tmp_path / DATABASE_FILE, isolation_level=None, check_same_thread=False
        )
        locker.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.5, lambda: locker.execute("COMMIT"))
        timer.start()
        assert store.add_attempt(PASS)
        timer.join()
        locker.close()


def test_a_database_that_stays_locked_is_one_typed_error(tmp_path: Path) -> None:
    with Store.open(tmp_path, busy_timeout_s=0.1) as store:
        store.add_plan(PLAN, ITEMS)
        locker = sqlite3.connect(tmp_path / DATABASE_FILE, isolation_level=None)
        locker.execute("BEGIN IMMEDIATE")
        with pytest.raises(InfrastructureError, match="database is locked"):
            store.add_attempt(PASS)
        locker.close()
        assert store.attempts("p1") == []


@pytest.mark.parametrize("kept_bytes", [2000, 9000])
def test_a_damaged_database_is_named(tmp_path: Path, kept_bytes: int) -> None:
    with Store.open(tmp_path) as store:
        store.add_plan(PLAN, ITEMS)
    file = tmp_path / DATABASE_FILE
    file.write_bytes(file.read_bytes()[:kept_bytes])
    with pytest.raises(InputError, match=f"{DATABASE_FILE}: file: got .*malformed, expected a so"):
        Store.open(tmp_path).plans()


@pytest.mark.parametrize("url", ["nonsense", "nosuch://x/y"])
def test_a_url_that_means_nothing_is_bad_input(tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError, match="store"):
        Store.open(tmp_path, url)


def test_a_folder_that_cannot_be_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a folder of results"):
        Store.open(tmp_path / "file" / "store")
