# SPDX-License-Identifier: Apache-2.0
"""Optimizers, clipping and gradient scaling on device "npu" next to CPU torch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from backend_host import CONFIG
from torch import nn

from driver.isa import DTYPE_BYTES, DType, Opcode
from driver.isa.programs import PROGRAM_AT, PROGRAMS
from driver.lower import lower
from driver.runtime import Buffer, dense

Make = Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]
ADAM, ADAMW, SGD = torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(7, 33), nn.Tanh(), nn.Linear(33, 3))


OPTIMIZERS: dict[str, Make] = {
    "adamw": lambda p: ADAMW(p, fused=True),
    "adamw maximize": lambda p: ADAMW(p, fused=True, maximize=True, amsgrad=True),
    "adamw with a tensor as rate": lambda p: ADAMW(p, lr=torch.tensor(0.01), fused=True),
    "adam": lambda p: ADAM(p, fused=True, weight_decay=0.1),
    "adam amsgrad": lambda p: ADAM(p, fused=True, amsgrad=True, eps=1e-3),
    "adam capturable": lambda p: ADAM(p, fused=True, capturable=True),
    "sgd": lambda p: SGD(p, lr=0.1, fused=True),
    "sgd with decay": lambda p: SGD(p, lr=0.1, fused=True, weight_decay=0.1, maximize=True),
    "sgd momentum": lambda p: SGD(p, lr=0.1, fused=True, momentum=0.9, dampening=0.1),
    "sgd nesterov": lambda p: SGD(p, 0.1, fused=True, momentum=0.9, nesterov=True),
    "sgd all": lambda p: SGD(p, 0.1, 0.9, 0.0, 0.1, True, fused=True),
    "adamw foreach": lambda p: ADAMW(p, foreach=True, amsgrad=True),
    "adam foreach": lambda p: ADAM(p, foreach=True, weight_decay=0.1, maximize=True),
    "sgd foreach": lambda p: SGD(p, 0.1, 0.9, 0.0, 0.1, True, foreach=True),
    "adamw one by one": lambda p: ADAMW(p, foreach=False),
    "adamw capturable": lambda p: ADAMW(p, foreach=True, capturable=True),
    "the default of adamw": ADAMW,
}


def trained(make: Make, device: str) -> list[torch.Tensor]:
    """Parameters after a few steps with clipped gradients."""
    net = model().to(device)
    optimizer = make(net.parameters())
    for step in range(4):
        x = torch.linspace(-1, 1 + step, 70).reshape(10, 7).to(device)
        optimizer.zero_grad()
        net(x).square().mean().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
    return [p.detach().cpu() for p in net.parameters()]


@pytest.mark.filterwarnings("ignore:.*capturable:UserWarning")
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_step_takes_the_moments_before_they_are_rounded(
    dtype: torch.dtype, amsgrad: bool
) -> None:
    """The square of such a gradient is 0 in fp16, which as a divisor gave steps of 10."""

    def stepped(device: str) -> list[torch.Tensor]:
        parameter = nn.Parameter(torch.full((3,), 0.5, dtype=dtype, device=device))
        optimizer = ADAM([parameter], lr=1e-3, fused=True, amsgrad=amsgrad)
        found = []
        for _ in range(3):
            parameter.grad = torch.full_like(parameter, 1e-4)
            optimizer.step()
            found.append(parameter.detach().cpu().clone())
        return found

    torch.testing.assert_close(stepped("npu"), stepped("cpu"), rtol=0, atol=0)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_goes_where_the_cpus_goes(name: str) -> None:
    on_cpu = OPTIMIZERS[name]
    if "capturable" in name:  # torch allows that on devices only
        on_cpu = ADAM if "adam " in name else ADAMW
    expected, found = trained(on_cpu, "cpu"), trained(OPTIMIZERS[name], "npu")
    for mine, theirs in zip(expected, found, strict=True):
        torch.testing.assert_close(theirs, mine, rtol=2e-6, atol=2e-7)
    assert sum(x.numel() for x in found) == 366
    start = [p.detach() for p in model().parameters()]
    assert all((x - y).abs().max() > 1e-3 for x, y in zip(start, found, strict=True))


OTHERS = (
    *("Adadelta", "Adafactor", "Adagrad", "Adamax", "ASGD", "LBFGS", "Muon", "NAdam", "RAdam"),
    *("RMSprop", "Rprop"),
)


@pytest.mark.broad
@pytest.mark.parametrize("name", OTHERS)
def test_every_optimizer_of_torch_steps_as_on_the_cpu(name: str) -> None:
    ends = []
    for device in ("cpu", "npu"):
        net = model().to(device)
        chosen = [p for p in net.parameters() if name != "Muon" or p.dim() == 2]
        optimizer = getattr(torch.optim, name)(chosen)
        x = torch.linspace(-1, 1, 70).reshape(10, 7).to(device)

        def loss(
            net: nn.Module = net, optimizer: Any = optimizer, x: torch.Tensor = x
        ) -> torch.Tensor:
            optimizer.zero_grad()
            value = net(x).square().mean()
            value.backward()
            return value

        for _ in range(3):
            optimizer.step(loss)
        ends.append([p.detach().cpu() for p in net.parameters()])
    apart = 2e-4 if name == "LBFGS" else 2e-6  # differences of near gradients lose their digits
    for mine, theirs in zip(*ends, strict=True):
        torch.testing.assert_close(theirs, mine, rtol=1e-5, atol=apart)


def test_clipping_reads_each_gradient_once_for_its_norm(
    capsys: pytest.CaptureFixture[str],
) -> None:
    grads = [torch.randn(3, 5), torch.randn(7)]
    parameters = [nn.Parameter(torch.zeros_like(x).to("npu")) for x in grads]
    for parameter, grad in zip(parameters, grads, strict=True):
        parameter.grad = grad.to("npu")
    with torch.npu.debug.debug_mode(1):
        total = nn.utils.clip_grad_norm_(parameters, 0.5)
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "norm" in line and "x5]" in line] == [
        "[NPU] linalg_vector_norm [3x5], 2.0"
    ]
    assert total.item() == pytest.approx(torch.cat([x.flatten() for x in grads]).norm().item())
    clipped = torch.cat([p.grad.cpu().flatten() for p in parameters if p.grad is not None])
    assert clipped.norm().item() == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("order", [2.0, 1.0, float("inf"), 3.0])
def test_gradients_of_complex_parameters_are_clipped(order: float) -> None:
    grad = torch.randn(3, 4, dtype=torch.complex64, generator=torch.Generator().manual_seed(1))
    norms, clipped = [], []
    for device in ("cpu", "npu"):
        parameter = nn.Parameter(torch.zeros_like(grad).to(device))
        parameter.grad = grad.to(device, copy=True)
        norms.append(nn.utils.clip_grad_norm_([parameter], 0.5, order).item())
        clipped.append(parameter.grad.cpu())
    assert norms[1] == pytest.approx(norms[0], rel=1e-6)
    torch.testing.assert_close(clipped[1], clipped[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["adamw maximize", "sgd all", "adam foreach"])
def test_every_op_of_a_step_is_judged(name: str) -> None:
    net = model().to("npu")
    optimizer = OPTIMIZERS[name](net.parameters())
    net(torch.ones(2, 7, device="npu")).sum().backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    with torch.npu.check() as report:
        optimizer.step()
        optimizer.step()
    assert not report.not_judged
    assert report.elements > 366


def test_a_schedule_of_the_rate_is_followed() -> None:
    def scheduled(device: str) -> list[torch.Tensor]:
        net = model().to(device)
        optimizer = ADAMW(net.parameters(), lr=0.1, fused=True)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(2, 7).to(device)).square().sum().backward()
            optimizer.step()
            schedule.step()
        return [p.detach().cpu() for p in net.parameters()]

    torch.testing.assert_close(scheduled("npu"), scheduled("cpu"), rtol=2e-6, atol=2e-7)


# ---------------------------------------------------------------------- bytes that are moved
def moved_bytes(op: str, tensors: int, **options: Any) -> float:
    """Bytes that a step's large packets read and write, per element of the parameter (fp32)."""
    count, one = 1 << 16, dense(Buffer(4), DType.FP32, ())
    state = [dense(Buffer(4 * count), DType.FP32, (count,)) for _ in range(tensors)]
    results = [state[0], *state[2:]]
    given = (*state, one) if "adam" in op or "ams" in op else state
    kwargs = {"lr": 0.1, "maximize": False, **options}
    program = lower(f"npu.{op}.default", given, kwargs, results, CONFIG)
    total = 0
    for packet in program.packets:
        assert packet.opcode == Opcode.VECTOR
        name = PROGRAM_AT[packet.params[0]].name
        scalars = {"root_over": 2}.get(name, 0)
        small = name in ("expm1", "rsqrt_affine", "imm_div", "mul")
        if not small:
            total += PROGRAMS[name].sources - scalars + 1
    return float(total * DTYPE_BYTES[DType.FP32])


