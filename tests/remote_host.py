# SPDX-License-Identifier: Apache-2.0
"""A server of devices in this process, for tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from backend_host import CONFIG

from driver.backend.remote import RemoteBackend
from driver.backend.server import BackendServer, ServerSettings
from driver.backend.settings import ClientSettings


@contextmanager
def serving(backend: str = "cmodel", **settings: Any) -> Iterator[BackendServer]:
    """A server on a free port of this machine."""
    server = BackendServer(ServerSettings(backend, **{"config": CONFIG, **settings}))
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(10)
        assert not thread.is_alive()


def connect(server: BackendServer, **settings: Any) -> RemoteBackend:
    """A client of it."""
    return RemoteBackend(CONFIG, address=server.address, settings=ClientSettings(**settings))
