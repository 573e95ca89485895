# SPDX-License-Identifier: Apache-2.0
"""A run's folder: the files of a user in it are never removed, written over or followed."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from driver.errors import InputError
from driver.results import RESULT_FILE, RunSpec
from regress import folder as folder_module
from regress.folder import MANIFEST, check_absent, fresh, keep_text, locked
from regress.paths import ROOT
from regress.progress import ProgressBar
from regress.run import OWN_NAMES, run

RUNNER = (sys.executable, str(Path(__file__).with_name("fake_runner.py")))


def _run(out: Path, test: str = "passing") -> None:
    spec = RunSpec(
        test=test,
        config="default",
        config_file=ROOT / "sim_config.yaml",
        seed=5,
        backend="rtl",
        waves="none",
        out=out,
        capsules={},
        op_filter=None,
        timeout_s=60.0,
    )
    run(spec, ProgressBar(Console(quiet=True), test), RUNNER)


def _tree(folder: Path) -> dict[str, str]:
    """Every path below a folder with what it holds, but for the lock."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.name != folder_module.LOCK_FILE:
            held = str(path.readlink()) if path.is_symlink() else ""
            found[str(path.relative_to(folder))] = path.read_text() if path.is_file() else held
    return found


def _file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")


@pytest.mark.parametrize(
    "name", ["waves.vcd", "failures/notes.txt", "result.json", "sim.log", "tests/a/b", "ops.txt"]
)
def test_a_file_of_the_user_in_the_way_refuses_the_run(tmp_path: Path, name: str) -> None:
    _file(tmp_path / name)
    before = _tree(tmp_path)
    with pytest.raises(InputError, match="OUT: got something that no run made") as refused:
        _run(tmp_path)
    assert str(tmp_path / name) in str(refused.value)
    assert _tree(tmp_path) == before


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    for name in ("waves.old.vcd", "notes.txt", "failures.txt"):
        _file(tmp_path / name)
    _run(tmp_path)
    _run(tmp_path)
    for name in ("waves.old.vcd", "notes.txt", "failures.txt"):
        assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("name", ["sim.log", "result.json", "failures", ".lock", "waves.fst"])
