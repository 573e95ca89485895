# SPDX-License-Identifier: Apache-2.0
"""CPU time of a build after one more register in one RTL module ÷ that of a cold build; in a note,
the same edit in a build that records waves."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from driver.config import load_config
from driver.errors import InfrastructureError
from tb.bench.measure import Measurement, Note, interleaved, timed
from tb.sim.build import build
from tb.sim.spec import REPOSITORY, spec_for

EDITED = "ctrl/npu_engine_slot.sv"
"""A module in the middle of the design."""


def measure(rounds: int, note: Note) -> Measurement:
    """Builds of the default configuration; the cold one in the variant that tests use."""
    os.environ["CCACHE_DISABLE"] = "1"  # a compiler cache would make the cold build warm
    with tempfile.TemporaryDirectory(prefix="npu-bench-") as name:
        sources = _Sources(Path(name))
        note(f"builds of config default: an edit in {EDITED}, and cold ones")
        edited = {
            variant: partial(timed, partial(sources.edited, variant))
            for variant in ("check", "waves")
        }
        found = interleaved(edited["check"], partial(timed, sources.cold), rounds)
        # the first build with waves, a cold one, is the one to warm up
        waves = interleaved(edited["waves"], edited["check"], rounds)
        note(f"after an edit, with waves ÷ without: {waves.value:.2f} ± {waves.spread / 2:.2f}")
        return found


class _Sources:
    """A copy of the RTL that changes with every build of it that is not cold."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rtl = folder / "rtl"
        shutil.copytree(REPOSITORY / "rtl", self._rtl)
        self._config = load_config(REPOSITORY / "sim_config.yaml", "default")
        self._file = self._rtl / EDITED
        head, end, self._tail = self._file.read_text().rpartition("endmodule")
        if not end:
            raise InfrastructureError(f"{EDITED} is no module")
        self._head = head
        self._count = 0

    def edited(self, variant: str) -> None:
        """Build after an edit that changes the generated C++ of one module."""
        self._edit()
        self._build(variant, self._folder / "warm")

    def cold(self) -> None:
        """Build `check` in an empty folder."""
        root = self._folder / "cold"
        self._build("check", root)
        shutil.rmtree(root)

    def _edit(self) -> None:
        """A register more, that an assertion reads, so that it stays in the model. A public one
        would stay as well, but would keep its module from being inlined: another kind of edit."""
        self._count += 1
        name = f"bench{self._count}_q"
        self._head += (
            f"  logic [31:0] {name};\n"
            f"  always_ff @(posedge clk_i) {name} <= rst_ni ? {name} + 32'd{self._count} : '0;\n"
            f'  always_ff @(posedge clk_i) assert ({name} != \'1) else $error("{name}");\n'
        )
        self._file.write_text(self._head + "endmodule" + self._tail)

    def _build(self, variant: str, root: Path) -> None:
        spec = spec_for(self._config, variant, root)
        build(replace(spec, filelist=self._rtl / "filelist.f"))
