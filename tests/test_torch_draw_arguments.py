# SPDX-License-Identifier: Apache-2.0
"""Random ops refuse the ranges and chances that CPU torch refuses, and take the others."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

Draw = Callable[[Tensor], object]
REFUSED: dict[str, tuple[Draw, str]] = {
    "a range that ends before it begins": (lambda x: x.uniform_(2, 1), "found from=2"),
    "a range beyond the type": (lambda x: x.half().uniform_(-3e5, 1), "from is out of bounds"),
    "a range without an end": (lambda x: x.uniform_(0, math.inf), "to is out of bounds"),
    "a range that is wider than the type": (lambda x: x.uniform_(-3e38, 3e38), "to-from <="),
    "a chance above 1": (lambda x: x.bernoulli_(1.5), r"p to be in \[0, 1\]"),
    "a chance that is no number": (lambda x: torch.bernoulli(x, math.nan), r"in \[0, 1\]"),
    "a chance to drop below 0": (lambda x: torch.native_dropout(x, -0.5, None), r"in \[0, 1\]"),
    "no sample": (lambda x: torch.multinomial(x + 1, 0), "n_sample <= 0"),
    "a negative weight": (lambda x: torch.multinomial(x - 1, 1), "element < 0"),
    "an infinite weight": (lambda x: torch.multinomial((x + 1) / 0, 1), "`inf`, `nan`"),
    "a weight of NaN": (lambda x: torch.multinomial((x + 1) * math.nan, 1), "`inf`, `nan`"),
    "no weight": (lambda x: torch.multinomial(x * 0, 1), "sum of probabilities <= 0"),
}
TAKEN: dict[str, Draw] = {
    "an empty range": lambda x: x.uniform_(1, 1),
    "a chance of 1": lambda x: x.bernoulli_(1.0),
    "all dropped": lambda x: torch.native_dropout(x, 1.0, True),
    "no training": lambda x: torch.native_dropout(x, 1.5, False),
}


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_the_cpu_refuses_is_refused(name: str, device: str) -> None:
    draw, said = REFUSED[name]
    with pytest.raises(RuntimeError, match=said):
        draw(torch.zeros(3, device=device))


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", TAKEN)
def test_what_the_cpu_takes_is_taken(name: str, device: str) -> None:
    TAKEN[name](torch.zeros(3, device=device))


def test_whole_numbers_have_no_uniform_draw() -> None:
    with pytest.raises(NotImplementedError):
        torch.zeros(3, device="npu", dtype=torch.int32).uniform_(0, 1)
