# SPDX-License-Identifier: Apache-2.0
"""Bags of rows of a table: their sums, means or largest elements, and the gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from driver.torch_device.formulas.special import floating, rounded

Tensor = torch.Tensor
_MEAN, _MAX = 1, 2


def _bags(indices: Tensor, offsets: Tensor, include_last_offset: bool) -> tuple[int, Tensor]:
    """How many there are, and the bag of each index."""
    size = indices.shape[0]
    if offsets.shape[0]:
        first, last = int(offsets[0]), int(offsets[-1])
        if first:
            raise RuntimeError(f"offsets[0] has to be 0, but got {first}")
        if last > size:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length: {size} but got {last}"
            )
    starts = offsets[:-1] if include_last_offset else offsets
    places = torch.arange(size, dtype=starts.dtype, device=starts.device)
    return starts.shape[0], torch.searchsorted(starts, places, right=True) - 1


def _counted(indices: Tensor, bags: Tensor, padding_idx: int) -> tuple[Tensor, Tensor, Tensor]:
    """The places of the indices that are no padding, their bags, and these indices."""
    counted = bags >= 0
    if padding_idx >= 0:
        counted = counted & (indices != padding_idx)
    kept = counted.nonzero().squeeze(1)
    return kept, bags[kept], indices[kept]


def _times(rows: Tensor, per_sample_weights: Tensor | None, kept: Tensor) -> Tensor:
    if per_sample_weights is None:
        return rows
    return rows * floating(per_sample_weights[kept]).unsqueeze(1)


def _largest(rows: Tensor, bags: Tensor, indices: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Of each bag and column; and the index that it has, the first of several."""
    columns = bags.unsqueeze(1).expand(rows.shape)
    found = rows.new_zeros(count, rows.shape[1])
    found = found.scatter_reduce(0, columns, rows, "amax", include_self=False)
    size = rows.shape[0]
    if not size:
        return found, indices.new_zeros(found.shape)
    places = torch.arange(size, dtype=torch.int32, device=rows.device).unsqueeze(1)
    places = torch.where(rows == found[bags], places, size)
    first = places.new_full(found.shape, size).scatter_reduce(0, columns, places, "amin")
    return found, torch.where(first < size, indices[first.clamp(max=size - 1).long()], 0)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """[bags, columns], the bag of each index, the indices that count in each bag, and the index of
    each largest element."""
    count, bags = _bags(indices, offsets, include_last_offset)
    kept, of, used = _counted(indices, bags, padding_idx)
    rows = floating(weight[used])
    sizes = bags.new_zeros(count).index_add(0, of, torch.ones_like(of))
    if mode == _MAX:
        found, largest = _largest(rows, of, used, count)
        return rounded(found, weight), bags, sizes, largest
    rows = _times(rows, per_sample_weights, kept)
    found = rows.new_zeros(count, weight.shape[1]).index_add(0, of, rows)
    if mode == _MEAN:
        found = found / sizes.clamp(min=1).unsqueeze(1)
    return rounded(found, weight), bags, sizes, torch.zeros_like(sizes)


def dense_backward(
    grad: Tensor,
    indices: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Any:
    """The gradient of the table. NotImplemented with a scale: CPU torch divides by the frequency of
    another index, so that nothing can be compared with it."""
    if scale_grad_by_freq:
        return NotImplemented
    slope = floating(grad)
    found = slope.new_zeros(num_weights, grad.shape[1])
    if mode == _MAX:
        slope = torch.where(bag_size.unsqueeze(1) > 0, slope, 0.0)
        return rounded(found.scatter_add(0, maximum_indices, slope), grad)
    kept, of, used = _counted(indices, offset2bag, padding_idx)
    rows = slope[of]
    if mode == _MEAN:
        rows = rows / bag_size[of].unsqueeze(1)
    rows = _times(rows, per_sample_weights, kept)
    return rounded(found.index_add(0, used, rows), grad)


def backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Any:
    """The gradient of the table. NotImplemented for a sparse one."""
    if sparse:
        return NotImplemented
    sizes = (bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode)
    return dense_backward(grad, indices, offset2bag, *sizes, per_sample_weights, padding_idx)


def weights_backward(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    """The gradient of the factors of sums."""
    kept, of, used = _counted(indices, offset2bag, padding_idx)
    slopes = (floating(grad)[of] * floating(weight[used])).sum(1)
    return rounded(slopes.new_zeros(indices.shape).index_copy(0, kept, slopes), grad)


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "aten._embedding_bag.default": embedding_bag,
    "aten._embedding_bag_forward_only.default": embedding_bag,
    "aten._embedding_bag_backward.default": backward,
    "aten._embedding_bag_dense_backward.default": dense_backward,
    "aten._embedding_bag_per_sample_weights_backward.default": weights_backward,
}
