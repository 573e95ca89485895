# SPDX-License-Identifier: Apache-2.0
"""Device "npu" and processes: workers, exit, interrupts, several devices, memory that runs out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mixed_devices import CALLS
from torch.utils.data import DataLoader, Dataset, TensorDataset

ROOT = Path(__file__).parents[1]


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(source: str, code: int = 0) -> str:
    """What the program prints; it ends with this status, in time."""
    done = start("-c", source)
    out, err = done.communicate(timeout=120)
    assert done.returncode == code, err
    return out + err


# ---------------------------------------------------------------------- workers
class OnTheDevice(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, at: int) -> torch.Tensor:
        return torch.ones(2, device="npu") * at


WORKER = """
import sys, torch
sys.path.insert(0, "tests")
from test_torch_processes import OnTheDevice
try:
    list(torch.utils.data.DataLoader(OnTheDevice(), num_workers=1))
except Exception as error:
    print(str(error).splitlines()[-1])
"""


def test_a_worker_cannot_use_a_device_and_says_what_to_do() -> None:
    assert "let the dataset return CPU tensors" in run(WORKER)


def test_a_worker_of_a_process_with_devices_is_refused() -> None:
    torch.ones(2, device="npu")
    with pytest.raises(Exception, match='start it with the method "spawn"'):
        list(DataLoader(OnTheDevice(), num_workers=1))


def test_workers_feed_pinned_batches() -> None:
    given = torch.arange(12.0).reshape(6, 2)
    loader = DataLoader(TensorDataset(given), batch_size=2, num_workers=2, pin_memory=True)
    pinned = [x for (x,) in loader]
    assert all(x.is_pinned() for x in pinned)
    there = torch.cat([x.to("npu", non_blocking=True) for x in pinned])
    assert torch.equal(there.cpu(), given)


@pytest.mark.broad
def test_a_spawned_process_has_a_device_of_its_own() -> None:
    source = (
        "import multiprocessing, torch\n"
        "def work(): print((torch.ones(2, device='npu') + 1).sum().item(), flush=True)\n"
    )
    out = run(
        f"{source}kept = torch.ones(2, device='npu')\n"
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {source + 'work()'!r}], check=True)\n"
        "print(kept.sum().item())\n"
    )
    assert out == "4.0\n2.0\n"


def answer(queue: torch.multiprocessing.Queue, model: torch.nn.Module) -> None:
    """The work of another process: what the model says, its weights, and a view."""
    with torch.no_grad():
        said = model(torch.ones(2, 3, device="npu"))
    queue.put((said, model.weight, torch.arange(4, device="npu")[1:].bfloat16()))
    queue.get(timeout=100)


def test_tensors_reach_another_process_and_come_back_as_copies() -> None:
    """What was sent was an address: the receiver waited for ever."""
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    model = torch.nn.Linear(3, 2).to("npu")
    process = context.Process(target=answer, args=(queue, model), daemon=True)
    process.start()
    said, weight, view = queue.get(timeout=100)
    queue.put(None)
    process.join(100)
    assert process.exitcode == 0
    for made in (said, weight, view):
        assert made.device == torch.device("npu:0")
    assert isinstance(weight, torch.nn.Parameter) and weight.requires_grad
    assert torch.equal(weight.cpu(), model.weight.cpu())
    assert torch.equal(said.cpu(), model(torch.ones(2, 3, device="npu")).cpu())
    assert torch.equal(view.cpu(), torch.tensor([1, 2, 3]).bfloat16())


# ---------------------------------------------------------------------- exit and interrupts
def test_a_process_ends_with_its_own_status_whatever_lives() -> None:
    source = (
        "import atexit, sys, torch\n"
        "torch.kept = torch.ones(3, device='npu', requires_grad=True)\n"
        "torch.loss = (torch.nn.Linear(3, 3).to('npu')(torch.kept) * 2).sum()\n"
        "atexit.register(lambda: print(torch.kept.sum().item()))\n"
    )
    assert run(f"{source}sys.exit(3)", code=3) == "3.0\n"
    assert "ValueError: mine" in run(f"{source}raise ValueError('mine')", code=1)


def test_ctrl_c_ends_training_and_the_device_goes_on() -> None:
    done = start(
        "-c",
        "import torch\n"
        "model = torch.nn.Linear(32, 32).to('npu')\n"
        "x = torch.ones(32, 32, device='npu')\n"
        "model(x).sum().backward()\n"
        "try:\n"
        "    print('ready', flush=True)\n"
        "    while True: model(x).sum().backward()\n"
        "except KeyboardInterrupt:\n"
        "    print((x + 1).sum().item())\n",
    )
    assert done.stdout is not None
    assert done.stdout.readline() == "ready\n"
    done.send_signal(signal.SIGINT)
    out, err = done.communicate(timeout=60)
    assert done.returncode == 0, err
    assert out == "2048.0\n"


INTERRUPTED = """
import random, signal, torch
chance = random.Random(1)
armed = False
signal.signal(signal.SIGALRM, lambda *_: armed and signal.raise_signal(signal.SIGINT))
x = torch.zeros(1000, device="npu")
interrupts = 0
for number in range(600):
    signal.setitimer(signal.ITIMER_REAL, chance.random() * 0.004)
    try:
        armed = True
        for step in range(400):
            x.add_(1)
            torch.sort(x[::2] * 2.5)
            torch.full((chance.randrange(1, 2000),), 1.5, device="npu")
            if step % 7 == 0:
                x.copy_(torch.full((1000,), float(step)))
        armed = False
    except KeyboardInterrupt:
        armed = False
        interrupts += 1
    x.copy_(torch.full((1000,), float(number)))
    for _ in range(20):
        x.add_(1)
    assert (x.cpu() == number + 20).all(), number
