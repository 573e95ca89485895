# SPDX-License-Identifier: Apache-2.0
"""CPU time of a build after one more register in one RTL module ÷ that of a cold build."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

from driver.config import load_config
from driver.errors import InfrastructureError
from tb.bench.measure import Measurement, Note, interleaved, timed
from tb.sim.build import build
from tb.sim.spec import REPOSITORY, BuildSpec, spec_for

EDITED = "ctrl/npu_engine_slot.sv"
"""A module in the middle of the design."""


def measure(rounds: int, note: Note) -> Measurement:
    """Both builds are of the default configuration, in the variant that tests use."""
    os.environ["CCACHE_DISABLE"] = "1"  # a compiler cache would make the cold build warm
    config = load_config(REPOSITORY / "sim_config.yaml", "default")
    with tempfile.TemporaryDirectory(prefix="npu-bench-") as name:
        folder = Path(name)
        shutil.copytree(REPOSITORY / "rtl", folder / "rtl")
        warm = spec_for(config, "check", folder / "warm")
        sources = _Sources(folder, warm)
        note(f"builds of config {config.name}: an edit in {EDITED}, and cold ones")
        return interleaved(partial(timed, sources.edited), partial(timed, sources.cold), rounds)


class _Sources:
    """A copy of the RTL that changes with every build."""

    def __init__(self, folder: Path, spec: BuildSpec) -> None:
        self._folder = folder
        self._spec = spec
        self._file = folder / "rtl" / EDITED
        head, end, self._tail = self._file.read_text().rpartition("endmodule")
        if not end:
            raise InfrastructureError(f"{EDITED} is no module")
        self._head = head
        self._count = 0

    def edited(self) -> None:
        """Build after an edit that changes the generated C++ of one module."""
        self._edit()
        self._build(self._folder / "warm")

    def cold(self) -> None:
        """Build the same in an empty folder."""
        root = self._folder / "cold"
        self._build(root)
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

    def _build(self, root: Path) -> None:
        filelist = self._folder / "rtl" / "filelist.f"
        fields = {**vars(self._spec), "filelist": filelist, "build_root": root}
        build(BuildSpec(**fields))
