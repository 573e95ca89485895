# SPDX-License-Identifier: Apache-2.0
"""Every rule of the tree, and every front end, sees what it is there for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from regress import front_ends, text_rules
from regress.paths import ROOT

HEAD = "// SPDX-License-Identifier: Apache-2.0\n"


def _put(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_source_files_are_found_and_build_products_are_not(tmp_path: Path) -> None:
    for name in ("a.py", "rtl/b.sv", ".ci/run", "Makefile", "tb/c.hpp"):
        _put(tmp_path, name, "")
    for name in ("build/x.py", "out/x.py", ".venv/x.py", "a/__pycache__/x.py", "notes.txt"):
        _put(tmp_path, name, "")
    found = [str(path.relative_to(tmp_path)) for path in text_rules.source_files(tmp_path)]
    assert found == [".ci/run", "Makefile", "a.py", "rtl/b.sv", "tb/c.hpp"]


def test_the_project_itself_has_many_source_files() -> None:
    assert len(text_rules.source_files()) > 100


def test_a_file_without_its_licence_line_is_named(tmp_path: Path) -> None:
    good = _put(tmp_path, "good.py", "#!/bin/x\n" + HEAD)
    late = _put(tmp_path, "late.py", "\n\n\n" + HEAD)
    problems = text_rules.licence_problems([good, late], tmp_path)
    assert len(problems) == 1
    assert problems[0].startswith("late.py: ")


def test_a_file_that_is_too_long_is_named_unless_generated(tmp_path: Path) -> None:
    files = [_put(tmp_path, name, "\n" * lines) for name, lines in (("a", 400), ("b", 401))]
    assert len(text_rules.length_problems(files, [], tmp_path)) == 1
    assert text_rules.length_problems(files, ["b"], tmp_path) == []


def test_a_line_that_is_too_wide_is_named_with_its_number(tmp_path: Path) -> None:
    file = _put(tmp_path, "rtl/a.sv", "\n" + "x" * 100 + "\n" + "x" * 101)
    other = _put(tmp_path, "a.md", "x" * 200)
    problems = text_rules.width_problems([file, other], [], tmp_path)
    assert problems == ["rtl/a.sv:3: 101 columns, at most 100"]
    assert text_rules.width_problems([file], ["rtl/a.sv"], tmp_path) == []


@pytest.mark.parametrize(
    "line",
    [
        "`ifdef X",
        "  `ifndef X",
        'import "DPI-C" function int f();',
        "initial $display(1);",
        "x = $urandom;",
        "initial $readmemh(name, memory);",
        "$finish;",
        "$fopen(name);",
        "// verilator lint_off WIDTH",
        "logic a /*verilator public*/;",
    ],
)
def test_forbidden_constructs_are_named_by_file_and_line(line: str, tmp_path: Path) -> None:
    file = _put(tmp_path, "rtl/a.sv", HEAD + line + "\n")
    (problem,) = text_rules.rtl_problems([file], [], tmp_path)
    assert problem.startswith("rtl/a.sv:2: ")
    assert text_rules.rtl_problems([file], ["rtl/a.sv"], tmp_path) == []
    assert text_rules.rtl_problems([_put(tmp_path, "tb/a.sv", line)], [], tmp_path) == []


@pytest.mark.parametrize(
    "line",
    [
        "// no `ifdef, no $display",
        "/* $finish\n `ifdef */",
        'else $error("$display is not meant");',
        "assert property (x) else $fatal(1);",
        "logic [$clog2(Depth)-1:0] a; // verilator no_inline_task",
        "import npu_pkg::*;",
    ],
)
def test_what_is_allowed_is_not_named(line: str, tmp_path: Path) -> None:
    assert text_rules.rtl_problems([_put(tmp_path, "rtl/a.sv", line)], [], tmp_path) == []


def test_a_type_of_a_package_has_its_name_alone(tmp_path: Path) -> None:
    struct = "typedef struct packed {\n  logic a; // a; typedef\n  logic [3:0] b;\n} beat_t;\n"
    package = _put(tmp_path, "rtl/a_pkg.sv", struct + "typedef logic [W-1:0]  slot_t;")
    module = _put(tmp_path, "rtl/m.sv", "typedef enum logic [1:0] {A, B} state_e;\n" + struct)
    other = _put(tmp_path, "rtl/n.sv", "typedef enum logic {C, D} state_e; // typedef x slot_t;")
    assert text_rules.type_name_problems([package, module, other], [], tmp_path) == [
        "rtl/a_pkg.sv: beat_t is also a type of rtl/m.sv"
    ]
    assert text_rules.type_name_problems([package, module], ["rtl/m.sv"], tmp_path) == []
    second = _put(tmp_path, "rtl/b_pkg.sv", "typedef slot_t [1:0] slots_t; typedef x slot_t;")
    assert len(text_rules.type_name_problems([package, second], [], tmp_path)) == 2


SMALL = front_ends.SHAPES["8x8, 128 bit"]


@pytest.fixture
def broken_rtl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the RTL that both front ends read instead."""
    shutil.copytree(ROOT / "rtl", tmp_path / "rtl")
    monkeypatch.setattr(front_ends, "FILELIST", tmp_path / "rtl" / "filelist.f")
    monkeypatch.setattr(front_ends, "WAIVERS", tmp_path / "rtl" / "lint" / "npu.vlt")
    return tmp_path / "rtl" / "common" / "npu_fifo.sv"


