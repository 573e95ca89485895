# SPDX-License-Identifier: Apache-2.0
"""Samples of attention and rotary embedding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from tb.ops.samples.model import FLOATS, Sample, T

_Q, _KV = T((2, 4, 5, 8)), T((2, 4, 7, 8))
_SHARED = T((2, 2, 7, 8))
_MASK = T((5, 7))
_TRUTH = T((2, 1, 5, 7), dtype=torch.bool)


def _attention() -> Iterator[Sample]:
    whole = "aten.scaled_dot_product_attention.default"
    flash = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    math = "aten._scaled_dot_product_attention_math.default"
    yield Sample(whole, (_Q, _KV, _KV), special=False)
    yield Sample(whole, (_Q, _KV, _KV, _MASK), special=False)
    yield Sample(whole, (_Q, _KV, _KV, _TRUTH), special=False)
    yield Sample(whole, (_Q, _Q, _Q), FLOATS, {"is_causal": True}, special=False)
    yield Sample(whole, (_Q, _KV, _KV), FLOATS, {"scale": 0.3}, special=False)
    yield Sample(whole, (_Q, _SHARED, _SHARED), FLOATS, {"enable_gqa": True}, special=False)
    yield Sample(whole, (T((5, 8)), T((7, 8)), T((7, 8))), special=False)
    # torch's kernel reads rows that are not dense as if they were.
    q, kv, mask = (replace(item, plain=True) for item in (_Q, _KV, _MASK))
    yield Sample(flash, (q, kv, kv), special=False)
    yield Sample(flash, (q, q, q, 0.0, True), special=False)
    yield Sample(flash, (q, kv, kv), FLOATS, {"attn_mask": mask}, special=False)
    yield Sample(math, (_Q, _KV, _KV, _MASK), special=False)
    yield Sample(math, (_Q, _Q, _Q), FLOATS, {"is_causal": True}, special=False)
    yield from _gradients()
    angles = T((1, 1, 5, 8))
    yield Sample("npu.rotary.default", (_Q, angles, angles), special=False)
    yield Sample("npu.rotary.default", (_Q, T((5, 8)), T((5, 8))), special=False)


def _gradients() -> Iterator[Sample]:
    """With any result and any sums near the scores: the formula holds for all."""
    name = "aten._scaled_dot_product_flash_attention_for_cpu_backward.default"
    q, kv, shared = (T((2, *size, 8), "unit", plain=True) for size in ((4, 5), (4, 7), (2, 7)))
    grad = T((2, 4, 5, 8), plain=True)
    sums = T((2, 4, 5), "rising", torch.float32, plain=True)
    yield Sample(name, (grad, q, kv, kv, q, sums, 0.0, False), special=False)
    yield Sample(name, (grad, q, q, q, q, sums, 0.0, True), special=False)
    for mask in (T((5, 7), plain=True), T((2, 1, 5, 7), plain=True)):
        named = {"attn_mask": mask, "scale": 0.3}
        yield Sample(name, (grad, q, kv, kv, q, sums, 0.0, False), FLOATS, named, special=False)
    yield Sample(name, (grad, q, shared, shared, q, sums, 0.0, False), special=False)


SAMPLES = tuple(_attention())
