# SPDX-License-Identifier: Apache-2.0
"""Bounds of attention with masks that are added: right results fit, and wrong ones do not."""

from __future__ import annotations

import pytest
import torch
from judged_call import CONFIG, passes, run

from driver.errors import UnsupportedOp
from golden.calls import OpCall
from golden.judge import judge
from golden.tensors import tensor_bits
from tb.ops.pair import DevicePair

ATTENTION = "aten.scaled_dot_product_attention.default"
FORWARD = "aten._scaled_dot_product_flash_attention_for_cpu.default"
BACKWARD = "aten._scaled_dot_product_flash_attention_for_cpu_backward.default"
TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
ROWS, PADDING = 12, 5

Operands = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def padded(dtype: torch.dtype) -> Operands:
    """Query, key, value and mask of a sequence whose first keys are padding: the rows there have
    nothing but hidden keys."""
    generator = torch.Generator().manual_seed(7)
    q, k, v = (x.to(dtype) for x in torch.randn(3, 1, 2, ROWS, 16, generator=generator))
    below = torch.ones(ROWS, ROWS, dtype=torch.bool).tril()
    below[:, :PADDING] = False
    hidden = -6e4 if dtype is torch.float16 else -1e9
    return q, k, v, torch.zeros(ROWS, ROWS).masked_fill(~below, hidden).to(dtype)


def violations(call: OpCall, at: int, wrong: torch.Tensor) -> int:
    """Of an output that is replaced; the others are torch's."""
    made = list(call.overload(*call.args, **call.kwargs))
    made[at] = wrong
    verdict = judge(call, [tensor_bits(x) for x in made], None, CONFIG.array_size)
    assert verdict.comparison.unbounded == 0
    return verdict.comparison.npu_violations


@TYPES
def test_rows_of_hidden_keys_are_the_mean_of_the_values(
    pair: DevicePair, dtype: torch.dtype
) -> None:
    q, k, v, mask = padded(dtype)
    assert passes(pair, ATTENTION, q, k, v, attn_mask=mask) == q.numel()
    assert passes(pair, FORWARD, q, k, v, 0.0, False, attn_mask=mask) == q.numel() + 2 * ROWS
    if dtype is torch.float16:  # of its least mask the scores are more than a rounding
        return
    call = OpCall(FORWARD, (q, k, v, 0.0, False), {"attn_mask": mask})
    right, _ = call.overload(*call.args, **call.kwargs)
    for keys in (slice(1, None), slice(None, -1), slice(3, 4)):
        wrong = right.clone()
        wrong[..., :PADDING, :] = v[..., keys, :].float().mean(-2, keepdim=True).to(dtype)
        assert violations(call, 0, wrong) > 0.9 * 2 * PADDING * 16


@TYPES
def test_gradients_of_rows_of_hidden_keys(pair: DevicePair, dtype: torch.dtype) -> None:
    q, k, v, mask = padded(dtype)
    out, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=mask)
    g = torch.randn(out.shape, generator=torch.Generator().manual_seed(8)).to(dtype)
    args = (g, q, k, v, out, sums, 0.0, False)
    assert passes(pair, BACKWARD, *args, attn_mask=mask) == 3 * q.numel()
    if dtype is torch.float16:
        return
    call = OpCall(BACKWARD, args, {"attn_mask": mask})
    right = call.overload(*args, attn_mask=mask)[2]
    wrong = right.clone()
    wrong[..., 0, :] -= g[..., 0, :]  # the weight of one hidden key in one row
    assert violations(call, 2, wrong) > 0.9 * 2 * 16


def test_a_score_without_its_last_product_is_refused(pair: DevicePair) -> None:
    generator = torch.Generator().manual_seed(9)
    q, k, v = torch.randn(3, 1, 2, 64, 64, generator=generator)
    passes(pair, ATTENTION, q, k, v)
    call = OpCall(FORWARD, (q, k, v), {})
    short = q.clone()
    short[..., -1] *= 1 - 2.0**-10
    wrong, _ = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(short, k, v)
    assert violations(call, 0, wrong) > 0.4 * wrong.numel()


@TYPES
def test_torchs_own_exponentials_of_a_vector_of_keys_are_admitted(
    pair: DevicePair, dtype: torch.dtype
) -> None:
    q, k, v = torch.zeros(3, 1, 1, 33, 4).to(dtype)
    assert passes(pair, FORWARD, q, k, v) == 33 * 5


def test_nothing_is_claimed_of_a_gradient_whose_score_has_lost_all_digits(
    pair: DevicePair,
) -> None:
    q, k = torch.full((1, 1, 3, 1), 3e38), torch.full((1, 1, 1, 1), 1e-8)
    q[..., 0, 0] = 1.0
    out, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, k, scale=0.125)
    args = (torch.ones(1, 1, 3, 1), q, k, k, out, sums, 0.0, False)
    _, verdict = run(pair, BACKWARD, *args, scale=0.125)
    assert verdict.comparison.npu_violations == 0
    assert verdict.comparison.unbounded > 0


def test_truth_values_as_an_added_mask_are_refused(pair: DevicePair) -> None:
    q, k, v = torch.randn(3, 1, 2, 4, 8)
    hidden = torch.ones(4, 4, dtype=torch.bool).tril()
    with pytest.raises(UnsupportedOp, match="attn_mask: got UINT8, expected floats"):
        run(pair, "aten._scaled_dot_product_attention_math.default", q, k, v, hidden)