ADAM_OPTIONS = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "decoupled": True, "weight_decay": 0.1}
MOMENTUM = {"momentum": 0.9, "dampening": 0.0, "nesterov": False, "is_first_step": False}


@pytest.mark.parametrize(
    ("op", "tensors", "options", "expected"),
    [
        ("sgd_", 2, {"weight_decay": 0.1}, 12),
        ("sgd_momentum_", 3, {"weight_decay": 0.0} | MOMENTUM, 24),
        ("sgd_momentum_", 3, {"weight_decay": 0.1} | MOMENTUM, 28),
        ("adam_", 4, ADAM_OPTIONS, 48),
        ("adam_", 4, ADAM_OPTIONS | {"decoupled": False}, 56),
        ("amsgrad_", 5, ADAM_OPTIONS, 60),
    ],
)
def test_a_step_moves_so_many_bytes_per_parameter(
    op: str, tensors: int, options: dict[str, Any], expected: int
) -> None:
    assert moved_bytes(op, tensors, **options) == expected


@pytest.mark.parametrize(
    ("op", "tensors", "options", "sources"),
    [
        ("addcmul", (0, 1, 1), {"value": 0.1}, 2),
        ("addcmul", (0, 1, 2), {"value": 0.1}, 3),
        ("addcmul", (0, 1, 2), {}, 3),
        ("addcdiv", (0, 1, 2), {"value": -0.1}, 3),
    ],
)
def test_an_op_of_the_foreach_form_is_one_pass(
    op: str, tensors: tuple[int, ...], options: dict[str, float], sources: int
) -> None:
    state = [dense(Buffer(64), DType.FP32, (16,)) for _ in range(3)]
    given = [state[at] for at in tensors]
    (packet,) = lower(f"aten.{op}.default", given, options, [state[0]], CONFIG).packets
    assert PROGRAM_AT[packet.params[0]].sources == sources


