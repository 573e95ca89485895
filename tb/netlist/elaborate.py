# SPDX-License-Identifier: Apache-2.0
"""The first steps of every netlist: npu_top of one configuration, read by Yosys and slang."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from driver.config import HwConfig
from driver.errors import InputError
from driver.filelist import FILELIST, read_by, read_filelist
from tb.netlist.yosys import yosys_version
from tb.sim.spec import digest

DESIGN = "npu_top"
CLOCK = "\\clk"
"""Its clock in RTLIL."""
RTL = "/rtl"
"""Where scripts see the folder of the file list."""


@dataclass(frozen=True)
class Elaboration:
    """What to read: the sources of `filelist`, with these parameters of npu_top."""

    parameters: tuple[tuple[str, str], ...]
    filelist: Path = FILELIST

    @property
    def mounts(self) -> dict[str, Path]:
        """For run_yosys."""
        return {RTL: self.filelist.parent}

    @property
    def command(self) -> str:
        """The line of a script that reads it, flat, with names that begin with the instance."""
        given = " ".join(f"-G {name}={value}" for name, value in self.parameters)
        options = f"--threads 1 --ignore-assertions --top {DESIGN}"
        return f"read_slang {options} {given} -F {RTL}/{self.filelist.name}"

    def key(self, *parts: str) -> str:
        """Hash of everything that decides the netlist, and of `parts`."""
        sources = read_filelist(self.filelist)
        sources += read_by(sources)
        names = [path.name for path in sources]
        texts = [path.read_bytes() for path in sources]
        return digest([yosys_version(), self.command, *parts, *names, *texts])[:16]


def elaboration(config: HwConfig, filelist: Path | None = None) -> Elaboration:
    """Of npu_top with the parameters of `config`, by default of the sources that it names.

    InputError: a source that is not below the folder of the list, which is all that Yosys sees.
    """
    filelist = filelist or config.filelist or FILELIST
    for source in read_filelist(filelist):
        if not source.is_relative_to(filelist.parent):
            raise InputError(filelist, "source", source, f"one below {filelist.parent}")
    parameters = {name: str(value) for name, value in config.rtl_parameters().items()}
    return Elaboration(tuple(parameters.items()), filelist)
