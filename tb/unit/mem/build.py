# SPDX-License-Identifier: Apache-2.0
"""What the memory bench is made of, for each bus width. Knows nothing of what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tb.unit.model import BUILD_ROOT, Bench, build_model, check_bus, rtl_sources

_FOLDER = Path(__file__).parent
_TOP = "mem_bench"
_RTL_FOLDERS = ("pkg", "common", "mem", "move")


def build_bench(
    bus_bits: int, instead: Mapping[str, Path] | None = None, root: Path = BUILD_ROOT
) -> Path:
    """The bench's program for one bus width, built now unless it exists.

    `instead` maps names of RTL files to files that take their place.
    InputError: no such width or file, sources that do not elaborate. InfrastructureError: no tools,
    a builder that never ends.
    """
    check_bus(bus_bits)
    bench = Bench(
        name=f"mem{bus_bits}",
        folder=_FOLDER,
        top=_TOP,
        sources=(*rtl_sources(_RTL_FOLDERS, instead), _FOLDER / f"{_TOP}.sv"),
        parameters={"BusBits": str(bus_bits)},
        defines=(f"BUS_BITS={bus_bits}",),
    )
    return build_model(bench, root)
