# SPDX-License-Identifier: Apache-2.0
"""An op that ran by smaller ops, compared as a whole with CPU torch.

The smaller ops have bounds of their own; that they make the op, no bound says. This comparison is
loose, for a definition rounds and sums in another order, and finds definitions that are wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from driver.torch_device.check import Check
from driver.torch_device.overloads import Overload, arriving

Tensor = torch.Tensor

_TOLERANCES = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 6e-2}
"""Of a result's own size and, an eighth of it, of the largest result. Integers are equal."""
_SHARE_OF_LARGEST = 1 / 8
_ERRORS_OF_CPU = 4
"""Times the largest error of CPU torch, with regard to float64, that is admitted as well: where the
op magnifies every rounding."""
_SHARE_OF_OPERANDS = 2.0**-20
"""Of the largest operand, admitted as well: what is left of terms that cancel."""
_PARTS = {torch.complex64: torch.float32, torch.complex32: torch.float16}
_SHORT = (torch.float16, torch.bfloat16)


def _of_svd(results: Sequence[Tensor]) -> list[Tensor]:
    """The singular values, and what the factors make: their signs are free."""
    left, values, right = results
    if not left.numel():
        return [values]
    size = values.shape[-1]
    made = left[..., :size] * values[..., None, :] @ right[..., :size, :]
    return [values, made]


def _of_eigh(results: Sequence[Tensor]) -> list[Tensor]:
    values, vectors = results
    return [values, vectors * values[..., None, :] @ vectors.mT] if vectors.numel() else [values]


def _values(results: Sequence[Tensor]) -> list[Tensor]:
    """Without their places, of which there may be several."""
    return list(results[:1])


_COMPARED: dict[str, Callable[[Sequence[Tensor]], list[Tensor]]] = {
    **dict.fromkeys(("aten.mode.default", "aten.nanmedian.dim"), _values),
    "aten._linalg_svd.default": _of_svd,
    "aten._linalg_eigh.default": _of_eigh,
}
"""Op → what of its results, on the CPU, has one right value."""
_UNASKED = frozenset(("aten.unique_dim.default", "aten.unique_consecutive.default"))
"""Ops that return on the CPU also what was not asked for; it is empty here."""


