# SPDX-License-Identifier: Apache-2.0
"""What backends are told besides the hardware's configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from driver.backend.handshake import read_token, token_of
from driver.errors import ENVIRONMENT

TOKEN, TOKEN_FILE, CA_FILE = "NPU_REMOTE_TOKEN", "NPU_REMOTE_TOKEN_FILE", "NPU_REMOTE_CA"


@dataclass(frozen=True)
class ClientSettings:
    """How a client reaches a server, besides its address."""

    token: bytes | None = None
    ca_file: Path | None = None
    """Certificates of which one has to have signed the server's. TLS is used when it is given, and
    to every host but this one, then with the system's certificates."""
    connect_s: float = 10.0
    answer_s: float = 60.0
    """Longest silence of the server, beyond the time that an access itself asks for."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> ClientSettings:
        """The variables of docs/remote.md. InputError for a wrong value."""
        token = None
        if TOKEN in environment:
            token = token_of(environment[TOKEN], ENVIRONMENT, TOKEN)
        elif TOKEN_FILE in environment:
            token = read_token(Path(environment[TOKEN_FILE]))
        ca_file = environment.get(CA_FILE)
        return cls(token, None if ca_file is None else Path(ca_file))


@dataclass(frozen=True)
class UioSettings:
    """The files of a board (docs/adding-a-backend.md). Offsets in bytes, multiples of a page."""

    registers: Path
    memory: Path
    interrupt: Path | None = None
    """A UIO device; None: the status is polled."""
    registers_offset: int = 0
    memory_offset: int = 0