def test_a_symbolic_link_is_not_followed(tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    _file(target)
    out = tmp_path / "out"
    out.mkdir()
    (out / name).symlink_to(target)
    with pytest.raises(InputError, match="OUT: got something that no run made"):
        _run(out)
    assert target.read_text() == "mine"


def _to_a_link(path: Path, target: Path) -> None:
    path.unlink()
    path.symlink_to(target)


def _to_a_folder(path: Path, _target: Path) -> None:
    path.unlink()
    _file(path / "own")


@pytest.mark.parametrize("change", [_to_a_link, _to_a_folder])
def test_what_a_run_left_and_the_user_replaced_is_the_users(
    tmp_path: Path, change: Callable[[Path, Path], None]
) -> None:
    target, out = tmp_path / "target", tmp_path / "out"
    _file(target)
    _run(out)
    change(out / "sim.log", target)
    with pytest.raises(InputError, match=r"sim\.log.*no run made"):
        _run(out)
    assert target.read_text() == "mine"


def test_what_a_run_left_makes_room_for_the_next(tmp_path: Path) -> None:
    _run(tmp_path, "evident")
    assert (tmp_path / "failures" / "op1" / "map.json").exists()
    assert (tmp_path / "waves.vcd").exists()
    _run(tmp_path)
    assert (tmp_path / RESULT_FILE).exists()
    assert not (tmp_path / "failures").exists()
    assert not (tmp_path / "waves.vcd").exists()


def test_a_note_of_the_user_among_the_evidence_of_a_run_refuses_the_next(tmp_path: Path) -> None:
    _run(tmp_path, "evident")
    _file(tmp_path / "failures" / "op1" / "notes.txt")
    before = _tree(tmp_path)
    with pytest.raises(InputError, match=r"notes\.txt.*no run made"):
        _run(tmp_path)
    assert _tree(tmp_path) == before


def test_what_a_killed_run_left_makes_room_for_the_next(tmp_path: Path) -> None:
    killed = fresh(tmp_path, ("a", "b", "c"))
    killed.__enter__()
    _file(tmp_path / "a" / "x" / "y")
    _file(tmp_path / "b")
    with fresh(tmp_path, ("a", "d")):
        assert not (tmp_path / "a").exists()
        assert not (tmp_path / "b").exists()
    assert _tree(tmp_path).keys() == set()


def test_a_text_is_kept_only_where_nothing_foreign_is(tmp_path: Path) -> None:
    for text in ("one", "two"):
        assert keep_text(tmp_path, "a.txt", text).read_text() == text
    _file(tmp_path / "b.txt")
    with pytest.raises(InputError, match="no run made"):
        keep_text(tmp_path, "b.txt", "x")
    assert (tmp_path / "b.txt").read_text() == "mine"


def test_a_manifest_that_names_what_is_outside_removes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _file(tmp_path / "victim")
    _run(out)
    (out / MANIFEST).write_text('{"files": ["../victim"], "begun": ["../victim"]}')
    with pytest.raises(InputError, match="expected a path below the folder"):
        _run(out)
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.parametrize("begun", [".", "./", "", "link/victim", "mine/deep"])
def test_a_manifest_cannot_name_the_folder_or_what_lies_behind_a_link(
    tmp_path: Path, begun: str
) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    (elsewhere / "victim").mkdir(parents=True)
    (elsewhere / "victim" / "file").write_text("mine")
    (out / "mine" / "deep").mkdir(parents=True)
    (out / "mine" / "deep" / "file").write_text("mine")
    (out / "link").symlink_to(elsewhere)
    (out / MANIFEST).write_text(json.dumps({"begun": [begun]}))
    before = _tree(tmp_path)
    with pytest.raises(InputError, match=r"expected a (path below|name directly in) the folder"):
        _run(out)
    assert _tree(tmp_path) == before


def test_a_folder_that_cannot_be_one_is_an_input_error(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    _file(tmp_path / "file")
    for folder in (loop, loop / "x", tmp_path / "file", tmp_path / ("n" * 300)):
        with pytest.raises(InputError, match="OUT: got"), locked(folder, "OUT"):
            pass


def test_a_folder_that_one_may_not_look_into_is_an_input_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "lstat", refused)
    for use in (
        lambda: keep_text(tmp_path, "a", ""),
        lambda: check_absent(tmp_path / "a", "folder"),
        lambda: fresh(tmp_path, ("a",)).__enter__(),
    ):
        with pytest.raises(InputError, match=r"file: got Permission denied, expected"):
            use()


def test_a_run_that_is_refused_leaves_what_an_earlier_one_left(tmp_path: Path) -> None:
    _run(tmp_path)
    before = _tree(tmp_path)
    assert RESULT_FILE in before
    with pytest.raises(InputError), fresh(tmp_path, OWN_NAMES):
        assert not (tmp_path / RESULT_FILE).exists()
        (tmp_path / RESULT_FILE).write_text("half")
        (tmp_path / "failures").mkdir()
        (tmp_path / "failures/note.txt").write_text("half")
        raise InputError("command line", "filter", "sofmax", "a part of the name of an op")
    assert _tree(tmp_path) == before


def test_a_run_that_is_killed_before_it_is_refused_makes_room(tmp_path: Path) -> None:
    _run(tmp_path)
    with pytest.raises(KeyboardInterrupt), fresh(tmp_path, OWN_NAMES):
        raise KeyboardInterrupt
    assert not (tmp_path / RESULT_FILE).exists()
    assert not (tmp_path / folder_module.ASIDE).exists()
    (tmp_path / folder_module.ASIDE).mkdir()
    _file(tmp_path / folder_module.ASIDE / RESULT_FILE)
    with pytest.raises(InputError, match="OUT: got something that no run made"):
        _run(tmp_path)
