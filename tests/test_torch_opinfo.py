# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own OpInfo database on device "npu" in fp32: forward, `out` and gradients.

No value may differ from CPU torch's, and no op may crash. tests/torch_opinfo_refused.txt names the
ops that the NPU refuses; one that is refused and not in it fails, and one that is in it and works.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

REFUSED = Path(__file__).with_name("torch_opinfo_refused.txt")
SHARDS = 6
MAX_SAMPLES, MAX_ELEMENTS, MAX_CPU_S = 3, 20_000, 1.0
RANDOM = (
    "rrelu",
    *("dropout", "rand", "normal", "bernoulli", "multinomial", "empty", "uniform", "exponential"),
    *("cauchy", "geometric", "attention"),  # attention: with dropout
)
"""Parts of the names of ops whose values are not compared: drawn by the NPU, or not defined."""
EXEMPT = {
    "as_strided.partial_views": "looks beyond the sample's tensor, at bytes that a copy has not",
    "native_batch_norm": "saves statistics in evaluation, as on other accelerators",
    "_native_batch_norm_legit": "saves statistics in evaluation, as on other accelerators",
    "tensor_split": "wants its sections on the CPU, as on other accelerators",
    **dict.fromkeys(
        (
            *("jiterator_unary", "jiterator_binary", "jiterator_4inputs_with_extra_args"),
            *("jiterator_binary_return_by_ref", "jiterator_2inputs_2outputs"),
        ),
        "torch has it for CUDA alone",
    ),
    "sparse.sampled_addmm": "sparse tensors",
    "sparse.mm.reduce": "sparse tensors",
}
"""OpInfos that ask for something else than an op of dense tensors on an accelerator."""


FREE_SIGNS = frozenset({"linalg.eigh"})
"""Ops whose results have free signs: what `output_process_fn_grad` makes of them is compared."""


def tensors(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def on_npu(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.detach().to("npu").requires_grad_(value.requires_grad)
    return torch.device("npu") if isinstance(value, torch.device) else value


def compare(found: list[torch.Tensor], expected: list[torch.Tensor], bound: float) -> int:
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(
            mine.detach().cpu(), theirs.detach(), equal_nan=True, rtol=bound, atol=bound
        )
    return sum(x.numel() for x in expected)


def gradients(op: Any, sample: Any, made: object) -> list[torch.Tensor]:
    """Of the sum of all results, with regard to every input that wants one."""
    inputs = [x for x in tensors((sample.input, sample.args, sample.kwargs)) if x.requires_grad]
    made = sample.output_process_fn_grad(made) if sample.output_process_fn_grad else made
    sums = [
        x.abs().sum() if x.is_complex() else x.sum()
        for x in tensors(made)
        if x.requires_grad and (x.is_floating_point() or x.is_complex())
    ]
    if not sums or not inputs:
        return []
    found = torch.autograd.grad(sum(sums[1:], sums[0]), inputs, allow_unused=True)
    return [x for x in found if x is not None]


def check(op: Any, sample: Any) -> int:
    """Compare one sample; how many elements. NotImplementedError when the NPU refuses it."""
    there = sample.transform(on_npu)
    compared_values = not any(part in op.name for part in RANDOM)
    expected = op(sample.input, *sample.args, **sample.kwargs)
    found = op(there.input, *there.args, **there.kwargs)
    compared = 0
    if compared_values:
        process = sample.output_process_fn_grad if op.full_name in FREE_SIGNS else tensors
        compared += compare(tensors(process(found)), tensors(process(expected)), 2e-4)
    if op.supports_out and isinstance(found, torch.Tensor):
        with torch.no_grad():
            out = torch.empty_like(found, requires_grad=False)
            assert op(there.input, *there.args, **there.kwargs, out=out) is out
            if compared_values:
                compared += compare([out], tensors(expected), 2e-4)
    pairs = gradients(op, there, found), gradients(op, sample, expected)
    return compared + (compare(*pairs, 1e-3) if compared_values else 0)


def samples(op: Any) -> Iterator[Any]:
    torch.manual_seed(0)
    wants_gradient = torch.float32 in op.supported_backward_dtypes("cpu")
    start, count = time.thread_time(), 0
    for sample in op.sample_inputs("cpu", torch.float32, requires_grad=wants_gradient):
        if any(x.numel() > MAX_ELEMENTS for x in tensors((sample.input, sample.args))):
            continue
        if count == MAX_SAMPLES or time.thread_time() - start > MAX_CPU_S:
            return
        count += 1
        yield sample


@pytest.mark.broad
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_opinfo_is_right_or_refused_by_name(shard: int) -> None:
    from torch.testing._internal.common_methods_invocations import op_db  # noqa: PLC0415

    known = set(REFUSED.read_text(encoding="utf-8").split())
    unknown = known - {op.full_name for op in op_db}
    assert unknown == set(), "no such OpInfo: remove the line"
    ops = [op for op in op_db if torch.float32 in op.supported_dtypes("cpu")]
    refused, failed, compared = set(), {}, 0
    mine = [op for op in ops[shard::SHARDS] if op.full_name not in EXEMPT]
    for op in mine:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compared += sum(check(op, sample) for sample in samples(op))
        except NotImplementedError:
            refused.add(op.full_name)
        except Exception as error:  # a wrong value or a crash
            failed[op.full_name] = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    assert failed == {}
    expected = known & {op.full_name for op in mine}
    assert refused - expected == set(), "refused, and not in the list"
    assert expected - refused == set(), "works: remove the line"
    assert len(mine) > 100
    assert compared > 1000
