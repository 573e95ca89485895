# SPDX-License-Identifier: Apache-2.0
"""What an op cost, from its completion records, and the least that it had to move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from driver.config import HwConfig
from driver.isa import DTYPE_BYTES, CompletionRecord, Opcode, Packet
from driver.lower import Arg
from driver.lower.registry import views_in
from driver.results import BoundBy
from driver.runtime import TensorView

_TABLES: dict[str, int] = {
    "aten.embedding.default": 0,
    "aten.index_select.default": 0,
    "aten.index.Tensor": 0,
    "aten.gather.default": 0,
}
"""Ops that look up some elements of an operand → which: only what they take has to be read."""


@dataclass(frozen=True)
class Cost:
    """Of one op. Cycles and bytes are None where no RTL ran."""

    packets: int
    macs: int | None
    cycles: int | None
    utilisation: float | None
    """MACs per cycle of its products over the array's peak."""
    dram_bytes: int | None
    bound_by: BoundBy | None


def macs_of(packet: Packet) -> int:
    """Multiply-adds of a command."""
    return prod(packet.params[:4]) if packet.opcode == Opcode.MATMUL else 0


def cost_of(
    packets: Sequence[Packet], records: Sequence[CompletionRecord] | None, config: HwConfig
) -> Cost:
    """The cost of these packets; `records` of the RTL."""
    macs = sum(map(macs_of, packets))
    if records is None:
        return Cost(len(packets), macs or None, None, None, None, None)
    busy = sum(record.cycles for record in records if record.opcode == Opcode.MATMUL)
    beats = sum(record.read_beats + record.write_beats for record in records)
    return Cost(
        packets=len(packets),
        macs=macs or None,
        cycles=_elapsed(records),
        utilisation=macs / (busy * config.array_size**2) if busy and macs else None,
        dram_bytes=beats * config.bus_bits // 8,
        bound_by=_bound_by(records),
    )


def _elapsed(records: Sequence[CompletionRecord]) -> int:
    """From the start of the first command to the end of the last: they may overlap."""
    if not records:
        return 0
    first = min(record.start_cycle for record in records)
    return max(record.end_cycle for record in records) - first


def _bound_by(records: Sequence[CompletionRecord]) -> BoundBy | None:
    if not records:
        return None
    compute = sum(record.active_cycles for record in records)
    memory = sum(record.operand_stall + record.result_stall for record in records)
    shares: dict[BoundBy, int] = {
        "compute": compute,
        "memory": memory,
        "overhead": _elapsed(records) - compute - memory,
    }
    return max(shares, key=lambda name: shares[name])


def compulsory_bytes(
    op: str,
    args: Sequence[Arg],
    kwargs: Mapping[str, Arg],
    results: Sequence[TensorView | None],
) -> int:
    """Every element that the op reads, once, and every one that it writes, once."""
    written = [view for view in results if view is not None]
    table = _TABLES.get(op)
    read = {view for at, arg in enumerate(args) if at != table for view in views_in([arg])}
    read |= set(views_in(kwargs.values()))
    looked_up = sum(map(bytes_of, written)) if table is not None else 0
    return sum(map(bytes_of, read)) + looked_up + sum(map(bytes_of, written))


def bytes_of(view: TensorView) -> int:
    """Bytes of the view's elements, a repeated one counted once."""
    own = (size if step else 1 for size, step in zip(view.sizes, view.strides, strict=True))
    return prod(own) * DTYPE_BYTES[view.dtype] if view.count else 0
