# SPDX-License-Identifier: Apache-2.0
"""The command line against what nobody should give it: one line, the right exit status, no trace.

Exit status 1 is kept for failed verdicts: no exception may leave it.
"""

from __future__ import annotations

import errno
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from driver.errors import InputError
from driver.files import read_json
from driver.results import LedgerRow, RunSpec
from driver.strict_yaml import read_yaml
from driver.test_info import TestInfo
from regress import cli, commands, invoke, process
from regress.console import PlainConsole, console
from regress.nightly import tier
from regress.nightly.settings import load_nightly
from regress.paths import CONFIG_FILE, ROOT
from regress.run_report.text import ledger_table

HUGE = "9" * 6000
Call = Callable[..., tuple[int, str, str]]


def _tests() -> tuple[TestInfo, ...]:
    """The tests that the tiers name, without asking the bench, which takes seconds."""
    names = {"lenet", *(row.test for row in load_nightly(CONFIG_FILE).tests.values())}
    return tuple(
        TestInfo(name=name, summary="", kind="ops", backends=("rtl", "cmodel"))
        for name in sorted(names)
    )


def _no_start() -> dict[str, str]:
    raise AssertionError("something was started")


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Call:
    """Call the command line in an empty folder: (exit status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(invoke, "OUT", tmp_path / "out")
    for module in (commands, tier):
        monkeypatch.setattr(module, "list_tests", _tests)
    monkeypatch.setattr(process, "environment", _no_start)

    def called(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["npu-cosim", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, printed.out, printed.err

    return called


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "lenet", "--out", ""], "'--out': got nothing, expected a path"),
        (["run", "lenet", "--out", "a\nb"], "'--out': got 'a\\nb', expected a path"),
        (["run", "lenet", "--out", "a\udcffb"], "'--out': got 'a\\udcffb', expected a path"),
        (["run", "lenet", "--config-file", ""], "'--config-file': got nothing, expected a path"),
        (["run", "a; x"], "command line: TEST: got a; x, expected one of"),
        (["run", "../x"], "command line: TEST: got ../x, expected one of"),
        (["run", "lenet", "--checkpoint", "/w"], "CHECKPOINT: got /w, expected none: lenet has no"),
        (["run", "lenet", "--timeout", "nan"], "'--timeout': got 'nan', expected less than or"),
        (["run", "lenet", "--seed", "abc"], "'--seed': got 'abc', expected a valid integer"),
        (["run", "lenet", "--seed", "-1"], "'--seed': got '-1', expected greater than or"),
        (["run", "lenet", "--timeout", "inf"], "'--timeout'"),
        (["run", "lenet", "--op", HUGE], "--op"),
        (["run", "lenet", "--seed", HUGE], "'--seed'"),
        (["run", "lenet", "--shard", f"1/{HUGE}"], "command line: shard: got 1/9"),
        (["replay", ""], "'CAPSULE': got nothing, expected the folder of a capsule"),
        (["waves", ""], "'ID': got nothing, expected the id of an attempt"),
        (["nightly", "smoke", "--reseed", "1" + "0" * 30], "'--reseed'"),
        (["nightly", "smoke", "--reseed", str(1 << 40)], "'--reseed'"),
        (["nightly", "smoke", "--budget", f"{HUGE}h"], "command line: budget: got 9"),
        (["nightly", "smoke", "--store", "mysql://x/y"], "store: got mysql://x/y, expected sqlite"),
        (["nightly", "smoke", "--store", "sqlite+no://x"], "store: got sqlite+no://x"),
        (["nightly", "smoke", "--store", "postgresql+psycopg://h:abc/n"], "store: got postgresql"),
        (["nightly", "smoke", "--store", "postgresql+pg8000://h/n"], "expected pip install pg8000"),
        (["nightly", "smoke", "--scheduler", "junk"], "--scheduler: got junk, expected tcp://"),
        (["nightly", "smoke", "--scheduler", "tcp://127.0.0.1:abc"], "--scheduler: got tcp://127"),
        (["nightly", "smoke", "--scheduler", "tcp://127.0.0.1"], "--scheduler: got tcp://127"),
        (["nightly", "smoke", "--scheduler", "tcp://:1"], "--scheduler: got tcp://:1"),
        (["regs", "--out", "/proc/none"], "/proc/none: OUT: got "),
        (["bench", "--out", "/proc/none"], "/proc/none/"),
        (["x" * 5000], "No such command"),
        (["run", "lenet", "--shards", "10001"], "'--shards'"),
        (["accuracy", "--points", "1" + "0" * 30], "'--points'"),
        (["report", "--webhook", "http://127.0.0.1:abc/"], "webhook: got http://127.0.0.1:abc/"),
        (["report", "--webhook", "http://"], "webhook: got http://, expected an http"),
        (["report", "--webhook", "http://[::1"], "webhook: got http://[::1, expected an http"),
        (["report", "--webhook", "http://a/\r\nx: y"], "webhook: got http://a/ x: y, expected"),
    ],
)
def test_what_cannot_be_meant_is_one_short_line_and_exit_2(
    call: Call, tmp_path: Path, arguments: list[str], line: str
) -> None:
    if arguments[0] == "nightly":
        arguments = [*arguments, "--out", str(tmp_path / "night")]
    code, out, err = call(*arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("error: ")
    assert line in err
    assert err.count("\n") == 1
    assert len(err) < 1000
    assert not [path for path in tmp_path.rglob("*") if path.is_file()], "something was written"


def test_the_command_alone_prints_its_help(call: Call) -> None:
    code, out, err = call()
    assert (code, err) == (0, "")
    assert "Usage: npu-cosim" in out
    assert out.count("\n") > 10


def test_an_unforeseen_error_is_exit_3_with_its_traceback_in_a_file(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise ValueError("no\nsuch \x1b[31mvalue " + "x" * 5000)

    monkeypatch.setattr(commands, "list_all", broken)
    code, out, err = call("tests")
    log = tmp_path / "out" / invoke.ERROR_LOG
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert err.startswith("error: internal error: ValueError: no such \\x1b[31mvalue x")
    assert err.endswith(f"the traceback is in {log}\n")
    assert len(err) < 1000
    assert "raise ValueError(" in log.read_text()


def test_an_error_of_the_system_names_the_file(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "/a/file")

    monkeypatch.setattr(commands, "list_all", full)
    (tmp_path / "out").write_text("")  # not even the traceback can be written there
    code, _, err = call("tests")
    assert code == 3
    assert err.startswith("error: /a/file: No space left on device; the traceback is in ")
    log = Path(err.rpartition(" ")[2].strip())
    assert "OSError" in log.read_text()
    log.unlink()


def test_texts_are_shown_as_they_are_and_control_characters_as_escapes() -> None:
    shown = PlainConsole(width=80, record=True, quiet=False, file=sys.stderr)
    row = LedgerRow(op="aten.[/red]", where="cpu", count=1, reason="[bold]\x1b] :smile:")
    shown.print(ledger_table([row]))
    shown.print("line\nü✓")
    shown.print("[/red] \x1b[2J \udcff")
    text = shown.export_text()
    for said in ("line\nü✓\n", "[/red]", "[bold]\\x1b", "[/red] \\x1b[2J \\udcff"):
        assert said in text
    assert "\x1b" not in text
    assert isinstance(console(), PlainConsole)


@pytest.mark.parametrize("number", ["0x" + "f" * 6000, HUGE, "-" + HUGE])
def test_a_number_of_thousands_of_digits_is_named_with_its_place(
    tmp_path: Path, number: str
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(CONFIG_FILE.read_text().replace("fma_latency: 4", f"fma_latency: {number}"))
    with pytest.raises(InputError, match=r"line \d+ column \d+: got .*expected a number of at"):
        read_yaml(file)
    record = tmp_path / "r.json"
    record.write_text(f'{{"seed": {HUGE}}}')
    with pytest.raises(InputError) as refused:
        read_json(record, RunSpec)
    assert len(str(refused.value)) < 600


def test_a_database_of_somebody_else_is_not_written_to(call: Call, tmp_path: Path) -> None:
    import sqlite3  # noqa: PLC0415 (only here)

    file = tmp_path / "results.db"
    with sqlite3.connect(file) as connection:
        connection.execute("create table mine (x)")
    code, _, err = call("nightly", "smoke", "--dry-run", "--out", str(tmp_path))
    assert code == 2
    assert "tables: got mine, expected a new database" in err
    with sqlite3.connect(file) as connection:
        assert connection.execute("select name from sqlite_master").fetchall() == [("mine",)]


@pytest.mark.parametrize("text", ["x", "a file of the user's " * 100])
def test_a_file_that_is_no_database_is_not_made_one(call: Call, tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.txt"
    file.write_text(text)
    out = str(tmp_path / "s")
    code, _, err = call(
        "nightly", "smoke", "--dry-run", "--store", f"sqlite:///{file}", "--out", out
    )
    assert code == 2
    assert "file: got no database, expected a database of SQLite" in err
    assert file.read_text() == text


@pytest.mark.parametrize("name", ["plans", "report"])
def test_a_nightly_does_not_start_among_the_files_of_a_user(
    call: Call, tmp_path: Path, name: str
) -> None:
    mine = tmp_path / "s" / name / "index.html"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    code, _, err = call("nightly", "smoke", "--out", str(tmp_path / "s"))
    assert (code, err.count("\n")) == (2, 1)
    assert "something that no run made" in err
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", ">&-", ">/dev/full"])
def test_a_stream_that_cannot_be_written_changes_no_exit_status(redirection: str) -> None:
    command = shlex.join([sys.executable, "-m", "regress.cli", "nightly", "no such tier"])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} {redirection}"], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"Traceback" not in done.stdout + done.stderr
