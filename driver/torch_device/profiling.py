# SPDX-License-Identifier: Apache-2.0
"""The device's ops in torch.profiler: how long each took, and beside which op of the CPU.

Light, as every process that imports torch has it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from driver.capture.format import HOST_READ
from driver.torch_device import _core
from driver.torch_device.observers import OBSERVERS, Finish, RowRun
from driver.torch_device.pool import POOL


class _ProfiledOps:
    """Measures every op, one by one, while a profile is taken.

    One cycle counts as one nanosecond. A backend without a clock gives the host's time.
    """

    def begin(self, run: RowRun) -> Finish | None:
        """See Observer."""
        device = _device(run)
        if run.row == HOST_READ or device is None:
            return None
        hardware = POOL[device]
        first = hardware.cycles()
        began_ns = time.time_ns()

        def finish() -> None:
            last = hardware.cycles()
            ended_ns, cycles = time.time_ns(), -1
            if hardware.has_clock:
                cycles = last - first
                ended_ns = min(began_ns + cycles, ended_ns)
            _core.profile_op(run.row, device, began_ns, ended_ns, cycles)

        return finish

    def not_seen(self, what: str) -> None:
        """See Observer: not an op of the device."""

    def take_apart(
        self, op: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """See Observer: the smaller ops have their own times."""


def _device(run: RowRun) -> int | None:
    for value in (*run.results, *run.args):
        if isinstance(value, torch.Tensor) and value.device.type == "npu":
            return value.device.index
    return None


_OPS = _ProfiledOps()


def watch(begins: bool) -> None:
    """A profile of the NPU begins or ends."""
    if begins:
        OBSERVERS.append(_OPS)
    elif _OPS in OBSERVERS:
        OBSERVERS.remove(_OPS)
