# SPDX-License-Identifier: Apache-2.0
"""A nightly on several worker processes over loopback: the same results, whatever dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from distributed import Client, LocalCluster
from nightly_host import FAKE_RUNNER, context, go, item_results, spec_of, states, write_config

from driver.capture import Capsule, capture, save_capsule
from driver.config import CONFIG_FILE
from driver.errors import InfrastructureError
from driver.results import RESULT_FILE, SPEC_FILE, RunResult, RunSpec, read_json
from regress.nightly import remote
from regress.nightly.dask_pool import DaskPool, RemoteSettings
from regress.nightly.job import JobSpec
from regress.nightly.prepare import PrepareStep
from regress.results.model import Attempt, JobStatus, PlannedJob

WORKERS = 3


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Workers in processes of their own, each with one thread."""
    with LocalCluster(
        n_workers=WORKERS,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=":0",
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def capsule() -> Capsule:
    torch.manual_seed(1)
    return capture(torch.nn.Linear(3, 2), torch.randn(4, 3), name="tiny", seed=1)


def test_only_a_log_is_cut_on_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_LOG_LIMIT_BYTES", 4)
    (tmp_path / "sim.log").write_bytes(b"much text")
    (tmp_path / "result.json").write_bytes(b'{"ops": []}')
    assert remote._files(tmp_path) == {"result.json": b'{"ops": []}', "sim.log": b"text"}


def _pool(address: str, tmp_path: Path, **fields: Any) -> DaskPool:
    own = {"sources": None, "worker_retries": 3, "cache": tmp_path / "cache", **fields}
    return DaskPool(address, tmp_path, RemoteSettings(**own))


def _job(tmp_path: Path, test: str, seed: int = 1, folder: Path | None = None) -> JobSpec:
    item = PlannedJob(test, "small", seed, "rtl", wall_s=60)
    spec = spec_of(item, tmp_path / f"job-{test}-{seed}")
    return JobSpec("p", item, 1, spec, "i", FAKE_RUNNER)


def _with_capsule(job: JobSpec, capsule: Capsule, folder: Path) -> JobSpec:
    spec = job.spec.model_copy(update={"capsules": {"capsule": folder}})
    return JobSpec("p", job.item, 1, spec, "i", FAKE_RUNNER, (("capsule", capsule.hash),))


def _collect(pool: DaskPool, count: int, limit_s: float = 60) -> list[Attempt]:
    deadline = time.monotonic() + limit_s
    found: list[Attempt] = []
    while len(found) < count and time.monotonic() < deadline:
        attempt = pool.next(0.2)
        if attempt is not None:
            found.append(attempt)
    return found


def test_results_are_those_of_one_process(address: str, tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 6, "failing": 2, "dying": 1})
    hashes = []
    for name, where in (("alone", {"jobs": 1}), ("workers", {"scheduler": address})):
        code, _ = go(config, tmp_path / name, **where)
        assert code == 1
        found = item_results(tmp_path / name)
        hashes.append(
            {o.item.id: (o.last.status, o.last.result_hash) for o in found if o.last is not None}
        )
        workers = {o.last.worker for o in found if o.last is not None}
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) == 9
    assert len(workers) > 1
    for item_result in item_results(tmp_path / "workers"):
        assert item_result.last is not None
        names = {artefact.name for artefact in item_result.last.artefacts}
        assert {"result.json", "sim.log", "run.json"} <= names
        for artefact in item_result.last.artefacts:
            path = tmp_path / "workers" / artefact.path
            assert path.stat().st_size == artefact.size_bytes


@pytest.mark.parametrize("own", [True, False])
def test_the_line_of_a_workers_run_names_the_runners_file(
    address: str, tmp_path: Path, own: bool
) -> None:
    config = CONFIG_FILE if own else write_config(tmp_path / "c.yaml", {"elsewhere": 1})
    job = _job(tmp_path, "elsewhere")
    spec = job.spec.model_copy(update={"config_file": config})
    pool = _pool(address, tmp_path)
    pool.submit(replace(job, spec=spec))
    (attempt,) = _collect(pool, 1)
    pool.close()
    assert attempt.status is JobStatus.PASS
    line = f"npu-cosim run elsewhere --config default --seed 1 --config-file {config}"
    assert read_json(job.folder / RESULT_FILE, RunResult).reproduce == line
    assert line in (job.folder / "junit.xml").read_text()
    assert read_json(job.folder / SPEC_FILE, RunSpec).config_file == config


