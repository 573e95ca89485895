# SPDX-License-Identifier: Apache-2.0
"""The commands on stored failures and nights: what they print, write and exit with."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import demo_nights
import pytest
from night_host import RUNNER, add, attempt, item, plan, result, row

from regress import cli, night_commands
from regress import run as run_module
from regress.analysis import baseline
from regress.analysis.night_report import ReferenceFiles, night_report, notification
from regress.nightly.summary import count_results
from regress.paths import ROOT
from regress.results.model import JobStatus, SkipCause
from regress.results.store import Store

TARGETS = {
    "replay ID=12ab": ".venv/bin/npu-cosim reproduce  -- \"$ID\"",
    "replay ID=12ab OP=3 OUT=d": '.venv/bin/npu-cosim reproduce --op "$OP" --out "$OUT" -- "$ID"',
    "replay ID=12ab OP=3": '.venv/bin/npu-cosim reproduce --op "$OP" -- "$ID"',
    "waves ID=12ab OP=3": '.venv/bin/npu-cosim waves --op "$OP" -- "$ID"',
    "shrink ID=12ab": '.venv/bin/npu-cosim shrink  -- "$ID"',
    "bisect ID=12ab GOOD=v1": '.venv/bin/npu-cosim bisect  --good "$GOOD"  -- "$ID"',
    "triage": ".venv/bin/npu-cosim triage",
    "report PLAN=p": '.venv/bin/npu-cosim report --plan "$PLAN"',
    "baseline TIER=ci": '.venv/bin/npu-cosim baseline  -- "$TIER"',
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_make_calls_the_command(target: str) -> None:
    done = subprocess.run(
        [str(shutil.which("make")), "-n", *target.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    words = " ".join(done.stdout.splitlines()[-1].split())
    assert words == " ".join(TARGETS[target].split())


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of five nights, with an own list of known issues and own baselines."""
    folder = tmp_path_factory.mktemp("demo")
    demo_nights.build(folder)
    with pytest.MonkeyPatch.context() as patch:
        own = (folder / "known.yaml", folder / "baselines")
        patch.setattr(ReferenceFiles.__init__, "__defaults__", own)
        yield folder


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of the program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["npu-cosim", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    out, err = capsys.readouterr()
    return int(str(ended.value.code)), out, err


def test_triage_sorts_the_last_night(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "triage", "--out", str(demo / "store"))
    assert status == 1
    assert "new    replay:lenet[large] seed 1" in out
    assert "2 × blame rtl: aten.mm.default fp32" in out
    assert "(known, #41 Ada Lovelace)" in out
    assert "flaky: smoke[small] seed 2" in out


def test_triage_says_how_the_rest_is_run(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store.open(tmp_path) as store:
        stored = store.add_plan(plan(1), [item(), item(seed=2)])
        store.add_attempt(attempt(stored, item(), JobStatus.PASS))
    status, out, _ = call(capsys, "triage", "--out", str(tmp_path))
    assert status != 0
    rest = f"the rest: .venv/bin/npu-cosim nightly {stored.tier} --resume --out {tmp_path}"
    assert rest in "".join(out.splitlines())


def test_looking_at_an_older_night_leaves_the_pages_of_the_last(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = demo / "store" / "report" / "index.html"
    before = index.read_text()
    with Store.open(demo / "store") as store:
        older = store.plans()[2].id
    status, out, _ = call(capsys, "triage", "--plan", older, "--out", str(demo / "store"))
    assert status == 0, "all that failed that night is known"
    assert "known, #41 Ada Lovelace" in out
    assert "timeout" not in out
    assert index.read_text() == before


def test_report_writes_the_pages_and_the_message(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = demo / "store" / "report" / "index.html"
    before = index.read_text()
    index.unlink()
    mail = tmp_path / "night.eml"
    status, out, _ = call(
        capsys, "report", "--out", str(demo / "store"), "--mail", str(mail), "--to", "a@b.example"
    )
    assert status == 0
    assert out.splitlines()[-1] == f"open {index}"
    assert index.read_text() == before
    assert "nightly RED" in mail.read_text()


def test_a_message_into_a_folder_that_is_not_there_is_refused(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mail = tmp_path / "none" / "night.eml"
    where = ("--out", str(demo / "store"), "--mail", str(mail), "--to", "a@b.example")
    status, out, said = call(capsys, "report", *where)
    assert (status, out) == (2, "")
    assert (
        said
        == f"error: command line: --mail: got {mail}, expected a file in a folder that is there\n"
    )
    assert not mail.parent.exists()


def test_a_baseline_is_checked_then_recorded_and_then_quiet(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ("--out", str(demo / "store"))
    status, out, _ = call(capsys, "baseline", "--check", *where)
    assert status == 1
    assert "no longer passes: replay:lenet[large] seed 1" in out
    monkeypatch.setattr(baseline.record, "__defaults__", (tmp_path, None))
    own = (demo / "known.yaml", tmp_path)
    monkeypatch.setattr(ReferenceFiles.__init__, "__defaults__", own)
    status, out, _ = call(capsys, "baseline", "nightly", *where)
    assert status == 0
    assert "recorded 7 jobs and" in out
    status, out, _ = call(capsys, "baseline", "--check", *where)
    assert (status, out.splitlines()[0]) == (0, "7 of 7 recorded jobs ran")
    assert out.splitlines()[1].startswith("0 moves")


def test_a_check_without_a_baseline_checks_nothing_and_says_so(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = (demo / "known.yaml", tmp_path)
    monkeypatch.setattr(ReferenceFiles.__init__, "__defaults__", own)
    status, _, err = call(capsys, "baseline", "--check", "--out", str(demo / "store"))
    assert status == 2
    assert "nightly.json: file: got missing, expected what" in err
    _, out, _ = call(capsys, "triage", "--out", str(demo / "store"))
    assert "no baseline of nightly is recorded: nothing was compared" in out


def test_a_night_that_executed_nothing_is_red(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        left = attempt(plan(1), item(), JobStatus.SKIPPED, skip_cause=SkipCause.BUDGET)
        add(store, plan(1), [(item(), replace(left, folder=""), None)])
        (tmp_path / "store" / "result.json").write_text(result(item(), (row(),)).model_dump_json())
        found = night_report(store, plan(1).id)
        assert found.failed
        assert notification(found).red
        assert found.night.jobs[0].result is None  # what lies in the store is of another run


def test_a_night_ends_with_reports_and_known_failures_do_not_count(demo: Path) -> None:
    with Store.open(demo / "store") as store:
        plan = store.plans(limit=1)[0]
        told = night_commands.write_report(store, plan.id)
        outcomes = store.item_results(plan.id)
    assert told.red
    assert any(line.startswith("open ") for line in told.lines)
    known = [o for o in outcomes if o.item.id in told.expected]
    assert [o.item.workload for o in known] == ["qwen_layer"]
    assert count_results(known).exit_code == 1
    assert count_results(known, told.expected).exit_code == 0
    assert count_results(outcomes, told.expected).exit_code == 1
    assert count_results(outcomes, told.expected).by_status[JobStatus.FAIL] == 3


@pytest.fixture(scope="module")
def wrong(
    wrong_store: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """A folder with one stored failure of the wrong device, and its id."""
    folder = tmp_path_factory.mktemp("copy") / "store"
    shutil.copytree(wrong_store[0], folder)
    return folder, wrong_store[1]


@pytest.mark.broad
def test_reproduce_and_waves_say_what_they_found(
    wrong: tuple[Path, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, identity = wrong
    monkeypatch.setattr(run_module.run, "__defaults__", (RUNNER,))
    for module in (night_commands.replay_job, night_commands.record_waves):
        defaults = (*(module.__defaults__ or ())[:-1], RUNNER)
        monkeypatch.setattr(module, "__defaults__", defaults)
    where = ("--out", str(folder))
    status, out, _ = call(capsys, "reproduce", identity[:6], *where)
    assert status == 1
    assert out.splitlines()[-1] == "the same first mismatch as stored"
    status, out, _ = call(capsys, "waves", identity, "--kind", "vcd", *where)
    assert status == 0  # the waves are what was asked for
    assert "passes now" not in out
    assert "first wrong write  cycle 44" in out
    assert "surfer -c" in out
    (recorded,) = folder.rglob("waves/op*")  # of several failing ops, the first
    page = folder / "report" / "failures" / f"{identity}-{recorded.name}.html"
    assert "Key signals" in page.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("reproduce", "ffff"), "ID ffff: got no such attempt"),
        (("waves", "ffff", "--kind", "lxt"), "kind: got lxt, expected one of fst, vcd"),
        (("report", "--plan", "p"), "plan: got p, expected the id of a stored plan"),
        (("baseline", "weekly"), "plan: got none of weekly, expected one"),
        (("bisect", "ffff", "--good", "v1"), "ID ffff"),
    ],
)
def test_bad_input_is_one_line(
    wrong: tuple[Path, str], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    status, _, err = call(capsys, *words, "--out", str(wrong[0]))
    assert status == 2
    assert said in err
    assert err.count("\n") == 1


def test_a_store_is_not_made_by_looking_for_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = call(capsys, "triage", "--out", str(tmp_path / "nowhere"))
    assert status == 2
    assert "expected a folder of results" in err
    assert not (tmp_path / "nowhere").exists()
