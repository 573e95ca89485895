# SPDX-License-Identifier: Apache-2.0
"""Remote backends and their server: who gets in, what is lost when a side dies, round trips.

What a remote backend has in common with every other one is tested by test_backend_contract.py,
test_backend_faults.py and test_ring_device.py.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from backend_host import CONFIG, fill_bytes, nop
from remote_host import connect, serving
from tls_pair import make_pair

from driver.backend import Feature, backend_info, open_backend
from driver.backend.accesses import ReadMemory, ReadRegister, WriteMemory, perform
from driver.backend.handshake import read_token
from driver.backend.remote import RemoteBackend
from driver.backend.server import BackendServer, ServerSettings
from driver.backend.settings import ClientSettings
from driver.config import HwConfig, load_config
from driver.errors import (
    AddressError,
    BackendDied,
    InfrastructureError,
    InputError,
    RegisterError,
    SimulatorTimeout,
)
from driver.isa import DEVICE_ID, csr
from driver.runtime import Device
from driver.torch_device.hardware import OpenDevice
from driver.torch_device.settings import DeviceSettings

ROOT = Path(__file__).parents[1]
TOKEN = b"a token of 22 letters"
BASE = CONFIG.memory.base


@pytest.fixture
def server() -> Iterator[BackendServer]:
    with serving() as opened:
        yield opened


# ---------------------------------------------------------------------- round trips
def test_a_batch_of_packets_is_one_round_trip(server: BackendServer) -> None:
    backend = connect(server)
    device = Device(backend, CONFIG)
    target = device.alloc(64 * 200)
    packets = [fill_bytes(target.address + 64 * index, 64, index) for index in range(200)]
    waits, messages = backend.waits, backend.messages
    device.write(target.address, np.ones(64 * 200, np.uint8))
    device.submit(packets)
    assert backend.waits - waits == 1
    assert backend.messages - messages == 2, "packets with the doorbell; the wait"
    expected = np.repeat(np.arange(200, dtype=np.uint8), 64)
    assert np.array_equal(device.download(target.address, (64 * 200,), np.uint8), expected)
    device.close()


def test_what_is_longer_than_a_frame_is_cut() -> None:
    with serving(max_frame_bytes=1 << 16) as server:
        backend = connect(server)
        data = np.random.default_rng(1).bytes(300_001)
        found = perform(
            backend,
            [
                ReadRegister(csr.ID),
                WriteMemory(BASE + 7, data),
                ReadMemory(BASE + 7, len(data)),
                ReadMemory(BASE + 7, 0),
                ReadRegister(csr.ID),
            ],
        )
        assert found == [DEVICE_ID, None, data, b"", DEVICE_ID]


def test_errors_keep_their_type_and_the_session_goes_on(server: BackendServer) -> None:
    backend = connect(server)
    for wrong, error in (
        (lambda: backend.read_csr(0x54), RegisterError),
        (lambda: backend.write_csr(csr.RING_TAIL, -1), RegisterError),
        (lambda: backend.read_memory(CONFIG.memory.limit - 1, 2), AddressError),
        (lambda: backend.write_memory(BASE - 1, b"xx"), AddressError),
        (lambda: backend.wait_interrupt(0.1), SimulatorTimeout),
        # what this side does not check, the server does
        (lambda: perform(backend, [ReadRegister(0x54)]), RegisterError),
        (lambda: perform(backend, [ReadMemory(CONFIG.memory.limit, 9)]), AddressError),
    ):
        with pytest.raises(error):
            wrong()
    assert backend.read_csr(csr.ID) == DEVICE_ID


def test_an_error_of_a_collected_write_is_raised_by_the_next_call(server: BackendServer) -> None:
    backend = connect(server)
    backend._collect(WriteMemory(CONFIG.memory.limit, b"beyond"), 6)
    backend.flush()
    backend.write_memory(BASE, b"kept")
    with pytest.raises(AddressError):
        backend.read_csr(csr.ID)
    assert backend.read_memory(BASE, 4) == b"kept"


def test_the_info_is_the_servers(server: BackendServer) -> None:
    info = backend_info("remote://x:1", connect(server))
    assert info.version.startswith("cmodel ")
    assert set(info.features) == {Feature.DIRTY_PAGES, Feature.FAULTS}


# ---------------------------------------------------------------------- several clients
def test_every_client_has_a_device_of_its_own(server: BackendServer) -> None:
    first, second = connect(server), connect(server)
    first.write_memory(BASE, b"one")
    second.write_memory(BASE, b"two")
    assert (first.read_memory(BASE, 3), second.read_memory(BASE, 3)) == (b"one", b"two")


def test_there_are_no_more_devices_than_the_server_allows() -> None:
    with serving(max_clients=2) as server:
        first, second = connect(server), connect(server)
        with pytest.raises(InputError, match="device: got one more, expected at most 2"):
            connect(server)
        first.close()
        again = retried(lambda: connect(server), InputError)
        assert second.read_csr(csr.ID) == again.read_csr(csr.ID) == DEVICE_ID


def retried(call: Callable[[], RemoteBackend], error: type[Exception]) -> RemoteBackend:
    """The call's result as soon as it gives one: a session ends a little after its client."""
    for _ in range(100):
        try:
            return call()
        except error:
            time.sleep(0.05)
    return call()


