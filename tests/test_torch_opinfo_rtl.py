# SPDX-License-Identifier: Apache-2.0
"""A drawn sample of OpInfos with the NPU under Verilator behind the device, beside the cmodel.

Results have equal bits on both, and check mode judges every row as it runs on RTL. OPINFO_SEED
draws another sample.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

import pytest
import torch

from tests.opinfo_cases import (
    DRAWN,
    DTYPES,
    UNDEFINED,
    cases,
    on_npu,
    samples,
    tensors,
)
from tests.test_torch_device import run_python
from tests.test_torch_opinfo import refused

PAIRS, SHARDS, MAX_ELEMENTS = 300, 6, 512
Case = tuple[Any, torch.dtype, Any]


def chosen(shard: int, pairs: int = PAIRS) -> Iterator[Case]:
    """One small sample each of the drawn (OpInfo, type) pairs of a shard."""
    known = refused()
    possible = [
        (op, dtype)
        for dtype in DTYPES
        for op in cases(dtype)
        if (op.full_name, dtype) not in known and op.full_name not in UNDEFINED | DRAWN
    ]
    drawn = Random(int(os.environ.get("OPINFO_SEED", "1"))).sample(possible, pairs)
    for op, dtype in drawn[shard::SHARDS]:
        small = [s for s in islice(samples(op, dtype), 12) if _is_small(s)]
        if small:
            yield op, dtype, max(small, key=lambda s: sum(x.numel() for x in tensors(s.input)))


def _is_small(sample: Any) -> bool:
    sizes = [x.numel() for x in tensors((sample.input, sample.args, sample.kwargs))]
    return bool(sizes) and 0 < max(sizes) <= MAX_ELEMENTS


def results(given: list[Case]) -> list[list[torch.Tensor]]:
    """Of each case, forward only."""
    found = []
    for op, _, sample in given:
        there = sample.transform(on_npu)
        with torch.no_grad():
            found.append([x.cpu() for x in tensors(op(there.input, *there.args, **there.kwargs))])
    return found


def bits(x: torch.Tensor) -> bytes:
    """Of all elements."""
    x = x.resolve_conj().resolve_neg().contiguous()
    return bytes(x.reshape(-1).view(torch.uint8).numpy()) if x.numel() else b""


def main(shard: int, pairs: int) -> None:
    """Compare a shard; prints how many cases and elements, and each difference."""
    warnings.simplefilter("ignore")
    given = list(chosen(shard, pairs))
    expected = results(given)
    torch.npu.empty_cache()
    torch.npu.set_backend("rtl")
    assert torch.npu.get_backend_info()["has_clock"] is True
    if os.environ.get("OPINFO_PLANT"):
        expected[0][0] = expected[0][0] + 1
    with torch.npu.check() as report:
        found = results(given)
    elements = 0
    for (op, dtype, _), mine, theirs in zip(given, found, expected, strict=True):
        elements += sum(x.numel() for x in mine)
        if list(map(bits, mine)) != list(map(bits, theirs)):
            sys.stdout.write(f"DIFFERENT {op.full_name} {dtype}\n")
    sys.stdout.write(f"cases {len(given)} elements {elements} judged {report.ops}\n")


def _run(shard: int, pairs: int, **environment: str) -> str:
    code = f"from tests.test_torch_opinfo_rtl import main; main({shard}, {pairs})"
    ran = run_python(code, 600, NPU_CONFIG="small", **environment)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.broad
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_sample_on_rtl_has_the_bits_of_the_cmodel(shard: int) -> None:
    text = _run(shard, PAIRS)
    assert "DIFFERENT" not in text, text
    _, count, _, elements, _, judged = text.split()[-6:]
    assert int(count) > 0.6 * PAIRS / SHARDS
    assert int(elements) > int(count)
    assert int(judged) > 0.5 * int(count)


@pytest.mark.broad
def test_a_planted_difference_is_found() -> None:
    assert "DIFFERENT" in _run(0, 12, OPINFO_PLANT="1")
