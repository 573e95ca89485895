# SPDX-License-Identifier: Apache-2.0
"""Lowering changes only on purpose: the digest of what each op's samples are lowered to.

`python tests/test_lowering_digests.py` writes lowering_digests.json anew. Results stay within their
bounds by tests/test_op_samples.py; this test says which ops a change of shared code touches.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path

import torch
from backend_host import CONFIG

from driver.lower import Arg, lower
from driver.runtime import UNBOUNDED_BYTES, Buffer, Program, TensorView
from driver.runtime.torch_types import NPU_TYPES
from tb.ops.case import Case
from tb.ops.placing import argument, view_of
from tb.ops.samples import SAMPLES
from tb.ops.samples.variants import SampleCall, variants

DIGESTS = Path(__file__).with_name("lowering_digests.json")
LAYOUTS = ("dense", "strided")
SEED = 7


def lowered(call: SampleCall) -> Program:
    """The program of a sample, on buffers without addresses."""
    args, kwargs = call.arguments(SEED)
    case = Case(0, call.sample.op, args, "sample", kwargs=kwargs)
    buffers: defaultdict[int, Buffer] = defaultdict(lambda: Buffer(UNBOUNDED_BYTES))

    def view(tensor: torch.Tensor) -> TensorView:
        buffer = buffers[tensor.untyped_storage()._cdata]
        return view_of(tensor, buffer, NPU_TYPES[tensor.dtype])

    given = [argument(value, view) for value in case.args]
    named = {name: argument(value, view) for name, value in case.kwargs.items()}
    found: dict[int | str, Arg] = {**dict(enumerate(given)), **named}
    results: list[TensorView | None] = []
    for output in case.outputs:
        if output is None:
            results.append(None)
        elif output.overwrites is not None and output.returned:
            results.append(found[output.overwrites])  # type: ignore[arg-type]
        elif output.returned:
            shape = (output.dtype, output.sizes, output.strides, output.boolean)
            results.append(TensorView(Buffer(UNBOUNDED_BYTES), 0, *shape))
    return lower(case.op, given, named, results, CONFIG, case.stream)


def digest(op: str) -> str:
    """Of the programs of an op's samples in their first type."""
    calls = [
        call
        for call in variants(SAMPLES[op])
        if call.name in LAYOUTS and call.dtype is call.sample.dtypes[0]
    ]
    assert calls, op
    return hashlib.sha256("".join(lowered(call).digest for call in calls).encode()).hexdigest()[:16]


def test_every_op_is_lowered_as_recorded() -> None:
    recorded = json.loads(DIGESTS.read_text(encoding="utf-8"))
    changed = [op for op in sorted(SAMPLES) if recorded.get(op) != digest(op)]
    assert changed == [], "if on purpose: python tests/test_lowering_digests.py"
    assert sorted(recorded) == sorted(SAMPLES)


if __name__ == "__main__":
    made = {op: digest(op) for op in sorted(SAMPLES)}
    DIGESTS.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
