# SPDX-License-Identifier: Apache-2.0
"""Device "npu" works asynchronously: what is queued, who waits, and who hears of errors."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from test_torch_device import run_python
from torch.nn import functional

from driver.torch_device import _core
from driver.torch_device.hardware import REGION
from driver.torch_device.lru_cache import LruCache
from driver.torch_device.pool import POOL
from driver.torch_device.work_queue import QueuedCommands


def test_the_host_may_change_what_it_copied_at_once() -> None:
    given = torch.ones(100)
    x = torch.zeros(100, device="npu")
    for value in range(20):
        given.fill_(value)
        x += given.to("npu")
    assert x.tolist() == [sum(range(20))] * 100


def test_memory_of_a_tensor_that_is_gone_is_used_again_in_the_order_of_the_queue() -> None:
    total = torch.zeros(1000, device="npu")
    for value in range(300):
        fresh = torch.full((1000,), float(value), device="npu")
        total += fresh * 2
        del fresh
        torch.full((1000,), -1.0, device="npu")
    assert total.tolist() == [2 * sum(range(300))] * 1000


def test_equal_programs_make_equal_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[bytes, int, bytes, list[tuple[int, str]]]] = []
    take = _core.take_batch

    def noted(device: int) -> object:
        batch = take(device)
        if batch is not None:
            taken.append(batch)
        return batch

    def run() -> list[tuple[int, list[tuple[int, str]]]]:
        taken.clear()
        x = torch.ones(20, 30, device="npu")
        for _ in range(30):
            x = (x.t().contiguous().t() @ x.t() @ x).tanh().softmax(-1)
        x.cpu()
        contents = [len(QueuedCommands(*batch).contents) for batch in taken]
        ops = [[op[:3] for op in batch[3]] for batch in taken]
        return list(zip(contents, ops, strict=True))

    torch.npu.synchronize()
    monkeypatch.setattr(POOL[0].queue, "_taken", partial(noted, 0))
    run()
    first = run()
    assert first == run()
    assert len(first) > 2
    assert sum(len(ops) for _, ops in first) > 150


def test_an_op_with_more_constants_than_a_batch_holds_runs() -> None:
    given = torch.randn(3000, 50)
    order = torch.randperm(3000)
    x = given.to("npu")
    for _ in range(3):
        torch.testing.assert_close(x.sort(0).values.cpu(), given.sort(0).values)
        torch.testing.assert_close(x[order.to("npu")].cpu(), given[order])


def test_a_call_is_remembered_by_all_that_decides_it() -> None:
    torch.npu.synchronize()
    x = torch.arange(24.0).reshape(4, 6).to("npu")
    host = x.cpu()
    for _ in range(3):
        for op in (
            lambda t: t + 1,
            lambda t: t + 2,
            lambda t: t + 1.0,
            lambda t: t + t,
            lambda t: t[:, ::2] + t[:, 1::2],
            lambda t: t.t() + 1,
            lambda t: t.sum(0),
            lambda t: t.sum(1),
            lambda t: t.sum(1, keepdim=True),
            lambda t: torch.add(t, t, alpha=3),
            lambda t: t.clone().add_(t),
            lambda t: torch.cat([t, t[1:]], 0),
        ):
            torch.testing.assert_close(op(x).cpu(), op(host), rtol=0, atol=0)
    known = _core.remembered()
    assert known > 10
    x + 1
    assert _core.remembered() == known


def test_a_call_with_a_number_is_remembered_when_it_comes_again() -> None:
    x = torch.ones(3, device="npu")
    torch.npu.synchronize()
    known = _core.remembered()
    for value in (0.11, 0.12, 0.13):
        x + value
    assert _core.remembered() == known
    x + 0.12
    assert _core.remembered() == known + 1
    assert (x + 0.12).tolist() == (torch.ones(3) + 0.12).tolist()


def test_an_out_that_is_too_small_is_resized_each_time() -> None:
    x = torch.ones(5, device="npu")
    for _ in range(3):
        out = torch.empty(0, device="npu")
        assert torch.add(x, x, out=out).tolist() == [2] * 5
        assert out.tolist() == [2] * 5


def test_what_was_not_used_for_the_longest_time_goes_first() -> None:
    kept: LruCache[int, str] = LruCache(2)
    kept.put(1, "one")
    kept.put(2, "two")
    assert kept.get(1) == "one"
    kept.put(3, "three")
    assert [kept.get(number) for number in (1, 2, 3)] == ["one", None, "three"]
    assert len(kept) == 2


def test_what_takes_too_much_memory_is_not_kept() -> None:
    kept: LruCache[int, str] = LruCache(9, most_bytes=10)
    kept.put(1, "one", 4)
    kept.put(2, "two", 4)
    kept.put(2, "another two", 5)
    assert [kept.get(number) for number in (1, 2)] == ["one", "another two"]
    kept.put(3, "three", 5)
    assert [kept.get(number) for number in (1, 2, 3)] == [None, "another two", "three"]
    kept.put(4, "too large", 11)
    assert len(kept) == 0


def test_contents_find_room_in_what_is_kept_of_tensors_that_are_gone() -> None:
    x = torch.linspace(-1, 1, 300_000).reshape(1, 1, -1)
    expected = functional.pad(x, (3, 3), mode="reflect")
    x = x.to("npu")
    torch.npu.empty_cache()
    free = next(u.largest_hole_bytes for u in POOL[0].memory_report() if u.region == REGION)
    results = torch.empty_like(expected, device="npu")
    rest = torch.empty(free - (3 << 19), dtype=torch.uint8, device="npu")
    del results, rest
    found = functional.pad(x, (3, 3), mode="reflect")  # whose contents are large
    assert torch.equal(found.cpu(), expected)


@pytest.mark.broad
def test_calls_that_are_remembered_are_bounded() -> None:
    x = torch.ones(2, device="npu")
    for value in range(4200):
        x + value
    assert _core.remembered() == 4096
    assert (x + 0).tolist() == [1, 1]


def test_two_streams_share_the_queue() -> None:
    first, second = torch.npu.Stream(), torch.npu.Stream()
    x = torch.ones(4, device="npu")
    with first:
        y = x + 1
    second.wait_stream(first)
    with second:
        z = y * 2
    second.synchronize()
    assert second.query()
    assert z.tolist() == [4] * 4


def test_an_event_is_reached_when_its_work_is_done() -> None:
    event = torch.npu.Event()
    x = torch.ones(4, device="npu") + 1
    event.record()
    event.synchronize()
    assert event.query()
    assert x.tolist() == [2] * 4


def test_work_that_nobody_waits_for_runs_before_the_process_ends() -> None:
    done = run_python(
        "import torch\n"
        "from driver.torch_device.pool import POOL\n"
        "x = torch.ones(4, device='npu') + 1\n"
        "del x\n"
        "queue = POOL[0].queue\n"
        "import atexit, threading\n"
        "close = queue.close\n"
        "def closed():\n"
        "    sound = close()\n"
        "    print(queue._queued, queue._done)\n"
        "    return sound\n"
        "queue.close = closed\n"
    )
    assert done.returncode == 0, done.stderr
    queued, ran = done.stdout.split()
    assert queued == ran != "0"


INTERRUPTED = """
import _thread, threading, torch
x = torch.randn(300, 300, device="npu")
threading.Timer(0.5, _thread.interrupt_main).start()
try:
    while True:
        y = x
        for _ in range(20):
            y = y @ x
        y.cpu()