print(interrupts > 300)
"""


def test_ctrl_c_at_any_moment_leaves_queue_and_memory_in_order() -> None:
    """Between two steps of the queue, it made each later read a stale one."""
    assert run(INTERRUPTED) == "True\n"


def test_ctrl_c_comes_at_the_end_of_what_must_not_be_cut_short() -> None:
    source = (
        "import signal\n"
        "from driver.torch_device import keyboard_interrupt\n"
        "keyboard_interrupt.install()\n"
        "done = []\n"
        "def inner(): signal.raise_signal(signal.SIGINT); done.append('inner')\n"
        "def outer(): keyboard_interrupt.defer_interrupt(inner)(); done.append('outer')\n"
        "try: keyboard_interrupt.defer_interrupt(outer)()\n"
        "except KeyboardInterrupt: print(done)\n"
    )
    assert run(source) == "['inner', 'outer']\n"


# ---------------------------------------------------------------------- devices and memory
def test_tensors_of_two_devices_are_an_error_for_every_op() -> None:
    done = start("tests/mixed_devices.py", NPU_DEVICES="2")
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0, err
    assert out == f"{len(CALLS)} calls\n"
    assert len(CALLS) > 40


@pytest.mark.parametrize("options", [{"foreach": True}, {"foreach": False}, {"fused": True}])
def test_an_optimizer_does_not_mix_devices(options: dict[str, bool]) -> None:
    weight = torch.nn.Parameter(torch.ones(3, device="npu"))
    optimizer = torch.optim.AdamW([weight], **options)
    weight.grad = torch.ones(3, device="npu")
    optimizer.step()
    optimizer.state[weight]["exp_avg"] = torch.zeros(3)
    with pytest.raises(RuntimeError, match="same device"):
        optimizer.step()


def used_bytes() -> int:
    torch.npu.empty_cache()
    free, size = torch.npu.mem_get_info()
    return int(size - free)


def test_a_result_beside_its_operand_uses_memory_of_tensors_that_are_gone() -> None:
    third = torch.npu.mem_get_info()[1] // 3 // 4
    given = torch.arange(float(third))
    x = given.to("npu")
    gone = [torch.zeros(third // 2, device="npu") for _ in range(3)]
    del gone
    x[1:].copy_(x[:-1])
    assert torch.equal(x[1:].cpu(), given[:-1])


def test_a_result_that_does_not_fit_leaves_no_memory_behind() -> None:
    quarter = torch.npu.mem_get_info()[1] // 4 // 4
    rows = torch.zeros(quarter, device="npu")[: quarter // 1024 * 1024].view(-1, 1024)
    places = torch.zeros(len(rows) - 1, 1024, dtype=torch.int64, device="npu")
    before = used_bytes()
    for _ in range(2):  # it needs both results beside the operand
        with pytest.raises(torch.OutOfMemoryError, match="npu:0: "):
            torch.sort(rows[:-1], dim=1, out=(rows[1:], places))
    assert used_bytes() == before


def test_memory_that_ran_out_comes_back() -> None:
    free, size = torch.npu.mem_get_info()
    assert 0 < free <= size
    kept = []
    with pytest.raises(torch.OutOfMemoryError, match=r"got \d+ bytes .*largest hole"):
        while True:
            kept.append(torch.empty(1 << 22, device="npu"))
    count = len(kept)
    column = torch.ones(1 << 13, 1, device="npu")
    with pytest.raises(torch.OutOfMemoryError):
        column * column.t()  # the result of an op
    assert (column + 1).sum().item() == 2 << 13
    del kept[:]
    kept += [torch.empty(1 << 22, device="npu") for _ in range(count - 1)]
    assert len(kept) == count - 1 > 5
    del kept[:]
    torch.npu.empty_cache()


def test_memory_of_tensors_that_are_gone_stays_reserved_until_the_cache_is_emptied() -> None:
    torch.accelerator.empty_cache()
    before = torch.npu.memory_reserved()
    kept = torch.empty(1 << 20, device="npu")
    free, _ = torch.npu.mem_get_info()
    assert torch.npu.memory_reserved() == before + (4 << 20)
    del kept
    assert torch.npu.memory_reserved() == before + (4 << 20)
    torch.accelerator.empty_cache()
    assert torch.npu.memory_reserved() == before
    assert torch.npu.mem_get_info()[0] == free + (4 << 20)


# ---------------------------------------------------------------------- what users call
def test_the_module_answers_what_programs_ask() -> None:
    x = torch.ones(3, device="npu")
    assert torch.get_device_module("npu") is torch.npu
    assert torch.npu.max_memory_allocated() >= torch.npu.memory_allocated() >= 12
    torch.npu.reset_peak_memory_stats()
    torch.npu.reset_accumulated_memory_stats()
    assert torch.npu.max_memory_reserved() == torch.npu.memory_reserved()
    assert torch.npu.memory_stats()["allocated_bytes.all.current"] >= 12
    assert torch.npu.is_bf16_supported()
    with torch.npu.stream(torch.npu.Stream()), torch.npu.stream(None):
        assert (x + 1).sum().item() == 6
    assert torch.npu.default_stream() == torch.npu.current_stream()
    states = torch.npu.get_rng_state_all()
    first = torch.rand(4, device="npu").cpu()
    torch.npu.set_rng_state_all(states)
    assert torch.equal(torch.rand(4, device="npu").cpu(), first)
    torch.npu.manual_seed_all(9)
    assert torch.npu.initial_seed() == 9


def test_factories_follow_the_default_device() -> None:
    with torch.device("npu"):
        assert torch.ones(2).device == torch.nn.Linear(2, 2).weight.device == torch.device("npu:0")
    torch.set_default_device("npu")
    try:
        made = [torch.randn(2), torch.tensor([1.0]), torch.arange(3), torch.randperm(3)]
    finally:
        torch.set_default_device(None)
    assert {x.device.type for x in made} == {"npu"}


def test_random_numbers_inside_fork_rng_leave_no_trace() -> None:
    before = torch.npu.get_rng_state()
    with torch.random.fork_rng(devices=[0], device_type="npu"):
        torch.rand(3, device="npu")
    assert torch.equal(torch.npu.get_rng_state(), before)
    with pytest.raises(RuntimeError, match="'npu' device type for generator but found 'cpu'"):
        torch.rand(2, device="npu", generator=torch.Generator())


def test_deterministic_algorithms_are_all_there_are() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        twice = torch.zeros(2, dtype=torch.int64, device="npu")
        ones, zeros = torch.ones(2, device="npu"), torch.zeros(3, device="npu")
        sums = [
            zeros.index_add(0, twice, ones),
            zeros.scatter_add(0, twice, ones),
            zeros.index_put((twice,), ones, accumulate=True),
        ]
    finally:
        torch.use_deterministic_algorithms(False)
    assert [x.cpu().tolist() for x in sums] == [[2.0, 0.0, 0.0]] * 3


def test_the_memory_of_others_is_refused_in_words() -> None:
    x = torch.ones(2, device="npu")
    with pytest.raises(TypeError, match=r"Use Tensor\.cpu\(\)"):
        x.numpy()
    with pytest.raises(ValueError, match="Unknown device type npu for Dlpack"):
        torch.from_dlpack(x)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.pin_memory()


@pytest.mark.parametrize("choose", [torch.max, torch.min])
def test_there_is_no_largest_of_nothing(choose: object) -> None:
    assert callable(choose)
    with pytest.raises(RuntimeError, match="at least one element"):
        choose(torch.zeros(0, device="npu"))


@pytest.mark.parametrize("counts", [[2, 0, 3], [0, 0, 1], [1, 1, 1], [0, 0, 0]])
def test_rows_are_repeated_by_a_tensor_of_counts(counts: list[int]) -> None:
    rows, repeats = torch.arange(6.0).reshape(3, 2), torch.tensor(counts)
    expected = torch.repeat_interleave(rows, repeats, 0)
    found = torch.repeat_interleave(rows.to("npu"), repeats.to("npu"), 0)
    assert torch.equal(found.cpu(), expected)
    with pytest.raises(RuntimeError, match="negative"):
        torch.repeat_interleave(rows.to("npu"), -1 - repeats.to("npu"), 0)
