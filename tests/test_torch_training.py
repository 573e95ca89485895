# SPDX-License-Identifier: Apache-2.0
"""Training on device "npu" next to CPU torch: the same losses, gradients and weights."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from driver.errors import DeviceFault


def lenet() -> nn.Sequential:
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10)),
    )


def lenet_of_tutorials() -> nn.Sequential:
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 10)),
    )


def train(model: nn.Module, optimizer: torch.optim.Optimizer, device: str) -> list[float]:
    """The losses of some steps on the same images."""
    generator = torch.Generator().manual_seed(3)
    images = torch.randn(4, 1, 28, 28, generator=generator).to(device)
    classes = torch.randint(0, 10, (4,), generator=generator).to(device)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), classes)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "sgd one by one": lambda p: torch.optim.SGD(p, lr=0.05, foreach=False),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3),
}


@pytest.mark.parametrize(
    ("build", "name"),
    [(lenet, "sgd"), (lenet_of_tutorials, "adamw"), (lenet_of_tutorials, "sgd one by one")],
)
def test_a_lenet_learns_as_on_the_cpu(build: Callable[[], nn.Module], name: str) -> None:
    torch.manual_seed(5)
    here = build()
    there = copy.deepcopy(here).to("npu")
    expected = train(here, OPTIMIZERS[name](here.parameters()), "cpu")
    found = train(there, OPTIMIZERS[name](there.parameters()), "npu")
    assert found == pytest.approx(expected, rel=1e-5)
    assert expected[-1] < expected[0]
    compared = 0
    for mine, theirs in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(theirs.detach().cpu(), mine.detach(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(theirs.grad.cpu(), mine.grad, rtol=1e-3, atol=1e-5)
        compared += mine.numel()
    assert compared > 10_000


def on_both(module: nn.Module, *given: torch.Tensor, train: bool = True) -> int:
    """Results and, in training, all gradients are the CPU's; how many elements were compared."""
    here, there = module.train(train), copy.deepcopy(module).train(train).to("npu")
    inputs = [given, tuple(x.to("npu") for x in given)]
    pairs = []
    with torch.set_grad_enabled(train):
        made = [run(*x) for run, x in zip((here, there), inputs, strict=True)]
        results = [x[0] if isinstance(x, tuple) else x for x in made]
        if train:
            for result in results:
                (result * result.detach().cos()).sum().backward()
            pairs = [
                (x.grad, y.grad) for x, y in zip(here.parameters(), there.parameters(), strict=True)
            ]
    compared = 0
    for expected, found in [(results[0], results[1]), *pairs]:
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-4)
        compared += expected.numel()
    return compared


MODULES: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: nn.LSTM(6, 8, num_layers=2, batch_first=True, bidirectional=True),
    "gru": lambda: nn.GRU(6, 8, batch_first=True),
    "transformer": lambda: nn.TransformerEncoderLayer(6, 2, 12, dropout=0.0, batch_first=True),
    "norm first": lambda: nn.TransformerEncoderLayer(
        6, 2, 12, activation="gelu", batch_first=True, norm_first=True, dropout=0.0
    ),
}


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("name", MODULES)
def test_a_fused_layer_is_the_cpus(name: str, train: bool) -> None:
    torch.manual_seed(4)
    given = torch.randn(2, 5, 6)
    assert on_both(MODULES[name](), given, train=train) >= 60


@pytest.mark.parametrize("padding", [False, True])
def test_attention_hides_what_is_masked(padding: bool) -> None:
    layer = MODULES["transformer"]()
    given = torch.randn(2, 5, 6)
    hidden = torch.zeros(2, 5, dtype=torch.bool)
    hidden[:, 3:] = True
    masks = [None, hidden] if padding else [hidden[:1].expand(5, 5).triu(1), None]
    here, there = layer.eval(), copy.deepcopy(layer).eval().to("npu")
    with torch.no_grad():
        expected = here(given, *masks)
        found = there(given.to("npu"), *(x if x is None else x.to("npu") for x in masks))
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)


CONVOLUTIONS = [
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": (3, 2), "dilation": 2, "groups": 2},
    {"kernel_size": 1, "bias": False},
    {"kernel_size": 2, "stride": 3, "output_padding": 1},
]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("options", CONVOLUTIONS)
def test_a_convolution_has_all_three_gradients(transposed: bool, options: dict[str, int]) -> None:
    torch.manual_seed(2)
    kind = nn.ConvTranspose2d if transposed else nn.Conv2d
    if not transposed:
        options = {name: value for name, value in options.items() if name != "output_padding"}
    here = kind(4, 6, **options)
    there = copy.deepcopy(here).to("npu")
    compared = 0
    given = torch.randn(2, 4, 9, 10)
    inputs = [given.to(device, copy=True) for device in ("cpu", "npu")]
    for layer, x in zip((here, there), inputs, strict=True):
        made = layer(x.requires_grad_())
        (made * made.detach().cos()).sum().backward()
    pairs = [(x.grad, y.grad) for x, y in zip(here.parameters(), there.parameters(), strict=True)]
    for expected, found in [(inputs[0].grad, inputs[1].grad), *pairs]:
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-4)
        compared += expected.numel()
    assert compared > 700


LAYERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "average pooling": lambda x: functional.avg_pool2d(x, 3, 2, 1),
    "max pooling": lambda x: functional.max_pool2d(x, 3, 2, 1),
    "batch norm": lambda x: functional.batch_norm(x, None, None, training=True),
    "layer norm": lambda x: functional.layer_norm(x, x.shape[-2:]),
    "rms norm": lambda x: functional.rms_norm(x, x.shape[-2:]),
    "group norm": lambda x: functional.group_norm(x, 2),
    "cross entropy": lambda x: functional.cross_entropy(x, x[:, 0].long().abs().clamp(max=3)),
    "softmax": lambda x: functional.softmax(x, 1),
    "gelu": functional.gelu,
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "an index": lambda x: x[:, torch.tensor([0, 2, 0], device=x.device)],
    "attention": lambda x: functional.scaled_dot_product_attention(x, x + 1, x - 1),
    "nearest pixels": lambda x: functional.interpolate(x, (5, 17)),
    "nearest centres": lambda x: functional.interpolate(x, (9, 5), mode="nearest-exact"),
    "nearest of a line": lambda x: functional.interpolate(x[0], scale_factor=2.5),
    "linear": lambda x: functional.interpolate(x[0], 12, mode="linear"),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "bilinear to the corners": lambda x: functional.interpolate(
        x, (3, 11), mode="bilinear", align_corners=True
    ),
    "bicubic": lambda x: functional.interpolate(x, (10, 6), mode="bicubic"),
    "trilinear": lambda x: functional.interpolate(x[None], (3, 9, 5), mode="trilinear"),
    "frozen batch norm": lambda x: functional.batch_norm(
        x, x.new_full((4,), 0.5), x.new_full((4,), 2.0), training=False
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_has_the_gradient_of_the_cpu(name: str) -> None:
    given = torch.randn(2, 4, 7, 8, generator=torch.Generator().manual_seed(1))
    inputs = [given.to(device, copy=True) for device in ("cpu", "npu")]
    for x in inputs:
        made = LAYERS[name](x.requires_grad_())
        (made * made.detach().cos()).sum().backward()
    expected, found = inputs[0].grad, inputs[1].grad
    assert expected is not None
    assert found is not None
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    assert found.device.type == "npu"


def test_a_batch_norm_in_evaluation_saves_no_statistics() -> None:
    ones = torch.ones(4)
    for op in (torch.native_batch_norm, torch.ops.aten._native_batch_norm_legit):
        for device in ("cpu", "npu"):
            given = torch.ones(3, 4, 5, device=device)
            made = op(given, None, None, *(2 * [ones.to(device)]), False, 0.1, 1e-5)
            assert [x.shape for x in made] == [(3, 4, 5), (0,), (0,)]


@pytest.mark.parametrize("target", [[0, 4, 1], [0, -5, 1], [3, 3, -100]])
def test_a_target_that_is_no_class_is_an_error(target: list[int]) -> None:
    scores, places = torch.randn(3, 4), torch.tensor(target)
    ignored = 0 if -100 in target else -100
    with pytest.raises(IndexError, match="out of bounds"):
        functional.cross_entropy(scores, places, ignore_index=ignored)
    with pytest.raises(DeviceFault, match="BAD_INDEX"):
        functional.cross_entropy(scores.to("npu"), places.to("npu"), ignore_index=ignored).item()
    assert torch.ones(3, device="npu").sum().item() == 3


def test_dropout_draws_from_the_device_and_masks_its_gradient() -> None:
    x = torch.ones(64, 64, device="npu", requires_grad=True)
    torch.manual_seed(1)
    made = functional.dropout(x, 0.25)
    made.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad.cpu(), made.detach().cpu())
    assert made.detach().cpu().count_nonzero().item() / 4096 == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_draws_the_same_dropout_again(reentrant: bool) -> None:
    x = torch.randn(40, 40).to("npu").requires_grad_()
    state = torch.npu.get_rng_state()
    found = []
    for run in (lambda f: f(x), lambda f: checkpoint(f, x, use_reentrant=reentrant)):
        torch.npu.set_rng_state(state)
        made = run(lambda t: functional.dropout(t.tanh(), 0.4))
        made.sum().backward()
        assert x.grad is not None
        found.append((made.detach().cpu(), x.grad.cpu().clone()))
        x.grad = None
    (plain, expected), (again, gradient) = found
    assert torch.equal(plain, again)
    assert torch.equal(expected, gradient)
    assert gradient.count_nonzero() > 500


def test_autocast_computes_products_in_half() -> None:
    layer = nn.Linear(8, 8).to("npu")
    x = torch.randn(4, 8)
    with torch.autocast("npu", dtype=torch.bfloat16):
        made = layer(x.to("npu"))
    assert made.dtype is torch.bfloat16
    with torch.no_grad():
        expected = functional.linear(x, layer.weight.cpu(), layer.bias.cpu())
    torch.testing.assert_close(made.float().cpu().detach(), expected, rtol=0.05, atol=0.05)
