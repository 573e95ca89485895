# SPDX-License-Identifier: Apache-2.0
"""A nightly on several worker processes over loopback: the same results, whatever dies."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from dask_jobqueue.local import LocalCluster as BatchOfThisMachine
from distributed import Client, LocalCluster
from nightly_host import FAKE_RUNNER, go, item_results, setting, spec_of, states, write_config

from driver.capture import Capsule, capture, save_capsule
from driver.errors import InfrastructureError, InputError
from regress.nightly import dask_workers, remote
from regress.nightly.cluster import check_scheduler, scheduler_at, security_of
from regress.nightly.dask_pool import DaskPool, RemoteSettings
from regress.nightly.job import JobSpec
from regress.nightly.prepare import PrepareStep
from regress.nightly.settings import ClusterConfig
from regress.paths import ROOT
from regress.results.model import Attempt, JobStatus, PlannedJob
from regress.results.store import Store

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
    own = {"sources": None, "losses": 3, "cache": tmp_path / "cache", **fields}
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


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings of a certificate that is its own authority."""
    folder = tmp_path_factory.mktemp("tls")
    made = {"certificate": str(folder / "own.pem"), "key": str(folder / "own.key")}
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=npu", "-batch"]
    files = ["-out", made["certificate"], "-keyout", made["key"]]
    subprocess.run([*command, *files], check=True, capture_output=True)
    return {"ca": made["certificate"], **made}


@pytest.mark.parametrize(
    ("scheduler", "said"),
    [
        ("cron", "--scheduler: got cron, expected tcp"),
        ("tcp://127.0.0.1:abc", "--scheduler: got tcp://127.0.0.1:abc, expected tcp"),
        ("tcp://127.0.0.1:70000", "--scheduler: got tcp://127.0.0.1:70000, expected tcp"),
        ("tcp://10.0.0.1:8786", "or tcp:// on this machine: without TLS, others run code"),
        ("tcp://127.0.0.1.evil.example:1", "on this machine: without TLS, others run code"),
        ("tls://10.0.0.1:8786", "nightly.cluster.tls: got nothing, expected ca, certificate"),
        ("slurm", "nightly.cluster.tls: got nothing, expected ca, certificate and key"),
    ],
)
def test_a_scheduler_that_must_not_be_used_is_refused_before_anything_is_stored(
    tmp_path: Path, scheduler: str, said: str
) -> None:
    config = write_config(tmp_path / "c.yaml", {"quick": 1})
    with pytest.raises(InputError, match=re.escape(said)):
        go(config, tmp_path / "s", scheduler=scheduler)
    assert not (tmp_path / "s").exists()


def test_a_certificate_that_is_missing_is_named(tmp_path: Path) -> None:
    files = {"ca": "no.pem", "certificate": "no.pem", "key": "no.key"}
    config = write_config(tmp_path / "c.yaml", {"quick": 1}, cluster={"tls": files})
    with pytest.raises(InputError, match=r"cluster\.tls\.ca: got no\.pem: No such file"):
        go(config, tmp_path / "s", scheduler="slurm")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
def test_this_machine_needs_no_certificate(host: str) -> None:
    check_scheduler(f"tcp://{host}:8786", ClusterConfig(), Path("c.yaml"))


def test_a_scheduler_that_nobody_can_reach_leaves_no_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regress.nightly.dask_workers.CONNECT_S", 1)
    config = write_config(tmp_path / "c.yaml", {"quick": 1})
    with pytest.raises(InfrastructureError, match="no dask workers at tcp"):
        go(config, tmp_path / "s", scheduler="tcp://127.0.0.1:9")
    with Store.open(tmp_path / "s") as store:
        assert store.plans() == []


