# SPDX-License-Identifier: Apache-2.0
"""Toggles by module, and the clocks of gates, counted in files of waves."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driver.backend.rtl import RtlBackend
from driver.config import CONFIG_FILE, load_config
from driver.errors import InputError
from driver.filelist import FILELIST
from regress.failures.activity import OpActivity, activity, register_block
from regress.pages.power import write_power_page
from tb.sim.build import build
from tb.sim.spec import spec_for

HEAD = """$timescale 1ps $end
$scope module tb_top $end $scope module u_npu $end $scope module u_core $end
$var wire 1 c clk_i $end
$scope module u_a $end
$var wire 4 r count_q [3:0] $end
$var wire 4 d count_d [3:0] $end
$scope module u_gate $end $var wire 1 g clk_o $end $upscope $end
$scope module gen_b[1] $end $scope module u_b $end
$var wire 1 o out_o $end
$var wire 1 o state_q $end
$upscope $end $upscope $end
$upscope $end $upscope $end $upscope $end $upscope $end
$enddefinitions $end
"""


def waves(folder: Path, cycles: int = 4) -> Path:
    """A counter, its gate with a clock in every second cycle, and a register that toggles once."""
    lines = ["#0", "0c", "0g", "b0 r", "b0 d", "0o"]
    for cycle in range(cycles):
        lines += [f"#{2000 * cycle + 1000}", "1c", f"b{cycle + 1:04b} r", "b1111 d"]
        lines += ["1g"] if cycle % 2 else []
        lines += ["1o"] if cycle == 2 else []
        lines += [f"#{2000 * cycle + 2000}", "0c", "0g"]
    path = folder / "waves.vcd"
    path.write_text(HEAD + "\n".join(lines) + "\n")
    return path


def test_toggles_and_clocks_are_counted(tmp_path: Path) -> None:
    found = activity(waves(tmp_path), "op")
    counts = {one.block: (one.bits, one.toggles) for one in found.blocks}
    # 0→1→2→3→4: 1 + 2 + 1 + 3 bits change; count_d is no register.
    assert counts == {"": (5, 8), "u_a": (5, 8), "u_a.u_b": (1, 1)}
    assert found.cycles == 4
    assert [(gate.gate, gate.cycles) for gate in found.gates] == [("u_a.u_gate", 2)]


def test_file_without_the_design_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "waves.vcd"
    path.write_text(HEAD.replace("clk_i", "clock") + "#0\n0c\n#1000\n1c\n")
    with pytest.raises(InputError, match="no rising edge"):
        activity(path, "op")


def test_register_of_a_module() -> None:
    core = "tb_top.u_npu.u_core"
    assert register_block(f"{core}.u_a.gen_x[3].u_b.mem_q[7]") == "u_a.gen_x[3].u_b"
    assert register_block(f"{core}.u_a.req_q.valid") == "u_a"
    assert register_block(f"{core}.u_a.req_d.valid") is None
    assert register_block(f"{core}.u_a.u_gate.en_q") is None  # the latch of a gate
    assert register_block("tb_top.u_dram.now_q") is None
    assert register_block(f"{core}.u_span_checker.count_q") is None  # the bench's


def test_page_shows_every_block_and_gate(tmp_path: Path) -> None:
    found = activity(waves(tmp_path), "aten.mm.default fp32")
    text = write_power_page(tmp_path, "small", [found]).read_text()
    for word in ("u_a.u_b", "u_a.u_gate", "50%", "2.0"):
        assert word in text


GATES = "npu_clock_gate u_gate (.clk_i, .en_i(engine_on[e]), .clk_o(engine_clk[e]));"


def idle(folder: Path, rtl: Path) -> OpActivity:
    """What moves while nothing is to be done."""
    config = load_config(CONFIG_FILE, "small")
    spec = replace(spec_for(config, "waves"), filelist=rtl / "filelist.f")
    path = folder / "waves.vcd"
    with RtlBackend(config, binary=build(spec).binary, seed=1) as rtl_backend:
        rtl_backend.memory[:64] = np.arange(64, dtype=np.uint8)
        rtl_backend.record_waves(path, rtl_backend.cycle, rtl_backend.cycle + 200)
        rtl_backend.run(200, 60.0)
        rtl_backend.stop_waves()
    return activity(path, "idle")


@pytest.mark.planted_mutants
def test_broken_clock_gate_is_visible(tmp_path: Path) -> None:
    rtl = shutil.copytree(FILELIST.parent, tmp_path / "rtl")
    core = rtl / "npu_core.sv"
    assert GATES in core.read_text()
    whole = idle(tmp_path, FILELIST.parent)
    core.write_text(core.read_text().replace(GATES, GATES.replace("engine_on[e]", "1'b1"), 1))
    broken = idle(tmp_path, rtl)
    engines = [gate.cycles for gate in whole.gates if gate.gate.startswith("gen_engine_clock")]
    assert engines
    assert max(engines) == 0
    always = [gate.cycles for gate in broken.gates if gate.gate.startswith("gen_engine_clock")]
    assert min(always) >= broken.cycles - 1