# ---------------------------------------------------------------------- who gets in
def test_a_token_is_needed_where_the_server_has_one() -> None:
    with serving(token=TOKEN) as server:
        assert connect(server, token=TOKEN).read_csr(csr.ID) == DEVICE_ID
        for token in (None, b"another one of 22 let", TOKEN[:-1]):
            with pytest.raises(InputError, match="token: got another or none"):
                connect(server, token=token)


def test_a_token_file_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(TOKEN + b"\n")
    path.chmod(0o644)
    with pytest.raises(InputError, match="mode 644, expected a file of mode 600"):
        read_token(path)
    path.chmod(0o600)
    assert read_token(path) == TOKEN
    environment = {"NPU_REMOTE_TOKEN_FILE": str(path), "NPU_REMOTE_CA": "ca.pem"}
    assert ClientSettings.from_environment(environment).token == TOKEN
    path.write_text("short")
    with pytest.raises(InputError, match="16 to 1024"):
        read_token(path)
    with pytest.raises(InputError, match="a readable file"):
        read_token(tmp_path / "none")


def test_another_memory_map_is_refused(server: BackendServer) -> None:
    other = load_config(ROOT / "sim_config.yaml", "qwen")
    with pytest.raises(InputError, match="memory: got"):
        RemoteBackend(other, address=server.address, settings=ClientSettings())


def test_beyond_this_machine_token_and_tls_are_needed(tmp_path: Path) -> None:
    certificate, key = make_pair(tmp_path)
    for settings in ({}, {"token": TOKEN}, {"certificate": certificate, "key": key}):
        with pytest.raises(InputError, match="token, certificate and key"):
            ServerSettings("null", CONFIG, host="192.0.2.1", **settings)
    ServerSettings("null", CONFIG, host="192.0.2.1", token=TOKEN, certificate=certificate, key=key)


@pytest.mark.parametrize("seconds", [math.inf, math.nan, 0.0, -1.0])
def test_a_time_that_no_socket_takes_is_refused(seconds: float) -> None:
    with pytest.raises(InputError, match="idle-s: got"):
        ServerSettings("null", CONFIG, idle_s=seconds)


@pytest.mark.parametrize("seconds", [math.inf, math.nan, -1.0, 1e10])
def test_a_wait_of_any_length_does_not_end_the_session(
    server: BackendServer, seconds: float
) -> None:
    backend = connect(server)
    with Device(backend, CONFIG) as device:
        with suppress(SimulatorTimeout):
            device.submit([nop()], timeout_s=seconds)
        assert backend.read_csr(csr.ID) == DEVICE_ID


def test_a_device_that_cannot_be_brought_up_leaves_its_place() -> None:
    with serving(max_clients=1) as server:
        name = "remote://{}:{}".format(*server.address)
        errors = []  # a notebook keeps the last one, with all that its frames hold
        for _ in range(3):
            with pytest.raises(InfrastructureError, match="not the device of") as caught:
                OpenDevice(DeviceSettings(backend=name, config="default"), 0)
            errors.append(caught.value)