def test_workers_of_a_batch_system_run_the_jobs_and_know_no_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: dict[str, str]
) -> None:
    """dask-jobqueue's own stand-in for a batch system: its job scripts, run by this machine."""
    monkeypatch.setattr("dask_jobqueue.SLURMCluster", BatchOfThisMachine)
    cluster = {"workers": 2, "memory": "1GB", "tls": tls}
    config = write_config(tmp_path / "c.yaml", {"quick": 3}, cluster=cluster)
    settings = ClusterConfig.model_validate(cluster)
    with scheduler_at("slurm", settings, security_of(settings, config)) as address:
        assert address.startswith("tls://")
        with monkeypatch.context() as patience:
            patience.setattr(dask_workers, "CONNECT_S", 2)
            for stranger in (address, address.replace("tls", "tcp")):
                with pytest.raises(InfrastructureError, match="no dask workers"):
                    dask_workers.DaskWorkers(stranger, tmp_path)
        port = address.rpartition(":")[2]
        code, _ = go(config, tmp_path / "s", scheduler=f"tls://127.0.0.1:{port}")
    assert code == 0
    assert set(states(tmp_path / "s").values()) == {"pass"}


def test_a_batch_system_that_is_not_there_is_one_typed_error(
    tmp_path: Path, tls: dict[str, str]
) -> None:
    cluster = {"memory": "lots", "tls": tls}
    config = write_config(tmp_path / "c.yaml", {"quick": 1}, cluster=cluster)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    modules = [name for name in sys.modules if name.startswith("dask_jobqueue")]
    loaded = {name: sys.modules.pop(name) for name in modules}
    try:
        with pytest.raises(InfrastructureError, match="slurm: "):
            go(config, tmp_path / "s", scheduler="slurm")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not the package's
    finally:
        signal.signal(signal.SIGINT, before)
        sys.modules.update(loaded)


def test_the_settings_of_a_fake_bench_ask_no_sources_of_workers(tmp_path: Path) -> None:
    assert setting(write_config(tmp_path / "c.yaml", {"quick": 1})).remote_sources() is None


def _documented() -> list[str]:
    text = (ROOT / "docs" / "nightly.md").read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.startswith("    dask ")]


def test_no_documented_command_lets_strangers_in() -> None:
    commands = _documented()
    assert len(commands) == 4
    for command in commands:
        guarded = all(f"--tls-{what}" in command for what in ("ca-file", "cert", "key"))
        assert guarded or "--host 127.0.0.1" in command
        assert "--dashboard-address 127.0.0.1:0" in command


def _listening(pids: set[int]) -> set[str]:
    """Hexadecimal addresses at which processes accept TCP connections."""
    sockets = set()
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                sockets.add(str(entry.readlink()).removeprefix("socket:[").rstrip("]"))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in sockets:
                found.add(words[1].partition(":")[0])
    return found


def _start(command: str, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", *command.split(), *options])


def _address(file: Path, scheduler: subprocess.Popen[bytes], limit_s: float = 120) -> str:
    """Where a scheduler listens, from the file that it writes when it does."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and scheduler.poll() is None:
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            return str(json.loads(file.read_text(encoding="utf-8"))["address"])
        time.sleep(0.1)
    raise AssertionError(f"no scheduler: exit status {scheduler.poll()}")


def test_the_documented_scheduler_and_worker_listen_to_this_machine_only(tmp_path: Path) -> None:
    # The scheduler chooses its port: one that is only free now is another process's by then.
    documented = _documented()
    file = tmp_path / "scheduler.json"
    started = [_start(documented[0], "--port", "0", "--scheduler-file", str(file))]
    try:
        address = _address(file, started[0])
        worker = documented[1].replace("tcp://127.0.0.1:8786", address)
        started.append(_start(worker.replace("--nworkers 4", "--nworkers 1"), "--no-nanny"))
        with Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            assert _listening({process.pid for process in started}) == {"0100007F"}
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("name", "package"), [("tcp://127.0.0.1:1", "distributed"), ("slurm", "dask_jobqueue")]
)
def test_a_scheduler_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    installed = {"distributed": object(), "dask_jobqueue": object(), package: None}
    monkeypatch.setattr("regress.nightly.cluster.find_spec", installed.get)
    with pytest.raises(InputError, match=rf"without the package {package}.*npu-cosim\[dask\]"):
        check_scheduler(name, ClusterConfig(), tmp_path / "c.yaml")


def test_only_a_scheduler_imports_dask() -> None:
    code = "import sys, regress.night_commands; sys.exit('distributed' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
