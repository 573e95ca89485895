# SPDX-License-Identifier: Apache-2.0
"""Which rows of the op table a training step runs: each has a sample and a bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from test_torch_training import lenet, lenet_of_tutorials
from torch import nn
from torch.nn import functional

from driver.torch_device import _core, dispatch
from driver.torch_device.overloads import ArrivingOp
from golden.judge import supports
from tb.ops.samples import SAMPLES


class ResidualBlock(nn.Module):
    """Two convolutions beside one of a single element, as in ResNet."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            *(nn.Conv2d(width, 2 * width, 3, 2, 1, bias=False), nn.BatchNorm2d(2 * width)),
            *(nn.ReLU(inplace=True), nn.Conv2d(2 * width, 2 * width, 3, 1, 1, bias=False)),
            nn.BatchNorm2d(2 * width),
        )
        self.beside = nn.Conv2d(width, 2 * width, 1, 2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.inner(x) + self.beside(x))


def resnet() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU()),
        *(nn.MaxPool2d(3, 2, 1), ResidualBlock(4), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Linear(8, 10),
    )


def images(build: Callable[[], nn.Module]) -> Callable[[], tuple[nn.Module, Any]]:
    def made() -> tuple[nn.Module, Any]:
        model = build().to("npu")
        x, classes = torch.randn(2, 1, 28, 28).to("npu"), torch.tensor([3, 7]).to("npu")
        return model, lambda: functional.cross_entropy(model(x), classes)

    return made


def qwen() -> tuple[nn.Module, Any]:
    transformers = pytest.importorskip("transformers")
    config = transformers.Qwen2Config(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    model = transformers.Qwen2ForCausalLM(config).to("npu")
    ids = torch.arange(7).reshape(1, 7).to("npu")
    return model, lambda: model(ids, labels=ids).loss


STEPS: dict[str, tuple[Callable[[], tuple[nn.Module, Any]], Any, Sequence[str]]] = {
    "lenet": (
        images(lenet),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
        ("tanh_backward", "_log_softmax_backward_data"),
    ),
    "lenet of tutorials": (
        images(lenet_of_tutorials),
        torch.optim.AdamW,
        ("threshold_backward", "max_pool2d_with_indices_backward", "lerp", "addcdiv"),
    ),
    "resnet": (
        images(resnet),
        torch.optim.Adam,
        ("threshold_backward", "native_batch_norm_backward", "lerp", "addcdiv"),
    ),
    "qwen2": (
        qwen,
        torch.optim.AdamW,
        (
            "_scaled_dot_product_flash_attention_for_cpu_backward",
            "embedding_dense_backward",
            "lerp",
            "addcdiv",
        ),
    ),
}
"""Model → how to make it and its loss, its optimizer, rows that its step must run whole."""
DEFINED_BY_ROWS = {
    "_scaled_dot_product_fused_attention_overrideable": "attention, with the row's operands",
    "_scaled_dot_product_fused_attention_overrideable_backward": "its gradient, likewise",
    "convolution_backward": "convolutions of other operands, each a row",
    "avg_pool2d_backward": "a product and col2im",
    "nll_loss_backward": "torch's own decomposition",
}
"""Ops of these steps that are taken apart. May only shrink."""


@pytest.mark.parametrize("name", STEPS)
def test_a_training_step_runs_rows_that_have_bound_and_sample(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: Counter[str] = Counter()
    apart: Counter[str] = Counter()
    run_row, by_smaller_ops = dispatch._run_row, dispatch._by_smaller_ops

    def noted_row(arrived: ArrivingOp, *rest: Any) -> Any:
        rows[str(arrived.row)] += 1
        return run_row(arrived, *rest)

    def noted_op(arrived: ArrivingOp, *rest: Any) -> Any:
        apart[str(arrived.op).split(".")[1]] += 1
        return by_smaller_ops(arrived, *rest)

    _core.forget_calls()  # of other tests: they would not come here
    monkeypatch.setattr(dispatch, "_run_row", noted_row)
    monkeypatch.setattr(dispatch, "_by_smaller_ops", noted_op)
    build, optimizer, wanted = STEPS[name]
    model, loss = build()
    stepper = optimizer(model.parameters())
    loss().backward()
    stepper.step()
    assert [row for row in rows if row not in SAMPLES] == []
    assert [row for row in rows if not supports(row)] == []
    assert {f"aten.{op}" for op in wanted} <= {row.rsplit(".", 1)[0] for row in rows}
    assert apart.keys() <= DEFINED_BY_ROWS.keys()
    assert len(rows) > 12
