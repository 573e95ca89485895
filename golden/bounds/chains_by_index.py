# SPDX-License-Identifier: Apache-2.0
"""Sums into chosen elements as chains: each element's addends in row-major order, after what was
there. The error is that of golden.bounds.chains, with addends in place of products.

Chains of about the same length are summed together, as the rows of a matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
import torch

from golden.bounds.chains import Sums
from golden.bounds.reductions import finite
from golden.calls import OpCall, base_name
from golden.formats import Floats

Tensor = torch.Tensor


@dataclass(frozen=True)
class Addends:
    """What an op adds, and where to."""

    start: Tensor
    """What was there, in the shape of the result."""
    places: Tensor
    """The flat place of each addend in `start`."""
    values: Tensor
    """The addends, in the order in which they are added."""

    def hits(self) -> Floats:
        """How many addends each element of the result has."""
        counts = np.bincount(self.places.numpy().reshape(-1), minlength=self.start.numel())
        return np.asarray(counts.reshape(self.start.shape), dtype=np.float64)

    def sums(self) -> Sums:
        """Of each element's chain; an addend that is no finite number counts as 0."""
        places, values = self.places.numpy().reshape(-1), _floats(self.values)
        found = Sums.starting(_floats(self.start))
        order = np.argsort(places, kind="stable")
        places, values = places[order], values[order]
        targets, firsts, lengths = np.unique(places, return_index=True, return_counts=True)
        classes = np.frexp(lengths - 0.5)[1]  # 1; 2; 3, 4; 5 … 8; …
        for size in np.unique(classes):
            chosen = classes == size
            _add(found, targets[chosen], firsts[chosen], lengths[chosen], values)
        shape = tuple(self.start.shape)
        sides = (found.total, found.absolute, found.running, found.peak)
        return Sums(*(side.reshape(shape) for side in sides))


def _floats(x: Tensor) -> Floats:
    return np.asarray(finite(x).reshape(-1).numpy(), dtype=np.float64)


def _add(sums: Sums, targets: Floats, firsts: Floats, lengths: Floats, values: Floats) -> None:
    """Chains whose addends lie one after the other in `values`, as rows filled up with zeros."""
    steps = np.arange(lengths.max())
    inside = steps < lengths[:, None]
    at = np.where(inside, firsts[:, None] + steps, 0)
    rows = np.where(inside, values[at], 0.0)
    partial = np.cumsum(np.column_stack([sums.total[targets], rows]), axis=1)[:, 1:]
    magnitudes = np.abs(partial)
    sums.total[targets] = partial[:, -1]
    sums.absolute[targets] += np.abs(rows).sum(1)
    sums.running[targets] = np.where(inside, magnitudes, 0.0).sum(1)
    sums.peak[targets] = np.maximum(sums.peak[targets], magnitudes.max(1))


def addends_of(call: OpCall) -> Addends:
    """Of an op of `_ADDENDS`. KeyError for another."""
    return _ADDENDS[base_name(call.op)](call)


def _grid(x: Tensor) -> Tensor:
    """Each element's flat place."""
    return torch.arange(x.numel()).reshape(x.shape)


def _line(x: Tensor) -> Tensor:
    return x if x.dim() else x.reshape(1)


def _scattered(call: OpCall) -> Addends:
    self, index, source = (_line(call[name]) for name in ("self", "index", "src"))
    places = _grid(self).gather(call["dim"], index)
    values = source[tuple(slice(0, size) for size in index.shape)]
    start = self
    if not call.arguments.get("include_self", True):
        start = self.scatter(call["dim"], index, torch.zeros_like(values))
    return Addends(start.reshape(call["self"].shape), places, values)


def _added_lines(call: OpCall) -> Addends:
    self, index = _line(call["self"]), _line(call["index"])
    places = _grid(self).index_select(call["dim"], index)
    return Addends(call["self"], places, call["source"].double() * call["alpha"])


def _put(call: OpCall) -> Addends:
    places = torch.ops.aten.index.Tensor(_grid(call["self"]), call["indices"])
    return Addends(call["self"], places, call["values"].expand(places.shape))


def _rows_of_gradient(call: OpCall) -> Addends:
    indices = call["indices"].reshape(-1)
    rows = call["grad_output"].reshape(indices.numel(), -1)
    start = torch.zeros(call["num_weights"], rows.shape[1], dtype=rows.dtype)
    kept = indices != call["padding_idx"]
    indices, rows = indices[kept], rows[kept]
    if call["scale_grad_by_freq"]:
        uses = torch.bincount(indices, minlength=len(start))[indices]
        rows = rows.double() / uses[:, None]
    return Addends(start, _grid(start)[indices], rows)


def _of_maxima(dims: int) -> Callable[[OpCall], Addends]:
    def addends(call: OpCall) -> Addends:
        start, indices = torch.zeros_like(call["self"]), call["indices"]
        plane = prod(start.shape[-dims:])
        planes = torch.arange(start.numel() // max(plane, 1)) * plane
        places = indices + planes.reshape(*start.shape[:-dims], *[1] * dims)
        return Addends(start, places, call["grad_output"])

    return addends


_ADDENDS: dict[str, Callable[[OpCall], Addends]] = {
    **dict.fromkeys(("scatter_add", "scatter_reduce"), _scattered),
    "index_add": _added_lines,
    **dict.fromkeys(("index_put", "_unsafe_index_put"), _put),
    "embedding_dense_backward": _rows_of_gradient,
    **{f"max_pool{dims}d_with_indices_backward": _of_maxima(dims) for dims in (2, 3)},
    **{f"adaptive_max_pool{dims}d_backward": _of_maxima(dims) for dims in (2, 3)},
}
