# SPDX-License-Identifier: Apache-2.0
"""Judges one matrix product: RTL against cmodel bit for bit, cmodel against torch within bounds.

When answers differ a third opinion decides whose fault it is: the element computed anew, by
integers only, from the op's original tensors. It shares no code with the cmodel, and no packet
with anybody. Knows values and bits; not packets, files or simulators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from driver.isa import DTYPE_BYTES, DType
from golden.formats import Floats, decode
from golden.reference import MatmulCall, exact_values, product, reference
from golden.softfloat import chain
from golden.tolerance import Comparison, compare

NOTHING_COMPARED = "nothing was compared: no bound is known for any of the {} elements"
"""What is said of a result about which golden claims nothing; it is no pass."""

Bits = npt.NDArray[Any]
"""Unsigned integers of the element's size."""

UINTS: dict[int, type[np.unsignedinteger[Any]]] = {
    **{1: np.uint8, 2: np.uint16},
    **{4: np.uint32, 8: np.uint64},
}


class Blame(Enum):
    """Whose fault a failed verdict is."""

    NONE = "none"
    RTL = "rtl"
    """The third opinion agrees with the cmodel."""
    CMODEL = "cmodel"
    """The third opinion agrees with the RTL."""
    LOWERING = "lowering"
    """RTL and cmodel agree on something else than the op asked for: the packets are wrong."""
    PRECISION = "precision"
    """The chain is computed as docs/numerics.md says, and yet torch is further away than the
    derived bound: reference, bound or contract."""


@dataclass(frozen=True)
class Finding:
    """The element that a failed verdict is about. Bits and values of the result type."""

    element: tuple[int, ...]
    """Index in the op's result, as torch counts; empty for a write outside the result."""
    tile: tuple[int, int]
    """Row and column of the ArraySize tile."""
    expected_bits: int
    actual_bits: int
    expected: float
    actual: float
    detail: str
    output: int = 0
    """Which of the op's results."""


@dataclass(frozen=True)
class Verdict:
    """What the scoreboard says of one op."""

    blame: Blame
    rtl_mismatches: int
    """Elements whose bits differ between RTL and cmodel."""
    comparison: Comparison
    finding: Finding | None = None
    reaches: tuple[Floats | None, ...] = ()
    """For each output how far each element may be from torch's; see tolerance.reach_of."""

    @property
    def elements_compared(self) -> int:
        """Elements for which a bound is known."""
        return self.comparison.elements_compared

    @property
    def ok(self) -> bool:
        """Elements were compared, and nothing was found."""
        return self.blame is Blame.NONE and self.elements_compared > 0


def judge(call: MatmulCall, cmodel: Bits, rtl: Bits | None, array_size: int) -> Verdict:
    """Judge the result of `call`, [batch, M, N] bits from cmodel and (unless None) RTL."""
    answer = decode(cmodel, call.result)
    truth = reference(call)
    values = exact_values(truth).reshape(cmodel.shape)
    comparison = compare(product(call), answer, values)
    differing = np.zeros(cmodel.shape, np.bool_) if rtl is None else rtl != cmodel
    mismatches = int(np.count_nonzero(differing))
    if mismatches:
        assert rtl is not None
        index = _first(differing)
        blame, finding = _between_models(call, index, cmodel, rtl, array_size)
    elif comparison.npu_violations or comparison.torch_violations:
        blame, finding = _against_torch(call, comparison, cmodel, values, array_size)
    elif comparison.unbounded and not comparison.elements_compared:
        first, bits = (0, 0, 0), int(cmodel[0, 0, 0])
        detail = NOTHING_COMPARED.format(comparison.unbounded)
        blame, finding = Blame.PRECISION, _finding(call, first, (bits, bits), array_size, detail)
    else:
        blame, finding = Blame.NONE, None
    reaches = (comparison.reach.reshape(call.sizes),)
    return Verdict(blame, mismatches, comparison, finding, reaches)


def third_opinion(call: MatmulCall, index: Sequence[int]) -> int:
    """Bits of element (batch, row, column), from the original tensors by integer arithmetic."""
    batch, row, column = index
    a = call.a if call.a.dim() == 3 else call.a[None]
    b = call.b if call.b.dim() == 3 else call.b[None]
    shape = (a.shape[0], a.shape[1], b.shape[2])
    c = None
    if call.c is not None:
        c = int(tensor_bits(call.c.expand(shape)[batch, row, column].reshape(1))[0])
    a_bits = [int(x) for x in tensor_bits(a[batch, row])]
    b_bits = [int(x) for x in tensor_bits(b[batch, :, column])]
    return chain(a_bits, b_bits, c, call.operand, call.result)


def tensor_bits(tensor: torch.Tensor) -> Bits:
    """A tensor's elements as unsigned integers of their size, with its shape."""
    size = tensor.element_size()
    dense = tensor.detach().contiguous()
    return np.asarray(dense.view(getattr(torch, f"int{8 * size}")).numpy()).view(UINTS[size])


def _first(mask: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def _value(bits: int, dtype: DType) -> float:
    raw = np.array([bits], UINTS[DTYPE_BYTES[dtype]])
    return float(decode(raw, dtype)[0])


def _finding(
    call: MatmulCall, index: tuple[int, ...], bits: tuple[int, int], array: int, detail: str
) -> Finding:
    """The finding about [batch, row, column] `index`; `bits` are expected and actual."""
    expected, actual = bits
    flat = int(np.ravel_multi_index(index, _shape(call)))
    element = tuple(int(i) for i in np.unravel_index(flat, call.sizes))
    return Finding(
        element=element,
        tile=(index[1] // array, index[2] // array),
        expected_bits=expected,
        actual_bits=actual,
        expected=_value(expected, call.result),
        actual=_value(actual, call.result),
        detail=detail,
    )


def _shape(call: MatmulCall) -> tuple[int, int, int]:
    batch = call.a.shape[0] if call.a.dim() == 3 else 1
    return batch, call.a.shape[-2], call.b.shape[-1]


def _between_models(
    call: MatmulCall, index: tuple[int, ...], cmodel: Bits, rtl: Bits, array: int
) -> tuple[Blame, Finding]:
    from_cmodel, from_rtl = int(cmodel[index]), int(rtl[index])
    truth = third_opinion(call, index)
    if truth == from_rtl:
        detail = "the RTL agrees with the integer-only chain, the cmodel does not"
        return Blame.CMODEL, _finding(call, index, (truth, from_cmodel), array, detail)
    detail = "the cmodel agrees with the integer-only chain, the RTL does not"
    if truth != from_cmodel:
        detail = (
            f"the chain on the original tensors gives {truth:#x}, the cmodel agrees with neither: "
            "the packets are suspect as well"
        )
    return Blame.RTL, _finding(call, index, (from_cmodel, from_rtl), array, detail)


def _against_torch(
    call: MatmulCall, comparison: Comparison, cmodel: Bits, torch_values: Bits, array: int
) -> tuple[Blame, Finding]:
    index = comparison.worst_index
    truth, actual = third_opinion(call, index), int(cmodel[index])
    if truth != actual:
        detail = "the packets compute something else than the op: the chain on its tensors differs"
        return Blame.LOWERING, _finding(call, index, (truth, actual), array, detail)
    detail = (
        f"torch says {torch_values[index]}, outside the derived bound "
        f"(NPU outside in {comparison.npu_violations}, torch in {comparison.torch_violations})"
    )
    return Blame.PRECISION, _finding(call, index, (truth, actual), array, detail)
