# SPDX-License-Identifier: Apache-2.0
"""The broad Python tests as a test of the tiers: each is a row, a failure has its own line, and no
test is in neither `npu-cosim test` nor the ci tier."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_unit_suite import Heard, spec

from driver.errors import InfrastructureError, InputError
from driver.results import RunResult, RunSpec, Shard
from regress.check.steps import LEFT_TO_TIERS
from regress.nightly.settings import load_nightly
from regress.paths import CONFIG_FILE
from tb.pytest_suite import run_pytest
from tb.tests import broad, infos

SUITE = """\
import pytest
pytestmark = pytest.mark.broad
def test_right(): print('{"event":"plan","ops":99}')
def test_wrong(): assert 1 + 1 == 3, "not the sum"
@pytest.mark.parametrize("n", range(2))
def test_each(n): pass
@pytest.mark.skip
def test_skipped(): pass
@pytest.fixture
def missing(): raise OSError("no such thing")
def test_without_its_fixture(missing): pass
"""


def asked(out: Path, **changes: object) -> RunSpec:
    return spec(out).model_copy(update={"test": broad.INFO.name, "backend": "cmodel", **changes})


def run(folder: Path, text: str = SUITE, **changes: object) -> tuple[RunResult, Heard]:
    (folder / f"{folder.name}_test.py").write_text(text)  # pytest imports each name once
    heard = Heard()
    return run_pytest(asked(folder, **changes), heard, broad.INFO.name, folder), heard


def test_every_broad_test_is_a_row_and_a_skip_is_a_failure(tmp_path: Path) -> None:
    result, heard = run(tmp_path)
    assert heard.planned == len(result.ops) == len(heard.events) == 6
    statuses = {row.op: row.status for row in result.ops}
    right = ("test_right", "test_each[0]", "test_each[1]")
    assert statuses == {
        **dict.fromkeys(right, "pass"),
        **dict.fromkeys(("test_wrong", "test_skipped", "test_without_its_fixture"), "fail"),
    }
    assert all(row.module.endswith(f"_test.py::{row.op}") for row in result.ops)
    assert result.status == "fail"
    assert result.reproduce.endswith("run broad --config default --seed 1 --backend cmodel --op 1")


def test_a_failure_says_why_and_blames_no_part(tmp_path: Path) -> None:
    rows = {row.op: row for row in run(tmp_path)[0].ops}
    texts = {name: row.failure.detail for name, row in rows.items() if row.failure is not None}
    assert texts["test_wrong"].startswith("call: AssertionError: not the sum")
    assert texts["test_skipped"] == "skipped: a skipped test checks nothing"
    assert texts["test_without_its_fixture"] == "setup: OSError: no such thing"
    assert {rows[name].blame for name in texts} == {"unknown"}


def test_the_tests_know_the_seed_of_the_run(tmp_path: Path) -> None:
    text = """\
import pytest
from tb.pytest_suite import RUN_SEED
@pytest.mark.broad
def test_seed(request): assert request.config.stash[RUN_SEED] == 7
"""
    assert run(tmp_path, text, seed=7)[0].status == "pass"
    assert run(tmp_path, text, seed=8)[0].status == "fail"


def test_tests_without_the_marker_are_left_out(tmp_path: Path) -> None:
    result, _ = run(
        tmp_path, SUITE.replace("pytestmark", "unused") + "\n@unused\ndef test_b(): 0\n"
    )
    assert [row.op for row in result.ops] == ["test_b"]


def test_a_test_by_its_number_and_shards_that_hold_each_once(tmp_path: Path) -> None:
    (alone,) = run(tmp_path, op_filter=1)[0].ops
    assert (alone.index, alone.op) == (1, "test_wrong")
    parts = [run(tmp_path, shard=Shard(index=at, count=2))[0] for at in range(2)]
    assert sorted(row.index for part in parts for row in part.ops) == list(range(6))


def test_a_number_that_does_not_exist_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 to 5"):
        run(tmp_path, op_filter=6)


def test_tests_that_cannot_be_collected_are_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="INTERRUPTED"):
        run(tmp_path, "import nothing_of_that_name\n")


def test_a_test_may_take_as_long_as_its_job(tmp_path: Path) -> None:
    limit = 'assert float(pytestconfig.getini("faulthandler_timeout")) == 4321'
    text = f"import pytest\n@pytest.mark.broad\ndef test_limit(pytestconfig): {limit}\n"
    (row,) = run(tmp_path, text, timeout_s=4321.0)[0].ops
    assert row.status == "pass", row.failure


def test_the_tiers_run_what_the_second_command_leaves_out() -> None:
    tiers = load_nightly(CONFIG_FILE).tiers
    left_out = set(LEFT_TO_TIERS)
    assert left_out == {info.name for info in infos() if info.kind == "pytest"}
    assert {name: left_out & set(tests) for name, tests in tiers.items()} == {
        "smoke": set(),
        "ci": {"broad"},
        "nightly": left_out,
        "weekly": left_out,
    }
