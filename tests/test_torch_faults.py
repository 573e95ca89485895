# SPDX-License-Identifier: Apache-2.0
"""Where a program hears of an op that failed in the device's queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
import torch

from driver.backend.shared_memory import FaultRange
from driver.errors import DeviceFault
from driver.torch_device.pool import POOL


@contextmanager
def unreadable(tensor: torch.Tensor) -> Iterator[None]:
    """The device cannot read the first bytes of a tensor."""
    torch.npu.synchronize()
    backend = POOL[tensor.device.index]._backend
    address = tensor.data_ptr() & ((1 << 48) - 1)
    backend.set_faults([FaultRange(address, address + 64)])
    try:
        yield
    finally:
        backend.set_faults([])


WAITING: dict[str, Callable[[torch.Tensor], object]] = {
    "synchronize": lambda kept: torch.npu.synchronize(),
    "a copy to the host": lambda kept: kept.cpu(),
    "a number": lambda kept: kept.sum().item(),
    "a text": str,
    "an event": lambda kept: after_all().synchronize(),
    "an event that is reached": lambda kept: reached().synchronize(),
}


def after_all() -> torch.Event:
    event = torch.Event("npu")
    event.record()
    return event


def reached() -> torch.Event:
    event = after_all()
    while not event.query():
        pass
    return event


@pytest.mark.parametrize("name", WAITING)
def test_a_fault_of_a_queued_op_is_raised_where_the_program_waits(name: str) -> None:
    x, kept = torch.ones(64, device="npu"), torch.ones(64, device="npu")
    with unreadable(x):
        kept + 1
        torch.tanh(x)
        kept + 2
        kept * 3
        with pytest.raises(DeviceFault, match=r"aten\.tanh\.default \([2-9] ops queued after"):
            WAITING[name](kept)
        torch.npu.synchronize()
        assert (kept + 1).sum().item() == 128
    assert (x + 1).sum().item() == 128


def test_bytes_of_the_host_are_stored_also_after_a_fault() -> None:
    x = torch.ones(64, device="npu")
    with unreadable(x):
        x + 1
        given = torch.arange(5.0).to("npu")
        with pytest.raises(DeviceFault):
            torch.npu.synchronize()
    assert given.tolist() == [0, 1, 2, 3, 4]


def test_check_mode_names_where_the_failing_op_stands() -> None:
    class Lookup(torch.nn.Module):
        def forward(self, table: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
            return table.index_select(0, at)

    x, at = torch.ones(4, device="npu"), torch.tensor([9], device="npu")
    place = r"BAD_INDEX .* of aten\.index_select\.default at test_torch_faults.py:\d+, in Lookup: "
    with pytest.raises(DeviceFault, match=place), torch.npu.check():
        Lookup()(x, at)


def test_each_thread_whose_ops_did_not_run_hears_of_it() -> None:
    """Whichever waits first is told of the fault; the other must not read what nobody computed."""
    x = torch.ones(4, device="npu")
    torch.npu.synchronize()
    queued, told = Event(), Event()
    found: list[object] = []

    def other() -> None:
        made = torch.full((4,), 7.0, device="npu") + 1
        queued.set()
        told.wait(30)
        with pytest.raises(DeviceFault, match="what this thread had queued behind it did not run"):
            made.cpu()
        found.append(torch.full((4,), 8.0, device="npu").cpu().tolist())

    thread = Thread(target=other)
    x.index_select(0, torch.tensor([99], device="npu"))
    thread.start()
    queued.wait(30)
    with pytest.raises(DeviceFault, match="queued after it did not run"):
        torch.npu.synchronize()
    told.set()
    thread.join(30)
    assert found == [[8.0] * 4]
    torch.npu.synchronize()
