# SPDX-License-Identifier: Apache-2.0
"""Builds of RTL that is not the project's: mistakes of structure end them."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sim_host import CONFIG, STANDIN, standin_spec

from driver.backend.rtl import RtlBackend
from driver.errors import InputError, NeverSettles
from regress import cli
from tb.sim.build import build
from tb.sim.plan import make_plan
from tb.sim.spec import REPOSITORY, BuildSpec

_INNER = """
module inner (input logic clk_i, input logic [3:0] d_i, output logic [3:0] q_o);
  always_ff @(posedge clk_i) q_o <= d_i;
endmodule
"""


@pytest.fixture
def design(tmp_path: Path) -> BuildSpec:
    shutil.copytree(STANDIN, tmp_path / "rtl")
    filelist = tmp_path / "rtl" / "filelist.f"
    filelist.write_text(filelist.read_text() + "\ninner.sv\n")
    (tmp_path / "rtl" / "inner.sv").write_text(_INNER)
    return replace(standin_spec("fast"), filelist=filelist, build_root=tmp_path / "build")


MISTAKES = {
    "a net that is not declared": ("assign undeclared = clk;", "undeclared"),
    "a pin that is left out": (
        "logic [3:0] q; inner u_inner (.clk_i(clk), .q_o(q));",
        "missing pin: 'd_i'",
    ),
    "two drivers": (
        "logic two; always_comb two = rst_n; always_ff @(posedge clk) two <= 1'b1;",
        "always_comb.*'two'",
    ),
    "a latch": ("logic kept; always_comb if (rst_n) kept = irq;", "kept"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_structure_ends_the_build(design: BuildSpec, name: str) -> None:
    line, said = MISTAKES[name]
    top = design.filelist.parent / "npu_top.sv"
    text = top.read_text()
    at = text.rindex("endmodule")
    top.write_text(f"{text[:at]}  {line}\n{text[at:]}")
    number = text[:at].count("\n") + 1
    with pytest.raises(InputError, match=rf"npu_top\.sv: line {number}: got .*{said}"):
        build(design)


def test_a_module_in_two_files_is_refused(design: BuildSpec) -> None:
    """Verilator takes the first one, and a design appended to a list would not be what runs."""
    (design.filelist.parent / "again.sv").write_text(_INNER)
    design.filelist.write_text(design.filelist.read_text() + "again.sv\n")
    with pytest.raises(InputError, match=r"sources: got module inner in inner.sv and in again.sv"):
        make_plan(design)


def test_an_include_is_found_beside_its_source(design: BuildSpec) -> None:
    folder = design.filelist.parent
    (folder / "inner.sv").write_text('`include "width.svh"\n' + _INNER.replace("3:0", "`WIDTH-1:0"))
    (folder / "width.svh").write_text("`define WIDTH 4\n")
    assert build(design).binary.is_file()


def add_loop(rtl: Path) -> None:
    """One that spins once the reset is over."""
    top = rtl / "npu_top.sv"
    text = top.read_text()
    loop = (
        "logic spin;\n  always_comb spin = !(spin && rst_n);\n  assign irq = spin && irq_status_q"
    )
    assert text.count("assign irq = irq_status_q") == 1
    top.write_text(text.replace("assign irq = irq_status_q", loop))


def test_a_loop_that_never_settles_is_a_verdict(design: BuildSpec, tmp_path: Path) -> None:
    add_loop(design.filelist.parent)
    log = tmp_path / "sim.log"
    with pytest.raises(NeverSettles, match=rf"a loop of combinational logic .*; see {log}"):
        RtlBackend(CONFIG, binary=build(design).binary, sim_log=log).reset()


def test_lint_of_a_configuration_names_a_loop_in_rtl_of_your_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(STANDIN, tmp_path / "rtl")
    add_loop(tmp_path / "rtl")
    project = (REPOSITORY / "sim_config.yaml").read_text()
    common = project[project.index("common:") : project.index("configs:")]
    own = "{array_size: 8, bus_bits: 128, filelist: rtl/filelist.f}"
    config_file = tmp_path / "own.yaml"
    config_file.write_text(f"{common}configs:\n  mine: {own}\n")
    given = ["npu-cosim", "lint", "--config", "mine", "--config-file", str(config_file)]
    monkeypatch.setattr(sys, "argv", given)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert "UNOPTFLAT" in said and "'npu_top.spin'" in said
    assert "slang of mine: nothing to say" in said
