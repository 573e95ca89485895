# SPDX-License-Identifier: Apache-2.0
"""The tables of the store, and how records become rows and back. Opens no connection."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

from driver.errors import InputError
from driver.results import Shard
from regress.results.model import (
    Artefact,
    Attempt,
    JobStatus,
    Plan,
    PlannedJob,
    PreparationRecord,
    SkipCause,
)

SCHEMA_VERSION = 2
"""Raised by one whenever a store of the former version could be misread."""

METADATA = MetaData()

META = Table("npu_meta", METADATA, Column("schema_version", Integer, primary_key=True))

PLANS = Table(
    "npu_plans",
    METADATA,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("id", String(64), unique=True, nullable=False),
    Column("tier", String(64), nullable=False),
    Column("created_utc", String(40), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("revision", String(64), nullable=False),
    Column("dirty", Boolean, nullable=False),
    Column("tools", Text, nullable=False),
    Column("config_file", Text, nullable=False),
    Column("config_digest", String(64), nullable=False),
    Column("command", Text, nullable=False),
    Column("sources", String(64), nullable=False),
    Column("partial", Boolean, nullable=False),
    sqlite_autoincrement=True,
)

ITEMS = Table(
    "npu_items",
    METADATA,
    Column("plan_id", String(64), primary_key=True),
    Column("item_id", String(32), primary_key=True),
    Column("ordinal", Integer, nullable=False),
    Column("test", String(64), nullable=False),
    Column("config", String(64), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("backend", String(16), nullable=False),
    Column("workload", String(64)),
    Column("mode", String(16)),
    Column("array", String(16), nullable=False),
    Column("allow_cpu", Boolean, nullable=False),
    Column("shard_index", Integer),
    Column("shard_count", Integer),
    Column("wall_s", Float, nullable=False),
    Column("max_cycles", BigInteger),
    Column("skip", Text),
    Column("areas", Text, nullable=False),
    ForeignKeyConstraint(["plan_id"], ["npu_plans.id"]),
)

ATTEMPTS = Table(
    "npu_attempts",
    METADATA,
    Column("plan_id", String(64), primary_key=True),
    Column("item_id", String(32), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", String(32), unique=True, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("skip_cause", String(16)),
    Column("started_utc", String(40), nullable=False),
    Column("seconds", Float, nullable=False),
    Column("cpu_seconds", Float),
    Column("cycles", BigInteger),
    Column("ops", Integer, nullable=False),
    Column("failed_ops", Integer, nullable=False),
    Column("result_hash", String(64)),
    Column("inputs_hash", String(64)),
    Column("worker", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("artefacts", Text, nullable=False),
    ForeignKeyConstraint(["plan_id", "item_id"], ["npu_items.plan_id", "npu_items.item_id"]),
    Index("npu_attempts_of_item", "item_id"),
)

PREPARATIONS = Table(
    "npu_preparations",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("plan_id", String(64), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("ok", Boolean, nullable=False),
    Column("cached", Boolean, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("cpu_seconds", Float, nullable=False),
    Column("detail", Text, nullable=False),
    ForeignKeyConstraint(["plan_id"], ["npu_plans.id"]),
)

Row = Mapping[str, Any]


def plan_row(plan: Plan) -> dict[str, Any]:
    """Without `sequence`: the database gives it."""
    row = {field.name: getattr(plan, field.name) for field in fields(plan)}
    del row["sequence"]
    return row | {"tools": json.dumps(dict(plan.tools), sort_keys=True)}


_PLAN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
"""It names files and folders, and a shared database is no file of ours."""


def plan_of(row: Row) -> Plan:
    """The record of a row of PLANS. InputError for an id that is no name of a folder."""
    if not _PLAN_ID.fullmatch(row["id"]):
        raise InputError("store", "plan", row["id"], "an id of letters, digits, . _ and -")
    return Plan(**{**row, "tools": json.loads(row["tools"])})


def item_row(plan_id: str, item: PlannedJob) -> dict[str, Any]:
    """A row of ITEMS."""
    row = {field.name: getattr(item, field.name) for field in fields(item)}
    shard = row.pop("shard")
    return row | {
        "plan_id": plan_id,
        "item_id": item.id,
        "shard_index": None if shard is None else shard.index,
        "shard_count": None if shard is None else shard.count,
        "areas": json.dumps(item.areas),
    }


def item_of(row: Row) -> PlannedJob:
    """The record of a row of ITEMS."""
    rest = {k: row[k] for k in row if k not in ("plan_id", "item_id", "shard_index", "shard_count")}
    shard = None
    if row["shard_index"] is not None:
        shard = Shard(index=row["shard_index"], count=row["shard_count"])
    return PlannedJob(**{**rest, "shard": shard, "areas": tuple(json.loads(row["areas"]))})


def attempt_row(attempt: Attempt) -> dict[str, Any]:
    """A row of ATTEMPTS."""
    row = {field.name: getattr(attempt, field.name) for field in fields(attempt)}
    del row["status"]
    return row | {
        "id": attempt.id,
        "state": attempt.status.value,
        "skip_cause": None if attempt.skip_cause is None else attempt.skip_cause.value,
        "artefacts": json.dumps([asdict(artefact) for artefact in attempt.artefacts]),
    }


def attempt_of(row: Row) -> Attempt:
    """The record of a row of ATTEMPTS."""
    rest = {name: row[name] for name in row if name not in ("id", "state")}
    cause = row["skip_cause"]
    return Attempt(
        **{
            **rest,
            "status": JobStatus(row["state"]),
            "skip_cause": None if cause is None else SkipCause(cause),
            "artefacts": tuple(Artefact(**entry) for entry in json.loads(row["artefacts"])),
        }
    )


def preparation_row(preparation: PreparationRecord) -> dict[str, Any]:
    """A row of PREPARATIONS."""
    return asdict(preparation)


def preparation_of(row: Row) -> PreparationRecord:
    """The record of a row of PREPARATIONS."""
    return PreparationRecord(**{name: row[name] for name in row if name != "number"})


def records(rows: Sequence[Any], of: Any) -> list[Any]:
    """Each row as its record. InputError for a row that is none."""
    return [_record(row._mapping, of) for row in rows]


def _record(row: Row, of: Any) -> Any:
    try:
        return of(row)
    except (TypeError, ValueError, KeyError) as error:  # JSON that is none, an unknown state
        name = next((str(row[key]) for key in ("id", "item_id", "plan_id") if key in row), "?")
        why = f"{type(error).__name__}: {error}".split("\n")[0]
        raise InputError(
            "results.db", f"row {name}", why, "a row as this version writes it"
        ) from error
