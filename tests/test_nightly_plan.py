# SPDX-License-Identifier: Apache-2.0
"""Tiers as data: every mistake in sim_config.yaml is one line that says which field is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from nightly_host import FAKE_TESTS, LIMITS, write_config

from driver.config import load_configs
from driver.errors import InputError
from regress.capsules import known_workloads
from regress.nightly.estimate import estimate, expected_seconds
from regress.nightly.plan import AvailableNames, selected, tier_items
from regress.nightly.request import TierRequest, new_plan
from regress.nightly.settings import load_nightly
from regress.nightly_cli import duration_s
from regress.paths import CONFIG_FILE
from regress.results.model import PlannedJob
from regress.run import list_tests

KNOWN = AvailableNames(Path("c.yaml"), ("small", "default"), FAKE_TESTS, ("mlp", "lenet"))


def _items(tmp_path: Path, tier: dict[str, object], **section: object) -> list[str]:
    config = write_config(tmp_path / "c.yaml", tier, **section)
    return [item.label for item in tier_items(load_nightly(config), "t", KNOWN)]


def test_a_plan_is_the_product_of_configs_backends_seeds_and_shards(tmp_path: Path) -> None:
    use = {"configs": ["small", "default"], "backends": ["cmodel", "rtl"], "seeds": 2}
    rows = {"quick": {"test": "quick", "shards": 3}}
    labels = _items(tmp_path, {"quick": use}, tests=rows, seed=5)
    assert len(labels) == len(set(labels)) == 2 * 2 * 2 * 3
    assert labels[0] == "quick[small] cmodel seed 5 shard 1/3"
    assert labels[-1] == "quick[default] seed 6 shard 3/3"


def test_an_item_keeps_its_id_from_night_to_night(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 2, "slow": 1})
    other = write_config(tmp_path / "d.yaml", {"slow": 1, "quick": 2}, jobs=7)
    first = {i.label: i.id for i in tier_items(load_nightly(config), "t", KNOWN)}
    second = {i.label: i.id for i in tier_items(load_nightly(other), "t", KNOWN)}
    assert first == second
    assert len(set(first.values())) == 3
    assert first["quick[small] seed 1"] == "63dbf915e3f9"  # stores of former versions know it


def test_the_projects_own_tiers_name_only_what_there_is() -> None:
    tests = {test.name: test for test in list_tests()}
    known = AvailableNames(CONFIG_FILE, load_configs(CONFIG_FILE), tests, known_workloads())
    settings = load_nightly(CONFIG_FILE)
    sizes = [len(tier_items(settings, tier, known)) for tier in settings.tiers]
    assert list(settings.tiers) == ["smoke", "ci", "nightly", "weekly"]
    assert sizes == sorted(sizes)
    assert sizes[0] >= 3


BAD = [
    ({"nightly": None}, "nightly: got nothing"),
    ({"seeds": 0}, "tiers.t.quick.seeds: got 0"),
    ({"configs": []}, "tiers.t.quick.configs: got (), expected Tuple should have at least 1"),
    ({"configs": "small"}, "tiers.t.quick.configs: got 'small'"),
    ({"config": ["small"]}, "tiers.t.quick.config: got an unknown key"),
    ({"configs": ["huge"]}, "nightly.tiers.t.quick.configs: got huge, expected one of small"),
    ({"backends": ["fpga"]}, "tiers.t.quick.backends.0: got 'fpga'"),
    ({"skip": ""}, "tiers.t.quick.skip: got ''"),
]


@pytest.mark.parametrize(("use", "expected"), BAD)
def test_a_mistake_in_a_tier_is_named(
    tmp_path: Path, use: dict[str, object], expected: str
) -> None:
    with pytest.raises(InputError) as caught:
        if "nightly" in use:
            path = tmp_path / "c.yaml"
            path.write_text("configs: {}\n")
            load_nightly(path)
        else:
            _items(tmp_path, {"quick": use})
    assert expected in str(caught.value)


BAD_ROWS = [
    ({"test": "nosuch"}, "nightly.tests.quick.test: got nosuch, expected one of"),
    ({"test": "replay"}, "tests.quick.workload: got nothing, expected a workload for replay"),
    ({"test": "quick", "workload": "mlp"}, "tests.quick.workload: got mlp"),
    ({"test": "replay", "workload": "x"}, "tests.quick.workload: got x, expected one of mlp"),
    ({"test": "quick", "shards": True}, "tests.quick.shards: got True"),
    ({"test": "quick", "mode": "chained", "shards": 2}, "tests.quick.shards: got 2, expected 1"),
    ({"test": "quick", "limits": {"wall_s": 5}}, "tests.quick.limits.cycles: got nothing"),
    ({"test": "short", "mode": "chained"}, "tests.quick.mode: got chained, expected isolated, as"),
    ({"test": "quick", "areas": ["rtl", "rtl/matirx"]}, "tests.quick.areas[1]: got rtl/matirx"),
]


@pytest.mark.parametrize(("row", "expected"), BAD_ROWS)
def test_a_mistake_in_a_test_is_named(
    tmp_path: Path, row: dict[str, object], expected: str
) -> None:
    with pytest.raises(InputError) as caught:
        _items(tmp_path, {"quick": 1}, tests={"quick": row})
    assert expected in str(caught.value)


def test_a_tier_names_a_test_of_the_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="got quick, expected one of slow"):
        _items(tmp_path, {"quick": 1}, tests={"slow": {"test": "slow"}})


def test_two_rows_that_are_the_same_work_are_refused(tmp_path: Path) -> None:
    rows = {"a": {"test": "quick"}, "b": {"test": "quick", "limits": LIMITS}}
    with pytest.raises(InputError, match=r"quick\[small\] seed 1 twice"):
        _items(tmp_path, {"a": 1, "b": 1}, tests=rows)


def test_an_unknown_tier_lists_those_there_are(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 1})
    with pytest.raises(InputError, match="tier: got monthly, expected one of t"):
        tier_items(load_nightly(config), "monthly", KNOWN)


def test_a_filter_takes_what_every_word_admits(tmp_path: Path) -> None:
    use = {"configs": ["small", "default"], "seeds": 3}
    config = write_config(tmp_path / "c.yaml", {"quick": use, "slow": use})
    items = tier_items(load_nightly(config), "t", KNOWN)
    assert len(selected(items, "test=q* config=small")) == 3
    assert len(selected(items, "seed=2")) == 4
    assert [i.label for i in selected(items, "slow[[]default")] == [
        f"slow[default] seed {seed}" for seed in (1, 2, 3)
    ]
    assert selected(items, f"id={items[4].id}") == (items[4],)


@pytest.mark.parametrize("words", ["test=nothing", "color=red", "nothing-of-that-name", "", " "])
def test_a_filter_that_admits_nothing_is_bad_input(tmp_path: Path, words: str) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 1})
    with pytest.raises(InputError, match="filter"):
        selected(tier_items(load_nightly(config), "t", KNOWN), words)


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5400), ("2h", 7200), ("0.5s", 0.5)])
def test_a_budget_is_a_time(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["90", "m", "-1h", "0s", "1d", "inf"])
def test_another_budget_is_bad_input(text: str) -> None:
    with pytest.raises(InputError, match="budget"):
        duration_s(text)


def test_hardware_does_not_care_about_the_section(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    text = CONFIG_FILE.read_text().split("\nnightly:")[0]
    path.write_text(text + "\n" + yaml.safe_dump({"nightly": {"whatever": 1}}))
    assert "small" in load_configs(path)


def test_a_plan_is_estimated_by_its_own_record_then_by_jobs_like_it() -> None:
    jobs = [
        PlannedJob("ops", config, seed, "rtl") for config, seed in (("a", 1), ("a", 2), ("b", 1))
    ]
    expected = expected_seconds({jobs[0].label: 10.0, "bus[a] seed 1": 100.0})
    assert [expected(job) for job in jobs] == [10.0, 10.0, 10.0]
    other = PlannedJob("lenet", "a", 1, "rtl")
    assert expected(other) is None
    precise = expected_seconds({jobs[0].label: 10.0, jobs[1].label: 20.0, jobs[2].label: 60.0})
    assert precise(jobs[0]) == 10.0
    assert precise(PlannedJob("ops", "a", 7, "rtl")) == 15.0
    assert precise(PlannedJob("ops", "c", 7, "rtl")) == 30.0
    found = estimate([*jobs, other], precise, 2, [5.0])
    assert (found.jobs, found.unknown, found.job_seconds) == (4, 1, 90.0)
    assert found.wall_seconds == 70.0, "the third job starts when the first has ended"
    assert found.preparation_seconds == 5.0
    assert "4 jobs: about 1 min 10 s, 2 at once (1 min 30 s one by one)" in str(found)
    assert "1 jobs without a record" in str(found)


def test_a_plan_is_of_the_design_that_its_configurations_name(tmp_path: Path) -> None:
    path = write_config(tmp_path / "c.yaml", {"quick": 1})
    text = path.read_text(encoding="utf-8")
    (tmp_path / "mine.f").write_text("npu_top.sv\n")
    (tmp_path / "npu_top.sv").write_text("module npu_top; endmodule\n")

    def digest() -> str:
        return new_plan(TierRequest("t", config_file=path), 1, "").config_digest

    plain = digest()
    path.write_text(text.replace("  small: {", "  small: {filelist: mine.f, ", 1))
    own = digest()
    (tmp_path / "npu_top.sv").write_text("module npu_top; wire a; endmodule\n")
    assert len({plain, own, digest()}) == 3
