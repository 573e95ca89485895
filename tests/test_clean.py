# SPDX-License-Identifier: Apache-2.0
"""`make clean`."""

from pathlib import Path

import pytest
from filelock import FileLock

from regress.clean import clean


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("build/sim/a", "out/ops-1/.lock", "out/nightly/1/.lock", "rtl/a.sv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("x")
    (tmp_path / "out/link").symlink_to(tmp_path / "rtl")
    return tmp_path


def names(tree: Path) -> list[str]:
    return sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file())


def test_results_of_nights_and_what_links_lead_to_stay(tree: Path) -> None:
    assert clean(tree) is None
    assert names(tree) == ["out/nightly/1/.lock", "rtl/a.sv"]
    assert not (tree / "build").exists()
    assert not (tree / "out/link").is_symlink()
    assert clean(tree) is None  # nothing left to remove


@pytest.mark.parametrize("run", ["out/ops-1", "out/nightly/1"])
def test_nothing_goes_while_a_run_is_on(tree: Path, run: str) -> None:
    before = names(tree)
    with FileLock(tree / run / ".lock"):
        refused = clean(tree)
    assert refused == f"{run}: in use by a run or a build: wait for it, or stop it"
    assert names(tree) == before
