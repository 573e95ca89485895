# SPDX-License-Identifier: Apache-2.0
"""Checks that a scoreboard has compared the traffic of its test: if it saw none, it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from driver.errors import InfrastructureError

Compared = Literal["registers", "memory", "records", "host reads"]


def check_tally(
    compared: Mapping[Compared, int], required: Sequence[Compared], host_bytes: int
) -> None:
    """InfrastructureError when nothing of a required kind was compared, or fewer bytes of the
    host's reads than the `host_bytes` that the test made (a beat may hold more than those)."""
    missing = [kind for kind in required if not compared.get(kind)]
    if missing:
        raise InfrastructureError(f"the scoreboard compared no {' and no '.join(missing)}")
    seen = compared.get("host reads", 0)
    if seen < host_bytes:
        text = (
            f"the scoreboard compared {seen} bytes of the host's reads, the test read {host_bytes}"
        )
        raise InfrastructureError(text)
