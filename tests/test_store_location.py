# SPDX-License-Identifier: Apache-2.0
"""A store elsewhere: the lines that are printed for it lead there, and reading makes none."""

from __future__ import annotations

import io
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from nightly_host import go, write_config
from rich.console import Console

from driver.errors import InputError
from regress import night_commands
from regress.nightly import provenance, summary
from regress.nightly.plan import selected
from regress.nightly_cli import _without_password
from regress.options import StoreOptions
from regress.paths import CONFIG_FILE
from regress.results.database import database_url
from regress.results.location import StoreLocation
from regress.results.model import ItemResult, Plan, PlannedJob
from regress.results.night import load_night
from regress.results.store import Store
from regress.results.tables import plan_of, plan_row

PLAN = Plan("p", "ci", "", 1, "", False, {}, str(CONFIG_FILE), "", "")


def test_words_of_a_store_say_what_is_not_usual() -> None:
    assert StoreLocation().options() == StoreLocation().variables() == []
    url = "postgresql://me:***@host/db"
    far = StoreLocation(Path("/a b/$c"), url)
    assert far.options() == ["--out", "/a b/$c", "--store", url]
    assert far.variables() == ["OUT='/a b/$$c'", f"STORE={shlex.quote(url)}"]


def test_lines_of_a_job_in_another_database_name_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/my.db"
    config = write_config(tmp_path / "c.yaml", {"failing": 1})
    go(config, tmp_path / "s", store_url=url)
    with Store.open(tmp_path / "s", url, create=False) as store:
        (job,) = load_night(store, store.plans(limit=1)[0]).jobs
    assert job.replay_line().endswith(f" OUT={tmp_path}/s STORE={url}")


def test_the_rest_of_a_plan_is_asked_of_its_own_store(tmp_path: Path) -> None:
    item = ItemResult(PlannedJob("quick", "small", 1, "rtl"), ())
    plan, shown = replace(PLAN, config_file="/a b/my.yaml"), io.StringIO()
    summary.show(Console(file=shown, width=300), plan, [item], StoreLocation(tmp_path))
    rest = f"nightly ci --resume --out {tmp_path} --config-file '/a b/my.yaml'"
    assert rest in shown.getvalue()


def test_a_database_in_a_folder_that_is_not_there_names_the_option(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/none/my.db"
    with pytest.raises(InputError, match=f"^command line: store: got {url}, expected a file in a"):
        Store.open(tmp_path / "s", url)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///x?mode=memory"])
def test_results_in_memory_would_be_lost(url: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="store: got sqlite"):
        database_url(tmp_path, url)


def test_a_command_that_reads_makes_no_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/typo.db"
    where = StoreOptions(out=tmp_path / "new", store=url)
    with pytest.raises(InputError, match=r"typo\.db: file: got No such file"):
        night_commands.triage(Console(file=io.StringIO()), where, None)
    config = write_config(tmp_path / "c.yaml", {"quick": 1})
    with pytest.raises(InputError, match=r"typo\.db: file: got No such file"):
        go(config, tmp_path / "new", store_url=url, dry_run=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.yaml"]


def test_a_dry_run_of_the_rest_names_the_folder_that_was_asked_for(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 1})
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "none"))):
        go(config, tmp_path / "none", dry_run=True, resume=True)


def test_a_plan_of_another_tier_is_refused(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 1})
    go(config, tmp_path / "s")
    with Store.open(tmp_path / "s") as store:
        (plan,) = store.plans()
    where = StoreOptions(out=tmp_path / "s")
    with pytest.raises(InputError, match=f"--plan: got {plan.id}, expected a plan of other"):
        night_commands.baseline(Console(file=io.StringIO()), where, "other", plan.id, check=True)


def test_a_plan_is_resumed_with_its_own_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 1})
    go(config, tmp_path / "s")
    now = provenance.tools()
    monkeypatch.setattr(provenance, "tools", lambda: now | {"torch": "9.9"})
    with pytest.raises(InputError, match=r"--resume: got torch 9\.9, expected the tools of plan"):
        go(config, tmp_path / "s", resume=True)


def test_a_filter_takes_the_label_that_is_shown() -> None:
    items = [PlannedJob("smoke", name, 1, "cmodel") for name in ("small", "default")]
    assert selected(items, "smoke[small]") == (items[0],)
    assert selected(items, "smoke[[]s*") == (items[0],)


def test_no_password_is_stored() -> None:
    url = "postgresql+psycopg://me:secret@host/db"
    for words in (["nightly", "ci", "--store", url], [f"--store={url}"]):
        shown = _without_password(words, url)
        assert "secret" not in " ".join(shown)
        assert "me:***@host/db" in shown[-1]
    assert _without_password(["nightly"], None) == ["nightly"]


def test_a_plan_that_names_another_folder_is_refused() -> None:
    row = plan_row(PLAN) | {"sequence": 1}
    assert plan_of(row).id == "p"
    with pytest.raises(InputError, match=r"plan: got \.\./x"):
        plan_of(row | {"id": "../x"})
