# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own OpInfo database on device "npu", in every type that the NPU holds.

No value may differ from CPU torch's, no op may crash, and one that compares nothing does not pass.
tests/torch_opinfo_refused.txt names the ops that the NPU refuses, in which types, and why; one that
is refused and not in it fails, and one that is in it and works.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from tb.op_survey.database import wrong_samples
from tests import opinfo_cases
from tests.opinfo_cases import DTYPES, EXEMPT, OTHER_VALUES, cases, on_npu, outcome

REFUSED = Path(__file__).with_name("torch_opinfo_refused.txt")
SHARDS = [
    (dtype, shard, 3 if dtype.is_floating_point else 1) for dtype in DTYPES for shard in range(3)
]
SHARDS = [(dtype, shard, of) for dtype, shard, of in SHARDS if shard < of]
SAMPLE, SEED = 20, 7
LEAST_FP32 = 0.93
"""Of all OpInfos that CPU torch has in fp32; the share may only grow."""
pytestmark = pytest.mark.filterwarnings("ignore")


def refused() -> set[tuple[str, torch.dtype]]:
    """The pairs of the list: `name: types  # why` in each line."""
    found = set()
    for line in REFUSED.read_text(encoding="utf-8").splitlines():
        name, _, types = line.partition("#")[0].partition(":")
        assert line.partition("#")[2].strip(), f"no reason: {line}"
        found |= {(name.strip(), getattr(torch, dtype)) for dtype in types.split()}
    return found


def differences(ops: list[Any], dtype: torch.dtype) -> list[str]:
    """What is not as it should be, one line per op."""
    known, found = refused(), []
    for op in ops:
        text, _ = outcome(op, dtype)
        listed = (op.full_name, dtype) in known
        if text.startswith("refused"):
            if not listed:
                found.append(f"{op.full_name} {dtype}: {text}; not in {REFUSED.name}")
        elif text:
            found.append(f"{op.full_name} {dtype}: {text}")
        elif listed:
            found.append(f"{op.full_name} {dtype}: works; remove it from {REFUSED.name}")
    return found


@pytest.mark.broad
@pytest.mark.parametrize(("dtype", "shard", "of"), SHARDS)
def test_every_opinfo_is_right_or_refused_by_name(dtype: torch.dtype, shard: int, of: int) -> None:
    mine = cases(dtype)[shard::of]
    assert len(mine) > 100
    assert differences(mine, dtype) == []


def test_a_sample_of_opinfos_is_right_or_refused_by_name() -> None:
    pairs = [(op, dtype) for dtype in DTYPES for op in cases(dtype)]
    chosen = Random(SEED).sample(pairs, SAMPLE)
    assert [line for op, dtype in chosen for line in differences([op], dtype)] == []


def test_the_list_of_refused_ops_names_cases_only() -> None:
    pairs = {(op.full_name, dtype) for dtype in DTYPES for op in cases(dtype)}
    assert refused() - pairs == set()


def test_most_opinfos_pass_in_fp32() -> None:
    names = {op.full_name for op in cases(torch.float32)}
    passing = names - {name for name, dtype in refused() if dtype is torch.float32}
    counted = (
        len(names)
        + len(EXEMPT)
        + len({n for n, (d, _) in OTHER_VALUES.items() if d is torch.float32})
    )
    assert len(passing) / counted >= LEAST_FP32


def test_a_wrong_value_and_an_empty_comparison_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    op = next(op for op in cases(torch.float32) if op.name == "tanh")
    assert outcome(op, torch.float32)[0] == ""
    with monkeypatch.context() as patch:
        patch.setattr(
            opinfo_cases,
            "on_npu",
            lambda x: on_npu(x * 1.001 if isinstance(x, torch.Tensor) else x),
        )
        assert outcome(op, torch.float32)[0].startswith("wrong: AssertionError")
    monkeypatch.setattr(opinfo_cases, "samples", lambda op, dtype: iter(()))
    assert outcome(op, torch.float32)[0] == "wrong: nothing was compared"


UNCHECKED = {
    **dict.fromkeys(
        ("bernoulli", "cat", "gather", "index_select", "kthvalue", "masked_select", "take"),
        "an out that shares memory with itself or with an operand",
    ),
    "complex": "the type of out",
    "aminmax": "the type of out",
    "masked_scatter": "the type of the mask",
    "bucketize": "the number of dimensions of the boundaries",
}
"""OpInfos with wrong arguments that the device takes without an error, and which."""


@pytest.mark.broad
def test_wrong_arguments_are_errors_on_the_device_as_well() -> None:
    """Some error, at the latest when the device is waited for."""
    tried, silent = 0, set()
    for op in [op for op in cases(torch.float32) if op.error_inputs_func is not None]:
        for given in wrong_samples(op):
            sample = given.sample_input
            if _error(op, sample) is None:  # CPU torch takes it
                continue
            try:
                there = sample.transform(on_npu)
            except (RuntimeError, NotImplementedError):  # meta tensors, tensors without a storage
                continue
            tried += 1
            if _error(op, there) is None:
                silent.add(op.full_name)
    assert tried > 600
    assert silent == set(UNCHECKED)


def _error(op: Any, sample: Any) -> Exception | None:
    try:
        op(sample.input, *sample.args, **sample.kwargs)
        torch.npu.synchronize()
    except Exception as error:  # of any kind: the caller asks whether
        return error
    return None
