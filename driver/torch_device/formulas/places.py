# SPDX-License-Identifier: Apache-2.0
"""Reading, writing and reducing at places; order statistics."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any, cast

import torch

from driver.errors import UnsupportedOp

Tensor = torch.Tensor

_MOST_PAIRS = 1 << 24
"""Pairs of place and element that one reduction may make."""


# ---------------------------------------------------------------------- distinct elements
def _groups(
    first: Tensor, return_inverse: bool, return_counts: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Where groups of a row begin, the group of each element, the sizes of groups."""
    begins = first.nonzero().squeeze(1)
    none = torch.empty(0, dtype=torch.int64, device=first.device)
    groups = first.long().cumsum(0) - 1 if return_inverse else none
    if not return_counts:
        return begins, groups, none
    end = torch.full((1,), first.shape[0], dtype=torch.int64, device=first.device)
    return begins, groups, torch.cat([begins[1:], end]) - begins


def _first_of_run(rows: Tensor) -> Tensor:
    """For [n, …] where a row differs from the one before."""
    count = max(rows.shape[0] - 1, 0)
    other = (rows[1:] != rows[:-1]).reshape(count, math.prod(rows.shape[1:])).any(1)
    head = torch.ones(min(1, rows.shape[0]), dtype=torch.bool, device=rows.device)
    return torch.cat([head, other])


def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """One of each run of equal elements, or of equal slices."""
    rows = self.reshape(-1) if dim is None else self.movedim(dim, 0)
    begins, groups, counts = _groups(_first_of_run(rows), return_inverse, return_counts)
    found = rows[begins]
    if dim is None:
        return found, groups.reshape(self.shape) if return_inverse else groups, counts
    return found.movedim(0, dim), groups, counts


