# SPDX-License-Identifier: Apache-2.0
"""The schedulers that a nightly connects to: which are taken, and who may listen."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dask_jobqueue.local import LocalCluster as BatchOfThisMachine
from distributed import Client
from nightly_host import go, states, write_config

from driver.errors import InfrastructureError, InputError
from regress.nightly import dask_workers
from regress.nightly.cluster import check_scheduler, scheduler_at, security_of
from regress.nightly.settings import ClusterConfig
from regress.paths import ROOT
from regress.results.store import Store


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
