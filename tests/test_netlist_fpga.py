# SPDX-License-Identifier: Apache-2.0
"""Resources of an FPGA: each distinct module is mapped once; a block is the sum of its modules."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tb.netlist.fpga
from driver.config import CONFIG_FILE, load_config
from driver.errors import InfrastructureError
from tb.netlist.fpga import counted, map_blocks
from tb.netlist.modules import Module, distinct_modules, text_of
from tb.netlist.yosys import YosysTimeout, run_yosys

LEAF = """attribute \\src "leaf.sv:{line}"
module \\leaf$top.{path}
  wire input 1 \\clk_i
  attribute \\src "leaf.sv:{line}"
  wire width 4 output 2 \\out_o
  wire width 4 $auto$x.cc:1:f${number}_Y
  cell $add $add$leaf.sv:3${number}
    connect \\A $auto$x.cc:1:f${number}_Y [3:0]
    connect \\B 4'{constant}
    connect \\Y \\out_o
  end
end
"""
TOP = """attribute \\top 1
module \\top
  wire input 1 \\clk
  cell \\leaf$top.u_a \\u_a
    connect \\clk_i \\clk
  end
  cell \\leaf$top.u_b \\u_b
    connect \\clk_i \\clk
  end
end
"""


def netlist(second: str = "0001") -> str:
    leaves = (
        LEAF.format(line=3, path="u_a", number=17, constant="0001"),
        LEAF.format(line=9, path="u_b", number=204, constant=second),
    )
    return f"autoidx 300\n{''.join(leaves)}{TOP}"


def test_instances_that_differ_in_numbers_only_are_one_module() -> None:
    modules = distinct_modules(netlist(), "top")
    leaf, top = modules.values()
    assert (leaf.kind, top.kind) == ("leaf", "top")
    assert top.instances == (("u_a", leaf.name), ("u_b", leaf.name))
    text = text_of(top, modules)
    assert f"cell \\{leaf.name} \\u_b\n" in text
    stub = text[text.index("attribute \\blackbox 1\n") :]
    assert stub.startswith(
        f"attribute \\blackbox 1\nmodule \\{leaf.name}\n  wire input 1 \\clk_i\n"
    )
    assert "$add" not in stub


def test_a_differing_constant_is_another_module_and_another_parent() -> None:
    first, second, top = distinct_modules(netlist("0010"), "top").values()
    assert first.kind == second.kind == "leaf"
    assert first.name != second.name
    assert top.name != list(distinct_modules(netlist(), "top"))[-1]


ROW = """module \\row$top.{path}
  wire width 8 input 1 \\word_i
  wire output 2 \\out_o
  cell {cell} $1
    connect \\A \\word_i [{high}:{low}]
    connect \\B 2'{number}
    connect \\Y \\out_o
  end
end
"""


@pytest.mark.parametrize(
    ("cell", "high", "distinct"),
    [("$eq", 3, 1), ("$le", 3, 1), ("$add", 3, 2), ("$eq", 4, 2)],
)
def test_rows_that_differ_in_their_number_only_are_one_module(
    cell: str, high: int, distinct: int
) -> None:
    first = ROW.format(path="u_a", cell=cell, high=1, low=0, number="01")
    second = ROW.format(path="u_b", cell=cell, high=high, low=2, number="10")
    *rows, top = distinct_modules(first + second + TOP.replace("leaf", "row"), "top").values()
    assert len(rows) == distinct
    assert [name for _, name in top.instances] == [rows[0].name, rows[-1].name]


def test_netlist_of_another_form_is_refused() -> None:
    with pytest.raises(InfrastructureError, match="no module other"):
        distinct_modules(netlist(), "other")
    with pytest.raises(InfrastructureError, match=r"no module .*u_c"):
        distinct_modules(netlist().replace("\\leaf$top.u_b \\u_b", "\\leaf$top.u_c \\u_c"), "top")


def statistics(folder: Path, cells: dict[str, int]) -> Path:
    file = folder / "u_a.json"
    file.write_text(json.dumps({"design": {"num_cells_by_type": cells}}))
    return file


def test_cells_of_an_fpga_are_counted_and_none_is_left_out(tmp_path: Path) -> None:
    cells = {"LUT4": 5, "CCU2C": 2, "DP16KD": 1, "PFUMX": 3, "npu_clock_gate": 1, "npu_b_1": 2}
    module = Module("npu_a", "npu_a_0", "", (("u_b", "npu_b_1"),), black_box=False)
    found = counted(module, statistics(tmp_path, cells))
    assert (found.cells["luts"], found.cells["carries"], found.cells["flip_flops"]) == (5, 2, 0)
    assert found.inside == {"npu_b_1": 2}
    with pytest.raises(InfrastructureError, match=r"4 cells \$mul were not mapped"):
        counted(module, statistics(tmp_path, {**cells, "$mul": 4}))
    with pytest.raises(InfrastructureError, match="no statistics"):
        counted(module, tmp_path / "none.json")


CORE = """
module npu_clock_gate (input logic clk_i, input logic en_i, output logic clk_o);
  logic held;
  always_latch if (!clk_i) held = en_i;
  assign clk_o = clk_i & held;
