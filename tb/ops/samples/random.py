# SPDX-License-Identifier: Apache-2.0
"""Samples of ops that draw random numbers, all from the first stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from tb.ops.samples.model import EVERY, FLOATS, INTS, Sample, T

_CHANCE = T(values="chance")
_TO = T(plain=True)
"""What is overwritten."""


def _in_place() -> Iterator[Sample]:
    for name, args in (("uniform", ()), ("uniform", (-3.0, 5.5)), ("normal", (2.0, 0.5))):
        functional = "normal_functional" if name == "normal" else name
        yield Sample(f"aten.{name}_.default", (_TO, *args), special=False)
        yield Sample(f"aten.{functional}.default", (_TO, *args), special=False)
    for rate in (1.0, 3.5):
        yield Sample("aten.exponential_.default", (_TO, rate), special=False)
        yield Sample("aten.exponential.default", (_TO, rate), special=False)
    for form in ("_", ""):
        yield Sample(f"aten.random{form}.default", (_TO,), EVERY, special=False)
        yield Sample(f"aten.random{form}.to", (_TO, 100), (*FLOATS, *INTS), special=False)
        yield Sample(f"aten.random{form}.from", (_TO, -7, 90), (*FLOATS, *INTS[:2]), special=False)
    wide = (_TO, -(1 << 31), (1 << 31) - 1)
    yield Sample("aten.random_.from", wide, (torch.int32, torch.int64), special=False)


def _chances() -> Iterator[Sample]:
    for chance in (0.0, 0.3, 1.0):
        yield Sample("aten.bernoulli_.float", (_TO, chance), EVERY, special=False)
        yield Sample("aten.bernoulli.p", (T(), chance), FLOATS, special=False)
        yield Sample("aten.native_dropout.default", (T(), chance, True))
    yield Sample("aten.native_dropout.default", (T(), 0.5, False))
    yield Sample("aten.native_dropout.default", (T(), 0.5, None))
    yield Sample("aten.bernoulli.default", (_CHANCE,), special=False)
    yield Sample("aten.bernoulli.Tensor", (T(), _CHANCE), FLOATS, special=False)
    chances = T((3, 21), "chance", torch.float32)
    yield Sample("aten.bernoulli_.Tensor", (T((3, 21), plain=True), chances), EVERY, special=False)


def _sized() -> Iterator[Sample]:
    for size in ([], [7], [3, 5, 2], [0, 4]):
        for dtype in FLOATS:
            options: dict[str, Any] = {"dtype": dtype}
            drawn = {**options, "generator": None}
            for op in ("rand", "randn"):
                yield Sample(f"aten.{op}.default", (size,), (dtype,), options)
                yield Sample(f"aten.{op}.generator", (size,), (dtype,), drawn)
            yield Sample("aten.normal.float_float", (1.5, 2.0, size), (dtype,), options)
        for dtype in (torch.int64, torch.int32, torch.float32):
            options = {"dtype": dtype}
            drawn = {**options, "generator": None}
            yield Sample("aten.randint.default", (50, size), (dtype,), options)
            yield Sample("aten.randint.generator", (50, size), (dtype,), drawn)
            yield Sample("aten.randint.low", (-9, 50, size), (dtype,), options)
            yield Sample("aten.randint.low_generator", (-9, 50, size), (dtype,), drawn)
    for count in (1, 2, 300):
        for dtype in (torch.int64, torch.int32):
            options = {"dtype": dtype}
            yield Sample("aten.randperm.default", (count,), (dtype,), options)
            yield Sample(
                "aten.randperm.generator", (count,), (dtype,), {**options, "generator": None}
            )


def _like() -> Iterator[Sample]:
    plain: dict[str, Any] = {}
    for form, named in (("default", plain), ("generator", {"generator": None})):
        yield Sample(f"aten.rand_like.{form}", (T(),), FLOATS, named)
        yield Sample(f"aten.randn_like.{form}", (T(),), FLOATS, named)
        yield Sample(f"aten.randint_like.{form}", (T(), 9), (*FLOATS, *INTS), named)
        low = f"aten.randint_like.low{'_generator' if named else ''}_dtype"
        yield Sample(low, (T(), -3, 9), (*FLOATS, *INTS[:3]), named)
    spread = T(values="positive")
    yield Sample("aten.normal.Tensor_float", (T(), 0.5), FLOATS, special=False)
    yield Sample("aten.normal.float_Tensor", (1.0, spread), FLOATS, special=False)
    yield Sample("aten.normal.Tensor_Tensor", (T(), spread), FLOATS, special=False)


def _categories() -> Iterator[Sample]:
    weights = T((3, 21), "positive", plain=True)
    for count, again in ((1, False), (5, False), (1, True), (6, True)):
        yield Sample("aten.multinomial.default", (weights, count, again), FLOATS, special=False)
    line = T((40,), "positive", plain=True)
    yield Sample("aten.multinomial.default", (line, 4), FLOATS, special=False)


SAMPLES = (*_in_place(), *_chances(), *_sized(), *_like(), *_categories())
