# SPDX-License-Identifier: Apache-2.0
"""Types that torch's own ops do not take on the CPU: refused, or computed as of a wider type."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

from tb.op_survey import database

TYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32),
)
WIDEST = (torch.float32, torch.int64, torch.bool)
RANDOM = {
    *("bernoulli", "cauchy", "geometric", "log_normal", "exponential", "normal", "multinomial"),
    *("randint_like", "rand_like", "randn_like", "uniform", "randint", "nn.functional.rrelu"),
    *("nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d"),
    *("nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout"),
}
"""Of drawn numbers there is nothing to compare."""
PARTS = 8
SAMPLES = 2


def _moved(
    sample: Any, change: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    def moved(value: Any) -> Any:
        return change(value.detach()) if isinstance(value, torch.Tensor) else value

    return tree_map(moved, (sample.input, tuple(sample.args), dict(sample.kwargs)))


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value.cpu()
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


def _is_right(found: Any, wide: Any) -> bool:
    """Whether the results are those of the wider type, rounded to their own."""
    pairs = zip(_tensors(found), _tensors(wide), strict=True)
    return all(
        torch.allclose(x.double(), y.to(x.dtype).double(), rtol=2e-2, atol=2e-2, equal_nan=True)
        for x, y in pairs
    )


def _wrong(op: Any, base: torch.dtype, dtype: torch.dtype) -> str | None:
    """What is wrong with the op's results of a type that the CPU refuses; None if nothing."""
    for sample in islice(database.samples(op, base), SAMPLES):

        def narrow(x: torch.Tensor) -> torch.Tensor:
            return x.to(dtype) if x.dtype is base else x

        x, args, kwargs = _moved(sample, narrow)
        try:
            op.op(x, *args, **kwargs)
            continue  # takes this call of the type
        except Exception:
            x, args, kwargs = _moved(sample, lambda x: narrow(x).to("npu"))
        try:
            found = op.op(x, *args, **kwargs)
        except (RuntimeError, NotImplementedError, ValueError, TypeError, IndexError):
            continue
        x, args, kwargs = _moved(sample, lambda x: narrow(x).to(x.dtype))
        if not _is_right(found, op.op(x, *args, **kwargs)):
            return f"{op.name}{op.variant_test_name and '.' + op.variant_test_name}: {dtype}"
    return None


@pytest.mark.broad
@pytest.mark.parametrize("part", range(PARTS))
def test_a_type_that_the_cpu_refuses_is_refused_or_right(part: int) -> None:
    found: list[str] = []
    compared = 0
    warnings.simplefilter("ignore")
    for op in op_db[part::PARTS]:
        base = next((dtype for dtype in WIDEST if dtype in op.dtypes), None)
        if base is None or op.name in RANDOM:
            continue
        for dtype in (dtype for dtype in TYPES if dtype not in op.dtypes):
            compared += 1
            wrong = _wrong(op, base, dtype)
            found += [] if wrong is None else [wrong]
    assert compared
    assert not found
