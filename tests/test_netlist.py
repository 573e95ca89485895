# SPDX-License-Identifier: Apache-2.0
"""The netlist: clock gates as enables, counts, longest paths, latches, and the baseline."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from driver.config import CONFIG_FILE, load_config
from driver.errors import InfrastructureError, InputError, NpuError, ProcessRefused
from driver.filelist import FILELIST
from driver.synthesis import (
    FPGA_FIGURES,
    BlockCost,
    FpgaCost,
    FpgaMapping,
    FpgaModule,
    FpgaUnmapped,
    LogicPath,
    SynthesisReport,
)
from regress import synthesis
from regress import synthesis_baseline as baseline
from regress.options import SynthesisOptions
from regress.pages.synthesis import write_synthesis_page
from regress.process import Ended
from tb.netlist.clock_gates import ungated
from tb.netlist.depth import depths, longest_paths
from tb.netlist.elaborate import elaboration
from tb.netlist.flat import block_of, load_flat
from tb.netlist.measure import costs_of_blocks, measure
from tb.netlist.yosys import run_yosys

LATCH = """  attribute \\src "rtl/gate.sv:1"
  cell $dlatch $1
    parameter \\EN_POLARITY {polarity}
    parameter \\WIDTH 1
    connect \\EN {clock}
    connect \\D {enable}
    connect \\Q {held}
  end
  cell $and $2{gated}
    connect \\A {clock}
    connect \\B {held}
    connect \\Y {gated}
  end
"""
OUTER = LATCH.format(polarity=0, clock="\\clk", enable="\\on", held="\\h0", gated="\\g0")
INNER = LATCH.format(polarity=0, clock="\\g0", enable="\\on2", held="\\h1", gated="\\g1")
FF = """  cell $dff $3
    parameter \\WIDTH 4
    parameter \\CLK_POLARITY 1
    connect \\CLK {clock}
    connect \\D \\d
    connect \\Q \\q
  end
"""
WRITE = """  cell $memwr_v2 $4
    parameter \\WIDTH 8
    connect \\CLK \\g0
    connect \\EN {{ \\a \\a }}
    connect \\ADDR \\w
    connect \\DATA \\x
  end
