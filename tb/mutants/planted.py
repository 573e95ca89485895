# SPDX-License-Identifier: Apache-2.0
"""A row of the table of planted mutants."""

from __future__ import annotations

from dataclasses import dataclass

from tb.mutants.expression import Mutant


@dataclass(frozen=True)
class PlantedMutant:
    """A mutant of the whole NPU."""

    block: str
    """The part of the hardware that is wrong."""
    run: tuple[str, ...]
    """Arguments of `npu-cosim run` with which it must be caught."""
    mutant: Mutant
