# SPDX-License-Identifier: Apache-2.0
"""Wrong lines planted in the whole NPU: selectable, refused where they cannot be, and caught."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from driver.config import CONFIG_FILE
from driver.errors import InfrastructureError, InputError
from driver.filelist import FILELIST, read_filelist
from driver.reproduce import reproduce_line
from driver.results import OpRow, RunResult, RunSpec
from regress.paths import ROOT
from tb.checks import check_row
from tb.mutants import __main__ as campaign
from tb.mutants.activation import activation, is_sound, rewritten_sources
from tb.mutants.campaign import PlantedRun, run_planted
from tb.mutants.expression import Mutant, Site, chosen, rewritten
from tb.mutants.table import PLANTED
from tb.run import run
from tb.sim.spec import PLANTED_SET


def test_every_mutant_is_at_one_place_and_selectable() -> None:
    sources = rewritten_sources(PLANTED_SET)
    texts = {path.name: path.read_text() for path in sources.values()}
    every = "".join(texts.values())
    for name, planted in PLANTED.items():
        argument = activation(name)[0].removeprefix("+")
        variable = chosen(argument)
        choice = f"({variable} ? ({planted.mutant.wrong}) :"
        assert texts[planted.mutant.file].count(choice) == 1, name
        assert every.count(f"{variable} ") == 1, name
        _, _, bit = variable.partition("::")
        assert every.count(f'  bit {bit} = $test$plusargs("{argument}") != 0;') == 1, name
    assert min(Counter(one.block for one in PLANTED.values()).values()) >= 3


def _runs_on_page() -> dict[str, set[tuple[str, ...]]]:
    """The page's table: pattern of names and the runs that must catch them. A cell has the test
    once, what follows has its last argument."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for line in (ROOT / "docs/mutants.md").read_text(encoding="utf-8").splitlines():
        cells = line.split(" | ")
        if not line.startswith("| ") or len(cells) != 3:
            continue
        run: list[str] = []
        runs = set()
        for quoted in re.findall("`([^`]+)`", cells[2]):
            words = quoted.split()
            run = words if len(words) > 1 else [*run[:-1], *words]
            runs.add(tuple(run))
        for pattern in re.findall(r"`([a-z0-9-]+\*?)`", cells[1]):
            found.setdefault(pattern, set()).update(runs)
    return found


def test_the_page_names_every_mutant_with_its_run() -> None:
    rows = _runs_on_page()
    used = set()
    for name, planted in PLANTED.items():
        fitting = [row for row in rows if fnmatchcase(name, row)]
        assert fitting, name
        best = max(fitting, key=len)
        used.add(best)
        if rows[best]:  # "the run of its engine"
            assert planted.run in rows[best], (name, planted.run, best)
    assert used == set(rows)


def test_no_name_stands_for_a_build_without_a_mutant() -> None:
    assert [name for name in PLANTED if is_sound(name)] == []


def test_no_argument_activates_two_mutants() -> None:
    arguments = [activation(name)[0] for name in PLANTED]
    assert not [a for a in arguments for b in arguments if a != b and b.startswith(a)]


def test_a_text_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="0 places of 'no such text'"):
        Mutant("npu_hazard.sv", "«no such» text", "1'b0").site("one")


def test_sites_within_each_other_keep_their_choices() -> None:
    file = read_filelist(FILELIST)[0]
    text = file.read_bytes()
    outer, first, second = ((5, 25, "o"), (5, 12, "f"), (12, 25, "s"))
    sites = {
        name: Site(file, start, end, text[start:end].decode(), name)
        for start, end, name in (second, first, outer)
    }
    written = rewritten(sites)[file.name]
    package, choices = (f"npu_mutants_pkg::{name} ? ({name}) : (".encode() for name in "of")
    one = b"(" + package + b"(" + choices + text[5:12] + b"))"
    two = b"(npu_mutants_pkg::s ? (s) : (" + text[12:25] + b"))))"
    assert text[:5] + one + two + text[25:] == written.partition(b"endpackage\n\n")[2]


