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


@contextmanager
def failing_op() -> Iterator[None]:
    """The block comes after an op that fails, and the program hears of that at its end."""
    torch.ones(4, device="npu").index_select(0, torch.tensor([99], device="npu"))
    yield
    with pytest.raises(RuntimeError, match=r"BAD_INDEX .* of aten\.index_select\.default"):
        torch.npu.synchronize()


USES: dict[str, Callable[[torch.Tensor], object]] = {
    "a copy to the host": lambda lost: lost.cpu(),
    "a view": lambda lost: lost.view(2, 2)[1].tolist(),
    "an operand": lambda lost: lost + 1,
    "the operand of a call that is known": lambda lost: lost * 3,
    "in place": lambda lost: lost.add_(1),
    "a result": lambda lost: torch.mul(torch.ones(4, device="npu"), 2, out=lost),
    "a copy to other memory": lambda lost: torch.empty(4, device="npu").copy_(lost),
    "some of its elements": lambda lost: lost[:2].copy_(torch.ones(2)),
    "more memory": lambda lost: lost.resize_(100),
}


@pytest.mark.parametrize("name", USES)
def test_what_an_op_that_did_not_run_would_have_made_cannot_be_used(name: str) -> None:
    x = torch.arange(4.0, device="npu")
    kept = x * 3
    with failing_op():
        lost = x * 3
    with pytest.raises(RuntimeError, match=r"npu:0: this tensor was not computed: aten\.index_sel"):
        USES[name](lost)
    assert kept.tolist() == (x * 3).tolist() == [0, 3, 6, 9]


def test_the_result_of_the_op_that_failed_cannot_be_used() -> None:
    x = torch.ones(4, device="npu")
    found = x.index_select(0, torch.tensor([99], device="npu"))
    with pytest.raises(DeviceFault):
        torch.npu.synchronize()
    with pytest.raises(RuntimeError, match="this tensor was not computed"):
        found.tolist()


def test_tensors_older_than_the_fault_are_as_if_it_had_been_raised_at_once() -> None:
    x = torch.arange(4.0, device="npu")
    with failing_op():
        x += 1
        x[1:].copy_(x[:3] * 5)
    assert x.tolist() == [0, 1, 2, 3]


def test_memory_that_the_host_fills_is_whole_again() -> None:
    x = torch.arange(4.0, device="npu")
    with failing_op():
        lost, given = x * 3, torch.full((4,), 5.0).to("npu")
        stays = x * 4
    assert given.tolist() == [5.0] * 4
    lost.copy_(torch.ones(4))
    assert (lost + 1).tolist() == [2.0] * 4
    with pytest.raises(RuntimeError, match="not computed"):
        stays.tolist()
    del stays
    assert [(x * 4).tolist() for _ in range(3)] == [[0, 4, 8, 12]] * 3  # in the same memory


def test_tensors_made_before_the_fault_by_the_host_alone_are_whole() -> None:
    x = torch.ones(4, device="npu")
    parts = torch.empty(4, device="npu")
    parts[:2], parts[2:] = torch.zeros(2), torch.ones(2)
    x.index_select(0, torch.tensor([99], device="npu"))
    with pytest.raises(DeviceFault):
        torch.npu.synchronize()
    assert parts.tolist() == [0, 0, 1, 1]


def test_an_optimizer_whose_state_was_not_computed_says_so() -> None:
    """It would train on with whatever lay in the memory of its moments."""
    weight = torch.nn.Parameter(torch.ones(4, device="npu"))
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        weight.square().sum().backward()
        optimizer.step()

    with failing_op():
        step()
    assert weight.tolist() == [1.0] * 4
    with pytest.raises(RuntimeError, match="this tensor was not computed"):
        step()
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    step()
    torch.testing.assert_close(weight.detach().cpu(), torch.full((4,), 0.8))


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


def test_a_thread_that_has_not_heard_of_the_fault_cannot_use_its_tensors_either() -> None:
    x = torch.ones(4, device="npu")
    torch.npu.synchronize()
    found: list[str] = []
    queued, told = Event(), Event()

    def other() -> None:
        made = torch.full((4,), 7.0, device="npu") + 1
        queued.set()
        told.wait(30)
        with pytest.raises(RuntimeError, match="this tensor was not computed") as error:
            made + 1
        found.append(str(error.value))
        with pytest.raises(DeviceFault):
            torch.npu.synchronize()

    thread = Thread(target=other)
    x.index_select(0, torch.tensor([99], device="npu"))
    thread.start()
    queued.wait(30)
    with pytest.raises(DeviceFault):
        torch.npu.synchronize()
    told.set()
    thread.join(30)
    assert len(found) == 1