def test_a_step_on_the_device_copies_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    net = model().to("npu")
    optimizer = ADAMW(net.parameters(), fused=True)
    net(torch.ones(2, 7, device="npu")).sum().backward()
    optimizer.step()
    with torch.npu.debug.debug_mode(3):
        optimizer.step()
    lines = capsys.readouterr().err.splitlines()
    assert sum("[PACKET] VECTOR for npu.adam_" in line for line in lines) == 14
    assert not [line for line in lines if "COPY for aten" in line]


# ---------------------------------------------------------------------- gradient scaling
def scaled(device: str, dtype: torch.dtype, make: Make) -> tuple[list[torch.Tensor], list[float]]:
    """Parameters and scales of a training with autocast whose third step overflows."""
    net = model().to(device)
    optimizer = make(net.parameters())
    scaler = torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=2)
    scales = []
    for step in range(6):
        x = torch.linspace(-1, 1, 70).reshape(10, 7).to(device)
        optimizer.zero_grad()
        with torch.autocast(device, dtype=dtype):
            loss = net(x).float().square().mean()
        scaler.scale(loss * (float("inf") if step == 2 else 1.0)).backward()
        if step % 2:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return [p.detach().cpu() for p in net.parameters()], scales


@pytest.mark.parametrize("name", ["sgd", "adamw", "the default of adamw"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_gradient_scaler_skips_the_step_that_overflows(name: str, dtype: torch.dtype) -> None:
    (expected, steps), (found, scales) = (
        scaled(device, dtype, OPTIMIZERS[name]) for device in ("cpu", "npu")
    )
    assert scales == steps
    assert scales == [1024.0, 2048.0, 1024.0, 1024.0, 2048.0, 2048.0]
    for mine, theirs in zip(expected, found, strict=True):
        torch.testing.assert_close(theirs, mine, rtol=0.02, atol=4e-3)


def test_a_scaled_training_is_judged_and_stays_off_the_cpu() -> None:
    before = torch.npu.cpu_fallbacks()
    with torch.npu.check() as report:
        scaled("npu", torch.float16, OPTIMIZERS["adamw"])
    assert not report.not_judged
    assert torch.npu.cpu_fallbacks() == before


def test_a_scale_stays_a_plain_tensor_and_can_be_saved() -> None:
    scaler = torch.amp.GradScaler("npu", init_scale=3.0)
    weight = nn.Parameter(torch.ones(3, device="npu"))
    optimizer = SGD([weight], lr=1.0)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    assert weight.grad is not None
    assert weight.grad.cpu().tolist() == [1.0, 1.0, 1.0]
    assert type(scaler._scale) is torch.Tensor
    state = copy.deepcopy(scaler.state_dict())
    assert state["scale"] == 3.0
    scaler.load_state_dict(state)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("bad", [None, float("inf"), float("-inf"), float("nan")])
def test_unscaling_finds_what_is_no_number(dtype: torch.dtype, bad: float | None) -> None:
    grads = [
        torch.randn(5, 7, generator=torch.Generator().manual_seed(1)).to(dtype).t(),
        torch.randn(3).to(dtype),
        torch.empty(0, dtype=dtype),
    ]
    if bad is not None:
        grads[0][3, 2] = bad
    made = []
    for device in ("cpu", "npu"):
        there = [x.to(device, copy=True) for x in grads]
        found = torch.zeros((), device=device)
        inverse = torch.full((), 0.25, device=device)
        torch._amp_foreach_non_finite_check_and_unscale_(there, found, inverse)
        made.append(([x.cpu() for x in there], found.item()))
    (expected, flag), (found, other) = made
    assert other == flag == (0.0 if bad is None else 1.0)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
