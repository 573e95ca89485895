# SPDX-License-Identifier: Apache-2.0
"""Connections to the database of a store: which URLs are taken, and how SQLite is made durable.

Knows no table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from driver.errors import InputError

DATABASE_FILE = "results.db"
READING = "npu_reading"
"""Execution option of a connection that only reads."""
_DATABASES = ("sqlite", "postgresql")
_SQLITE_START = b"SQLite format 3\0"


def database_url(folder: Path, text: str | None, *, create: bool = True) -> URL:
    """The URL that the user gave, or that of SQLite in `folder`. InputError for one that means
    nothing, that names a file which is no database, or none without `create`."""
    url = _parsed(folder, text)
    if url.get_backend_name() == "sqlite":
        if url.database in (None, "", ":memory:") or url.query:
            raise _no_store(text or "")  # results in memory would be lost with the process
        file = Path(url.database)
        if text is not None and not file.parent.is_dir():
            raise InputError("command line", "store", text, "a file in a folder that is there")
        _check_file(file, create=create)
    return url


def _parsed(folder: Path, text: str | None) -> URL:
    if text is None:
        return URL.create("sqlite", database=str(folder / DATABASE_FILE))
    try:
        url = make_url(text)
        url.get_dialect()
    except (ValueError, SQLAlchemyError) as error:  # ValueError: a port that is no number
        raise _no_store(text) from error
    if url.get_backend_name() not in _DATABASES:
        raise _no_store(text)
    return url


def _check_file(path: Path, *, create: bool) -> None:
    """InputError for a file that is no database of SQLite, which might write over a short one."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_SQLITE_START))
    except OSError as error:  # none yet, or one that SQLite will name
        if not create and not path.is_file():
            expected = "a database that a nightly made"
            raise InputError(path, "file", error.strerror, expected) from error
        return
    if start not in (b"", _SQLITE_START):
        raise InputError(path, "file", "no database", "a database of SQLite, or no file")


def _no_store(value: str) -> InputError:
    expected = "sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME"
    return InputError("command line", "store", value or "nothing", expected)


def open_engine(url: URL, busy_timeout_s: float) -> Engine:
    """An engine; SQLite's writes survive a loss of power. InputError when the driver is missing."""
    sqlite = url.get_backend_name() == "sqlite"
    options: dict[str, Any] = {"pool_pre_ping": True}
    if sqlite:
        options = {"connect_args": {"timeout": busy_timeout_s}}
    try:
        engine = create_engine(url, **options)
    except ImportError as error:  # the driver that the URL names
        expected = f"pip install {error.name}, or another driver"
        raise InputError("command line", "store", url.drivername, expected) from error
    if not sqlite:
        return engine
    event.listen(engine, "connect", _durable)
    event.listen(engine, "begin", _at_once)
    return engine


def _durable(connection: Any, _record: Any) -> None:
    """SQLite: commits survive a loss of power, readers never wait for the writer."""
    connection.isolation_level = None  # BEGIN is ours, see _at_once
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _at_once(connection: Connection) -> None:
    """A writer locks from the start: one that reads first could be refused when it writes."""
    reading = connection.get_execution_options().get(READING, False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
