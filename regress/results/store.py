# SPDX-License-Identifier: Apache-2.0
"""Where plans and attempts are kept: SQLite by default, any database of SQLAlchemy by URL.

What a call has returned from is on disk. Attempts are only added; adding the same one again changes
nothing, and adding another under its number is refused. Knows no process and runs nothing.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, Engine, Table, insert, inspect, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from driver.errors import InfrastructureError, InputError, NpuError
from regress.folder import stays_inside
from regress.paths import NIGHTLY
from regress.results import tables
from regress.results.database import READING, database_url, open_engine
from regress.results.location import StoreLocation
from regress.results.model import (
    Attempt,
    ItemResult,
    JobStatus,
    PastAttempt,
    Plan,
    PlannedJob,
    PreparationRecord,
)

BUSY_TIMEOUT_S = 30.0
_SHOWN = 200
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Store:
    """An open store. Artefact paths are relative to `folder`."""

    def __init__(self, folder: Path, engine: Engine, url: str | None = None) -> None:
        """`url`: of the database without its password, where it is not the folder's own."""
        self.folder = folder
        self.location = StoreLocation(folder, url)
        self._engine = engine
        self._reader = engine.execution_options(**{READING: True})

    @classmethod
    def open(
        cls,
        folder: Path = NIGHTLY,
        url: str | None = None,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        *,
        create: bool = True,
    ) -> Store:
        """The store at `url`, by default SQLite in `folder`.

        `create`: make it when it is not there; InputError without. InputError: a URL that means
        nothing, a folder that cannot be written, another schema. InfrastructureError: a database
        that does not answer.
        """
        folder = folder.absolute()
        place = database_url(folder, url, create=create)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(folder, "folder", error.strerror, "a folder of results") from error
        shown = None if url is None else place.render_as_string(hide_password=True)
        store = cls(folder, open_engine(place, busy_timeout_s), shown)
        store._prepare(create=create)
        return store

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ------------------------------------------------------------------ writing
    def add_plan(self, plan: Plan, items: Iterable[PlannedJob]) -> Plan:
        """Commit a plan and all its items at once; the plan with its sequence."""
        rows = [tables.item_row(plan.id, item) for item in items]
        with self._transaction() as connection:
            connection.execute(insert(tables.PLANS), tables.plan_row(plan))
            if rows:
                connection.execute(insert(tables.ITEMS), rows)
        return self.plan(plan.id)

    def add_attempt(self, attempt: Attempt) -> bool:
        """Commit an attempt; False when exactly this one was there already.

        InputError when another has its number: a result is never replaced.
        """
        return self.add_attempts([attempt]) == 1

    def add_attempts(self, attempts: Iterable[Attempt]) -> int:
        """Commit attempts together; how many were new."""
        attempts = list(attempts)
        rows = [tables.attempt_row(attempt) for attempt in attempts]
        try:
            with self._transaction() as connection:
                if rows:
                    connection.execute(insert(tables.ATTEMPTS), rows)
            return len(rows)
        except IntegrityError:
            return sum(self._add_again(attempt) for attempt in attempts)

    def _add_again(self, attempt: Attempt) -> bool:
        """Add one of several of which some are there."""
        there = self._one(tables.ATTEMPTS, id=attempt.id)
        if there is None:
            self._add_new(attempt)
            return True
        if tables.attempt_of(there) != attempt:
            raise InputError(self.folder, f"attempt {attempt.id}", "another result", "the same")
        return False

    def _add_new(self, attempt: Attempt) -> None:
        try:
            with self._transaction() as connection:
                connection.execute(insert(tables.ATTEMPTS), tables.attempt_row(attempt))
        except IntegrityError as error:
            name = f"attempt of {attempt.plan_id} {attempt.item_id}"
            raise InputError(self.folder, name, "nothing planned so", "a planned item") from error

    def add_preparation(self, preparation: PreparationRecord) -> None:
        """Commit what a build or a capture came to."""
        with self._transaction() as connection:
            connection.execute(insert(tables.PREPARATIONS), tables.preparation_row(preparation))

    # ------------------------------------------------------------------ reading
    def plans(self, tier: str | None = None, limit: int | None = None) -> list[Plan]:
        """Newest first."""
        query = select(tables.PLANS).order_by(tables.PLANS.c.sequence.desc())
        if tier is not None:
            query = query.where(tables.PLANS.c.tier == tier)
        return tables.records(self._all(query.limit(limit)), tables.plan_of)

    def plan(self, plan_id: str) -> Plan:
        """The plan of that id. InputError when there is none."""
        row = self._one(tables.PLANS, id=plan_id)
        if row is None:
            raise InputError(self.folder, "plan", plan_id, "the id of a stored plan")
        return tables.plan_of(row)

    def items(self, plan_id: str) -> list[PlannedJob]:
        """In the order of the plan."""
        table = tables.ITEMS
        query = select(table).where(table.c.plan_id == plan_id).order_by(table.c.ordinal)
        return tables.records(self._all(query), tables.item_of)

    def attempts(self, plan_id: str) -> list[Attempt]:
        """Every attempt of a plan; those of one item in their order."""
        table = tables.ATTEMPTS
        query = select(table).where(table.c.plan_id == plan_id)
        rows = self._all(query.order_by(table.c.item_id, table.c.number))
        return tables.records(rows, tables.attempt_of)

    def item_results(self, plan_id: str) -> list[ItemResult]:
        """Every item of a plan with what came of it, in the order of the plan."""
        found: defaultdict[str, list[Attempt]] = defaultdict(list)
        for attempt in self.attempts(plan_id):
            found[attempt.item_id].append(attempt)
        return [ItemResult(item, tuple(found.get(item.id, ()))) for item in self.items(plan_id)]

    def attempt(self, identity: str) -> tuple[PlannedJob, Attempt]:
        """The attempt of that id, or of the only one that begins so, with its item.

        InputError when there is none, or more than one.
        """
        table = tables.ATTEMPTS
        query = select(table).where(table.c.id.startswith(identity, autoescape=True)).limit(2)
        found: list[Attempt] = tables.records(self._all(query), tables.attempt_of)
        if len(found) != 1 or not identity:
            problem = "several attempts begin so" if found else "no such attempt"
            raise InputError(self.folder, f"ID {identity}", problem, "the id of one attempt")
        key = {"plan_id": found[0].plan_id, "item_id": found[0].item_id}
        row = self._one(tables.ITEMS, **key)
        assert row is not None  # a foreign key says so
        return tables.item_of(row), found[0]

    def history(self, item_id: str, limit: int | None = None) -> list[Attempt]:
        """What came of the same work in all plans, newest first."""
        attempts, plans = tables.ATTEMPTS, tables.PLANS
        query = (
            select(attempts)
            .join(plans, plans.c.id == attempts.c.plan_id)
            .where(attempts.c.item_id == item_id)
            .order_by(plans.c.sequence.desc(), attempts.c.number.desc())
        )
        return tables.records(self._all(query.limit(limit)), tables.attempt_of)

    def history_of_items(self, plans: int) -> dict[str, list[PastAttempt]]:
        """The executed attempts of the newest so many plans by item, newest first."""
        attempts, table = tables.ATTEMPTS, tables.PLANS
        newest = select(table).order_by(table.c.sequence.desc()).limit(plans).subquery()
        query = (
            select(
                attempts.c.item_id,
                newest.c.sequence,
                attempts.c.state,
                newest.c.revision,
            )
            .join(newest, newest.c.id == attempts.c.plan_id)
            .where(attempts.c.state.in_([status.value for status in JobStatus if status.executed]))
            .order_by(newest.c.sequence.desc(), attempts.c.number.desc())
        )
        found: defaultdict[str, list[PastAttempt]] = defaultdict(list)
        for item_id, sequence, status, revision in self._all(query):
            found[item_id].append(PastAttempt(sequence, JobStatus(status), revision))
        return dict(found)

    def preparations(self, plan_id: str) -> list[PreparationRecord]:
        """Builds and captures of a plan, in their order."""
        table = tables.PREPARATIONS
        query = select(table).where(table.c.plan_id == plan_id).order_by(table.c.number)
        return tables.records(self._all(query), tables.preparation_of)

    def preparation_seconds(self) -> dict[str, float]:
        """Name → s of each build and capture when it was last made, not found."""
        table = tables.PREPARATIONS
        made = table.c.ok & ~table.c.cached
        query = select(table.c.name, table.c.seconds).where(made).order_by(table.c.number)
        return dict(self._all(query))

    def path(self, relative: str) -> Path:
        """Where an artefact or a job folder of this store is. InputError for what lies outside."""
        if not stays_inside(relative):
            raise InputError(self.folder, "path", relative, "a path below the folder")
        return self.folder / relative

    # ------------------------------------------------------------------ connection
    def _prepare(self, *, create: bool) -> None:
        """Check the tables, and make them unless they are there: a reader never waits for a
        writer."""
        with self._transaction(self._reader) as connection:
            there = inspect(connection).has_table(tables.META.name)
            tables_there = [] if there else inspect(connection).get_table_names()
        if tables_there:
            expected = "a new database, or one that a nightly made"
            raise InputError(self._engine.url, "tables", ", ".join(tables_there), expected)
        if not there and not create:
            raise InputError(self._engine.url, "tables", "none", "results that a nightly stored")
        if not there:
            with self._transaction() as connection:
                tables.METADATA.create_all(connection)
                if connection.execute(select(tables.META)).first() is None:
                    row = {"schema_version": tables.SCHEMA_VERSION}
                    connection.execute(insert(tables.META), row)
        found = self._all(select(tables.META.c.schema_version))
        version = found[0][0] if found else "none"
        if version != tables.SCHEMA_VERSION:
            expected = f"{tables.SCHEMA_VERSION}: move the old store away"
            raise InputError(self.folder, "schema version", version, expected)

    @contextlib.contextmanager
    def _transaction(self, engine: Engine | None = None) -> Iterator[Connection]:
        try:
            with (engine or self._engine).begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise self._failed(error) from error

    def _all(self, query: Any) -> list[Any]:
        with self._transaction(self._reader) as connection:
            return list(connection.execute(query).all())

    def _one(self, table: Table, **key: str) -> tables.Row | None:
        query = select(table).where(*(table.c[name] == value for name, value in key.items()))
        rows = self._all(query)
        return rows[0]._mapping if rows else None

    def _failed(self, error: SQLAlchemyError) -> NpuError:
        """The database's own words; an InputError for a file that is damaged."""
        cause = getattr(error, "orig", None)
        said = " ".join(str(cause or error).split())[:_SHOWN]
        if getattr(cause, "sqlite_errorcode", None) in _DAMAGED:
            file = self._engine.url.database
            return InputError(
                file, "file", said, "a sound database: put a copy back, or move it away"
            )
        return InfrastructureError(f"the store in {self.location.url or self.folder}: {said}")
