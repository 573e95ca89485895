# SPDX-License-Identifier: Apache-2.0
"""Which packet of an op first leaves something else in memory, and whose fault that is.

Runs the op again, packet by packet; the element that differs is computed a third time, by integers
only, from the memory that the packet began with (golden.packets).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from driver.isa import DTYPE_BYTES, Opcode, Packet
from driver.results import Blame
from driver.runtime import Buffer, TensorView
from driver.runtime.vector_programs import packet_name
from golden.packets import blame_packet, destinations
from tb.ops.case import Case
from tb.ops.pair import DevicePair, PairResult
from tb.ops.placing import Placed, placed

_WRITING = (Opcode.MATMUL, Opcode.VECTOR, Opcode.COPY, Opcode.FILL, Opcode.GATHER, Opcode.SCATTER)
Read = Callable[[int, int], bytes]


@dataclass(frozen=True)
class Element:
    """An element of a destination of a packet that the devices answer differently."""

    index: tuple[int, ...]
    cmodel: int
    rtl: int
    result: int = 0
    """Which of the packet's destinations."""


@dataclass(frozen=True)
class WrongPacket:
    """The first packet after which the memories differ."""

    number: int
    """Counted from 1."""
    count: int
    packet: Packet
    element: Element | None
    """None when what differs is no element of its destination."""
    blame: Blame | None
    """By the third opinion on that element."""
    right: int | None

    def __str__(self) -> str:
        text = f"packet {self.number} of {self.count}, {packet_name(self.packet)}"
        if self.element is None:
            return f"{text}, beside its destination"
        bits = f"cmodel {self.element.cmodel:#x}, RTL {self.element.rtl:#x}"
        return f"{text}, element {list(self.element.index)}: {bits}, by integers {self.right:#x}"


@dataclass(frozen=True)
class _StepwiseRun:
    """The case, to be run again in steps."""

    pair: DevicePair
    case: Case
    seed: int

    def steps(self) -> Iterator[tuple[int, Packet, PairResult]]:
        """Each packet alone: its number from 1, and what the devices made of it."""
        with placed(self.pair, self.case, self.seed) as here:
            for number, packet in enumerate(here.packets, 1):
                before = here.packets[: number - 1]
                results = tuple(_destinations(packet, self.pair.read, before))
                alone = Placed((packet,), results, (), 0)
                yield number, packet, self.pair.execute(alone)

    def third_opinion(self, number: int, element: Element) -> tuple[Blame, int]:
        """About an element of packet `number`, from the memory that it begins with."""
        with placed(self.pair, self.case, self.seed) as here:
            *before, packet = here.packets[:number]
            for earlier in before:
                self.pair.model_only((earlier,))
            given = (element.index, element.cmodel, element.rtl)
            found = blame_packet(
                packet, self.pair.read, *given, result=element.result, before=before
            )
        self.pair.reset()
        return found


def first_wrong_packet(pair: DevicePair, case: Case, seed: int) -> WrongPacket | None:
    """The packet; None when nothing differs this time."""
    stepwise = _StepwiseRun(pair, case, seed)
    wrong: tuple[int, Packet, Element | None] | None = None
    count = 0
    for number, packet, result in stepwise.steps():
        count = number
        if wrong is None and _differs(result):
            wrong = (number, packet, _element(result))
    if wrong is None:
        return None
    number, packet, element = wrong
    blame, right = (None, None) if element is None else stepwise.third_opinion(number, element)
    return WrongPacket(number, count, packet, element, blame, right)


def _destinations(packet: Packet, read: Read, before: Sequence[Packet]) -> list[TensorView]:
    if packet.opcode not in _WRITING:
        return []
    views = destinations(packet, read, before)
    assert all(view.base % DTYPE_BYTES[view.dtype] == 0 for view in views)
    return [TensorView(Buffer(0, base=v.base), 0, v.dtype, v.sizes, v.strides) for v in views]


def _differs(result: PairResult) -> bool:
    assert result.rtl is not None
    faults = result.cmodel.fault is not None or result.rtl.fault is not None
    return faults or bool(result.stray) or _element(result) is not None


def _element(result: PairResult) -> Element | None:
    assert result.rtl is not None
    pairs = zip(result.cmodel.bits, result.rtl.bits, strict=True)
    for number, (left, right) in enumerate(pairs):
        if left is None or right is None or np.array_equal(left, right):
            continue
        index = tuple(int(i) for i in np.unravel_index(int(np.argmax(left != right)), left.shape))
        return Element(index, int(left[index]), int(right[index]), number)
    return None
