# SPDX-License-Identifier: Apache-2.0
"""An op that ran by smaller ops, compared as a whole with CPU torch.

The smaller ops have bounds of their own; that they make the op, no bound says. This comparison is
loose, for a definition rounds and sums in another order, and finds definitions that are wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from driver.capture.single import argument_kinds
from driver.torch_device.check import Check
from driver.torch_device.overloads import Overload, arriving

Tensor = torch.Tensor

_TOLERANCES = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 6e-2}
"""Of a result's own size and, an eighth of it, of the largest result. Integers are equal."""
_SHARE_OF_LARGEST = 1 / 8
_ERRORS_OF_CPU = 16
"""Times the largest error of CPU torch, with regard to float64, that is admitted as well: where the
op magnifies every rounding."""
_SHARE_OF_OPERANDS = 2.0**-20
"""Of the largest operand, admitted as well: what is left of terms that cancel."""
_PARTS = {torch.complex64: torch.float32, torch.complex32: torch.float16}
_SHORT = (torch.float16, torch.bfloat16)
_NO_KERNEL = "Could not run"
"""Of torch's error for an op that only accelerators have."""

Results = Sequence[Tensor]


def _all(results: Results) -> list[Tensor]:
    return list(results)


def _first(results: Results) -> list[Tensor]:
    """Without places, of which there may be several, and without factors for a gradient."""
    return list(results[:1])


def _of_svd(results: Results) -> list[Tensor]:
    """The singular values, and what the factors make: their signs are free."""
    left, values, right = results
    if not left.numel():
        return [values]
    size = values.shape[-1]
    made = left[..., :size] * values[..., None, :] @ right[..., :size, :]
    return [values, made]


def _of_eigh(results: Results) -> list[Tensor]:
    values, vectors = results
    return [values, vectors * values[..., None, :] @ vectors.mT] if vectors.numel() else [values]


def _of_qr(results: Results) -> list[Tensor]:
    """Of a matrix that has not full rank, Q is not the only one."""
    left, upper = results
    return [left @ upper, left.mT @ left] if left.numel() else [upper.mT @ upper]


def _of_geqrf(results: Results) -> list[Tensor]:
    factors, tau = results
    size = tau.shape[-1]
    return [
        torch.linalg.householder_product(factors[..., :size], tau) @ factors[..., :size, :].triu()
    ]


def _of_lu(results: Results) -> list[Tensor]:
    """Of two pivots of about one size, either will do."""
    permutation, lower, upper = results
    return [permutation @ lower @ upper]


def _of_lu_factors(results: Results) -> list[Tensor]:
    factors, pivots, _ = results
    return _of_lu(torch.lu_unpack(factors, pivots))


def _info(results: Results) -> Tensor:
    """Matrices for which there is a result: those that are not singular."""
    return results[-1] == 0


@dataclass(frozen=True)
class _Comparison:
    """What of an op's results, on the CPU, has one right value."""

    values: Callable[[Results], list[Tensor]] = _all
    sound: Callable[[Results], Tensor] | None = None
    """Of which matrices of the batch; both the NPU and CPU torch must say so."""


