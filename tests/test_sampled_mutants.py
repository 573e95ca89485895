# SPDX-License-Identifier: Apache-2.0
"""Samples of mutants: where they are, that all of them elaborate, and what became of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyslang
import pytest

from driver.errors import InfrastructureError, InputError
from driver.filelist import FILELIST, read_filelist
from driver.results import OpRow, RunResult
from regress.paths import ROOT
from tb.checks import check_row
from tb.mutants import __main__ as campaign
from tb.mutants import campaign as runs
from tb.mutants import sampled, score
from tb.mutants import sites as sites_of_rtl
from tb.mutants.activation import activation, is_sound, mutant_set, sound_of, with_mutant
from tb.mutants.campaign import NoVerdict
from tb.mutants.expression import rewritten
from tb.mutants.runs import COUNTED, LADDER, UNITS
from tb.mutants.sampled import PER_SEED, line_of, sample
from tb.mutants.score import Fate, SampledResult, judge, share_between, summary
from tb.mutants.sites import find_sites
from tb.sim.spec import variant_named


def test_a_site_is_its_text_and_never_a_bound_of_a_loop_or_of_an_assertion() -> None:
    sites = find_sites()
    texts = {site.file: site.file.read_bytes() for site in sites}
    folders = {file.parent.name for file in texts}
    assert {"ctrl", "matrix", "vector", "mem", "copy", "gather"} <= folders
    assert "gen" not in folders
    for site in sites:
        text = texts[site.file]
        assert text[site.start : site.end].decode() == site.right
        assert site.wrong.strip("()") != site.right.strip("()")
        line = text[text.rfind(b"\n", 0, site.start) + 1 : site.start].decode()
        assert not re.search(r"\b(for|assert|assume|localparam|parameter)\b[^;{]*$", line), site
        behind = text[site.end :].decode(errors="replace")
        assert not re.match(r"[)\s]*(begin\s+)?(\w+\s*:\s*)?assert\b", behind), site
    assert sites == sorted(set(sites))


def test_all_mistakes_elaborate_at_once(tmp_path: Path) -> None:
    every = {f"mutant.{number}.": site for number, site in enumerate(find_sites())}
    assert _slang_errors(rewritten(every), tmp_path) == []
    one, *_ = every
    broken = {one: replace(every[one], wrong="no_such_name")}
    assert _slang_errors(rewritten(broken), tmp_path)


def _slang_errors(texts: dict[str, bytes], folder: Path) -> list[str]:
    for name, text in texts.items():
        (folder / name).write_bytes(text)
    sources = [
        folder / path.name if path.name in texts else path for path in read_filelist(FILELIST)
    ]
    driver = pyslang.driver.Driver()
    driver.addStandardArgs()
    sizes = "-GArraySize=8 -GBusBits=128 -GVectorLanes=4"
    command = f"slang --top npu_top {sizes} {' '.join(map(str, sources))}"
    assert driver.parseCommandLine(command)
    assert driver.processOptions()
    assert driver.parseAllSources()
    found = driver.createCompilation().getAllDiagnostics()
    return [str(one.code) for one in found if one.isError()]


def test_a_seed_gives_the_same_and_another_seed_others() -> None:
    one, again, other = sample(1), sample.__wrapped__(1), sample(2)
    assert one == again
    assert list(one) == [f"sampled-1-{number}" for number in range(1, PER_SEED + 1)]
    assert len(set(one.values()) & set(other.values())) < PER_SEED // 2
    places = sorted(one.values())
    assert not [a for a, b in pairwise(places) if sampled._overlap(a, b)]


def test_an_edit_elsewhere_changes_few(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sample(1)
    kept = set(before.values())
    sites = [s for n, s in enumerate(find_sites()) if s in kept or n % 10]
    monkeypatch.setattr(sites_of_rtl, "find_sites", lambda: sites)
    after = set(sample.__wrapped__(1).values())
    assert len(after & kept) >= PER_SEED * 3 // 4  # equal texts of a file are told apart by order


def test_a_name_says_its_build_and_its_argument() -> None:
    assert mutant_set("sampled-7-30") == "sampled-7"
    assert activation("sampled-7-30") == ("+mutant.sampled-7-30.",)
    assert with_mutant("waves", "sampled-7-30") == "waves-sampled-7"
    assert variant_named("waves-sampled-7").mutants == "sampled-7"
    assert variant_named("waves-sampled-7").trace
    assert activation(None) == ()
    for name, of in (("sampled-7-30", "sampled-7"), ("hazard-write", "planted")):
        assert sound_of(name) == f"{of}-none"
        assert activation(sound_of(name)) == ()
        assert with_mutant("check", sound_of(name)) == f"check-{of}"
    assert with_mutant("check", None) == "check"


@pytest.mark.parametrize(
    "name",
    ["sampled-7-31", "sampled-7-0", "sampled-07-1", "sampled-1", "sampled-", "sampled-x-none"],
)
def test_a_name_of_no_mutant_is_bad_input(name: str) -> None:
    with pytest.raises(InputError, match="sampled-SEED-NUMBER with a number of 1 to 30"):
        mutant_set(name)


@pytest.mark.parametrize(
    "name", ["fast-sampled-7", "check-sampled-x", "check-sampled-7-1", "planted"]
)
def test_a_build_that_has_no_mutants_is_bad_input(name: str) -> None:
    with pytest.raises(InputError, match="variant"):
        variant_named(name)


def _result(row: OpRow | None, **fields: object) -> RunResult:
    status = "pass" if row is None else "fail"
    given = {"status": status, "ops": () if row is None else (row,), "message": None, **fields}
    return RunResult.model_construct(**given)


def _answer(monkeypatch: pytest.MonkeyPatch, run_with: Callable[..., RunResult]) -> None:
    """Runs of mutants and of the sound RTL give this."""
    for module in (score, runs):
        monkeypatch.setattr(module, "run_with", run_with)
    runs._sound.cache_clear()


@pytest.fixture(autouse=True)
def nothing_is_known_of_the_sound_rtl() -> Iterator[None]:
    yield
    runs._sound.cache_clear()


@pytest.mark.parametrize("blame", ["rtl", "cmodel", None])
def test_the_first_run_that_fails_decides(
    blame: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[str, ...]] = []

    def run_with(name: str, arguments: tuple[str, ...], *_: object) -> RunResult:
        if is_sound(name):
            assert arguments == LADDER[2], "the sound RTL is asked about the run that decides"
            return _result(None)
        asked.append(arguments)
        if len(asked) < 3:
            return _result(None)
        if blame is None:
            raise NoVerdict("npu-cosim run: status 3, ['no end']")
        row = check_row(0, "Random", "tb.tests._bus", 9, "wrong (log: x)")
        return _result(row.model_copy(update={"blame": blame}))

    _answer(monkeypatch, run_with)
    found = judge("sampled-1-1", tmp_path)
    assert asked == [*LADDER[:3], *LADDER[2:3] * (blame is None)]  # what stops has to stop twice
    fates = {"rtl": Fate.CAUGHT, "cmodel": Fate.MISBLAMED, None: Fate.STOPPED}
    assert (found.fate, found.run) == (fates[blame], LADDER[2])
    site = sample(1)["sampled-1-1"]
    assert f"{site.file.relative_to(ROOT)}:{line_of(site)}" in found.line()
    assert ("wrong" if blame else "no end") in found.line()


def test_a_run_that_the_sound_rtl_does_not_end_either_is_no_detection(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run_with(*_: object) -> RunResult:
        raise NoVerdict("npu-cosim run: status 3, ['No space left on device']")

    _answer(monkeypatch, run_with)
    with pytest.raises(InfrastructureError, match="No space left"):
        judge("sampled-1-1", tmp_path)


def test_a_run_that_stops_once_is_no_detection(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stopped: list[object] = []

    def run_with(name: str, *_: object) -> RunResult:
        if not is_sound(name) and not stopped:
            stopped.append(name)
            raise NoVerdict("npu-cosim run: status 3, ['killed']")
        return _result(None)

    _answer(monkeypatch, run_with)
    assert judge("sampled-1-1", tmp_path).fate is Fate.SURVIVED


def test_a_run_that_the_sound_rtl_fails_detects_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failed = _result(None, status="fail", message="blame rtl: broken", reproduce="npu-cosim run x")
    _answer(monkeypatch, lambda *_: failed)
    with pytest.raises(InfrastructureError, match="fails without a mutant"):
        judge("sampled-1-1", tmp_path)


@pytest.mark.parametrize("slow", [None, *COUNTED])
def test_what_passes_every_run_survived_unless_it_costs_cycles(
    slow: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: dict[str, list[tuple[str, ...]]] = {"sampled-1-2": [], "sampled-1-none": []}

    def run_with(name: str, arguments: tuple[str, ...], *_: object) -> RunResult:
        asked[name].append(arguments)
        row = check_row(0, "Op", "tb.tests.smoke", 9, "").model_copy(update={"cycles": 100})
        more = row.model_copy(update={"cycles": 101})
        return _result(None, ops=(row if is_sound(name) or arguments != slow else more,))

    _answer(monkeypatch, run_with)
    found = judge("sampled-1-2", tmp_path)
    assert found.fate is (Fate.CYCLES if slow else Fate.SURVIVED)
    assert found.run == (slow or ())
    assert asked["sampled-1-2"] == list(LADDER)
    assert asked["sampled-1-none"] == list(COUNTED[: COUNTED.index(slow) + 1] if slow else COUNTED)


def test_what_no_unit_bench_has_goes_through_the_other_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def run_with(name: str | None, arguments: tuple[str, ...], *_: object) -> RunResult:
        asked.append(arguments)
        return _result(None)

    monkeypatch.setattr(score, "checks_with", lambda _: [])
    _answer(monkeypatch, run_with)
    assert judge("sampled-1-2", tmp_path).fate is Fate.SURVIVED
    assert asked[: len(LADDER) - 1] == [one for one in LADDER if one != UNITS]


@pytest.mark.parametrize("blame", ["rtl", "lowering"])
def test_a_failure_before_the_first_op_has_its_blame_in_its_message(
    blame: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    message = f"blame {blame}: the device stopped before the first op: assertion"
    failed = _result(None, status="fail", message=message)
    _answer(monkeypatch, lambda name, *_: _result(None) if is_sound(name) else failed)
    found = judge("sampled-1-2", tmp_path)
    assert found.fate is (Fate.CAUGHT if blame == "rtl" else Fate.MISBLAMED)
    assert found.said.startswith("the device stopped before the first op")


def test_without_a_build_nothing_counts_as_detected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> None:
        raise InfrastructureError("the compiler stopped")

    monkeypatch.setattr(score, "build", broken)
    assert campaign.main(["sampled-1-1"]) == 3
    assert "the compiler stopped" in capsys.readouterr().err


def test_the_summary_says_between_what_the_share_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = sample(1)["sampled-1-1"]
    fates = [Fate.CAUGHT] * 8 + [Fate.STOPPED, Fate.SURVIVED]
    results = [SampledResult(f"sampled-1-{n}", site, fate) for n, fate in enumerate(fates, 1)]
    counts = "8 caught, 0 misblamed, 1 stopped, 0 cycles, 1 survived"
    shares = "9 of 10 detected, 60% to 98% of all sites with 95 % confidence"
    assert summary(results) == f"{counts}: {shares}"
    by_name = {result.name: result for result in results}
    monkeypatch.setattr(campaign, "build_all", lambda _: None)
    monkeypatch.setattr(campaign, "judge", lambda name, _: by_name[name])
    assert campaign.main(["-j", "3", *by_name]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[:-1]] == list(by_name)
    assert printed[-1] == summary(results)
    assert campaign.main([*by_name][:9]) == 0


@pytest.mark.parametrize(
    ("found", "of", "expected"),
    # E. B. Wilson, 1927; figures of scipy.stats.binomtest(...).proportion_ci(method="wilson")
    [(0, 10, (0.0, 0.2775)), (5, 10, (0.2366, 0.7634)), (29, 30, (0.8333, 0.9941))],
)
def test_wilsons_interval(found: int, of: int, expected: tuple[float, float]) -> None:
    assert share_between(found, of) == pytest.approx(expected, abs=1e-3)
