# SPDX-License-Identifier: Apache-2.0
"""Generated files, the lock and the dependency list are in step with their sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from regress import commands, generate
from regress.lock import direct_dependencies, lock_text, locked_versions, normalised
from regress.paths import ROOT

RENDERED = generate.render()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose generated files are all fresh."""
    monkeypatch.setattr(generate, "render", lambda: RENDERED)  # made once: it takes a second
    assert len(generate.write(tmp_path)) == len(generate.render())
    return tmp_path


def _said(call: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    assert callable(call)
    code = call(Console(width=120))
    return code, capsys.readouterr().out


def test_fresh_files_are_left_alone(project: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in project.rglob("*") if path.is_file()}
    assert generate.stale(project) == {}
    assert generate.write(project) == []
    assert before == {path: path.stat().st_mtime_ns for path in before}


@pytest.mark.parametrize("path", sorted(RENDERED))
def test_every_file_that_is_edited_or_missing_is_found_and_mended(path: str, project: Path) -> None:
    wanted = (project / path).read_text()
    (project / path).write_text(wanted + "\n")
    assert list(generate.stale(project)) == [path]
    (project / path).unlink()
    assert list(generate.stale(project)) == [path]
    assert generate.write(project) == [path]
    assert (project / path).read_text() == wanted


def test_gen_check_names_the_file_and_the_command_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "stale", lambda: {"docs/isa.md": "text"})
    monkeypatch.setattr(generate, "write", lambda: pytest.fail("wrote"))
    code, out = _said(commands.generated_is_fresh, capsys)
    assert code == 1
    assert out == (
        "docs/isa.md: out of date with its source; run `make gen` and commit the result\n"
    )


def test_the_committed_files_are_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert _said(commands.generated_is_fresh, capsys) == (0, "generated files are up to date\n")


def test_the_result_schema_names_every_field() -> None:
    schema = json.loads(generate.render()["docs/result.schema.json"])
    assert {"test", "status", "config", "seed", "cycles", "ops"} <= schema["properties"].keys()
    fields = schema["$defs"]["OpRow"]["properties"].keys()
    assert {"elements_compared", "rtl_vs_cmodel_mismatches", "torch_bound", "utilisation"} <= fields


def test_the_lock_holds_every_direct_dependency_at_its_version() -> None:
    direct = locked_versions("\n".join(direct_dependencies((ROOT / "pyproject.toml").read_text())))
    locked = locked_versions((ROOT / "requirements.lock").read_text())
    assert len(direct) > 20
    assert {name: locked.get(name) for name in direct} == direct


def test_every_direct_dependency_is_explained() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text()
    explained = {
        normalised(name)
        for line in text.splitlines()
        if line.startswith("| ")
        for name in line.split("|")[1].split(",")
        for name in [name.strip()]
    }
    direct = locked_versions("\n".join(direct_dependencies((ROOT / "pyproject.toml").read_text())))
    assert explained - {"package"} == set(direct)


def test_the_lock_is_made_from_pips_report() -> None:
    packages = [("torch", "2.0"), ("Jinja2", "3.1"), ("numpy", "2.1")]
    report = {"install": [{"metadata": {"name": n, "version": v}} for n, v in packages]}
    lines = lock_text(json.dumps(report)).splitlines()
    assert lines[1:] == ["Jinja2==3.1", "numpy==2.1", "torch==2.0"]
    assert locked_versions("\n".join(lines)) == {"jinja2": "3.1", "numpy": "2.1", "torch": "2.0"}
