# SPDX-License-Identifier: Apache-2.0
"""The part of a nightly that runs inside a dask worker: one job, from an order to a reply.

Orders and replies are JSON and files, never objects with code. A worker has the project checked
out; it refuses an order that was made of other sources. Knows no store and no scheduler.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from driver.config import CONFIG_FILE
from driver.errors import InputError
from driver.results import RunSpec
from regress.nightly.job import JobSpec, run_job
from regress.nightly.prepare import PrepareResult, PrepareStep, do_step
from regress.nightly.provenance import sources
from regress.results.model import Attempt, PlannedJob

_LOG_SUFFIX = ".log"
_LOG_LIMIT_BYTES = 8 << 20
_CONFIG_FILE = "sim_config.yaml"
ContentHash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True)
class JobRequest:
    """A job as it travels. Paths in the spec mean nothing on the other side."""

    plan_id: str
    item: PlannedJob
    number: int
    spec: RunSpec
    inputs_hash: str
    runner: tuple[str, ...]
    config_text: str
    capsules: dict[str, ContentHash]
    """Name in the spec → content hash, a folder's name on the other side."""
    sources: str | None
    """Digest that the worker must agree with; None for a bench that is no part of the project."""


@dataclass(frozen=True)
class JobReply:
    """What a worker answers: an attempt, or why it has none to give."""

    attempt: Attempt | None = None
    needs: tuple[str, ...] = ()
    """Capsules that it has not got: send them and ask again."""
    unfit: str = ""
    """Why this worker can take no order of this plan."""
    worker: str = ""
    """Its address."""


JOB_REQUEST: TypeAdapter[JobRequest] = TypeAdapter(JobRequest)
JOB_REPLY: TypeAdapter[JobReply] = TypeAdapter(JobReply)

ReplyWithFiles = tuple[str, dict[str, bytes]]
"""A reply as JSON, and the job's files by name."""


@dataclass(frozen=True)
class WorkerContext:
    """Where a worker keeps its files, and what tells it to stop."""

    address: str
    cache: Path
    cancelled: Callable[[], bool] = field(default=lambda: False)


def run_request(text: str, place: WorkerContext) -> ReplyWithFiles:
    """Run an order here."""
    order = JOB_REQUEST.validate_json(text)
    if order.sources is not None and order.sources != sources():
        host = socket.gethostname()
        return _to_json(JobReply(unfit=f"{host} has other sources", worker=place.address)), {}
    needs = tuple(key for key in set(order.capsules.values()) if not _kept(place.cache, key))
    if needs:
        return _to_json(JobReply(needs=needs, worker=place.address)), {}
    folder = Path(tempfile.mkdtemp(prefix="npu-job-"))
    try:
        job = _job(order, folder, place.cache)
        attempt = run_job(job, place.cancelled)
        return _to_json(JobReply(attempt=attempt, worker=place.address)), _files(job.folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _to_json(reply: JobReply) -> str:
    return JOB_REPLY.dump_json(reply).decode()


def _job(order: JobRequest, folder: Path, cache: Path) -> JobSpec:
    own = {
        "out": folder / "job",
        "config_file": _config_file(order.config_text, folder),
        "capsules": {name: cache / key for name, key in order.capsules.items()},
    }
    spec = order.spec.model_copy(update=own)
    return JobSpec(order.plan_id, order.item, order.number, spec, order.inputs_hash, order.runner)


def _config_file(text: str, folder: Path) -> Path:
    """This checkout's own configurations where they are the same: a program on the device takes no
    others."""
    if CONFIG_FILE.is_file() and CONFIG_FILE.read_text(encoding="utf-8") == text:
        return CONFIG_FILE
    file = folder / _CONFIG_FILE
    file.write_text(text, encoding="utf-8")
    return file


def _files(folder: Path) -> dict[str, bytes]:
    """What the job left; of a log that is too long, its end."""
    found = {}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and not path.name.startswith("."):
            with path.open("rb") as file:
                if path.suffix == _LOG_SUFFIX:
                    file.seek(max(0, path.stat().st_size - _LOG_LIMIT_BYTES))
                found[path.relative_to(folder).as_posix()] = file.read()
    return found


# ---------------------------------------------------------------------- capsules
def _kept(cache: Path, key: str) -> bool:
    """Whether the capsule of that hash is here and whole; one that is not is removed."""
    folder = cache / key
    try:
        seen = tuple((path.name, *_stamp(path)) for path in sorted(folder.iterdir()))
    except OSError:
        return False
    if _whole(folder, key, seen):
        return True
    shutil.rmtree(folder, ignore_errors=True)
    return False


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=256)
def _whole(folder: Path, key: str, _seen: object) -> bool:
    """Whether every byte is as the hash says; asked once for each state of the files."""
    from driver.capture import load_capsule  # noqa: PLC0415 (numpy, safetensors)

    try:
        return load_capsule(folder).hash == key
    except InputError:
        return False


@dataclass(frozen=True)
class CapsuleUpload:
    """A capsule on its way into a cache."""

    cache: str
    key: str
    """Its content hash."""
    way: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    """Of this worker alone."""

    @property
    def folder(self) -> Path:
        """Where its parts are until all have come."""
        return Path(self.cache) / f".{self.key}.{self.way}"


def put_part(upload: CapsuleUpload, name: str, offset: int, data: bytes) -> None:
    """Write a part of one of the files."""
    upload.folder.mkdir(parents=True, exist_ok=True)
    path = upload.folder / Path(name).name
    with path.open("r+b" if path.exists() else "wb") as file:
        file.seek(offset)
        file.write(data)


def finish_upload(upload: CapsuleUpload) -> None:
    """All parts are here: the capsule takes its place, whole or not at all."""
    try:
        upload.folder.rename(Path(upload.cache) / upload.key)
    except OSError:  # another process of this machine was first: theirs is as good
        shutil.rmtree(upload.folder, ignore_errors=True)


# ---------------------------------------------------------------------- builds
def run_step(kind: str, what: str, how: str, config_text: str) -> str:
    """Do a step of the preparation here; JSON of ok, detail and cached."""
    with tempfile.TemporaryDirectory(prefix="npu-build-") as name:
        config = Path(name) / _CONFIG_FILE
        config.write_text(config_text, encoding="utf-8")
        prepared, cached = do_step(PrepareStep(kind, what, how), config, Path(name), lambda: True)
    host = f"{socket.gethostname()}:{os.getpid()}"
    return json.dumps(
        {"ok": prepared.ok, "detail": prepared.detail, "cached": cached, "host": host}
    )


def step_result(text: str) -> tuple[PrepareResult, bool]:
    """What `run_step` said."""
    said = json.loads(text)
    detail = str(said["detail"])
    shown = detail if said["ok"] else f"{said['host']}: {detail}"
    return PrepareResult(bool(said["ok"]), shown), bool(said["cached"])