endmodule
module npu_word (input logic clk_i, input logic [7:0] in_i, output logic [7:0] out_o);
  always_ff @(posedge clk_i) out_o <= in_i + out_o;
endmodule
module npu_pair (input logic clk_i, input logic en_i, input logic [7:0] in_i,
                 output logic [7:0] out_o);
  logic       clk;
  logic [7:0] between;
  npu_clock_gate u_gate (.clk_i, .en_i, .clk_o(clk));
  npu_word u_first (.clk_i(clk), .in_i, .out_o(between));
  npu_word u_second (.clk_i(clk), .in_i(between), .out_o);
endmodule
module npu_core (input logic clk_i, input logic en_i, input logic [7:0] in_i,
                 output logic [7:0] out_o);
  logic [7:0] between;
  npu_word u_one (.clk_i, .in_i, .out_o(between));
  npu_pair u_two (.clk_i, .en_i, .in_i(between), .out_o);
endmodule
"""


@pytest.fixture
def filelist(tmp_path: Path) -> Path:
    """A small npu_top with the parameters of a configuration: three words in two blocks."""
    parameters = load_config(CONFIG_FILE, "small").rtl_parameters()
    given = ", ".join(f"parameter int unsigned {name} = 0" for name in parameters)
    ports = "input logic clk, input logic en_i, input logic [7:0] in_i, output logic [7:0] out_o"
    core = "npu_core u_core (.clk_i(clk), .en_i, .in_i, .out_o);"
    text = f"{CORE}module npu_top #({given}) ({ports});\n  {core}\nendmodule\n"
    (tmp_path / "core.sv").write_text(text)
    (tmp_path / "filelist.f").write_text("core.sv\n")
    return tmp_path / "filelist.f"


def mapped_names(monkeypatch: pytest.MonkeyPatch, failing: str = "none") -> list[str]:
    """The runs of Yosys from now on; one on a module of the kind `failing` needs too much time."""
    names: list[str] = []
    run: Callable[..., None] = tb.netlist.fpga.run_yosys

    def noted(name: str, *arguments: object, **options: object) -> None:
        names.append(name.rpartition("_")[0] or name)
        if names[-1] == failing:
            raise YosysTimeout(name)
        run(name, *arguments, **options)

    monkeypatch.setattr(tb.netlist.fpga, "run_yosys", noted)
    return names


def children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60.0
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


@pytest.mark.broad
def test_yosys_ends_with_the_group_of_its_caller(tmp_path: Path) -> None:
    call = f"run_yosys('t', 'help -all\\n' * 10**6, Path({str(tmp_path)!r}), {{}}, limit_s=300.0,"
    code = f"from pathlib import Path; from tb.netlist.yosys import run_yosys; {call} progress=id)"
    caller = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        (yosys,) = wait_for(lambda: children(caller.pid))
        assert Path(f"/proc/{yosys}").exists()
    finally:
        os.killpg(caller.pid, signal.SIGKILL)
        caller.wait()
    wait_for(lambda: not Path(f"/proc/{yosys}").exists())


@pytest.mark.broad
def test_limit_of_yosys_is_cpu_time(tmp_path: Path) -> None:
    with pytest.raises(YosysTimeout, match="not done after 1 s of CPU time"):
        run_yosys("t", "help -all\n" * 10**6, tmp_path, {}, limit_s=1.0, progress=lambda _: None)


@pytest.mark.broad
def test_module_is_mapped_once_and_counted_for_each_instance(
    filelist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, cache = load_config(CONFIG_FILE, "small"), tmp_path / "cache"
    names = mapped_names(monkeypatch)
    found = map_blocks(config, lambda _: None, 600.0, filelist, cache)
    assert sorted(names) == ["npu_core", "npu_pair", "npu_top", "npu_word", "split"]
    costs = {one.block: one.flip_flops for one in found.blocks}
    assert costs == {"": 24, "u_core.u_one": 8, "u_core.u_two": 16}
    assert {one.cost.block: one.instances for one in found.modules}["npu_word"] == 3
    assert not found.unmapped
    names.clear()
    assert map_blocks(config, lambda _: None, 600.0, filelist, cache) == found
    assert names == ["split"]


@pytest.mark.broad
def test_block_with_a_module_past_its_limit_has_no_figures(
    filelist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped_names(monkeypatch, failing="npu_pair")
    config = load_config(CONFIG_FILE, "small")
    found = map_blocks(config, lambda _: None, 600.0, filelist, tmp_path / "cache")
    assert [one.block for one in found.blocks] == ["u_core.u_one"]
    assert [(one.block, one.modules) for one in found.unmapped] == [
        ("", ("npu_pair",)),
        ("u_core.u_two", ("npu_pair",)),
    ]
