# SPDX-License-Identifier: Apache-2.0
"""Sizes, strides and types of an op's results, by torch's meta kernels, remembered by signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from driver.capture.schemas import named_arguments, require_cast
from driver.torch_device import _core
from driver.torch_device.lru_cache import LruCache
from driver.torch_device.overloads import ArrivingOp, arriving, is_factory, without_out


@dataclass(frozen=True)
class ResultShape:
    """What a result looks like, before it has memory."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype


ResultShapes = tuple[ResultShape | None, ...]
"""In the op's order; None for a result that is no tensor."""

_known: LruCache[Any, ResultShapes] = LruCache()

_BATCH_NORMS = {
    "aten.native_batch_norm.default",
    "aten._native_batch_norm_legit.default",
    "aten._native_batch_norm_legit.no_stats",
    "aten._native_batch_norm_legit_no_training.default",
}
_EMPTY_STATISTIC = ResultShape((0,), (1,), torch.float32)
"""What the CPU saves of a batch in evaluation. The meta kernels are CUDA's, with channels."""


def result_shapes(
    arrived: ArrivingOp, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> ResultShapes:
    """What the op returns for these arguments; for results that are arguments, what they become.

    Raises what torch raises for wrong arguments, NotImplementedError when torch has no meta kernel,
    or the sizes depend on values.
    """
    key = (
        arrived.op,
        torch.get_default_dtype(),
        _signature(args, arrived.pointwise),
        tuple((name, _signature(value, arrived.pointwise)) for name, value in kwargs.items()),
    )
    found = _known.get(key)
    if found is None:
        found = _by_meta(arrived, args, kwargs)
        if arrived.row in _BATCH_NORMS and not _trains(arrived, args, kwargs):
            found = (found[0], *(_EMPTY_STATISTIC,) * (len(found) - 1))
        if arrived.row == "aten.native_group_norm.default":  # as layer_norm has them
            found = (found[0], *(x and replace(x, dtype=torch.float32) for x in found[1:]))
        _known.put(key, found)
    return found


def _trains(arrived: ArrivingOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """The op's argument `training`, which ops for evaluation alone have not."""
    return bool(named_arguments(arrived.op, args, kwargs).get("training", False))


def _signature(value: Any, pointwise: bool) -> Any:
    """All of an argument that results' shapes depend on. 1, 1.0 and True differ."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.stride(), value.device.type
    if isinstance(value, list | tuple):
        return tuple(_signature(item, pointwise) for item in value)
    if isinstance(value, torch.Generator):
        return torch.Generator
    if pointwise and isinstance(value, float):
        return float
    return type(value), value


def _by_meta(arrived: ArrivingOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ResultShapes:
    made = _made_on("meta", arrived, args, kwargs)
    results: Sequence[Any] = made if isinstance(made, list | tuple) else (made,)
    if arrived.outs:
        results = _as_computed(arrived, args, kwargs) or results
        for name, x in zip(arrived.outs, results, strict=True):
            if x is not None:
                require_cast(x.dtype, kwargs[name].dtype)
    return tuple(
        ResultShape(tuple(x.shape), tuple(x.stride()), x.dtype)
        if isinstance(x, torch.Tensor)
        else None
        for x in results
    )


def _as_computed(
    arrived: ArrivingOp, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Sequence[Any] | None:
    """Results of the form without `out`: in the type in which the op computes, which is another
    than that of `out` for a comparison into fp32, or the largest of int32. None if there is no
    such form.
    """
    plain = without_out(arrived.op)
    if plain is None or is_factory(plain):
        return None
    given = {name: value for name, value in kwargs.items() if name not in arrived.outs}
    found = _by_meta(arriving(plain), args, given)
    return [
        None if x is None else torch.empty_strided(x.sizes, x.strides, dtype=x.dtype, device="meta")
        for x in found
    ]


def _is_number(value: Any) -> bool:
    """Whether a tensor argument arrived as the number that stands for it."""
    return isinstance(value, bool | int | float)


def _made_on(
    device: str, arrived: ArrivingOp, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """What the op returns for arguments without contents, on torch's device for shapes; on the CPU
    where that fails for empty tensors, or as some of its formulas divide by a size less 1."""
    places = zip(args, arrived.op._schema.arguments, strict=False)
    given = [
        _number(value)
        if _is_number(value) and str(a.type) == "Tensor"
        else _without_contents(value, device)
        for value, a in places
    ]
    named = {name: _without_contents(value, device) for name, value in kwargs.items()}
    try:
        return arrived.op(*given, **named)
    except (ZeroDivisionError, RuntimeError, TypeError) as error:
        tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)]
        empty = not any(x.numel() for x in tensors if x.dim())
        if device == "cpu" or not (empty or isinstance(error, ZeroDivisionError)):
            raise
        return _made_on("cpu", arrived, args, kwargs)


def _number(value: float) -> torch.Tensor:
    """A number in the place of a tensor. Its type counts less than that of any tensor, as torch
    has it of numbers: int8 // 2 is int8, of a tensor without dimensions too."""
    number = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    _core.mark_number(number)
    return number


def _without_contents(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)
    if isinstance(value, list | tuple):
        return [_without_contents(item, device) for item in value]
    if isinstance(value, torch.device):
        return torch.device(device)
    if isinstance(value, torch.Generator):
        return None
    return value