def test_a_worker_that_dies_has_its_job_run_elsewhere(address: str, tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"slow": 10})
    with Client(address, set_as_default=False) as client:
        victim = sorted(client.run(os.getpid).values())[0]
    killer = threading.Timer(0.5, os.kill, (victim, signal.SIGKILL))
    killer.start()
    code, _ = go(config, tmp_path / "s", scheduler=address)
    killer.join()
    assert code == 0
    assert set(states(tmp_path / "s").values()) == {"pass"}
    assert [len(item_result.attempts) for item_result in item_results(tmp_path / "s")] == [1] * 10


def test_capsules_travel_once_by_hash_and_are_kept(
    address: str, tmp_path: Path, capsule: Capsule
) -> None:
    folder = tmp_path / "tiny"
    save_capsule(capsule, folder)
    pool = _pool(address, tmp_path)
    jobs = [_with_capsule(_job(tmp_path, "reading", n), capsule, folder) for n in range(6)]
    for job in jobs:
        pool.submit(job)
    found = _collect(pool, 6)
    assert [a.status for a in found] == [JobStatus.PASS] * 6, found
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [capsule.hash]
    stamp = (tmp_path / "cache" / capsule.hash).stat().st_ctime_ns
    pool.submit(_with_capsule(_job(tmp_path, "reading", 9), capsule, folder))
    assert [a.status for a in _collect(pool, 1)] == [JobStatus.PASS]
    assert (tmp_path / "cache" / capsule.hash).stat().st_ctime_ns == stamp
    pool.close()


def test_a_kept_capsule_that_rots_is_sent_again(
    address: str, tmp_path: Path, capsule: Capsule
) -> None:
    folder = tmp_path / "tiny"
    save_capsule(capsule, folder)
    pool = _pool(address, tmp_path)
    pool.submit(_with_capsule(_job(tmp_path, "reading", 1), capsule, folder))
    assert [a.status for a in _collect(pool, 1)] == [JobStatus.PASS]
    kept = tmp_path / "cache" / capsule.hash / "tensors.safetensors"
    data = bytearray(kept.read_bytes())
    data[-1] ^= 1
    kept.write_bytes(bytes(data))
    pool.submit(_with_capsule(_job(tmp_path, "reading", 2), capsule, folder))
    assert [a.status for a in _collect(pool, 1)] == [JobStatus.PASS]
    assert kept.read_bytes() == (folder / "tensors.safetensors").read_bytes()
    pool.close()


def test_a_stopped_plan_ends_its_jobs_on_the_workers(address: str, tmp_path: Path) -> None:
    pool = _pool(address, tmp_path)
    pool.submit(_job(tmp_path, "hanging"))
    time.sleep(1.0)
    pool.cancel()
    found = _collect(pool, 1, limit_s=30)
    assert [a.status for a in found] == [JobStatus.KILLED]
    pool.close()


def test_workers_with_other_sources_get_no_jobs(tmp_path: Path) -> None:
    with LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
    ) as cluster:
        pool = _pool(cluster.scheduler_address, tmp_path, sources="of somebody else")
        pool.submit(_job(tmp_path, "quick"))
        (attempt,) = _collect(pool, 1)
        assert attempt.status is JobStatus.KILLED
        assert "no worker can take it" in attempt.reason
        assert "has other sources" in attempt.reason
        assert pool.slots == 0
        pool.close()


def test_builds_happen_where_the_jobs_will_run(address: str, tmp_path: Path) -> None:
    pool = _pool(address, tmp_path)
    config = write_config(tmp_path / "c.yaml", {"quick": 1})
    step = PrepareStep("build", "no_such", "check")
    prepared, cached = pool.build(step, config, lambda: True)
    assert not prepared.ok
    assert not cached
    assert "configs: got no_such" in prepared.detail
    prepared, _ = pool.build(step, config, lambda: False)
    assert not prepared.ok
    assert "was not done when it was stopped" in prepared.detail
    pool.close()


def test_builds_without_a_worker_end_nothing(tmp_path: Path) -> None:
    with LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
    ) as cluster:
        pool = _pool(cluster.scheduler_address, tmp_path)
        (address,) = pool._workers.present()
        pool._workers.exclude(address, "for the test")
        config = write_config(tmp_path / "c.yaml", {"quick": 1})
        prepared, _ = pool.build(PrepareStep("build", "small", "check"), config, lambda: True)
        assert not prepared.ok
        assert prepared.detail.endswith(": no worker is there to do it")
        pool.close()


def test_nobody_at_that_address_is_one_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regress.nightly.dask_workers.CONNECT_S", 1)
    with pytest.raises(InfrastructureError, match="no dask workers at tcp"):
        _pool("tcp://127.0.0.1:9", tmp_path)


def test_the_settings_of_a_fake_bench_ask_no_sources_of_workers(tmp_path: Path) -> None:
    assert context(write_config(tmp_path / "c.yaml", {"quick": 1})).remote_sources() is None
