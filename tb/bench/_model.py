# SPDX-License-Identifier: Apache-2.0
"""What the ops of a model cost on the RTL, each alone, next to what bus and array allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from driver.backend.rtl import RtlBackend
from driver.capture import capture
from driver.config import HwConfig, load_config
from driver.errors import VerdictError
from driver.isa import Opcode, Packet
from golden.backend import CmodelBackend
from tb.ops.capsules import is_free
from tb.ops.case import Case, recorded_case
from tb.ops.pair import DevicePair
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
    least_bytes: int
    """Every element that the op reads or writes, once."""
    bus_bytes: int
    """Of one beat."""

    @property
    def bound(self) -> int:
        """Cycles that no schedule can do without: those of the array, or of the bus."""
        return max(self.array_cycles, -(-self.least_bytes // self.bus_bytes))

    def __str__(self) -> str:
        traffic = self.moved_bytes / self.least_bytes
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
    assert result.rtl is not None
    for device in (result.cmodel, result.rtl):
        if device.fault is not None:
            raise VerdictError(f"{case.op}: {device.fault}")
    records = result.rtl.records
    start = min((record.start_cycle for record in records), default=0)
    beat = config.bus_bits // 8
    return OpCost(
        name=f"{case.module} {case.op.split('.')[1]}",
        cycles=max((record.end_cycle for record in records), default=0) - start,
        array_cycles=array_cycles(result.packets, config.array_size),
        moved_bytes=beat * sum(record.read_beats + record.write_beats for record in records),
        least_bytes=result.compulsory_bytes,
        bus_bytes=beat,
    )


def cost_of_cases(cases: Sequence[Case], config_name: str = "default") -> Iterator[OpCost]:
    """The cost of each case on the build without assertions, in turn."""
    config_file = REPOSITORY / "sim_config.yaml"
    config = load_config(config_file, config_name)
    with RtlBackend(config, variant="fast", config_file=config_file) as rtl:
        pair = DevicePair(config, CmodelBackend(config, threads=1), rtl)
        for case in cases:
            yield _cost(pair, config, case)
        pair.close()


def cost_of_model(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], name: str
) -> Iterator[OpCost]:
    """The cost of each op of a forward pass, on the operands that torch had."""
    capsule = capture(module, inputs, name=name, seed=_SEED)
    ops = [op for op in capsule.ops if not is_free(op)]
    cases = [recorded_case(capsule, op, number) for number, op in enumerate(ops)]
    yield from cost_of_cases(cases)