def test_both_front_ends_take_the_design() -> None:
    assert front_ends.verilator_problems(SMALL) == ""
    assert front_ends.slang_problems(SMALL) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ArraySize", 24),
        ("BusBits", 1024),
        ("VectorLanes", 2),
        ("FmaLatency", 14),
        ("WeightSlots", 64),
        ("AccTiles", 256),
        ("RowTiles", 32),
        ("RowTiles", 6),
        ("MemBase", 8),
    ],
)
def test_a_parameter_that_is_not_offered_does_not_elaborate(name: str, value: int) -> None:
    said = "memory from" if name == "MemBase" else f"npu_top: {name} {value}"
    assert said in front_ends.slang_problems({**SMALL, name: value})


def test_a_queue_that_cannot_hold_a_short_write_does_not_elaborate(broken_rtl: Path) -> None:
    results = broken_rtl.parents[1] / "vector" / "npu_vector_results.sv"
    text = results.read_text()
    assert "Depth = 2 * GROUP;" in text
    results.write_text(text.replace("Depth = 2 * GROUP;", "Depth = GROUP + 1;"))
    assert "npu_vector_store: QueueDepth 9" in front_ends.slang_problems(SMALL)


def test_both_front_ends_see_a_name_that_does_not_exist(broken_rtl: Path) -> None:
    text = broken_rtl.read_text().replace("endmodule", "  assign nothing_q = 1'b0;\nendmodule")
    broken_rtl.write_text("`default_nettype none\n" + text)
    assert "nothing_q" in front_ends.verilator_problems(SMALL)
    assert "nothing_q" in front_ends.slang_problems(SMALL)


def test_verilator_sees_an_unused_signal(broken_rtl: Path) -> None:
    text = broken_rtl.read_text()
    broken_rtl.write_text(text.replace("endmodule", "  logic idle_thing;\nendmodule"))
    assert "idle_thing" in front_ends.verilator_problems(SMALL)


def test_slang_sees_what_verilator_lets_pass(broken_rtl: Path) -> None:
    top = broken_rtl.parents[1] / "npu_top.sv"
    text = top.read_text()
    assert ".ArraySize(ArraySize)" in text
    top.write_text(text.replace(".ArraySize(ArraySize)", ".ArraySize"))
    assert front_ends.verilator_problems(SMALL) == ""
    assert "expected '('" in front_ends.slang_problems(SMALL)