def unique2(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct elements, which of them each element is, and how often each occurs."""
    values, order = self.reshape(-1).sort()
    begins, groups, counts = _groups(_first_of_run(values), return_inverse, return_counts)
    if return_inverse:
        groups = torch.zeros_like(groups).scatter(0, order, groups).reshape(self.shape)
    return values[begins], groups, counts


def unique(
    self: Tensor, sorted: bool = True, return_inverse: bool = False
) -> tuple[Tensor, Tensor]:
    """The same without counts."""
    return unique2(self, sorted, return_inverse)[:2]


def unique_dim(
    self: Tensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct slices in the order of their first, second, … element."""
    rows = self.movedim(dim, 0)
    columns = rows.reshape(rows.shape[0], math.prod(rows.shape[1:]))
    if columns.shape[1] > _MOST_COLUMNS:
        expected = f"at most {_MOST_COLUMNS} elements in a slice"
        raise UnsupportedOp("aten.unique_dim.default", "self", tuple(self.shape), expected)
    order = torch.arange(rows.shape[0], device=self.device)
    for column in reversed(range(columns.shape[1])):
        order = order[columns[order, column].sort(stable=True).indices]
    ordered = rows[order]
    begins, groups, counts = _groups(_first_of_run(ordered), return_inverse, return_counts)
    if return_inverse:
        groups = torch.zeros_like(groups).scatter(0, order, groups)
    return ordered[begins].movedim(0, dim), groups, counts


_MOST_COLUMNS = 256


# ---------------------------------------------------------------------- reductions at places
def scatter_by(self: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    """What scatter_reduce does, by its former name."""
    if reduce == "add":
        return self.scatter_add(dim, index, src)
    if reduce == "multiply":
        return self.scatter_reduce(dim, index, src, "prod")
    raise RuntimeError("reduce argument must be either add or multiply.")


def scatter_number(self: Tensor, dim: int, index: Tensor, value: float, *, reduce: str) -> Tensor:
    """The same of one number for all."""
    src = torch.full(index.shape, value, dtype=self.dtype, device=self.device)
    return scatter_by(self, dim, index, src, reduce=reduce)


def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """self plus alpha·source at these positions of a dimension."""
    if not self.dim():
        rows = self.reshape(1), index.reshape(-1), source.reshape(-1)
        return index_add(rows[0], 0, *rows[1:], alpha=alpha).reshape(())
    shape = [-1 if d == dim % self.dim() else 1 for d in range(self.dim())]
    places = index.long().reshape(shape).expand(source.shape)
    return self.scatter_add(dim, places, (source * alpha).to(self.dtype))


def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Products: each place multiplies those elements whose index names it, over all pairs."""
    if reduce != "prod":
        return cast("Tensor", NotImplemented)
    if not self.dim():
        return scatter_reduce(
            *(self.reshape(1), 0, index.reshape(1), src.reshape(1), reduce),
            include_self=include_self,
        ).reshape(())
    if not index.numel():
        return self.clone()
    if not index.dim():
        index, src = index.reshape(1), src.reshape(1)
    rows, places = self.movedim(dim, -1), index.movedim(dim, -1)
    values = src[tuple(slice(0, size) for size in index.shape)].movedim(dim, -1)
    if places.numel() * rows.shape[-1] > _MOST_PAIRS:
        raise UnsupportedOp(
            "aten.scatter_reduce.two", "index", tuple(index.shape), f"at most {_MOST_PAIRS} pairs"
        )
    own = torch.arange(rows.shape[-1], device=self.device)
    # Comparing would pass over an index that is no place; reading by it fails.
    places = own.index_select(0, places.reshape(-1)).reshape(places.shape)
    hits = places[..., None] == own
    factors = torch.where(hits, values[..., None], 1).to(self.dtype)
    touched = hits.any(-2)
    result = rows.clone()
    part = result[tuple(slice(0, size) for size in touched.shape)]
    if include_self:  # as one more factor: 0 times what other factors overflow to is no number
        factors = torch.cat([part[..., None, :], factors], -2)
    found = (factors.float() if factors.is_floating_point() else factors).prod(-2)
    part.copy_(torch.where(touched, found.to(self.dtype), part))
    return result.movedim(-1, dim)


_COUNTED = frozenset(
    (torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.uint8)
)


def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Counts of types that fp32 holds; of integers those up to 2²⁴."""
    if self.dtype not in _COUNTED:
        return cast("Tensor", NotImplemented)
    if not self.is_floating_point() and self.numel():
        ends = [abs(int(x.item())) for x in torch.aminmax(self)]
        if builtins.max(ends) > 1 << 24:
            raise UnsupportedOp("aten.histc.default", "self", builtins.max(ends), "at most 2**24")
    return torch.histc(self.float(), bins, min, max).to(self.dtype)


def index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """As scatter_reduce, with an index that is the same for all rows."""
    if not self.dim():
        return index_reduce(
            *(self.reshape(1), 0, index.reshape(-1), source.reshape(-1), reduce),
            include_self=include_self,
        ).reshape(())
    shape = [-1 if d == dim % self.dim() else 1 for d in range(self.dim())]
    places = index.long().reshape(shape).expand(source.shape)
    return torch.scatter_reduce(self, dim, places, source, reduce, include_self=include_self)


# ---------------------------------------------------------------------- flat places
def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Elements written at their numbers in the whole tensor."""
    if source.numel() != index.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.numel()}, index.numel() = {index.numel()}"
        )
    flat = self.reshape(-1)
    places = index.reshape(-1).long()
    places = torch.where(places < 0, places + flat.numel(), places)
    if places.numel() and not (int(places.min()) >= 0 and int(places.max()) < flat.numel()):
        raise IndexError(f"put_: index out of range for a tensor of {flat.numel()} elements")
    written = flat.index_put([places], source.reshape(-1), accumulate)
    return self.copy_(written.reshape(self.shape))


def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The places of elements that are not 0, cut or filled up to `size`."""
    found = self.nonzero()[:size]
    made = torch.full((size, self.dim()), fill_value, dtype=torch.int64, device=self.device)
    made[: found.shape[0]] = found
    return made


# ---------------------------------------------------------------------- order statistics
def median(self: Tensor) -> Tensor:
    """Of no element: NaN. The row has the others."""
    if self.numel() or not self.is_floating_point():
        raise UnsupportedOp("aten.median.default", "self", tuple(self.shape), "what its row takes")
    return torch.full((), math.nan, dtype=self.dtype, device=self.device)


def nanmedian_dim(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower median of the elements that are numbers, and where it is."""
    if not self.dim():
        return self.clone(), torch.zeros((), dtype=torch.int64, device=self.device)
    if not self.shape[dim]:
        raise IndexError("nanmedian(): Expected reduction dim to have a non-zero size")
    values, places = self.sort(dim)
    count = (~self.isnan()).sum(dim, keepdim=True)
    middle = torch.where(count > 0, count - 1, 0).div(2, rounding_mode="floor")
    found = values.gather(dim, middle), places.gather(dim, middle)
    return found if keepdim else (found[0].squeeze(dim), found[1].squeeze(dim))


def nanmedian(self: Tensor) -> Tensor:
    """The lower median of all elements that are numbers."""
    if not self.numel():
        return torch.full((), math.nan, dtype=self.dtype, device=self.device)
    return nanmedian_dim(self.reshape(-1), 0)[0]


def _are_equal(x: Tensor, y: Tensor) -> Tensor:
    """As a sort has it: NaN equals NaN."""
    return (x == y) | (x.isnan() & y.isnan()) if x.is_floating_point() else x == y


def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The most frequent value, the least of equally frequent ones, and its last place."""
    if not self.dim():
        return self.clone(), torch.zeros((), dtype=torch.int64, device=self.device)
    rows = self.movedim(dim, -1)
    size = rows.shape[-1]
    if rows.numel() * size > _MOST_PAIRS:
        raise UnsupportedOp(
            "aten.mode.default", "self", tuple(self.shape), f"at most {_MOST_PAIRS} pairs"
        )
    ordered = rows.sort(-1).values
    counts = _are_equal(ordered[..., :, None], ordered[..., None, :]).sum(-1)
    value = ordered.gather(-1, counts.argmax(-1, keepdim=True))
    numbers = torch.arange(size, device=self.device)
    place = torch.where(_are_equal(rows, value), numbers, 0).amax(-1, keepdim=True)
    found = value.movedim(-1, dim), place.movedim(-1, dim)
    return found if keepdim else (found[0].squeeze(dim), found[1].squeeze(dim))


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "aten.index_add.default": index_add,
    "aten._unique2.default": unique2,
    "aten._unique.default": unique,
    "aten.unique_dim.default": unique_dim,
    "aten.unique_consecutive.default": unique_consecutive,
    "aten.scatter.reduce": scatter_by,
    "aten.scatter.value_reduce": scatter_number,
    "aten.scatter_reduce.two": scatter_reduce,
    "aten.histc.default": histc,
    "aten.index_reduce.default": index_reduce,
    "aten.put_.default": put_,
    "aten.nonzero_static.default": nonzero_static,
    "aten.median.default": median,
    "aten.nanmedian.default": nanmedian,
    "aten.nanmedian.dim": nanmedian_dim,
    "aten.mode.default": mode,
}
