# SPDX-License-Identifier: Apache-2.0
"""What the ops of a model cost on the RTL, each alone or all in one queue, next to what bus and
array allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from driver.backend.rtl import RtlBackend
from driver.capture import Capsule, Op, capture
from driver.config import HwConfig, load_config
from driver.errors import VerdictError
from driver.isa import CompletionRecord, Opcode, Packet
from golden.backend import CmodelBackend
from golden.formats import Bits
from tb.ops.capsules import is_free
from tb.ops.case import Case, recorded_case
from tb.ops.chain import Chain
from tb.ops.cost import bytes_of
from tb.ops.pair import DevicePair, PairResult
from tb.sim.spec import REPOSITORY

_SEED = 1


@dataclass(frozen=True)
class OpCost:
    """An op, alone on the device: from the first packet's start to the last one's end."""

    name: str
    cycles: int
    array_cycles: int
    """The least that the array needs for its products."""
    moved_bytes: int
    read_bytes: int
    """Every element that the op reads, once."""
    written_bytes: int
    """Every element that it writes, once."""
    bus_bytes: int
    """Of one beat."""

    @property
    def bound(self) -> int:
        """Cycles that no schedule can do without: those of the array, or of the bus, which moves a
        beat in each direction per cycle."""
        most = max(self.read_bytes, self.written_bytes)
        return max(self.array_cycles, -(-most // self.bus_bytes))

    def __str__(self) -> str:
        traffic = self.moved_bytes / (self.read_bytes + self.written_bytes)
        return (
            f"{self.name}: {self.cycles:,} cycles, bound {self.bound:,} (array "
            f"{self.array_cycles:,}), traffic {traffic:.2f} × least"
        )


def array_cycles(packets: Sequence[Packet], side: int) -> int:
    """Cycles in which the array takes a row of A, of `side` elements, for `side` columns."""
    total = 0
    for packet in packets:
        if packet.opcode == Opcode.MATMUL:
            m, k, n, batch = packet.params[:4]
            total += batch * m * -(-k // side) * -(-n // side)
    return total


def _cost(pair: DevicePair, config: HwConfig, case: Case) -> OpCost:
    result = pair.run(case, _SEED)
    records = _right_records(result, case.op)
    start = min(record.start_cycle for record in records)
    beat = config.bus_bits // 8
    written = sum(bytes_of(view) for view in result.results if view is not None)
    return OpCost(
        name=f"{case.module} {case.op.split('.')[1]}",
        cycles=max(record.end_cycle for record in records) - start,
        array_cycles=array_cycles(result.packets, config.array_size),
        moved_bytes=beat * sum(record.read_beats + record.write_beats for record in records),
        read_bytes=result.compulsory_bytes - written,
        written_bytes=written,
        bus_bytes=beat,
    )


@dataclass(frozen=True)
class QueueCost:
    """The ops of a model in one queue, each on the results of those before it."""

    commands: int
    cycles: int
    """From the first command's start to the last one's end."""
    busy: int
    """Cycles that the commands took, each by itself: more than `cycles` where they overlap."""
    array_cycles: int

    def __str__(self) -> str:
        return (
            f"{self.commands:,} commands in {self.cycles:,} cycles, {self.busy:,} one by one; "
            f"array {self.array_cycles:,}: {self.array_cycles / self.cycles:.1%}"
        )


def queue_cost(result: PairResult, side: int) -> QueueCost:
    """VerdictError when a device failed, or when their memories differ."""
    records = _right_records(result, "the queue")
    return QueueCost(
        commands=len(records),
        cycles=max(record.end_cycle for record in records) - records[0].start_cycle,
        busy=sum(record.cycles for record in records),
        array_cycles=array_cycles(result.packets, side),
    )


def _right_records(result: PairResult, what: str) -> Sequence[CompletionRecord]:
    """The RTL's, when it did what it was asked: a figure of something else is none. VerdictError
    when a device failed, when their memories differ, or when there is nothing to compare."""
    assert result.rtl is not None
    for device in (result.cmodel, result.rtl):
        if device.fault is not None:
            raise VerdictError(f"{what}: {device.fault}")
    pairs = list(zip(result.cmodel.bits, result.rtl.bits, strict=True))
    compared = [(a, b) for a, b in pairs if a is not None and b is not None and a.size]
    if not compared or not result.bytes_compared or not result.rtl.records:
        raise VerdictError(f"{what}: nothing was compared")
    if result.stray or not all(np.array_equal(a, b) for a, b in compared):
        raise VerdictError(f"{what}: RTL and cmodel differ")
    return result.rtl.records


def cost_of_queue(
    module: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    name: str,
    config_name: str = "default",
) -> QueueCost:
    """The forward pass as one submission: passes fused across ops, commands in the order in which
    the engines wait least. Vector programs are loaded before the first command, and do not count.

    All bytes that either device wrote are compared, and the results with those of the ops one by
    one. VerdictError when they differ.
    """
    capsule = capture(module, inputs, name=name, seed=_SEED)
    ops = [op for op in capsule.ops if not is_free(op)]
    with _pair(config_name) as pair:
        expected = _one_by_one(pair, capsule, ops)
        chain = Chain(pair, capsule, _SEED)
        placed = chain.place_queue(ops)
        result = pair.execute(placed)
        same = zip(expected, result.cmodel.bits, strict=True)
        if not all(b is not None and np.array_equal(a, b) for a, b in same):
            raise VerdictError("the queue: other bits than the ops one by one")
        chain.close()
    return queue_cost(result, pair.config.array_size)


def _one_by_one(pair: DevicePair, capsule: Capsule, ops: Sequence[Op]) -> list[Bits]:
    """The outputs of the capsule's ops in their order, on the cmodel."""
    chain = Chain(pair, capsule, _SEED)
    for op in ops:
        pair.model_only(chain.place(op).packets)
    bits = [pair.elements(view) for view in chain.outputs()]
    chain.close()
    pair.reset()
    return bits


@contextmanager
def _pair(config_name: str) -> Iterator[DevicePair]:
    """The build without assertions, and the cmodel."""
    config_file = REPOSITORY / "sim_config.yaml"
    config = load_config(config_file, config_name)
    with RtlBackend(config, variant="fast", config_file=config_file) as rtl:
        pair = DevicePair(config, CmodelBackend(config, threads=1), rtl)
        yield pair
        pair.close()


def cost_of_cases(cases: Sequence[Case], config_name: str = "default") -> Iterator[OpCost]:
    """The cost of each case on the build without assertions, in turn."""
    with _pair(config_name) as pair:
        for case in cases:
            yield _cost(pair, pair.config, case)


def cost_of_model(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], name: str
) -> Iterator[OpCost]:
    """The cost of each op of a forward pass, on the operands that torch had."""
    capsule = capture(module, inputs, name=name, seed=_SEED)
    ops = [op for op in capsule.ops if not is_free(op)]
    cases = [recorded_case(capsule, op, number) for number, op in enumerate(ops)]
    yield from cost_of_cases(cases)
