# SPDX-License-Identifier: Apache-2.0
"""A device that computes nothing: memory and queues are real, every command succeeds untouched.

Times the driver alone, and tests it where no model is built.
"""

from __future__ import annotations

from driver.backend.functional import FunctionalBackend
from driver.isa import ErrorCode


class NullBackend(FunctionalBackend):
    """Completes each command without looking at it."""

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        return ErrorCode.NONE
