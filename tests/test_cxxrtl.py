# SPDX-License-Identifier: Apache-2.0
"""CXXRTL: its one function is cut without a change of meaning, and an error in it is seen."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from driver.backend.rtl import RtlBackend
from driver.config import CONFIG_FILE, load_config
from driver.errors import InfrastructureError, InputError
from golden.backend import CmodelBackend
from tb.cxxrtl.build import build_cxxrtl, compile_model, own_flags
from tb.cxxrtl.split import split
from tb.ops.case import Case
from tb.ops.pair import DevicePair
from tb.sim.spec import SIM_FOLDER
from tb.sim.toolchain import find_compiler

HEADER = "struct p_top {\n\tbool posedge_p_clk() const;\n\tbool commit() override {\n\t}\n};\n"
SOURCE = """#include "m.h"
void p_top::reset() {
}
bool p_top::eval(performer *performer) {
	bool converged = true;
	bool posedge_p_clk = this->posedge_p_clk();
	value<4> i_1;
	// a comment
	value<8> i_2;
	i_1 = p_a;
	auto tmp_1 = memory_index(i_1, 0, 4);
	CXXRTL_ASSERT(tmp_1.valid && "out of bounds read");
	if(tmp_1.valid) {
		i_2 = memory_m[tmp_1.index];
	} else {
		i_2 = value<8> {};
	}
	if (posedge_p_clk) {
		if (i_1 == value<4> {1u}) {
			p_q.next = i_2;
		}
	}
	p_y = p_q.curr;
	return converged;
}
"""


def test_edge_is_apart_and_shared_values_are_members() -> None:
    model = split(HEADER, SOURCE, "m.h", "p_clk")
    assert "\tvalue<4> i_1;\n\tvalue<8> i_2;\n" in model.header
    text = "".join(model.sources.values())
    settle, edge = text.split("void p_top::edge_0()")
    assert settle.index("i_1 = p_a;") < settle.index("auto tmp_1") < settle.index("p_y = p_q.curr;")
    assert "p_q.next = i_2;" in edge
    assert "p_q.next" not in settle
    assert "posedge" not in settle
    assert "void p_top::reset()" in model.sources["state.cc"]


def test_every_statement_is_kept_once() -> None:
    model = split(HEADER, SOURCE, "m.h", "p_clk")
    text = "".join(model.sources.values())
    for statement in ("i_1 = p_a;", "i_2 = memory_m", "i_2 = value<8> {};", "p_q.next = i_2;"):
        assert text.count(statement) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [("return converged;", "return true;"), ("if (i_1 ==", "if (posedge_p_clk && i_1 ==")],
)
def test_unknown_form_is_refused(old: str, new: str) -> None:
    with pytest.raises(InfrastructureError, match="another form"):
        split(HEADER, SOURCE.replace(old, new), "m.h", "p_clk")


@pytest.mark.parametrize("name", ["main.cpp", "core/server.cpp"])
def test_the_shared_main_program_compiles(name: str) -> None:
    compiler = find_compiler().command[-1]
    subprocess.run([compiler, *own_flags(), "-fsyntax-only", SIM_FOLDER / name], check=True)


def differing(binary: Path) -> int:
    """Elements of a small product in which the simulator and the cmodel differ."""
    import torch  # noqa: PLC0415 - only here

    config = load_config(CONFIG_FILE, "small")
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(9, 9, generator=generator) for _ in range(2))
    case = Case(index=0, op="aten.mm.default", args=(a, b), module="m", kwargs={})
    with RtlBackend(config, binary=binary) as rtl:
        result = DevicePair(config, CmodelBackend(config), rtl).run(case, 1)
    assert result.rtl is not None
    pairs = zip(result.rtl.bits, result.cmodel.bits, strict=True)
    return sum(int(np.count_nonzero(x != y)) for x, y in pairs if x is not None and y is not None)


def test_a_dram_of_one_port_is_refused() -> None:
    with pytest.raises(InputError, match=r"single_port: dram\.single_port: got True"):
        build_cxxrtl(load_config(CONFIG_FILE, "single_port"))


@pytest.mark.second_simulator
def test_planted_error_in_the_generated_code_is_a_difference(tmp_path: Path) -> None:
    built = build_cxxrtl(load_config(CONFIG_FILE, "small"))
    assert differing(built.binary) == 0
    folder = shutil.copytree(built.folder, tmp_path / "model")
    texts = {part: part.read_text() for part in folder.glob("part*.cc")}
    array = {part: text for part, text in texts.items() if text.count("mul_uu<") >= 8 * 8}
    assert array  # the parts with as many multipliers as the array has
    for part, text in array.items():
        part.write_text(text.replace("mul_uu<", "add_uu<"))
    assert differing(compile_model(folder, built.folder.parent / "objects")) > 0
