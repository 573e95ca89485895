# SPDX-License-Identifier: Apache-2.0
"""Backward ops on the cmodel against torch, where the op samples are too small to show a rule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from judged_call import open_pair, passes, run

from driver.lower import conv
from tb.ops.pair import DevicePair


@pytest.fixture(scope="module")
def pair() -> Iterator[DevicePair]:
    made = open_pair()
    yield made
    made.close()


@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_weights_of_a_convolution_are_summed_over_all_parts(
    pair: DevicePair, monkeypatch: pytest.MonkeyPatch, images: int, transposed: bool
) -> None:
    torch.manual_seed(3)
    x, weight = torch.randn(images, 4, 7, 6), torch.randn(4, 4, 3, 3)
    grad = torch.randn(images, 4, *((9, 8) if transposed else (5, 4)))
    tail = ([1, 1], [0, 0], [1, 1], transposed, [0, 0], 1, [False, True, True])
    call = ("aten.convolution_backward.default", grad, x, weight, [4], *tail)
    whole, _ = run(pair, *call)
    monkeypatch.setattr(conv, "_WINDOW_BYTES", 1 << 10)
    parts, _ = run(pair, *call)
    assert len(parts.packets) > len(whole.packets)
    assert passes(pair, *call) == weight.numel() + 4
