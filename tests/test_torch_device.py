# SPDX-License-Identifier: Apache-2.0
"""Device "npu" of PyTorch on the cmodel: tensors, ops, refusals, processes."""

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
Op = Callable[[torch.Tensor], torch.Tensor]


def on_both(op: Op, *sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The op's answer on the NPU, close to the CPU's."""
    given = torch.randn(sizes, generator=torch.Generator().manual_seed(1)) * 3
    given = given.to(dtype)
    expected = op(given.clone())
    found = op(given.to("npu"))
    assert found.device == torch.device("npu", 0)
    torch.testing.assert_close(found.cpu(), expected)
    assert expected.numel() > 0
    return found


def run_python(
    source: str, timeout_s: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", source],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


# ---------------------------------------------------------------------- tensors
def test_torch_finds_the_device_by_itself() -> None:
    assert torch.npu.is_available()
    assert torch.npu.device_count() == 1
    assert torch.npu.get_backend_name() == "cmodel"
    assert torch.accelerator.current_accelerator() == torch.device("npu")


@pytest.mark.parametrize("name", ["float64", "int16", "complex64", "float32", "bool", "int64"])
def test_every_type_goes_there_and_back(name: str) -> None:
    given = (torch.randn(3, 5) * 4).to(getattr(torch, name))
    torch.testing.assert_close(given.to("npu").cpu(), given, rtol=0, atol=0)


VIEWS: dict[str, Op] = {
    "transposed": lambda t: t.t(),
    "sliced": lambda t: t[1:, ::3],
    "expanded": lambda t: t[:, :1].expand(6, 9),
    "reshaped": lambda t: t.view(3, 18)[:, 4:],
    "diagonal": lambda t: t.diagonal(),
    "windows": lambda t: t.unfold(1, 4, 2),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shares_its_storage_and_copies_as_torch_has_it(name: str) -> None:
    made = on_both(VIEWS[name], 6, 9)
    base = torch.randn(6, 9).to("npu")
    assert VIEWS[name](base).untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    torch.testing.assert_close(made.contiguous().cpu(), made.cpu(), rtol=0, atol=0)


def test_writing_through_a_view_changes_the_base() -> None:
    def write(t: torch.Tensor) -> torch.Tensor:
        t[1:3, ::2] = -1
        t.t()[0] += 10
        return t

    on_both(write, 4, 6)


def test_pointers_hold_the_device_and_the_address() -> None:
    tensor = torch.zeros(3, device="npu")
    assert tensor.data_ptr() >> 48 & 0x1F == 1  # above: which opening of the device it is of
    assert tensor.data_ptr() % 64 == 0


def test_a_tensor_prints_as_on_the_cpu() -> None:
    given = torch.arange(6.0).reshape(2, 3)
    text = repr(given.to("npu"))
    assert text == repr(given).replace(")", ", device='npu:0')")


# ---------------------------------------------------------------------- ops
OPS: dict[str, Op] = {
    "functional": lambda t: t @ t.t() + 1,
    "out": lambda t: torch.add(t, 2.5, out=torch.empty(0, device=t.device)),
    "in place": lambda t: t.mul_(2).relu_(),
    "a number in a tensor": lambda t: t * torch.tensor(3.0),
    "without a row": lambda t: torch.addcdiv(t, t, t.abs() + 1),
    "a reduction": lambda t: t.softmax(-1).sum(0),
    "a mask": lambda t: t[t > 0],
    "places": lambda t: (t > 0).nonzero(),
    "a written mask": lambda t: t.masked_fill_(t < 0, 7).index_put((t > 5,), t.new_zeros(())),
    "factories": lambda t: torch.arange(5, device=t.device) + torch.eye(5, device=t.device),
    "a number for a tensor": lambda t: torch.linalg.cross(t[:, :3], t[:, 2:]),
    "a running maximum": lambda t: t.cummax(0).values,
    "a range": lambda t: torch.linspace(0, 1, 7, device=t.device),
    "an empty tensor": lambda t: torch.cat([t[:0] * 2, t]),
    "a type": lambda t: (t.half() * 2).to(torch.int32),
}


@pytest.mark.parametrize("name", OPS)
def test_an_op_arrives_in_every_form(name: str) -> None:
    on_both(OPS[name], 5, 5)


OVERLAPS: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "a product into its operand": lambda t, old: torch.mm(old, old, out=t),
    "rows shifted within": lambda t, old: torch.mul(old[:-1], 2, out=t[1:]),
    "the transpose added": lambda t, old: torch.add(old, old.t(), out=t),
    "in place by many passes": lambda t, old: torch.special.erf(old, out=t),
    "copied within": lambda t, old: t[:, 1:].copy_(old[:, :-1]),
    "a softmax into its operand": lambda t, old: torch.softmax(old, 0, out=t),
}
"""What a tensor becomes, from its old contents: on the CPU those are a copy, on the NPU itself."""


@pytest.mark.parametrize("name", OVERLAPS)
def test_a_result_may_share_memory_with_an_operand(name: str) -> None:
    def write(t: torch.Tensor) -> torch.Tensor:
        OVERLAPS[name](t, t if t.device.type == "npu" else t.clone())
        return t

    on_both(write, 5, 5)


def test_a_remembered_program_serves_other_tensors_of_the_same_shapes() -> None:
    with_own = torch.randn(3, 3)
    for _ in range(3):
        x, y = torch.randn(3, 3), torch.randn(3, 3)
        a, b = x.to("npu"), y.to("npu")
        torch.testing.assert_close((a + b).cpu(), x + y)
        torch.testing.assert_close((a + a).cpu(), x + x)
        torch.testing.assert_close(a.add_(b).cpu(), x + y)
        torch.testing.assert_close(torch.mm(b, b, out=b).cpu(), y @ y)
        torch.testing.assert_close((a.t() @ with_own.to("npu")).cpu(), (x + y).t() @ with_own)


def test_a_program_is_remembered_for_its_scalars_to_the_sign_of_zero() -> None:
    zeros = torch.zeros(4).neg().to("npu")
    for value, sign in [(0.0, False), (-0.0, True), (0.0, False)]:
        assert (zeros + value).cpu().signbit().all().item() is sign
    whole = torch.ones(4, dtype=torch.int32, device="npu")
    for value in (1, True, 1.0):
        made = torch.full_like(whole, 3).mul(value)
        assert made.dtype == (torch.ones(4, dtype=torch.int32) * value).dtype
        assert made.cpu().tolist() == [3, 3, 3, 3]


def test_random_numbers_follow_the_seed() -> None:
    torch.manual_seed(7)
    first = torch.randn(100, device="npu").cpu()
    state = torch.npu.get_rng_state()
    second = torch.rand(100, device="npu").cpu()
    torch.npu.set_rng_state(state)
    assert torch.equal(torch.rand(100, device="npu").cpu(), second)
    torch.npu.manual_seed(7)
    assert torch.equal(torch.randn(100, device="npu").cpu(), first)
    assert not torch.equal(torch.randn(100, device="npu").cpu(), first)
    own = torch.Generator("npu").manual_seed(7)
    assert torch.equal(torch.randn(100, device="npu", generator=own).cpu(), first)


# ---------------------------------------------------------------------- refusals
def test_an_op_that_does_not_run_names_itself_type_and_reason() -> None:
    given = torch.ones(2, 2, dtype=torch.float64).to("npu")
    with pytest.raises(NotImplementedError, match=r"aten\.add\.out\(float64\[2, 2\], .*dtype"):
        given + given
    with pytest.raises(NotImplementedError, match=r"aten\.linalg_eig\S*\(float32\[2, 2\]"):
        torch.linalg.eig(given.float())


def test_wrong_arguments_are_torchs_own_errors() -> None:
    with pytest.raises(RuntimeError, match="size of tensor a"):
        torch.ones(2, device="npu") + torch.ones(3, device="npu")


def test_tensors_of_two_devices_are_an_error() -> None:
    there, here = torch.ones(2, 2, device="npu"), torch.ones(2, 2)
    for op in (torch.mm, torch.add, torch.masked_select):
        with pytest.raises(RuntimeError, match="same device"):
            op(there, here)


def test_a_tensor_that_does_not_fit_gets_the_numbers_of_the_region() -> None:
    with pytest.raises(
        torch.OutOfMemoryError, match=r"npu:0: .*activations.*largest hole.*NPU_CONFIG=train"
    ):
        torch.empty(1 << 30, device="npu")
    assert torch.ones(2, device="npu").sum().item() == 2


def test_memory_comes_back_when_tensors_go() -> None:
    before = torch.npu.memory_allocated()
    big = torch.empty(1 << 20, device="npu")
    assert torch.npu.memory_allocated() - before == 4 << 20
    del big
    assert torch.npu.memory_allocated() == before
    for _ in range(200):  # more than the region holds at once
        torch.empty(1 << 20, device="npu")
    assert "activations" in torch.npu.memory_summary()


# ---------------------------------------------------------------------- modules, files, threads
def test_modules_keep_tied_weights_and_copies_are_their_own(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    parameter = model[0].weight
    model.to("npu")
    assert model[1].weight is model[0].weight is parameter
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin[0].weight.zero_()
    assert model[0].weight.abs().sum().item() > 0
    torch.save(model.state_dict(), tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt", weights_only=True)
    assert loaded["0.weight"].device == torch.device("npu", 0)
    assert torch.equal(loaded["0.weight"].cpu(), parameter.detach().cpu())
    assert torch.equal(pickle.loads(pickle.dumps(parameter.detach())), parameter)  # noqa: S301
    buffer = io.BytesIO()
    torch.save(parameter.detach(), buffer)
    buffer.seek(0)
    assert torch.load(buffer, map_location="cpu").device.type == "cpu"


def test_threads_share_a_device() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        ours = torch.full((16, 16), float(number), device="npu")
        for _ in range(5):
            if not torch.equal((ours @ ours).cpu(), torch.full((16, 16), 16.0 * number**2)):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_events_measure_cycles() -> None:
    begin, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    begin.record()
    torch.ones(4, device="npu").add_(1)
    end.record()
    end.synchronize()
    assert begin.elapsed_time(end) > 0


# ---------------------------------------------------------------------- processes
def test_two_devices_are_two_memories() -> None:
    done = run_python(
        "import torch\n"
        "a = torch.ones(2, 2, device='npu:0')\n"
        "with torch.npu.device(1):\n"
        "    b = torch.full((2, 2), 3.0, device='npu')\n"
        "assert b.device.index == 1 and a.data_ptr() != b.data_ptr()\n"
        "assert torch.equal((a.to('npu:1') + b).cpu(), torch.full((2, 2), 4.0))\n"
        "try: a + b\n"
        "except RuntimeError as error: print(error)\n"
        "try: torch.npu.set_device(2)\n"
        "except RuntimeError as error: print(error)\n",
        NPU_DEVICES="2",
    )
    assert done.returncode == 0, done.stderr
    assert "npu:0 and npu:1" in done.stdout
    assert "device index 2 is out of range" in done.stdout


def test_a_forked_process_is_refused_and_a_live_tensor_at_exit_is_fine() -> None:
    done = run_python(
        "import os, torch\n"
        "kept = torch.ones(2, device='npu')\n"
        "if os.fork() == 0:\n"
        "    assert torch.npu._is_in_bad_fork()\n"
        "    try: kept + 1\n"
        "    except Exception as error: print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print(kept.sum().item())\n"
    )
    assert done.returncode == 0, done.stderr
    assert "forked" in done.stdout
    assert done.stdout.endswith("2.0\n")
    assert done.stderr == ""


def test_torch_alone_loads_no_op_table() -> None:
    done = run_python(
        "import sys, torch\n"
        "assert torch.npu.is_available()\n"
        "assert not {'driver.lower', 'golden'} & set(sys.modules)\n"
        "import driver.torch_device\n"
    )
    assert done.returncode == 0, done.stderr


STEP = """
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3)).to("npu")
loss = model(torch.randn(6, 5).to("npu")).softmax(-1).square().mean()
loss.backward()
for parameter in model.parameters():
    print(parameter.grad.cpu().numpy().tobytes().hex())
begin, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
begin.record()
loss * 2
end.record()
end.synchronize()
print(begin.elapsed_time(end) > 50)
"""


@pytest.mark.broad
def test_gradients_have_the_same_bits_on_rtl_and_cmodel() -> None:
    found = {
        name: run_python(STEP, 1800, NPU_BACKEND=name, NPU_CONFIG="small")
        for name in ("rtl", "cmodel")
    }
    for done in found.values():
        assert done.returncode == 0, done.stderr
    *rtl, takes_cycles = found["rtl"].stdout.split()
    *cmodel, _ = found["cmodel"].stdout.split()
    assert rtl == cmodel
    assert sum(map(len, rtl)) // 8 == 5 * 4 + 4 + 4 * 3 + 3
    assert takes_cycles == "True"


def test_thousands_of_ops_keep_no_memory() -> None:
    x = torch.randn(4, 4, device="npu")
    x @ x + x
    before = torch.npu.memory_allocated()
    used = torch.npu.memory_summary()
    for _ in range(1000):
        x @ x + x
    assert torch.npu.memory_allocated() == before
    assert torch.npu.memory_summary().partition("peak")[0] == used.partition("peak")[0]