class WholeOp:
    """An op about to run by smaller ones, its arguments kept as they are before it."""

    def __init__(
        self, check: Check, op: Overload, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self._check = check
        self._op = op
        self._random = arriving(op).random
        kinds = {a.name: str(a.type) for a in op._schema.arguments}
        self._args = [_on_host(x, kind) for x, kind in zip(args, kinds.values(), strict=False)]
        self._kwargs = {name: _on_host(value, kinds[name]) for name, value in kwargs.items()}

    def judge(self, made: Any) -> None:
        """Compare what was made. WrongResult for the first element that cannot be right."""
        report, name = self._check.report, str(self._op)
        with self._check.lock:
            report.decomposed[name] += 1
        if self._random:
            return
        try:
            expected = self._by_cpu(_as_given)
        except NotImplementedError:  # an op of accelerators
            return
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            if "Could not run" not in str(error):
                with self._check.lock:
                    report.refused_by_cpu[name] += 1
            return
        compared = 0
        for at, (mine, theirs) in enumerate(zip(self._own(made), expected, strict=True)):
            if not mine.numel() and name in _UNASKED:
                continue
            found = self._difference(at, mine, theirs)
            if found is not None:
                where = self._check.origin()
                self._check.refuse(f"npu: {name} is wrong (its smaller ops) at {where}: {found}")
            compared += theirs.numel()
        with self._check.lock:
            report.whole[name] += compared

    def _by_cpu(self, given: Callable[[Any], Any]) -> list[Tensor]:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            args = [given(value) for value in self._args]
            kwargs = {name: given(value) for name, value in self._kwargs.items()}
            return self._own(self._op(*args, **kwargs))

    def _largest(self) -> float:
        """Of the elements of all operands."""
        given = [*tree_leaves(self._args), *tree_leaves(self._kwargs)]
        return max((_largest(x) for x in given if _is_fraction(x)), default=0.0)

    def _own(self, made: Any) -> list[Tensor]:
        """The results that have one right value, on the CPU."""
        found = [x.detach().cpu() for x in tree_leaves(made) if isinstance(x, Tensor)]
        return _COMPARED[str(self._op)](found) if str(self._op) in _COMPARED else found

    def _difference(self, at: int, mine: Tensor, theirs: Tensor) -> str | None:
        """What is wrong with a result, in words; None if nothing is."""
        kinds = f"{mine.dtype} {list(mine.shape)}", f"{theirs.dtype} {list(theirs.shape)}"
        alike = mine.dtype is theirs.dtype or {mine.dtype, theirs.dtype} <= {torch.float32, *_SHORT}
        if mine.shape != theirs.shape or not alike:
            return f"result {at} is {kinds[0]}, on the CPU {kinds[1]}".replace("torch.", "")
        bad = _too_far(mine, theirs, self._largest())
        if not bad.any():
            return None
        if theirs.is_floating_point():
            try:
                truth = self._by_cpu(_as_double)[at]
            except (RuntimeError, IndexError):
                truth = theirs
            bad &= ~_as_near(mine.double(), theirs.double(), truth.double())
            if not bad.any():
                return None
        place = bad.nonzero()[0].tolist()
        return (
            f"element {place} of result {at} of {list(mine.shape)} is {mine[tuple(place)].item()!r}"
            f", on the CPU {theirs[tuple(place)].item()!r}"
        )


def _is_fraction(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def _largest(x: Tensor) -> float:
    """The largest absolute value that is finite; 0 where there is none."""
    finite = x[x.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _on_host(value: Any, kind: str) -> Any:
    """The argument as the CPU takes it, with tensors of their own memory."""
    if isinstance(value, list | tuple):
        return [_on_host(item, kind.removesuffix("[]")) for item in value]
    if kind == "Tensor" and isinstance(value, bool | int | float | complex):
        return torch.tensor(value)
    if isinstance(value, Tensor):
        return value.detach().cpu() if value.device.type != "cpu" else value.detach().clone()
    if isinstance(value, torch.device):
        return torch.device("cpu")
    return None if isinstance(value, torch.Generator) else value


def _as_given(value: Any) -> Any:
    """A copy, which an op in place may write to."""
    if isinstance(value, list):
        return [_as_given(item) for item in value]
    return value.clone() if isinstance(value, Tensor) else value


def _as_double(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_double(item) for item in value]
    if isinstance(value, Tensor):
        return value.double() if value.is_floating_point() else value.clone()
    return value


def _too_far(mine: Tensor, theirs: Tensor, operand: float) -> Tensor:
    """Where the elements differ by more than the tolerance of their type. `operand`: the largest
    one."""
    dtype = _PARTS.get(theirs.dtype, theirs.dtype)
    same = (mine == theirs) | (mine.isnan() & theirs.isnan())
    if dtype not in _TOLERANCES:
        return ~same
    wide = torch.complex128 if theirs.is_complex() else torch.float64
    a, b = mine.to(wide), theirs.to(wide)
    room = _TOLERANCES[dtype] * (b.abs() + _SHARE_OF_LARGEST * _largest(b))
    room = room + _SHARE_OF_OPERANDS * operand
    return ~same & ~(b.isfinite() & a.isfinite() & ((a - b).abs() <= room))


def _as_near(mine: Tensor, theirs: Tensor, truth: Tensor) -> Tensor:
    """Where the result is about as near to float64 as that of CPU torch is anywhere."""
    finite = truth.isfinite() & theirs.isfinite()
    errors = (theirs - truth).abs()[finite]
    room = _ERRORS_OF_CPU * errors.max() if errors.numel() else torch.tensor(0.0)
    return mine.isfinite() & ((mine - truth).abs() <= room)
