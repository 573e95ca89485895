# SPDX-License-Identifier: Apache-2.0
"""Bisection: the first bad revision, whatever cannot be tried in between, and how it is tried."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from night_host import add, attempt, item, plan, result, row
from rich.console import Console

from driver.errors import InputError
from driver.evidence import CAPSULE, folder_of
from regress import progress
from regress.failures import bisect
from regress.failures.bisect import ProbeResult, bisect_job, command_of, probe_revision, search
from regress.nightly.provenance import revision as revision_of
from regress.progress import ProgressBar
from regress.results.model import JobStatus
from regress.results.night import StoredJob, load_job
from regress.results.store import Store

GIT = str(shutil.which("git"))
LETTERS = "GBU"
ANSWERS = dict(zip(LETTERS, ProbeResult, strict=True))


@pytest.mark.parametrize(
    ("line", "first", "untestable"),
    [
        ("B", 0, ()),
        ("GB", 1, ()),
        ("GGGGBBBB", 4, ()),
        ("BBBBBBBB", 0, ()),
        ("GGGGGGGB", 7, ()),
        ("GGUUBB", 4, (2, 3)),
        ("UUUUUB", 5, (0, 1, 2, 3, 4)),
        ("GUGBUB", 3, ()),
    ],
)
def test_the_first_bad_revision_is_found(
    line: str, first: int, untestable: tuple[int, ...]
) -> None:
    asked: list[str] = []

    def probe(revision: str) -> ProbeResult:
        asked.append(revision)
        return ANSWERS[line[int(revision)]]

    found = search([str(i) for i in range(len(line))], probe)
    assert found == (str(first), tuple(map(str, untestable)), len(asked))
    assert len(asked) == len(set(asked))


def test_the_plan_grows_with_what_cannot_be_tried() -> None:
    told: list[int] = []
    *_, tried = search("UUUUUB", lambda letter: ANSWERS[letter], told.append)
    assert (told, tried) == ([3, 4, 4, 5, 5], 5)


def test_a_thousand_revisions_take_ten_tries() -> None:
    for first in (0, 1, 499, 500, 998, 999):
        found = search(
            [str(i) for i in range(1000)],
            lambda r, first=first: ProbeResult.BAD if int(r) >= first else ProbeResult.GOOD,
        )
        assert found[0] == str(first)
        assert found[2] <= 10


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, list[str]]]:
    """Six revisions; the fourth breaks `check`, the third does not set itself up."""
    root = tmp_path / "repository"
    root.mkdir()
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

    def git(*arguments: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            [GIT, *names, *arguments], cwd=root, env=os.environ | own, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    git("init", "-q")
    revisions = []
    for number in range(1, 7):
        (root / "Makefile").write_text(f"setup:\n\t@{'false' if number == 3 else 'true'}\n")
        script = root / "check"
        said = (
            'mkdir -p out/bisect && echo \'{"status": "fail", "new": 1}\' > out/bisect/result.json'
        )
        ends = f"{said}\nexit 1" if number >= 4 else "exit 0"
        script.write_text(f"#!/bin/sh\n# {number}\n{ends}\n")
        script.chmod(0o755)
        git("add", ".")
        git("commit", "-q", "-m", f"revision {number}")
        revisions.append(git("rev-parse", "HEAD"))
    monkeypatch.setattr(bisect, "ROOT", root)
    monkeypatch.setattr(bisect, "FOLDER", tmp_path / "trees")
    yield root, revisions


@pytest.fixture
def job(tmp_path: Path) -> Iterator[StoredJob]:
    with Store.open(tmp_path / "store") as store:
        of, night = item(), plan(1)
        made = attempt(night, of, JobStatus.FAIL, reason="broken")
        add(store, night, [(of, made, result(of, (row(),)))])
        yield load_job(store, made.id)


class _Notes(ProgressBar):
    """Keeps what is noted."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(Console(file=StringIO()), "bisect")
        self._said = said

    def note(self, text: str) -> None:
        self._said.append(text)


def shown(said: list[str]) -> ProgressBar:
    return _Notes(said)


def check(revision: str) -> ProbeResult:
    return probe_revision(revision, ["./check"])


def test_each_revision_is_unpacked_set_up_and_run(
    repository: tuple[Path, list[str]], job: StoredJob
) -> None:
    _, revisions = repository
    said: list[str] = []
    span = (revisions[0], "HEAD")
    found = bisect_job(job, None, span, shown(said), probe=check)
    assert found.first_bad == revisions[3][:12]
    assert found.subject == "revision 4"
    assert found.untestable == (revisions[2][:12],)
    assert f"{revisions[2][:12]}  untestable" in said
    assert len(said) == found.tried == 5


def test_revisions_that_differ_in_texts_alone_are_tried_once(
    repository: tuple[Path, list[str]],
) -> None:
    root, revisions = repository
    names = ["-c", "user.name=a", "-c", "user.email=a@b"]
    (root / "README.md").write_text("text\n")
    for words in (["add", "."], [*names, "commit", "-q", "-m", "text"]):
        subprocess.run([GIT, *words], cwd=root, check=True)
    probed: list[str] = []
    said: list[str] = []

    def probe(revision: str) -> ProbeResult:
        probed.append(revision)
        return ProbeResult.BAD

    ask = bisect._noting(probe, shown(said))
    newest = bisect.resolve("bad", "HEAD")
    assert [ask(one) for one in (revisions[4], revisions[5], newest)] == [ProbeResult.BAD] * 3
    assert probed == revisions[4:]
    assert said[-1] == f"{newest[:12]}  bad, the same sources as {revisions[5][:12]}"


