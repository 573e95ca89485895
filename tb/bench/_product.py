# SPDX-License-Identifier: Apache-2.0
"""One product on a given simulator, by registers alone: the server and cocotb run it alike."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from driver.backend.rtl import RtlBackend
from driver.config import HwConfig, load_config
from driver.errors import VerdictError
from driver.isa import DType, Opcode, Packet, csr
from driver.isa.codec import flag_word
from tb.sim.build import build
from tb.sim.spec import REPOSITORY, spec_for

SIZE = 512
A, B, C = 0x100_0000, 0x200_0000, 0x1000_0000
WAIT_S = 600.0


def default_config() -> HwConfig:
    """The configuration that the aims are stated for."""
    return load_config(REPOSITORY / "sim_config.yaml", "default")


def binary_of(config: HwConfig, variant: str) -> Path:
    """The simulator, built when it has to be."""
    return build(spec_for(config, variant)).binary


def matmul_packet() -> Packet:
    """C = A·B, fp32, SIZE³, interrupt at the end."""
    flags = flag_word(DType.FP32, DType.FP32, "IRQ")
    return Packet(Opcode.MATMUL, flags, A, B, C, (SIZE, SIZE, SIZE, 1, 0, 0, 0, 0))


def command_writes() -> list[tuple[int, int]]:
    """Register writes that enable the interrupt and push the product; the last one starts it."""
    data = matmul_packet().pack()
    words = [
        (csr.CMD_WORD + at, int.from_bytes(data[at : at + 4], "little"))
        for at in range(0, len(data), 4)
    ]
    return [(csr.IRQ_ENABLE, csr.IRQ_STATUS_COMPLETE_MASK), *words, (csr.CMD_PUSH, 1)]


def fill_operands(memory: np.ndarray) -> None:
    """Random A and B; `memory` begins at address 0."""
    generator = np.random.default_rng(0)
    for address in (A, B):
        data = generator.standard_normal((SIZE, SIZE), dtype=np.float32).view(np.uint8).ravel()
        memory[address : address + data.size] = data


@dataclass(frozen=True)
class TimedCommand:
    """One command from doorbell to interrupt."""

    cycles: int
    cpu_s: float


class ProductServer:
    """A simulator as a server, on which the product is timed."""

    def __init__(self, config: HwConfig, binary: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="npu-bench-")
        log = Path(self._folder.name) / "sim.log"
        self.backend = RtlBackend(config, binary=binary, sim_log=log)
        fill_operands(self.backend.memory)

    def execute(self) -> TimedCommand:
        """Reset, push, run to the interrupt. VerdictError when the device reports an error."""
        backend = self.backend
        backend.reset()
        for offset, value in command_writes():
            backend.write_csr(offset, value)
        cycle, cpu_s = backend.cycle, backend.run_cpu_s
        backend.wait_interrupt(WAIT_S)
        taken = TimedCommand(backend.cycle - cycle, backend.run_cpu_s - cpu_s)
        code = backend.read_csr(csr.ERROR_CODE)
        if code:
            raise VerdictError(f"the timed command ended with error code {code}")
        return taken

    def close(self) -> None:
        """End the simulator."""
        self.backend.close()
        self._folder.cleanup()