_COMPARED: dict[str, _Comparison] = {
    **dict.fromkeys(
        (
            *("aten.mode.default", "aten.nanmedian.dim", "aten.linalg_lstsq.default"),
            *("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default"),
        ),
        _Comparison(_first),
    ),
    "aten._linalg_svd.default": _Comparison(_of_svd),
    "aten._linalg_eigh.default": _Comparison(_of_eigh),
    "aten.linalg_qr.default": _Comparison(_of_qr),
    "aten.geqrf.default": _Comparison(_of_geqrf),
    "aten.linalg_lu.default": _Comparison(_of_lu),
    "aten.linalg_lu_factor_ex.default": _Comparison(_of_lu_factors, _info),
    "aten._linalg_det.default": _Comparison(_first),
    "aten._linalg_slogdet.default": _Comparison(
        lambda results: list(results[:2]), lambda results: results[1].isfinite()
    ),
    **dict.fromkeys(
        (
            *("aten._linalg_solve_ex.default", "aten.linalg_inv_ex.default"),
            "aten.linalg_cholesky_ex.default",
        ),
        _Comparison(_first, _info),
    ),
}
_ANY = _Comparison()
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
        self._comparison = _COMPARED.get(str(op), _ANY)
        kinds = argument_kinds(str(op))
        self._widened = False
        """Whether CPU torch ran it in float32 instead of 16 bits."""
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
            expected = self._expected()
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            if _NO_KERNEL not in str(error):
                with self._check.lock:
                    report.refused_by_cpu[name] += 1
            return
        found = _on_cpu(made)
        sound = self._sound(found, expected)
        compared = 0
        pairs = zip(self._values(found, sound), self._values(expected, sound), strict=True)
        for at, (mine, theirs) in enumerate(pairs):
            if not mine.numel() and name in _UNASKED:
                continue
            text = self._difference(at, mine, theirs, sound)
            if text is not None:
                where = self._check.origin()
                self._check.refuse(f"npu: {name} is wrong (its smaller ops) at {where}: {text}")
            compared += theirs.numel()
        with self._check.lock:
            report.whole[name] += compared

    def _expected(self) -> list[Tensor]:
        """By CPU torch, in float32 where it has no kernel for a type of 16 bits."""
        try:
            return self._by_cpu(_as_given)
        except NotImplementedError as error:
            given = [*tree_leaves(self._args), *tree_leaves(self._kwargs)]
            shorter = any(isinstance(x, Tensor) and x.dtype in _SHORT for x in given)
            if _NO_KERNEL in str(error) or not shorter:
                raise
            self._widened = True
            return self._by_cpu(_as_single)

    def _sound(self, mine: Results, theirs: Results) -> Tensor | None:
        sound = self._comparison.sound
        return None if sound is None else sound(mine) & sound(theirs)

    def _values(self, results: Results, sound: Tensor | None) -> list[Tensor]:
        """The results that have one right value."""
        found = self._comparison.values(results)
        if sound is None:
            return found
        return [x[sound] for x in found if x.shape[: sound.dim()] == sound.shape]

    def _by_cpu(self, given: Callable[[Any], Any]) -> list[Tensor]:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            args = [given(value) for value in self._args]
            kwargs = {name: given(value) for name, value in self._kwargs.items()}
            return _on_cpu(self._op(*args, **kwargs))

    def _largest(self) -> float:
        """Of the elements of all operands."""
        given = [*tree_leaves(self._args), *tree_leaves(self._kwargs)]
        return max((_largest(x) for x in given if _is_fraction(x)), default=0.0)

    def _difference(
        self, at: int, mine: Tensor, theirs: Tensor, sound: Tensor | None
    ) -> str | None:
        """What is wrong with a result, in words; None if nothing is."""
        kinds = f"{mine.dtype} {list(mine.shape)}", f"{theirs.dtype} {list(theirs.shape)}"
        if self._widened and mine.dtype in _SHORT and theirs.dtype is torch.float32:
            theirs = theirs.to(mine.dtype)
        alike = mine.dtype is theirs.dtype
        if mine.shape != theirs.shape or not alike:
            return f"result {at} is {kinds[0]}, on the CPU {kinds[1]}".replace("torch.", "")
        bad = _too_far(mine, theirs, self._largest())
        if not bad.any():
            return None
        if theirs.is_floating_point():
            try:
                truth = self._values(self._by_cpu(_as_double), sound)[at]
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


def _on_cpu(made: Any) -> list[Tensor]:
    return [x.detach().cpu() for x in tree_leaves(made) if isinstance(x, Tensor)]


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


def _as(dtype: torch.dtype | None) -> Callable[[Any], Any]:
    """What copies an argument, which an op in place may write to; fractions in that type, if any is
    given."""

    def convert(value: Any) -> Any:
        if isinstance(value, list):
            return [convert(item) for item in value]
        if isinstance(value, Tensor):
            kept = dtype is None or not value.is_floating_point()
            return value.clone() if kept else value.to(dtype, copy=True)
        return value

    return convert


_as_given, _as_single, _as_double = _as(None), _as(torch.float32), _as(torch.float64)


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
    """Where the result is about as near to float64 as that of CPU torch is anywhere, or CPU torch
    has a number where float64 has none: of a matrix that is singular but for roundings."""
    finite = truth.isfinite() & theirs.isfinite()
    errors = (theirs - truth).abs()[finite]
    room = _ERRORS_OF_CPU * errors.max() if errors.numel() else torch.tensor(0.0)
    undecided = theirs.isfinite() & ~truth.isfinite()
    return mine.isfinite() & (undecided | ((mine - truth).abs() <= room))
