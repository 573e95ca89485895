# SPDX-License-Identifier: Apache-2.0
"""Moving elements of types that the NPU does not compute with: as integers of the same bytes.

float64 and complex64 move as int64, complex32 as int32. Used where a row refuses the type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import torch

from driver.runtime.torch_types import NPU_TYPES

Tensor = torch.Tensor

WORDS = {torch.float64: torch.int64, torch.complex64: torch.int64, torch.complex32: torch.int32}

_MOVES: dict[str, tuple[tuple[int, ...], int | None]] = {
    "cat.default": ((0,), None),
    "stack.default": ((0,), None),
    "repeat.default": ((0,), None),
    "flip.default": ((0,), None),
    "roll.default": ((0,), None),
    "tril.default": ((0,), None),
    "triu.default": ((0,), None),
    "gather.default": ((0,), None),
    "index_select.default": ((0,), None),
    "masked_select.default": ((0,), None),
    "constant_pad_nd.default": ((0,), 2),
    "where.self": ((1, 2), None),
    "slice_scatter.default": ((0, 1), None),
    "select_scatter.default": ((0, 1), None),
    "scatter.src": ((0, 3), None),
    "scatter.value": ((0,), 3),
    "index_copy.default": ((0, 3), None),
    "masked_scatter.default": ((0, 2), None),
    "masked_fill.Scalar": ((0,), 2),
    "masked_fill.Tensor": ((0, 2), None),
    "masked_fill_.Scalar": ((0,), 2),
    "masked_fill_.Tensor": ((0, 2), None),
    "fill_.Scalar": ((0,), 1),
    "fill_.Tensor": ((0, 1), None),
    "zero_.default": ((0,), None),
}
"""Op → the places of the arguments whose elements it moves, and that of a number among them."""


def _data(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else list(value)


def _as_words(value: Any, dtype: torch.dtype) -> Any:
    if not isinstance(value, Tensor):
        return [_as_words(item, dtype) for item in value]
    return value.to(dtype).resolve_conj().resolve_neg().view(WORDS[dtype])


def promoted(data: list[Tensor]) -> torch.dtype:
    """The type of all together: tensors without dimensions count less, as torch has it."""
    kinds: list[torch.dtype] = []
    for group in ([x for x in data if x.dim()], [x for x in data if not x.dim()]):
        if group:
            kinds.append(reduce(torch.promote_types, (x.dtype for x in group)))
    if len(kinds) == 1:
        return kinds[0]
    ranked, alone = kinds
    return torch.result_type(torch.empty(1, dtype=ranked), torch.empty((), dtype=alone))


def _of_type(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) else [x.to(dtype) for x in value]


def _bits(number: complex, dtype: torch.dtype) -> int:
    value = number if dtype.is_complex else number.real
    return int(torch.tensor(value, dtype=dtype).view(WORDS[dtype]))


def _move(
    op: torch._ops.OpOverload,
    places: tuple[int, ...],
    number: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    data = [x for place in places for x in _data(args[place])]
    first = promoted(data)
    written = op._schema.is_mutable
    if first in NPU_TYPES and not written and any(x.dtype in WORDS for x in data):
        given = [_of_type(x, first) if at in places else x for at, x in enumerate(args)]
        return op(*given, **kwargs)
    if first not in WORDS or (written and args[0].dtype is not first):
        return NotImplemented
    given = list(args)
    for place in places:
        given[place] = _as_words(args[place], first)
    if number is not None and (number < len(args) or op is torch.ops.aten.constant_pad_nd.default):
        given[number:] = [_bits(complex(args[number]) if number < len(args) else 0j, first)]
    found = op(*given, **kwargs)
    return args[0] if written else found.view(first)


move_index = partial(_move, torch.ops.aten.index.Tensor, (0,), None)
"""What indices choose of a type that the NPU does not compute with."""


def _filled(like: bool, number: complex | None, *args: Any, **kwargs: Any) -> Any:
    """A factory of a filled tensor: an empty one, then a fill."""
    if number is None:
        *args, number = args  # type: ignore[assignment]
    empty = torch.empty_like if like else torch.empty
    made = empty(*args, **kwargs)
    return made.fill_(number) if made.dtype in WORDS or made.is_complex() else NotImplemented


def _fill_pairs(self: Tensor, value: complex) -> Tensor:
    """complex128: the real and the imaginary parts, one after the other."""
    pairs = torch.view_as_real(self)
    pairs[..., 0].fill_(complex(value).real)
    pairs[..., 1].fill_(complex(value).imag)
    return self


def fill(self: Tensor, value: complex) -> Any:
    """A number everywhere."""
    if self.dtype is torch.complex128:
        return _fill_pairs(self, value)
    if any(step == 0 and size > 1 for size, step in zip(self.shape, self.stride(), strict=True)):
        self[tuple(slice(0, 1) if step == 0 else slice(None) for step in self.stride())].fill_(
            value
        )
        return self
    return _move(torch.ops.aten.fill_.Scalar, (0,), 1, self, value)


def zero(self: Tensor) -> Any:
    """0 everywhere."""
    return fill(self, 0)


def _overload(name: str) -> torch._ops.OpOverload:
    packet, _, overload = name.partition(".")
    found: torch._ops.OpOverload = getattr(getattr(torch.ops.aten, packet), overload)
    return found


DEFINITIONS: dict[str, Callable[..., Any]] = {
    **{
        f"aten.{name}": partial(_move, _overload(name), places, number)
        for name, (places, number) in _MOVES.items()
    },
    "aten.fill_.Scalar": fill,
    "aten.zero_.default": zero,
    "aten.zeros.default": partial(_filled, False, 0),
    "aten.ones.default": partial(_filled, False, 1),
    "aten.zeros_like.default": partial(_filled, True, 0),
    "aten.ones_like.default": partial(_filled, True, 1),
    "aten.full.default": partial(_filled, False, None),
    "aten.full_like.default": partial(_filled, True, None),
}