def _spec(folder: Path, **fields: object) -> RunSpec:
    draft = {
        "test": "bus",
        "config": "small",
        "config_file": CONFIG_FILE,
        "seed": 1,
        "backend": "rtl",
        "waves": "none",
        "out": folder,
        "capsules": {},
        "op_filter": None,
        "timeout_s": 60.0,
        "mutant": "program-stale",
    }
    return RunSpec.model_validate(draft | fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mutant": "nothing"}, "mutant: got nothing, expected one of docs/mutants.md, as "),
        ({"mutant": "table"}, "got table, expected one of docs/mutants.md, as table-end, table-si"),
        (
            {"test": "second_simulator"},
            "mutant: got program-stale, expected none, with a test of this kind",
        ),
        ({"test": "smoke", "backend": "cmodel"}, "backend: got cmodel, expected rtl"),
        ({"test": "smoke", "array": "behavioural"}, "array: got behavioural, expected rtl"),
        ({"test": "smoke", "variant": "pgo"}, "variant: got pgo, expected plain"),
    ],
)
def test_a_mutant_that_cannot_be_planted_is_bad_input(
    fields: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        run(_spec(tmp_path, **fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"test": "bus", "array": "behavioural"}, "array: got behavioural, expected rtl, or"),
        ({"test": "bus", "variant": "pgo"}, "variant: got pgo, expected plain, or an ops test"),
        ({"test": "smoke", "backend": "cmodel", "variant": "pgo"}, "variant: got pgo"),
    ],
)
def test_another_build_is_refused_where_it_would_not_be_used(
    fields: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        run(_spec(tmp_path, mutant=None, **fields))


def test_the_printed_line_names_the_mutant(tmp_path: Path) -> None:
    line = reproduce_line(_spec(tmp_path, op_filter=2))
    assert "--mutant program-stale --op 2" in line


def _row(index: int, blame: str = "rtl") -> OpRow:
    row = check_row(index, "Dependent", "tb.tests._overlap", 9, "wrong")
    return row.model_copy(update={"blame": blame})


@pytest.mark.parametrize(
    ("first", "again", "right"),
    [
        (_row(0), _row(0), True),
        (None, None, False),
        (_row(0), None, False),
        (_row(0), _row(1), False),
        (_row(0, "lowering"), _row(0, "lowering"), False),
    ],
)
def test_caught_means_blamed_on_the_rtl_and_reproduced(
    first: OpRow | None, again: OpRow | None, *, right: bool
) -> None:
    run = PlantedRun("hazard-write", first, again, "line")
    assert run.right is right
    assert ("SURVIVED" in run.line()) is (first is None)


def test_a_run_that_breaks_is_a_row_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def planted(name: str, folder: Path, seed: int) -> PlantedRun:
        seeds.append(seed)
        if name == "hazard-read":
            raise InfrastructureError("status 3")
        return PlantedRun(name, _row(0), _row(0), "line")

    seeds: list[int] = []
    monkeypatch.setattr(campaign, "run_planted", planted)
    assert campaign.main(["hazard-write"]) == 0
    assert campaign.main(["hazard-write", "--seed", "3"]) == 0
    assert seeds == [1, 3]
    assert campaign.main(["sampled-7-1", "--seed", "3"]) == 2
    assert campaign.main(["hazard-read", "hazard-write"]) == 3
    lines = capsys.readouterr().out.splitlines()[4:]
    assert lines[0].split() == ["hazard-read", "BROKE", "status", "3"]
    assert "reproduced" in lines[1] and lines[2].startswith("1 of 2 caught")
    for name in ("nothing", "planted-none", "sampled-7-none"):
        assert campaign.main([name]) == 2


def test_a_run_that_fails_in_no_op_is_not_one_that_passes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fields = {"status": "fail", "ops": (), "message": "the device stopped", "reproduce": "line"}
    failed = RunResult.model_construct(**fields)
    ended = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: ended)
    monkeypatch.setattr("tb.mutants.campaign.read_json", lambda *_: failed)
    with pytest.raises(InfrastructureError, match="failed in no op, the device stopped"):
        run_planted("hazard-write", tmp_path)


def test_a_run_that_the_sound_rtl_fails_catches_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run_with(name: str, *_: object) -> RunResult:
        asked.append(name)
        fields = {"status": "fail", "ops": (_row(0),), "message": "wrong", "reproduce": "line"}
        return RunResult.model_construct(**fields)

    asked: list[str] = []
    monkeypatch.setattr("tb.mutants.campaign.run_with", run_with)
    with pytest.raises(InfrastructureError, match="line: fails without a mutant, wrong"):
        run_planted("hazard-write", tmp_path)
    assert asked == ["hazard-write", "planted-none"]


@pytest.mark.parametrize("status", [130, -9])
def test_a_run_that_is_interrupted_or_killed_ends_the_campaign(
    status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = subprocess.CompletedProcess([], status, "", "error: interrupted")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: ended)
    assert campaign.main(["hazard-write", "hazard-read"]) == 130
    assert "interrupted\n" in capsys.readouterr().err


@pytest.mark.planted_mutants
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mutant_is_caught_blamed_and_reproduced(
    name: str, tmp_path: Path, run_seed: int
) -> None:
    run = run_planted(name, tmp_path, run_seed)
    assert run.right, run.line()