except KeyboardInterrupt:
    print("interrupted")
print((torch.ones(3, device="npu") + 1).tolist())
torch.npu.synchronize()
"""


def test_the_device_is_usable_after_ctrl_c() -> None:
    done = run_python(INTERRUPTED)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "interrupted\n[2.0, 2.0, 2.0]\n"


DEAD = """
import torch
from driver.errors import SimulatorDied
from driver.torch_device.pool import POOL

def die(timeout_s):
    raise SimulatorDied("the simulator has ended")

x = torch.ones(3, device="npu")
kept = (x + 1).cpu()
POOL[0]._backend.wait_interrupt = die
y = x + 1
def show(call):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error)
show(torch.npu.synchronize)
show(lambda: x + 1)
show(lambda: x.cpu())
torch.npu.set_backend("cmodel")
show(lambda: x + 1)
show(lambda: x.tolist())
show(lambda: x.add_(x))
print(torch.npu.memory_allocated())
z = kept.to("npu")
print((z + 1).tolist())
del x, y
print((z + 1).tolist(), torch.npu.memory_allocated())
"""


@pytest.mark.parametrize("failing", ["a command", "the backend"])
def test_an_error_that_nobody_waited_for_is_said_when_the_process_ends(failing: str) -> None:
    error = {
        "a command": "DeviceFault(ErrorCode.BUS_READ, 7)",
        "the backend": "SimulatorDied('it has ended')",
    }[failing]
    done = run_python(
        "import torch\n"
        "from driver.errors import DeviceFault, SimulatorDied\n"
        "from driver.isa import ErrorCode\n"
        "from driver.torch_device.pool import POOL\n"
        "x = torch.ones(4, device='npu')\n"
        "torch.npu.synchronize()\n"
        "def fail(packets, limit_s): raise " + error + "\n"
        "POOL[0]._device.run = fail\n"
        "y = x.tanh()\n"
    )
    said = {"a command": "DeviceFault: device fault BUS_READ", "the backend": "SimulatorDied: it"}
    assert done.stderr.startswith(f"npu:0: {said[failing]}")
    assert done.stderr.count("\n") == 1


def test_after_a_backend_died_its_tensors_are_errors_and_a_new_one_works() -> None:
    done = run_python(DEAD)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["SimulatorDied the simulator has ended"] * 3
    for line in lines[3:6]:
        assert line.startswith("RuntimeError npu:0: the memory of this tensor is gone")
    assert lines[6:] == ["0", "[3.0, 3.0, 3.0]", "[3.0, 3.0, 3.0] 12"]
    assert done.stderr == ""


GROWN = """
import gc, resource, torch
from driver.torch_device import _core
from driver.torch_device.lru_cache import LruCache
from driver.torch_device.pool import POOL