"""


def module(*cells: str) -> str:
    return (
        f"module \\top\n  wire \\clk\n{''.join(cells).replace('{{', '{').replace('}}', '}')}end\n"
    )


def test_register_behind_gates_has_their_enables() -> None:
    text = ungated(module(OUTER, INNER, FF.format(clock="\\g1")), "\\clk")
    assert "$dlatch" not in text
    assert "cell $dffe $3\n    parameter \\EN_POLARITY 1\n" in text
    assert "connect \\CLK \\clk\n    connect \\D \\d" in text
    assert "connect \\A \\on\n    connect \\B \\on2\n    connect \\Y $gate_enable$0" in text
    assert "connect \\EN $gate_enable$0" in text


def test_memory_behind_a_gate_is_written_only_with_its_enable() -> None:
    text = ungated(module(OUTER, WRITE), "\\clk")
    assert "connect \\B { \\a \\a }\n    connect \\S \\on\n    connect \\Y $gated$4" in text
    assert "connect \\CLK \\clk\n    connect \\EN $gated$4" in text


@pytest.mark.parametrize(
    "cells",
    [
        (LATCH.format(polarity=1, clock="\\clk", enable="\\on", held="\\h", gated="\\g"),),
        (OUTER.replace("$and", "$or"),),  # a latch that no clock goes through
        (FF.format(clock="\\another"),),
        (OUTER, FF.format(clock="\\g0").replace("$dff", "$adff")),
    ],
)
def test_other_clocks_and_latches_are_refused(cells: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        ungated(module(*cells), "\\clk")


def cell(kind: str, source: str = "rtl/a.sv:1", **ports: list[int]) -> dict[str, object]:
    ways = {port: "output" if port in ("Y", "Q", "DATA_OUT") else "input" for port in ports}
    return {
        "type": kind,
        "attributes": {"src": source},
        "parameters": {},
        "port_directions": ways,
        "connections": ports,
    }


def netlist(folder: Path, cells: dict[str, object], ports: dict[str, object] | None = None) -> Path:
    path = folder / "flat.json"
    names = {"\\q": {"hide_name": 0, "bits": [1]}, "r_q": {"hide_name": 0, "bits": [9]}}
    top = {"cells": cells, "netnames": names, "ports": ports or {}}
    path.write_text(json.dumps({"modules": {"top": top}}))
    return path


def test_longest_path_ends_at_registers(tmp_path: Path) -> None:
    cells = {
        "$flatten\\u_a.$1": cell("$dff", CLK=[99], D=[8], Q=[1]),
        "$flatten\\u_a.$2": cell("$not", A=[1], Y=[2]),
        "$flatten\\u_b.$3": cell("$add", A=[2, 2, 2, 2], B=[1, 1, 1, 1], Y=[3, 4, 5, 6]),
        "$flatten\\u_b.$4": cell("$dff", CLK=[99], D=[6], Q=[9]),
    }
    flat = load_flat(netlist(tmp_path, cells), "top")
    (path,) = longest_paths(flat, depths(flat))
    assert (path.levels, path.end) == (1 + 4, "r_q")
    assert path.by_block == (("u_a", 1), ("u_b", 4))
    levels = {cost.block: cost.levels for cost in costs_of_blocks(flat, depths(flat))}
    assert levels == {"": 5, "u_a": 0, "u_b": 5}


def test_longest_path_ends_at_pins(tmp_path: Path) -> None:
    cells = {
        "$flatten\\u_a.$1": cell("$dff", CLK=[99], D=[8], Q=[1]),
        "$flatten\\u_a.$2": cell("$not", A=[1], Y=[2]),
    }
    ports = {
        "irq_o": {"direction": "output", "bits": [2]},
        "d": {"direction": "input", "bits": [8]},
    }
    flat = load_flat(netlist(tmp_path, cells, ports), "top")
    (path,) = longest_paths(flat, depths(flat))
    assert (path.levels, path.end, path.by_block) == (1, "irq_o", (("u_a", 1),))
    levels = {cost.block: cost.levels for cost in costs_of_blocks(flat, depths(flat))}
    assert levels == {"": 1, "u_a": 0}


def test_registers_that_are_always_equal_count_once(tmp_path: Path) -> None:
    def register(data: list[int], enable: int, out: list[int]) -> dict[str, object]:
        return cell("$dffe", CLK=[99], EN=[enable], D=data, Q=out)

    cells = {
        "$flatten\\u_a.$1": register([1, 2, 3], 7, [10, 11, 12]),
        "$flatten\\u_a.$2": register([2, 3, 4], 7, [13, 14, 15]),  # bit 4 is new
        "$flatten\\u_b.$3": register([1, 2], 8, [16, 17]),  # loaded at other times
    }
    flat = load_flat(netlist(tmp_path, cells), "top")
    found = {cost.block: cost for cost in costs_of_blocks(flat, depths(flat))}
    assert [found[name].flip_flops for name in ("u_a", "u_b", "")] == [4, 2, 6]


def test_loop_of_logic_is_refused(tmp_path: Path) -> None:
    cells = {"$1": cell("$not", A=[1], Y=[2]), "$2": cell("$not", A=[2], Y=[1])}
    with pytest.raises(InfrastructureError, match="a loop of logic"):
        depths(load_flat(netlist(tmp_path, cells), "top"))


def test_block_of_a_cell() -> None:
    assert block_of("$flatten\\u_core.\\u_x[2].$auto$proc.cc:1:f$7") == "u_core.u_x[2]"
    assert block_of("$5") == ""


def report(cells: int = 1000, levels: int = 50) -> SynthesisReport:
    block = {"flip_flops": 10, "memories": 1, "memory_bits": 64, "multipliers": 0, "dsp": 0}
    block["levels"] = levels
    paths = (LogicPath(levels=levels, start="a", end="b", by_block=()),)
    return SynthesisReport(
        config="small", parameters={}, tool="t", key="k", paths=paths, clock_gates=(), latches=(),
        blocks=(BlockCost(block="", cells=cells, **block),
                BlockCost(block="u_core.u_a", cells=cells, **block)),
    )  # fmt: skip


def test_baseline_moves_only_on_purpose(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    assert baseline.moved(baseline.recorded(file), [report()]) == ["small: no baseline is recorded"]
    baseline.record([report()], file)
    former = baseline.recorded(file)
    assert baseline.moved(former, [report()]) == []
    assert baseline.moved(former, [report(cells=1015)]) == []
    grown = baseline.moved(former, [report(cells=1100)])
    assert grown[0] == "small npu_top: cells 1,100, recorded 1,000"
    assert baseline.moved(former, [report(levels=52)]) == [
        "small npu_top: levels 52, recorded 50",
        "small u_core.u_a: levels 52, recorded 50",
    ]


@pytest.mark.planted_mutants
def test_planted_latch_is_found(tmp_path: Path) -> None:
    rtl = shutil.copytree(FILELIST.parent, tmp_path / "rtl")
    stream = rtl / "common" / "npu_stream_reg.sv"
    text = stream.read_text()
    planted = "  logic planted;\n  always_latch if (in_valid_i) planted = out_ready_i;\n"
    place = "  assign out_valid_o = "
    assert text.count(place) == 1
    stream.write_text(text.replace(place, f"{planted}{place}planted && "))
    config = load_config(CONFIG_FILE, "small")
    found = measure(config, 600.0, lambda _: None, rtl / "filelist.f", tmp_path / "cache")
    assert found.latches
    assert all("npu_stream_reg" in latch for latch in found.latches)
    assert len(found.clock_gates) >= 10


def test_sources_that_yosys_cannot_see_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for place in ("npu_top.sv", "mine/npu_top.sv"):
        (tmp_path / place).write_text("module npu_top; endmodule\n")
    filelist = tmp_path / "mine" / "filelist.f"
    own = load_config(CONFIG_FILE, "small").model_copy(update={"filelist": filelist})
    filelist.write_text("npu_top.sv\n")
    assert elaboration(own).filelist == filelist
    filelist.write_text("../npu_top.sv\n")
    with pytest.raises(InputError, match=r"source: got .*npu_top\.sv, expected one below .*mine"):
        elaboration(own)


@pytest.mark.broad
def test_refused_source_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nonsense"):
        run_yosys("t", "nonsense\n", tmp_path, {}, limit_s=120.0, progress=lambda _: None)
    with pytest.raises(InfrastructureError, match="not done after 0 s of CPU time"):
        run_yosys("t", "help -all\n" * 10_000, tmp_path, {}, limit_s=0.0, progress=lambda _: None)


@pytest.mark.parametrize(
    ("status", "error"), [(2, ProcessRefused), (3, InfrastructureError), (-9, InfrastructureError)]
)
def test_error_of_the_measurement_is_its_own_line(
    status: int, error: type[NpuError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(command: object, log: Path, *_: object, **__: object) -> Ended:
        log.write_text("12 s\nrtl: a.sv: got a latch, expected none\n")
        return Ended(status, timed_out=False, seconds=1.0)

    monkeypatch.setattr(synthesis, "execute", ends)
    options = SynthesisOptions(
        config="small", config_file=CONFIG_FILE, out=tmp_path, record=False, fpga=False
    )
    with pytest.raises(error) as raised:
        synthesis.run_synthesis(Console(quiet=True), options)
    assert str(raised.value).endswith("rtl: a.sv: got a latch, expected none")
    assert raised.value.exit_code == (2 if status == 2 else 3)


def mapped(luts: int = 1000, *, done: bool = True) -> SynthesisReport:
    none = dict.fromkeys(FPGA_FIGURES, 0)
    block = FpgaCost.model_validate({**none, "block": "u_core.u_a", "luts": luts})
    kind = FpgaModule(instances=3, cost=block.model_copy(update={"block": "npu_a"}))
    mapping = FpgaMapping(
        device="ECP5",
        tool="t",
        limit_s=9.0,
        blocks=(block,) if done else (),
        unmapped=() if done else (FpgaUnmapped(block="u_core.u_a", modules=("npu_a",)),),
        modules=(kind,) if done else (),
    )
    return report().model_copy(update={"fpga": mapping})


def test_baseline_of_an_fpga(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    baseline.record([report()], file)
    former = baseline.recorded(file)
    assert baseline.moved(former, [mapped()]) == []
    (note,) = baseline.without_fpga(former, [mapped()])
    assert "no baseline is recorded" in note
    assert baseline.without_fpga(former, [report()]) == []
    baseline.record([mapped()], file)
    former = baseline.recorded(file)
    assert baseline.moved(former, [mapped()]) == baseline.moved(former, [report()]) == []
    assert baseline.without_fpga(former, [mapped()]) == []
    assert baseline.moved(former, [mapped(luts=1021)]) == [
        "small on ECP5 u_core.u_a: luts 1,021, recorded 1,000"
    ]
    assert baseline.moved(former, [mapped(done=False)]) == ["small on ECP5 u_core.u_a: gone"]
    assert baseline.holes(mapped()) == []
    assert baseline.holes(mapped(done=False)) == ["small u_core.u_a: not mapped, not recorded"]
    baseline.record([report()], file)  # without an FPGA: its figures stay
    assert baseline.moved(baseline.recorded(file), [mapped()]) == []


def test_page_shows_the_blocks_of_an_fpga(tmp_path: Path) -> None:
    text = write_synthesis_page(tmp_path, [mapped()]).read_text()
    assert "On ECP5" in text
    assert "shares of u_core.u_a" in text
    assert "npu_a" in text
    text = write_synthesis_page(tmp_path, [mapped(done=False)]).read_text()
    assert "u_core.u_a has no figures: npu_a not done in 9 s" in text