def test_it_shows_how_far_it_is_while_a_revision_is_tried(
    repository: tuple[Path, list[str]], job: StoredJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, revisions = repository
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0.0)
    told = StringIO()
    bar = ProgressBar(Console(file=told, width=200), "bisect", "revisions")

    def probe(revision: str) -> ProbeResult:
        return probe_revision(revision, ["./check"], tick=bar.tick)

    bisect_job(job, None, (revisions[0], "HEAD"), bar, probe=probe)
    lines = told.getvalue().splitlines()
    counts = [line.split()[1] for line in lines if line.startswith("bisect: ")]
    assert list(dict.fromkeys(counts)) == ["0/5", "1/5", "2/5", "3/5", "4/5", "5/5"]


def test_a_program_that_breaks_is_no_verdict(repository: tuple[Path, list[str]]) -> None:
    _, revisions = repository
    assert probe_revision(revisions[4], ["./check"]) is ProbeResult.BAD
    broken = ["sh", "-c", "exit 1"]  # as Python ends with an exception
    assert probe_revision(revisions[4], broken) is ProbeResult.UNTESTABLE


def test_ends_that_are_not_good_and_bad_are_refused(
    repository: tuple[Path, list[str]], job: StoredJob
) -> None:
    _, revisions = repository
    for span, said in (
        ((revisions[4], revisions[5]), "good revision .* got bad"),
        ((revisions[0], revisions[1]), "bad revision .* got good"),
        ((revisions[1], revisions[0]), "an ancestor"),
        (("nonsense", "HEAD"), "good: got nonsense, expected a revision"),
    ):
        with pytest.raises(InputError, match=said):
            bisect_job(job, None, span, shown([]), probe=check)


def test_a_good_revision_beside_the_main_line_is_refused(
    repository: tuple[Path, list[str]], job: StoredJob
) -> None:
    root, revisions = repository
    names = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (
        ["checkout", "-q", "-b", "side", revisions[3]],
        ["rm", "-q", "check"],
        ["commit", "-q", "-m", "a repair"],
        ["checkout", "-q", "-"],
    ):
        subprocess.run([GIT, *names, *words], cwd=root, check=True, capture_output=True)
    with pytest.raises(InputError, match=r"good: got .*, expected an ancestor of .* main line"):
        bisect_job(job, None, ("side", revisions[5]), shown([]), probe=check)


@pytest.mark.parametrize(
    ("status", "ops", "answer"),
    [
        (1, [("aten.mm.default", "fail", "rtl")], ProbeResult.BAD),
        (1, [("aten.mm.default", "fail", "precision")], ProbeResult.UNTESTABLE),
        (1, [("aten.add.Tensor", "fail", "rtl")], ProbeResult.UNTESTABLE),
        (0, [("aten.mm.default", "pass", "none")], ProbeResult.GOOD),
        (0, [("aten.add.Tensor", "pass", "none")], ProbeResult.UNTESTABLE),
        (0, [], ProbeResult.UNTESTABLE),
    ],
)
def test_another_failure_or_another_op_says_nothing(
    repository: tuple[Path, list[str]],
    status: int,
    ops: list[tuple[str, str, str]],
    answer: ProbeResult,
) -> None:
    rows = [{"op": op, "status": how, "blame": blame} for op, how, blame in ops]
    said = json.dumps({"status": "fail" if status else "pass", "ops": rows})
    script = f"mkdir -p out/bisect && echo '{said}' > out/bisect/result.json; exit {status}"
    wanted = row(op="aten.mm.default", status="fail", blame="rtl")
    assert probe_revision(repository[1][0], ["sh", "-c", script], wanted) is answer


def test_a_run_that_does_not_end_says_nothing_of_its_revision(
    repository: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bisect, "_LIMIT_S", 1.0)
    found = probe_revision(repository[1][0], ["sh", "-c", "sleep 600"])
    assert found is ProbeResult.UNTESTABLE


def test_the_recorded_operands_are_replayed_where_there_are_any(
    job: StoredJob, tmp_path: Path
) -> None:
    spec = job.spec
    assert spec is not None
    program = bisect.PROGRAM
    options = ["--config", "small", "--seed", "1"]
    assert command_of(job, None, spec) == [program, "run", "smoke", *options]
    other = spec.model_copy(update={"array": "behavioural", "allow_cpu": True})
    assert command_of(job, None, other)[-3:] == ["--array", "behavioural", "--allow-cpu"]
    assert command_of(job, row(3), spec)[-2:] == ["--op", "3"]
    kept = folder_of(job.folder, 3) / CAPSULE
    kept.mkdir(parents=True)
    assert command_of(job, row(3), spec) == [program, "replay", str(kept), *options]
    elsewhere = replace(job, folder=tmp_path)
    capsule = spec.model_copy(update={"capsules": {"capsule": Path("/c")}})
    assert command_of(elsewhere, row(3), capsule)[:3] == [program, "replay", "/c"]


def test_a_tree_of_which_git_says_nothing_counts_as_changed(
    repository: tuple[Path, list[str]],
) -> None:
    root, revisions = repository
    assert revision_of(root) == (revisions[-1], False)
    (root / ".git/index").write_bytes(b"no index")
    assert revision_of(root) == (revisions[-1], True)
    assert revision_of(root / ".git") == (revisions[-1], True)
    assert revision_of(root.parent) == ("", True)