def used():
    gc.collect()
    torch.npu.synchronize()
    torch.npu.empty_cache()
    memory = sum(use.used_bytes for use in POOL[0].memory_report())
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * resource.getpagesize()
    return memory, len(gc.get_objects()), _core.remembered(), resident

def ops():
    x = torch.randn(4, 4, device="npu")
    for _ in range(2500):
        y = (x @ x).add_(x).softmax(-1)
        y.sum()

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(), torch.nn.Linear(8, 2))
model.to("npu")
optimizer = torch.optim.AdamW(model.parameters())
images, classes = torch.randn(4, 8), torch.tensor([0, 1, 1, 0])

def steps():
    for _ in range(50):
        optimizer.zero_grad()
        made = model(images.to("npu"))
        torch.nn.functional.cross_entropy(made, classes.to("npu")).backward()
        optimizer.step()

WORK()
before = used()
for _ in range(4):
    WORK()
after = used()
print(*before)
print(*after)
"""


@pytest.mark.broad
@pytest.mark.parametrize("work", ["ops", "steps"])
def test_thousands_of_ops_and_hundreds_of_steps_grow_nothing(work: str) -> None:
    done = run_python(GROWN.replace("WORK", work), 600)
    assert done.returncode == 0, done.stderr
    before, after = (list(map(int, line.split())) for line in done.stdout.splitlines())
    assert after[0] == before[0], "device memory"
    assert after[1] <= before[1] + 50, "objects of Python"
    assert after[2] == before[2] > 0, "remembered calls"
    assert after[3] <= before[3] + (8 << 20), "resident bytes"
