# SPDX-License-Identifier: Apache-2.0
"""Tensors that a failed op, or the ops behind it, would have computed: none of them can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import pytest
import torch
from test_torch_faults import unreadable
from torch import Tensor
from torch.nn import functional

from driver.errors import DeviceFault

LOST = r"npu:0: this tensor was not computed: aten\.\w+"


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


def running_mean(given: Tensor) -> Tensor:
    functional.batch_norm(
        torch.ones(2, 4, device="npu"), given, torch.ones(4, device="npu"), training=True
    )
    return given


STORED: dict[str, Callable[[Tensor], Tensor]] = {
    "in place": lambda given: given.add_(1),
    "by a mask": lambda given: given.masked_fill_(given > 2, 0),
    "through a view": lambda given: given.view(1, 4).mul_(3).view(4),
    "as a running mean": running_mean,
}


@pytest.mark.parametrize("name", STORED)
def test_what_the_host_stored_and_an_op_would_have_changed_cannot_be_used(name: str) -> None:
    with failing_op():
        given = torch.arange(4.0).to("npu")
        other = torch.arange(4.0).to("npu")
        STORED[name](given)
        other + 1  # reads it
    with pytest.raises(RuntimeError, match=LOST):
        given.tolist()
    assert other.tolist() == [0, 1, 2, 3]


def spoilt(*, op: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    x = torch.arange(6.0, device="npu")
    made = op(x, torch.tensor([9], device="npu"))
    with pytest.raises(DeviceFault):
        torch.npu.synchronize()
    return made


OF_SEVERAL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "one_hot": lambda x, bad: functional.one_hot(bad, 3),
    "index_put": lambda x, bad: x.index_put((bad,), x[:1]),
    "index_put, added": lambda x, bad: x.index_put((bad,), x[:1], accumulate=True),
    "index_fill": lambda x, bad: x.index_fill(0, bad, 5.0),
    "index_reduce": lambda x, bad: x.index_reduce(0, bad, x[:1], "amax"),
    "masked_scatter": lambda x, bad: x.masked_scatter(x > 1, x[:1]),
    "max_unpool1d": lambda x, bad: functional.max_unpool1d(
        x[:1].view(1, 1, 1), bad.view(1, 1, 1), 2
    ),
}


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_an_op_of_several_steps_leaves_no_half_of_its_result(name: str) -> None:
    """The first steps have run: they fill the result with zeros, or with a copy."""
    made = spoilt(op=OF_SEVERAL[name])
    with pytest.raises(RuntimeError, match=LOST):
        made.tolist()


PARTS: dict[str, Callable[[Tensor], Tensor]] = {
    "select_scatter": lambda x: torch.zeros(3, 4, device="npu").select_scatter(x, 0, 1),
    "slice_scatter": lambda x: torch.zeros(8, device="npu").slice_scatter(x, 0, 2, 6),
    "diag": torch.diag,
    "diag_embed": torch.diag_embed,
    "block_diag": lambda x: torch.block_diag(x.view(2, 2), x.view(2, 2)),
    "masked_fill": lambda x: x.masked_fill(
        torch.tensor([True, False, True, False], device="npu"), 2
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_an_operand_that_cannot_be_read_leaves_no_half_of_a_result(name: str) -> None:
    x = torch.ones(4, device="npu")
    with unreadable(x):
        made = PARTS[name](x)
        with pytest.raises(DeviceFault):
            torch.npu.synchronize()
    with pytest.raises(RuntimeError, match=LOST):
        made.tolist()


def test_what_the_failed_op_was_to_write_in_place_cannot_be_used() -> None:
    """It may have written a part of it."""
    x = torch.zeros(4, device="npu")
    torch.npu.synchronize()
    x.index_fill_(0, torch.tensor([9], device="npu"), 1.0)
    with pytest.raises(DeviceFault):
        torch.npu.synchronize()
    with pytest.raises(RuntimeError, match=LOST):
        x.tolist()
    x.copy_(torch.ones(4))
    assert x.tolist() == [1.0] * 4


def test_a_store_that_fails_makes_nothing_whole() -> None:
    with failing_op():
        lost = torch.full((2, 3), 5.0, device="npu")
    with pytest.raises(RuntimeError, match=r"size|shape|expand"):
        lost.t().copy_(torch.ones(7))
    with pytest.raises(RuntimeError, match=LOST):
        lost.tolist()


def while_another_hears(other: Callable[[Callable[[], None]], None]) -> None:
    """Run `other` in a thread of its own, behind an op that fails. It calls what it is given when
    it has queued its ops, and goes on when this thread has heard of the fault."""
    x = torch.ones(4, device="npu")
    torch.npu.synchronize()
    queued, told = Event(), Event()

    def wait() -> None:
        queued.set()
        told.wait(30)

    thread = Thread(target=other, args=(wait,))
    x.index_select(0, torch.tensor([99], device="npu"))
    thread.start()
    queued.wait(30)
    with pytest.raises(DeviceFault):
        torch.npu.synchronize()
    told.set()
    thread.join(30)


def test_a_thread_that_has_not_heard_of_the_fault_cannot_use_its_tensors_either() -> None:
    found: list[str] = []

    def other(wait: Callable[[], None]) -> None:
        made = torch.full((4,), 7.0, device="npu") + 1
        wait()
        with pytest.raises(RuntimeError, match="this tensor was not computed") as error:
            made + 1
        found.append(str(error.value))
        with pytest.raises(DeviceFault):
            torch.npu.synchronize()

    while_another_hears(other)
    assert len(found) == 1


def test_what_was_queued_before_the_program_heard_of_a_fault_does_not_run_either() -> None:
    """Another thread goes on queueing while one hears of the fault: nothing of it may run on what
    the failed op, or the ops behind it, did not compute."""
    base = torch.ones(4, device="npu")
    results = [torch.zeros(4, device="npu") for _ in range(300)]

    def other() -> None:
        try:
            for number, result in enumerate(results):
                result.copy_(torch.add(base, base, alpha=number % 7 + 1))
        except RuntimeError:
            pass
        hear()

    for _ in range(40):
        for result in results:
            result.zero_()
        torch.npu.synchronize()
        thread = Thread(target=other)
        thread.start()
        base.index_select(0, torch.tensor([9], device="npu"))
        hear()
        thread.join(30)
        hear()
        for number, result in enumerate(results):
            assert result.tolist() in ([0.0] * 4, [number % 7 + 2.0] * 4), number


def hear() -> None:
    with suppress(DeviceFault):
        torch.npu.synchronize()


def test_several_threads_that_wait_hear_of_faults_only() -> None:
    x = torch.ones(4, device="npu")
    heard: list[type[BaseException]] = []

    def wait() -> None:
        try:
            torch.npu.synchronize()
        except BaseException as error:
            heard.append(type(error))

    def work() -> None:
        try:
            for _ in range(200):
                x + 1
        except RuntimeError:
            pass

    for _ in range(40):
        x.index_select(0, torch.tensor([9], device="npu"))
        threads = [Thread(target=run) for run in (work, wait, wait)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        hear()
    assert set(heard) == {DeviceFault}


def test_who_hears_of_a_fault_before_all_has_run_hears_of_it_once() -> None:
    x = torch.ones(4, device="npu")
    torch.npu.synchronize()
    for _ in range(20):
        x.index_select(0, torch.tensor([9], device="npu"))
        event = torch.Event("npu")
        event.record()
        while not event.query():
            pass
        made = [x + 1 for _ in range(200)]  # some of them in batches that are still waiting
        with pytest.raises(DeviceFault):
            event.synchronize()
        torch.npu.synchronize()
        with pytest.raises(RuntimeError, match=LOST):
            made[-1].tolist()
        assert (x + 1).tolist() == [2.0] * 4


def test_a_thread_hears_of_a_fault_before_it_queues_on_what_did_not_run() -> None:
    """Its first op did not run, as it came behind another thread's failed one: the second, which
    needs the first, does not run either."""
    mine = torch.ones(4, device="npu")
    found: list[str] = []

    def other(wait: Callable[[], None]) -> None:
        mine.add_(1)
        wait()
        with pytest.raises(DeviceFault, match="what this thread had queued behind it did not run"):
            mine.mul_(10)
        mine.mul_(100)  # it knows now
        found.append(str(mine.tolist()))

    while_another_hears(other)
    assert found == ["[100.0, 100.0, 100.0, 100.0]"]