def test_tls_needs_the_right_certificate(tmp_path: Path) -> None:
    certificate, key = make_pair(tmp_path)
    other, _ = make_pair(tmp_path, "127.0.0.2")
    with serving(certificate=certificate, key=key, token=TOKEN) as server:
        backend = connect(server, token=TOKEN, ca_file=certificate)
        backend.write_memory(BASE, bytes(1 << 20))
        assert backend.read_memory(BASE, 1 << 20) == bytes(1 << 20)
        with pytest.raises(InfrastructureError, match="TLS"):
            connect(server, token=TOKEN, ca_file=other)
        with pytest.raises(InfrastructureError):
            connect(server, token=TOKEN, connect_s=1.0)
        assert backend.read_csr(csr.ID) == DEVICE_ID
    with serving(token=TOKEN) as plain, pytest.raises(InfrastructureError, match="TLS"):
        connect(plain, token=TOKEN, ca_file=certificate, connect_s=1.0)


def test_a_host_beyond_this_machine_is_never_spoken_to_without_tls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client begins a TLS handshake although no certificate is configured."""
    monkeypatch.setattr("driver.backend.remote.is_loopback", lambda host: False)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        begun: list[bytes] = []

        def accept() -> None:
            connection, _ = listener.accept()
            begun.append(connection.recv(1))
            connection.close()

        thread = threading.Thread(target=accept)
        thread.start()
        with pytest.raises(InfrastructureError, match="TLS"):
            RemoteBackend(CONFIG, address=listener.getsockname(), settings=ClientSettings(TOKEN))
        thread.join(10)
    assert begun == [b"\x16"], "a TLS record of a handshake"


@pytest.mark.parametrize("name", ["remote://", "remote://host", "remote://:80", "remote://h:0"])
def test_an_address_has_host_and_port(name: str) -> None:
    with pytest.raises(InputError, match="expected remote://host:port"):
        open_backend(name, CONFIG)


# ---------------------------------------------------------------------- when a side dies
def start_server(config: HwConfig = CONFIG, *options: str) -> tuple[subprocess.Popen[str], str]:
    """`npu-cosim serve` in a process of its own, and its address."""
    command = [sys.executable, "-m", "regress.cli", "serve", "--config", config.name, *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    (name,) = (word for word in line.split() if word.startswith("remote://"))
    return process, name


def test_a_killed_server_is_an_error_of_the_next_call_and_a_new_one_can_be_opened() -> None:
    process, name = start_server()
    backend = open_backend(name, CONFIG)
    assert backend.read_csr(csr.ID) == DEVICE_ID
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    for _ in range(2):
        with pytest.raises(BackendDied, match=r"the connection broke .*memory and .* are lost"):
            backend.read_csr(csr.ID)
    with pytest.raises(BackendDied):
        backend.write_csr(csr.RING_TAIL, 0)
    backend.close()
    with pytest.raises(BackendDied, match="cannot connect"):
        open_backend(name, CONFIG)
    process, name = start_server()
    assert open_backend(name, CONFIG).read_csr(csr.ID) == DEVICE_ID
    process.terminate()
    assert process.wait(10) == 130


def test_a_server_that_does_not_answer_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings = ClientSettings(connect_s=0.2)
        with pytest.raises(BackendDied, match="no answer to the handshake"):
            RemoteBackend(CONFIG, address=listener.getsockname(), settings=settings)
    process, name = start_server()
    address = ("127.0.0.1", int(name.rpartition(":")[2]))
    backend = RemoteBackend(CONFIG, address=address, settings=ClientSettings(answer_s=0.5))
    process.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + 10
    with pytest.raises(SimulatorTimeout):
        while time.monotonic() < deadline:  # it may answer once more before it stops
            backend.read_csr(csr.ID)
    with pytest.raises(BackendDied):
        backend.read_csr(csr.ID)
    process.kill()
    process.wait(10)


def test_a_silent_client_is_closed_and_its_device_is_free_again() -> None:
    with serving(max_clients=1, idle_s=0.3) as server:
        silent = connect(server)
        other = retried(lambda: connect(server), InputError)
        assert other.read_csr(csr.ID) == DEVICE_ID
        with pytest.raises(BackendDied):
            silent.read_csr(csr.ID)
