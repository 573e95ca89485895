# SPDX-License-Identifier: Apache-2.0
"""Which dimensions of an op's operands are one and the same size, so that they are cut together.

Knows einsum notation for products; all other ops broadcast, aligned at the last dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PRODUCTS: dict[str, str] = {
    "aten.mm.default": "mk,kn->mn",
    "aten.addmm.default": "mn,mk,kn->mn",
    "aten.bmm.default": "bmk,bkn->bmn",
    "aten.baddbmm.default": "bmn,bmk,bkn->bmn",
    "aten.mv.default": "mk,k->m",
    "aten.dot.default": "k,k->",
    "aten.linear.default": "…k,nk,n->…n",
}
"""Operands in order, then the result; … stands for any leading dimensions."""
_LEADING = "zyxwvu"

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class OperandAxis:
    """One size of an op: (operand, dimension) pairs, and where the result has it (from the end)."""

    name: str
    size: int
    places: tuple[tuple[str, int], ...]
    result: int | None


def axes(op: str, shapes: Shapes) -> tuple[OperandAxis, ...]:
    """The axes longer than 1. A dimension of 1 that is stretched to another's size stays."""
    letters, result = _letters(op, shapes)
    found = _places(letters, shapes)
    if any(len({shapes[o][d] for o, d in places}) > 1 for places in found.values()):
        # Not aligned at the last dimension, as the channels of a batch norm: equal sizes are one.
        found = _places({o: tuple(map(str, shape)) for o, shape in shapes.items()}, shapes)
        result = ""
    return tuple(
        OperandAxis(
            name=letter,
            size=max(shapes[operand][dimension] for operand, dimension in places),
            places=tuple(places),
            result=result.index(letter) - len(result) if letter in result else None,
        )
        for letter, places in sorted(found.items())
    )


def _places(
    letters: Mapping[str, Sequence[str]], shapes: Shapes
) -> dict[str, list[tuple[str, int]]]:
    """Letter → the (operand, dimension) pairs that have it and are longer than 1."""
    found: dict[str, list[tuple[str, int]]] = {}
    for operand, shape in shapes.items():
        for dimension, (letter, size) in enumerate(zip(letters[operand], shape, strict=True)):
            if size > 1:
                found.setdefault(letter, []).append((operand, dimension))
    return found


def _letters(op: str, shapes: Shapes) -> tuple[dict[str, str], str]:
    """A letter per dimension of each operand, and those of the result."""
    ranks = {operand: len(shape) for operand, shape in shapes.items()}
    notation = PRODUCTS.get(op)
    if notation is not None:
        operands, _, result = notation.partition("->")
        named = dict(zip(ranks, operands.split(","), strict=False))
        own = {name: _expanded(term, ranks[name]) for name, term in named.items()}
        if {name: len(term) for name, term in own.items()} == ranks:
            lead = max((len(_lead(term, ranks[n])) for n, term in named.items()), default=0)
            return own, result.replace("…", _LEADING[:lead])
    longest = max(ranks.values(), default=0)
    names = "".join(chr(ord("a") + i) for i in range(longest))
    return {name: names[longest - rank :] for name, rank in ranks.items()}, names


def _lead(term: str, rank: int) -> str:
    return _LEADING[: rank - len(term) + 1] if "…" in term else ""


def _expanded(term: str, rank: int) -> str:
    """A term for an operand of a rank; a bias of fewer dimensions has the last ones."""
    whole = term.replace("…", _lead(term, rank))
    return whole[len(whole) - rank :] if rank <= len(whole) else whole
