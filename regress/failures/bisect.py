# SPDX-License-Identifier: Apache-2.0
"""Finds the revision that broke a stored failure, by running it in the revisions in question.

Each revision is unpacked into a folder of its own and sets itself up there, with its own packages,
model and simulator: what is tried is that revision, and the checkout at hand is left alone.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum
from io import BytesIO
from pathlib import Path

from pydantic import BaseModel

from driver.errors import InfrastructureError, InputError
from driver.failures import kind_of, normalised
from driver.files import read_json
from driver.reproduce import option_words, reproduce_line
from driver.results import PROGRAM, RESULT_FILE, OpRow, RunSpec
from regress.failures.replay import spec_of
from regress.folder import locked
from regress.paths import BUILD, ROOT
from regress.process import environment, execute
from regress.progress import ProgressBar
from regress.results.night import StoredJob

FOLDER = BUILD / "bisect"
_LIMIT_S = 3600.0
_NOT_RUN = frozenset(("docs", "README.md", "CHANGELOG.md", "LICENSE"))
"""Of a revision's files and folders."""
_SHORT = 12


class ProbeResult(Enum):
    """What a revision did with the failure."""

    GOOD = "good"
    BAD = "bad"
    UNTESTABLE = "untestable"
    """It does not build, or does not know the test."""


@dataclass(frozen=True)
class BisectResult:
    """The end of a search."""

    first_bad: str
    subject: str
    untestable: tuple[str, ...]
    """Older than `first_bad` and younger than the last good one: one of them may be it."""
    tried: int


Probe = Callable[[str], ProbeResult]


def bisect_job(
    job: StoredJob,
    row: OpRow | None,
    span: tuple[str, str],
    progress: ProgressBar,
    *,
    probe: Probe | None = None,
) -> BisectResult:
    """Search between a good and a bad revision. InputError when they are not good and bad, or when
    another search is using the folder of unpacked revisions."""
    with nullcontext() if probe else locked(FOLDER, "bisect"), progress:
        probe = probe or _prober(job, row, progress.tick)
        return _bisected(span, _noting(probe, progress), progress)


def _bisected(span: tuple[str, str], ask: Probe, progress: ProgressBar) -> BisectResult:
    good, bad = (
        resolve(name, revision) for name, revision in zip(("good", "bad"), span, strict=True)
    )
    revisions = between(good, bad)
    ends = ((good, ProbeResult.GOOD), (bad, ProbeResult.BAD))

    def plan(tries: int) -> None:
        progress.plan(len(ends) + tries)

    plan(_most_tries(len(revisions) - 1))
    for revision, expected in ends:
        answer = ask(revision)
        if answer is not expected:
            name = f"{expected.value} revision {revision[:_SHORT]}"
            raise InputError("command line", name, answer.value, expected.value)
    first, untestable, tried = search(revisions, ask, plan)
    subject = _git("log", "-1", "--format=%s", first)
    return BisectResult(first[:_SHORT], subject, untestable, tried + len(ends))


def search(
    revisions: Sequence[str], probe: Probe, plan: Callable[[int], None] = lambda _: None
) -> tuple[str, tuple[str, ...], int]:
    """The first bad one of `revisions` (oldest first, the last known to be bad), those that could
    not be tried and may come before it, and how many were tried. `plan` hears how many will have
    been at most, if all that are left can be tried."""
    first_bad, last_good = len(revisions) - 1, -1
    skipped: set[int] = set()
    tried = 0
    while True:
        open_ones = [i for i in range(last_good + 1, first_bad) if i not in skipped]
        if not open_ones:
            break
        plan(tried + _most_tries(len(open_ones)))
        middle = (last_good + first_bad) / 2
        at = min(open_ones, key=lambda i: (abs(i - middle), i))
        tried += 1
        answer = probe(revisions[at])
        if answer is ProbeResult.BAD:
            first_bad = at
        elif answer is ProbeResult.GOOD:
            last_good = at
        else:
            skipped.add(at)
    between_them = sorted(i for i in skipped if last_good < i < first_bad)
    return revisions[first_bad], tuple(revisions[i][:_SHORT] for i in between_them), tried


def _most_tries(count: int) -> int:
    """To find the first bad one of so many revisions, if there is one."""
    return count.bit_length()


def resolve(name: str, revision: str) -> str:
    """The full hash of a revision. InputError when git does not know it."""
    try:
        return _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except InfrastructureError as error:
        raise InputError("command line", name, revision, "a revision that git knows") from error


def between(good: str, bad: str) -> tuple[str, ...]:
    """The revisions after `good` up to `bad`, oldest first, along the main line."""
    found = _git("rev-list", "--first-parent", "--reverse", f"{good}..{bad}").split()
    if good == bad:
        expected = "a revision before the bad one"
        raise InputError("command line", "good", good[:_SHORT], expected)
    # A good revision beside the main line says nothing of the revisions on it.
    if not found or _git("rev-parse", f"{found[0]}^1") != good:
        expected = f"an ancestor of {bad[:_SHORT]} on its main line"
        raise InputError("command line", "good", good[:_SHORT], expected)
    return tuple(found)


