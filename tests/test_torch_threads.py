# SPDX-License-Identifier: Apache-2.0
"""Several threads of a program on one device."""

from __future__ import annotations

import threading
import time

import torch
from torch.nn import functional

from driver.torch_device.pool import POOL


def test_six_threads_share_the_queue() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        ours = torch.full((8, 8), float(number), device="npu")
        for _ in range(40):
            ours = (ours @ ours) * (1 / (8 * number))
        if not torch.equal(ours.cpu(), torch.full((8, 8), float(number))):
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(1 << at,)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_a_thread_that_waits_for_memory_of_constants_leaves_the_batch_of_another_alone() -> None:
    line, x = torch.arange(200.0).reshape(1, 1, 200), torch.arange(4096.0).reshape(64, 64)
    many, some = line.to("npu"), x.to("npu")
    made: list[torch.Tensor] = []

    def has_constants(t: torch.Tensor) -> torch.Tensor:
        return t.t()[:, ::2] + t[:, ::2]

    def needs_memory() -> None:
        _ = some @ some  # runs while the next op waits
        made.append(functional.interpolate(many, size=70_001, mode="linear"))

    has_constants(some)
    needs_memory()
    torch.npu.synchronize()
    other = threading.Thread(target=needs_memory)
    with POOL[0]._device._lock:  # stands for a command that takes long
        other.start()
        time.sleep(0.3)
        ours = has_constants(some)
    other.join(60)
    assert torch.equal(ours.cpu(), has_constants(x))
    expected = functional.interpolate(line, size=70_001, mode="linear")
    for found in made:
        torch.testing.assert_close(found.cpu(), expected)
