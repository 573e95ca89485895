# SPDX-License-Identifier: Apache-2.0
"""A test cut into shards gives what one process would have given, and can be resumed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from nightly_host import FAKE_TESTS, context, item_results, spec_of
from rich.console import Console

from driver.errors import InfrastructureError, InputError, ProcessRefused
from driver.results import RESULT_FILE, LedgerRow, OpRow, RunResult, RunSpec, Shard, read_json
from regress.nightly.job import result_hash
from regress.nightly.merge import merged
from regress.nightly.shards import ShardedResult, ShardOptions, run_sharded
from regress.paths import CONFIG_FILE
from regress.process import execute
from regress.results.model import PlannedJob
from regress.results.store import Store
from regress.run import RUNNER


def _spec(out: Path, test: str = "quick") -> RunSpec:
    return spec_of(PlannedJob(test, "small", 1, "rtl", wall_s=30), out)


def _run(spec: RunSpec, how: ShardOptions) -> tuple[ShardedResult, str]:
    text = io.StringIO()
    own = context(CONFIG_FILE)
    done = run_sharded(Console(file=text, width=200), spec, FAKE_TESTS[spec.test], how, own)
    return done, text.getvalue()


def test_the_result_holds_every_shards_ops_in_order(tmp_path: Path) -> None:
    done, _ = _run(_spec(tmp_path), ShardOptions(4, 2))
    assert done.exit_code == 0
    assert done.result is not None
    assert [row.index for row in done.result.ops] == [0, 1, 2, 3]
    assert done.result.cycles == 4 * 200
    assert [(row.where, row.count) for row in done.result.ledger] == [("cpu", 8)]
    assert read_json(tmp_path / RESULT_FILE, RunResult) == done.result


def test_a_shard_that_fails_or_dies_makes_the_whole_so(tmp_path: Path) -> None:
    failing, _ = _run(_spec(tmp_path / "a", "failing"), ShardOptions(1, 1))
    assert failing.exit_code == 1
    assert failing.result is not None
    assert failing.result.reproduce.endswith("--op 1")
    dying, _ = _run(_spec(tmp_path / "b", "dying"), ShardOptions(2, 2))
    assert dying.exit_code == 3
    assert dying.result is not None
    assert "shard 1/2: the run was ended by SIGSEGV" in (dying.result.message or "")


def test_more_shards_than_ops_are_bad_input_and_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(ProcessRefused, match=r"^command line: shards: got 2, expected 1 at most$"):
        _run(_spec(tmp_path, "scanty"), ShardOptions(2, 2))
    assert not (tmp_path / RESULT_FILE).exists()
    done, _ = _run(_spec(tmp_path, "scanty"), ShardOptions(1, 1))
    assert done.exit_code == 0


def test_shards_of_different_sources_have_no_verdict(tmp_path: Path) -> None:
    states = iter(["planned", "edited"])
    own = context(CONFIG_FILE, sources=lambda: next(states, "planned"))
    text = io.StringIO()
    console = Console(file=text, width=200)
    done = run_sharded(console, _spec(tmp_path), FAKE_TESTS["quick"], ShardOptions(2, 1), own)
    assert done.exit_code == 3
    assert done.result is not None
    assert done.result.message == "the sources changed while its shards ran"
    assert "warning: sources changed during the run" in text.getvalue()


def test_resume_runs_only_the_shards_that_are_missing(tmp_path: Path) -> None:
    whole, _ = _run(_spec(tmp_path), ShardOptions(3, 2))
    with Store.open(tmp_path) as store, store._engine.begin() as connection:
        connection.exec_driver_sql(
            "DELETE FROM npu_attempts WHERE item_id IN "
            "(SELECT item_id FROM npu_items WHERE shard_index = 1)"
        )
    again, _ = _run(_spec(tmp_path), ShardOptions(None, 2, resume=True))
    assert [len(item_result.attempts) for item_result in item_results(tmp_path)] == [1, 1, 1]
    assert whole.result is not None
    assert again.result is not None
    assert result_hash(again.result) == result_hash(whole.result)


def test_a_result_that_was_changed_behind_its_shard_is_not_taken(tmp_path: Path) -> None:
    _run(_spec(tmp_path), ShardOptions(2, 1))
    for item_result in item_results(tmp_path):
        last = item_result.last
        assert last is not None
        found = last.artefact(RESULT_FILE)
        assert found is not None
        with Store.open(tmp_path) as store:
            path = store.path(found.path)
        path.write_text(path.read_text().replace('"seed": 1', '"seed": 1 '))
    with pytest.raises(InputError, match="what its shard left, or a new run"):
        _run(_spec(tmp_path), ShardOptions(None, 1, resume=True))


@pytest.mark.parametrize(
    ("change", "how", "expected"),
    [
        ({"seed": 2}, ShardOptions(None, 1, True), "run to resume: got none"),
        ({}, ShardOptions(3, 1, True), "--shards: got 3, expected 2, as before"),
        ({"modes": ("chained",)}, ShardOptions(2, 1), "mode: got chained"),
        ({"op_filter": 1}, ShardOptions(2, 1), "--op: got 1"),
        ({"shard": Shard(index=0, count=2)}, ShardOptions(2, 1), "--shard: got 1/2"),
    ],
)
def test_what_cannot_be_cut_or_resumed_is_bad_input(
    tmp_path: Path, change: dict[str, object], how: ShardOptions, expected: str
) -> None:
    _run(_spec(tmp_path), ShardOptions(2, 2))
    with pytest.raises(InputError) as caught:
        _run(_spec(tmp_path).model_copy(update=change), how)
    assert expected in str(caught.value)


def test_an_op_in_two_shards_is_an_error_of_the_machinery(tmp_path: Path) -> None:
    done, _ = _run(_spec(tmp_path), ShardOptions(2, 2))
    assert done.result is not None
    with pytest.raises(InfrastructureError, match="op 0 is in the results of two shards"):
        merged(_spec(tmp_path), [done.result, done.result], 1.0)


def test_ledgers_add_up(tmp_path: Path) -> None:
    done, _ = _run(_spec(tmp_path), ShardOptions(1, 1))
    assert done.result is not None
    row = done.result.ops[0]
    parts = [
        done.result.model_copy(
            update={
                "ops": (OpRow(**{**dict(row), "index": n}),),
                "ledger": (
                    LedgerRow(op="a", where="rtl", count=n + 1, reason="x"),
                    LedgerRow(op=f"b{n}", where="cpu", count=1, reason="y"),
                ),
            }
        )
        for n in range(2)
    ]
    found = merged(_spec(tmp_path), parts, 1.0).ledger
    assert [(r.op, r.where, r.count) for r in found] == [
        ("a", "rtl", 3),
        ("b0", "cpu", 1),
        ("b1", "cpu", 1),
    ]


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "-1/2", "1/0", ""])
def test_a_shard_is_one_of_several(text: str) -> None:
    with pytest.raises(InputError, match="N/COUNT"):
        Shard.parse(text)


def test_shards_share_all_ops_and_no_op_twice() -> None:
    shards = [Shard.parse(f"{n}/3") for n in (1, 2, 3)]
    for op in range(20):
        assert sum(shard.holds(op) for shard in shards) == 1


def test_the_real_bench_gives_the_same_result_in_shards(tmp_path: Path) -> None:
    """Directed products on the cmodel, whole and in two parts."""
    results = []
    for shard in (None, *(Shard(index=n, count=2) for n in range(2))):
        out = tmp_path / str(shard).replace("/", "of")
        spec = RunSpec(
            test="smoke",
            config="small",
            config_file=CONFIG_FILE,
            seed=1,
            backend="cmodel",
            waves="none",
            out=out,
            capsules={},
            op_filter=None,
            timeout_s=120.0,
            shard=shard,
        )
        out.mkdir()
        (out / "run.json").write_text(spec.model_dump_json())
        ended = execute([*RUNNER, str(out / "run.json")], out / "log", 120, lambda line: None)
        assert ended.status == 0, (out / "log").read_text()
        results.append(read_json(out / RESULT_FILE, RunResult))
    whole, *parts = results
    assert len(whole.ops) > 20
    joined = merged(spec.model_copy(update={"shard": None}), parts, 1.0)
    in_order = {"digest": None}  # of all bits in the order of the ops: no shard sees them all
    assert result_hash(joined) == result_hash(whole.model_copy(update=in_order))