def _git(*arguments: str) -> str:
    return _git_bytes(*arguments).decode().strip()


def _git_bytes(*arguments: str) -> bytes:
    program = shutil.which("git")
    if program is None:
        raise InfrastructureError("git is not on PATH")
    command = [program, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, check=False)
    if done.returncode != 0:
        raise InfrastructureError(f"git {arguments[0]}: {done.stderr.decode().strip()}")
    return done.stdout


def _noting(probe: Probe, progress: ProgressBar) -> Probe:
    """The probe, heard, and asked once for revisions that differ in nothing that runs."""
    known: dict[str, tuple[str, ProbeResult]] = {}

    def ask(revision: str) -> ProbeResult:
        sources = _sources(revision)
        if sources not in known:
            known[sources] = revision, probe(revision)
        first, answer = known[sources]
        same = "" if first == revision else f", the same sources as {first[:_SHORT]}"
        progress.done()
        progress.note(f"{revision[:_SHORT]}  {answer.value}{same}")
        return answer

    return ask


def _sources(revision: str) -> str:
    """What of a revision can change a run: all but its texts."""
    entries = (line.partition("\t") for line in _git("ls-tree", revision).splitlines())
    return "\n".join(f"{what} {name}" for what, _, name in entries if name not in _NOT_RUN)


def _prober(job: StoredJob, row: OpRow | None, tick: Callable[[], None]) -> Probe:
    spec = spec_of(job, FOLDER / "out")
    command = command_of(job, row, spec)
    return lambda revision: probe_revision(revision, command, row, tick)


def command_of(job: StoredJob, row: OpRow | None, spec: RunSpec) -> list[str]:
    """The command line that repeats the failure in another revision: from the operands that the
    op left, where it left them, since the number of an op may mean another one there."""
    kept = None if row is None else job.capsule(row)
    if kept is not None:
        alone = spec.model_copy(update={"capsules": {"capsule": kept}, "modes": ("isolated",)})
        return [PROGRAM, "replay", str(kept), *option_words(alone)]
    if row is None:
        return shlex.split(reproduce_line(spec))
    return shlex.split(reproduce_line(spec, row.index, row.replay_from))


def probe_revision(
    revision: str,
    command: Sequence[str],
    row: OpRow | None = None,
    tick: Callable[[], None] = lambda: None,
) -> ProbeResult:
    """Unpack, set up and run. The folder stays: a search that is started again is quicker.

    `row`: of the failure that is looked for. Another failure, or a run without that op, says
    nothing. `tick` is called often.
    """
    tree = FOLDER / revision[:_SHORT]
    if not (tree / "Makefile").exists():
        unpack(revision, tree)
    log, out = tree / "bisect.log", tree / "out" / "bisect"
    (out / RESULT_FILE).unlink(missing_ok=True)
    steps = (["make", "setup"], [*command, "--out", str(out)])
    for step in steps:
        prefix = ["env", "-C", str(tree)]
        ended = execute([*prefix, *step], log, _LIMIT_S, lambda _: None, tick)
        if ended.timed_out or (ended.status and step is steps[0]):
            return ProbeResult.UNTESTABLE
    return _answer(out / RESULT_FILE, ended.status, row)


class _OlderFailure(BaseModel):
    detail: str = ""


class _OlderRow(BaseModel):
    """As OpRow."""

    op: str
    status: str
    blame: str = ""
    failure: _OlderFailure | None = None

    def is_as(self, row: OpRow) -> bool:
        """Whether it fails in the same way: same fault, and where no element is wrong, same
        text."""
        said = "" if self.failure is None else normalised(self.failure.detail)
        return self.blame == row.blame and kind_of(row.failure) in ("", said)


class _OlderResult(BaseModel):
    """What is asked of a result that another revision wrote."""

    status: str
    ops: tuple[_OlderRow, ...] = ()


def _answer(file: Path, status: int, row: OpRow | None) -> ProbeResult:
    """What a run that ended with `status` says of its revision."""
    if row is None and status == 0:
        return ProbeResult.GOOD
    try:
        result = read_json(file, _OlderResult)
    except InputError:  # Python's own status for a program that breaks is 1 as well
        return ProbeResult.UNTESTABLE
    same = [one for one in result.ops if row is not None and one.op == row.op]
    if status == 0 and same:
        return ProbeResult.GOOD
    if row is None:
        failed = result.status == "fail"
    else:
        failed = any(one.status == "fail" and one.is_as(row) for one in same)
    return ProbeResult.BAD if status == 1 and failed else ProbeResult.UNTESTABLE


def unpack(revision: str, tree: Path) -> None:
    """The files of a revision into `tree`, whole or not at all."""
    packed = _git_bytes("archive", "--format=tar", revision)
    fresh = tree.with_name(f".{tree.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(fresh, filter="data")
    fresh.rename(tree)
