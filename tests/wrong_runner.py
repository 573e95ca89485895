# SPDX-License-Identifier: Apache-2.0
"""`python -m tb.run` with a wrong device in the RTL's place: a cmodel that spoils one element.

It needs no simulator. A product of K ≥ 3 whose first element of A is not zero comes out with its
second element wrong. Run as a script.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from driver.config import HwConfig
from driver.isa import ErrorCode, Opcode
from golden.backend import CmodelBackend
from tb.ops.session import Session
from tb.run import main

LEAST_K = 3
WAVES = Path(__file__).with_name("waves_example.vcd")


class WrongDevice(CmodelBackend):
    """The cmodel with a bug, and the verbs that a bench expects of a simulator."""

    def __init__(self, config: HwConfig) -> None:
        super().__init__(config)
        self.cycle = 0

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        code = super()._execute(packet, seq)
        self.cycle += 100
        opcode, _, src1, _, dst, _, k = struct.unpack_from("<IIQQQII", packet)
        base = self._config.memory.base
        first = self.memory[src1 - base : src1 - base + 4]
        if opcode == Opcode.MATMUL and k >= LEAST_K and first.any():
            self.memory[dst - base + 4] ^= 0x40
        return code

    def last_writer(self, address: int) -> int | None:
        """Always the cycle of the example's wrong write."""
        return 44

    def set_dram(self, latency_cycles: int, stall: int = 0, seed: int = 0) -> None:
        """No timing here."""

    def record_waves(self, path: Path) -> None:
        """A few cycles that somebody recorded once."""
        path.write_bytes(WAVES.read_bytes())

    def stop_waves(self) -> None:
        """They are complete."""


if __name__ == "__main__":
    Session._open_rtl = lambda self, _variant: WrongDevice(self._config)  # type: ignore[method-assign]
    sys.exit(main(sys.argv[1:]))
