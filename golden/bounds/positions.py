# SPDX-License-Identifier: Apache-2.0
"""Positions of elements in their rows: sort, argsort, topk, kthvalue, median.

A sort of the NPU is stable, so its positions are those of torch's stable sort. Which of several
equal elements topk, kthvalue and median point at is open; that they hold the value, and that no
element is named twice, is not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch

from golden.bounds.expectation import Admits, Expectation, Interval, Subject, exact, same_zeros
from golden.calls import OpCall
from golden.formats import Mask, Values
from golden.tensors import values_of


def in_order(subject: Subject) -> tuple[Expectation | None, ...]:
    """sort: values, and the positions of a stable sort; torch may have zeros in another order."""
    call = subject.call
    values = exact(_stably(call).values if call["self"].dim() else subject.answer(0))
    if values.true.dtype == np.float64:
        values = replace(values, chosen=partial(same_zeros, wanted=values.true))
    return values, _stable(subject, subject.answer(1))


def _stably(call: OpCall) -> torch.return_types.sort:
    return torch.sort(call["self"], dim=call["dim"], descending=call["descending"], stable=True)


def sorted_positions(subject: Subject) -> tuple[Expectation | None, ...]:
    """argsort: the positions of a sort alone."""
    return (_stable(subject, subject.answer()),)


def selected(subject: Subject) -> tuple[Expectation | None, ...]:
    """topk: values, and distinct positions that hold them."""
    values, positions = subject.answer(0), subject.answer(1)
    call, source, dim = subject.call, subject.call["self"], subject.call["dim"]
    if source.dim() == 0 or call["sorted"]:
        return exact(values), _holding(source, values, positions, dim)
    # The NPU's are sorted all the same; torch's own order is open.
    ordered = torch.topk(source, call["k"], dim, call["largest"], sorted=True).values
    wanted = exact(ordered)
    free = Expectation(wanted.true, wanted.npu, exact(values).npu)
    return free, _holding(source, ordered, positions, dim)


def selected_one(subject: Subject) -> tuple[Expectation | None, ...]:
    """The same for one element of each row, whose dimension is kept or not, or of all elements."""
    values = subject.answer(0)
    if len(subject.answers) == 1:
        return (exact(values),)
    positions, dim, source = subject.answer(1), subject.call["dim"], subject.call["self"]
    if source.dim() == 0:
        return exact(values), exact(positions)
    kept = subject.call["keepdim"]
    wanted, places = (x if kept else x.unsqueeze(dim) for x in (values, positions))
    return exact(values), _holding(source, wanted, places, dim).reshaped(tuple(positions.shape))


def _stable(subject: Subject, positions: torch.Tensor) -> Expectation:
    """The NPU's positions are a stable sort's, also where torch was free to give others."""
    call = subject.call
    source, dim = call["self"], call["dim"]
    if source.dim() == 0:
        return exact(positions)
    order = _stably(call)
    wanted = exact(order.indices)
    free = _holding(source, order.values, positions, dim)
    return Expectation(wanted.true, wanted.npu, free.torch, chosen=free.chosen)


def _holding(
    source: torch.Tensor, values: torch.Tensor, positions: torch.Tensor, dim: int
) -> Expectation:
    """Positions along `dim` of which each holds its value, and none occurs twice in a row."""
    if source.dim() == 0 or not positions.numel():
        return exact(positions)
    no = np.zeros(positions.shape, np.bool_)
    last = np.full(positions.shape, source.shape[dim] - 1, np.int64)
    anywhere = Interval(np.zeros_like(last), last, no, no)
    chosen = _chosen(values_of(source.movedim(dim, -1)), values_of(values.movedim(dim, -1)), dim)
    return Expectation(values_of(positions), anywhere, anywhere, chosen=chosen)


def _chosen(rows: Values, wanted: Values, dim: int) -> Admits:
    def admits(positions: Values) -> Mask:
        places = np.moveaxis(positions, dim, -1).astype(np.int64)
        found = np.take_along_axis(rows, places.clip(0, rows.shape[-1] - 1), -1)
        holds = (found == wanted) | (np.not_equal(found, found) & np.not_equal(wanted, wanted))
        order = np.argsort(places, -1, kind="stable")
        line = np.take_along_axis(places, order, -1)
        again = np.zeros(places.shape, np.bool_)
        np.put_along_axis(again, order[..., 1:], line[..., 1:] == line[..., :-1], -1)
        return np.asarray(np.moveaxis(holds & ~again, -1, dim))

    return admits
