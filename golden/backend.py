# SPDX-License-Identifier: Apache-2.0
"""The C++ model as a Backend: what the RTL should have done, command by command."""

from __future__ import annotations

from driver.backend.functional import FunctionalBackend
from driver.backend.mapped_memory import MappedMemory
from driver.backend.shared_memory import FaultRange
from driver.config import HwConfig
from driver.isa import ErrorCode
from driver.isa.programs import BOOT_IMAGE
from golden._cmodel import CModel


class CmodelBackend(FunctionalBackend):
    """Registers and queues as FunctionalBackend, commands by golden._cmodel.

    `threads`: at most so many, 0 for one per processor; the bits do not depend on it. `memory`: the
    device's, instead of one of its own.
    """

    def __init__(
        self, config: HwConfig, *, threads: int = 0, memory: MappedMemory | None = None
    ) -> None:
        super().__init__(config, memory)
        base, limit = config.memory.base, config.memory.limit
        self._model = CModel(self.memory, base, limit, threads, BOOT_IMAGE)

    @property
    def last_fault(self) -> str:
        """What was wrong with the last command, in words; empty after a success."""
        return self._model.last_fault

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        return ErrorCode(self._model.execute(packet, seq))

    def reset(self) -> None:
        """See Backend."""
        super().reset()
        self._model.forget_loaded_programs()

    def dirty_pages(self) -> list[int]:
        """See InspectableBackend."""
        return sorted({*super().dirty_pages(), *self._model.dirty_pages()})

    def clear_dirty(self) -> None:
        """See InspectableBackend."""
        super().clear_dirty()
        self._model.clear_dirty()

    def set_faults(self, ranges: list[FaultRange]) -> None:
        """See InspectableBackend."""
        super().set_faults(ranges)
        self._model.clear_poison()
        for fault in ranges:
            size_bytes = fault.end - fault.begin
            self._model.poison(fault.begin, size_bytes, fault.on_read, fault.on_write)
