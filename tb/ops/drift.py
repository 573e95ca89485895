# SPDX-License-Identifier: Apache-2.0
"""How far a chain may drift from torch: what runs do that are as wrong as the ops' bounds allow.

Beside the NPU's run, torch runs the chain on buffers of its own three times. After each op the NPU
would have, each float of the result is moved within the op's own bound (golden.bounds): in the
first run always up by as much as is admissible, in the second always down, in the third by a random
part of it, up or down. Systematic errors add up as in the first two, independent ones as in the
third. The budget of a result is a multiple of the largest distance from torch's recorded result
that any of the three shows, or that the op's own bound admits: `multiple`.

So the budget is derived for each model and each of its results, from the same bounds as every
verdict, and carried by torch's own arithmetic: an ill-conditioned model has a large one. It is
infinite where an op claims nothing about an element, and for everything computed from that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from driver.capture import Capsule, Op, TensorRef
from driver.results import Drift
from golden.formats import Floats, Values
from golden.tensors import values_of
from tb.ops.images import BufferKey, Images, buffer_of

FACTOR = 4.0
"""The three runs are samples, and not the worst that the bounds admit."""

_RISK = 1e-4
"""How likely a result may be called wrong because the runs, by chance, all came close to torch."""

_DIRECTIONS = (1.0, -1.0, None)
"""Of the errors in each run; None: at random."""

Reaches = Sequence[Floats | None]
"""For each output of an op how far each element may be from the true value."""


def multiple(elements: int) -> float:
    """How many times the largest distance of the runs a result of so many elements may drift.

    Of k normal draws, the largest is below t standard deviations with a probability of at most
    (t·√(2/π))^k. So a further draw X is above F times it with at most F⁻ᵏ·(2/π)^(k/2)·E|X|ᵏ =
    (2/(F√π))ᵏ·Γ((k+1)/2)/√π. From four elements on FACTOR alone is enough; for a single one, such
    as the mean of a row, three draws say little.
    """
    draws = min(elements, 4) * len(_DIRECTIONS)
    moment = math.gamma((draws + 1) / 2) / math.sqrt(math.pi)
    return max(FACTOR, 2 / math.sqrt(math.pi) * math.pow(moment / _RISK, 1 / draws))


class PerturbedRuns:
    """Torch's runs of one capsule, op by op beside the NPU's, each with other errors."""

    def __init__(self, capsule: Capsule, seed: int) -> None:
        self._capsule = capsule
        self._noise = np.random.default_rng([seed, len(capsule.ops)])
        self._runs = [
            Images(capsule, lambda ref: capsule.data[ref.storage], shared=True) for _ in _DIRECTIONS
        ]
        self._open: set[BufferKey] = set()
        """Buffers about which nothing can be said any more."""

    def step(self, op: Op, reaches: Reaches = ()) -> None:
        """Run an op. `reaches`: of the NPU's result; none for what the CPU computes in any case."""
        if any(buffer_of(ref) in self._open for _, ref in op.refs()):
            self.give_up(op)
        for images, direction in zip(self._runs, _DIRECTIONS, strict=True):
            images.run(op)
            for ref, reach in zip(op.outputs, reaches, strict=False):
                if ref is not None and reach is not None and reach.size:
                    self._move(images.tensor(ref), reach, direction)
        for ref, reach in zip(op.outputs, reaches, strict=False):
            if ref is not None and reach is not None and not np.isfinite(reach).all():
                self._open.add(buffer_of(ref))

    def give_up(self, op: Op) -> None:
        """Claim nothing about the op's results, nor about what is computed from them."""
        self._open.update(buffer_of(ref) for ref in op.outputs if ref is not None)

    def budget(self, ref: TensorRef, recorded: Floats, reach: Floats | None) -> float | None:
        """How far a result of the last op may be from what torch had; None: nothing is claimed."""
        if buffer_of(ref) in self._open:
            return None
        found = [0.0 if reach is None else float(np.max(reach, initial=0.0))]
        for images in self._runs:
            found.append(distance(values_of(images.tensor(ref)), recorded))
        return multiple(recorded.size) * max(found) if all(map(math.isfinite, found)) else None

    def release(self, buffer: BufferKey) -> None:
        """Nothing names the buffer any more."""
        for images in self._runs:
            images.forget(buffer)

    def _move(self, result: torch.Tensor, reach: Floats, direction: float | None) -> None:
        if not result.is_floating_point():
            return
        part = self._noise.uniform(-1, 1, reach.shape) if direction is None else direction
        step = torch.from_numpy(np.asarray(np.where(np.isfinite(reach), reach, 0.0) * part))
        result.copy_(result.double() + step.reshape(result.shape))


def distance(values: Values, torch_values: Values) -> float:
    """Largest of `distances`; 0 without elements."""
    return float(np.max(distances(values, torch_values), initial=0.0))


def distances(values: Values, torch_values: Values) -> Floats:
    """|values − torch's| per element, in one dimension; what is not finite in both alike is 0, in
    one alone infinite."""
    left, right = (np.ravel(side).astype(np.float64) for side in (values, torch_values))
    both = np.isfinite(left) & np.isfinite(right)
    alike = (left == right) | (np.isnan(left) & np.isnan(right))
    with np.errstate(invalid="ignore"):
        return np.where(alike, 0.0, np.where(both, np.abs(left - right), np.inf))


def magnitude(values: Values) -> float:
    """The largest finite one; 0 without any."""
    flat = np.ravel(values).astype(np.float64)
    return float(np.max(np.abs(flat[np.isfinite(flat)]), initial=0.0))


def drift_between(npu: Values, torch_values: Values, budget: float | None = None) -> Drift:
    """How far the NPU's values are from torch's. What is not finite in both alike is no drift."""
    left, right = (np.ravel(values).astype(np.float64) for values in (npu, torch_values))
    both = np.isfinite(left) & np.isfinite(right)
    largest = distance(npu, torch_values)
    scale = magnitude(right[both])
    relative = largest / scale if scale else (0.0 if largest == 0 else float("inf"))
    cosine = _cosine(left[both], right[both])
    return Drift(max_abs=largest, max_rel=relative, cosine=cosine, budget=budget)


def _cosine(left: Floats, right: Floats) -> float:
    """By sums of their own: a BLAS would start its threads for every op."""
    norms = math.sqrt(float(np.sum(left * left)) * float(np.sum(right * right)))
    if norms == 0:
        return 1.0 if np.array_equal(left, right) else 0.0
    return float(np.clip(np.sum(left * right) / norms, -1.0, 1.0))
