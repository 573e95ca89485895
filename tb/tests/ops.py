# SPDX-License-Identifier: Apache-2.0
"""A sample of every op's samples on the RTL: each op in each of its types, layouts by turns, and on
special values in one of them.

All samples run on the cmodel in tests/test_op_samples.py; here the RTL has to give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

from driver.config import HwConfig
from driver.errors import InputError
from driver.results import RunSpec
from driver.test_info import TestInfo
from tb.ops.case import Case, Entry
from tb.ops.samples import SAMPLES, with_custom_ops
from tb.ops.samples.variants import SampleCall, variants

INFO = TestInfo(
    name="ops",
    summary="every op in every type, layouts by turns, and on special values",
    kind="ops",
    backends=("rtl", "cmodel"),
)

FILTERS_BY_NAME = True
_EMPTY = ("empty",)
"""Variants without an element: nothing to run."""


def cases(spec: RunSpec, config: HwConfig) -> Iterator[Entry]:
    """Numbered by op, in the order of the table of samples; custom ops come last."""
    every, numbers = with_custom_ops(), count()
    wanted = spec.name_filter or ""
    if not any(wanted in op for op in every):
        raise InputError("command line", "filter", wanted, "a part of the name of an op")
    for op in (*sorted(SAMPLES), *(op for op in every if op not in SAMPLES)):
        for variant in _chosen(list(variants(every[op])), spec.seed):
            index = next(numbers)
            if wanted in op:
                yield Entry(index, partial(_case, variant, index, spec.seed))


def _chosen(every: list[SampleCall], seed: int) -> Iterator[SampleCall]:
    """Of each type, and each type that a result is asked for in, a variant, then one with special
    values: the next one for the next type, and for the next seed."""
    full = [v for v in every if v.name not in _EMPTY and not _is_empty(v)]
    for turn, own in enumerate(_grouped(full, lambda v: (v.dtype, _asked_for(v)))):
        yield own[(turn + seed - 1) % len(own)]
    special = [variant for variant in every if variant.name == "special"]
    for own in _grouped(special, lambda v: (v.dtype, _asked_for(v)) if _asked_for(v) else None):
        yield own[(seed - 1) % len(own)]


def _asked_for(variant: SampleCall) -> object:
    """The type of the result, where the call says it."""
    return variant.sample.kwargs.get("dtype")


def _grouped(
    variants: list[SampleCall], kind: Callable[[SampleCall], object]
) -> Iterator[list[SampleCall]]:
    """Those of each kind, in the order of the first ones."""
    groups: dict[object, list[SampleCall]] = {}
    for variant in variants:
        groups.setdefault(kind(variant), []).append(variant)
    yield from groups.values()


def _is_empty(variant: SampleCall) -> bool:
    return any(t.shape is not None and 0 in t.shape for t in variant.sample.tensors())


def _case(variant: SampleCall, index: int, seed: int) -> Case:
    args, kwargs = variant.arguments(seed)
    name = f"{variant.name} {str(variant.dtype).removeprefix('torch.')}"
    return Case(index=index, op=variant.sample.op, args=args, module=name, kwargs=kwargs)
