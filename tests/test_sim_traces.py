# SPDX-License-Identifier: Apache-2.0
"""What writes waves is cut into pieces: the same waves, and after an edit most pieces are too."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sim_host import CONFIG, STANDIN, generate, standin_spec, start_copy, wave_changes

from driver.backend.rtl import RtlBackend
from tb.sim.build import build
from tb.sim.plan import PREFIX, ROOT
from tb.sim.rewrite import traces
from tb.sim.rewrite.trace_text import FILES, TraceFunction, read_functions, statements
from tb.sim.spec import REPOSITORY, BuildSpec

EXTRA = """
  typedef struct packed { logic [6:0] low; logic [39:0] high; } pair_t;
  logic [31:0] extra_q;
  pair_t       pair_q;
  logic [11:0] list_q[3];
  always_ff @(posedge clk) begin
    extra_q <= extra_q + 32'd3;
    pair_q  <= '{low: extra_q[6:0], high: {extra_q, 8'd5}};
    for (int i = 0; i < 3; i++) list_q[i] <= extra_q[11:0] ^ 12'(i);
  end
  always_ff @(posedge clk)
    assert ({pair_q, list_q[0], list_q[1], list_q[2]} != '1) else $error("extra");
endmodule"""


REGISTER = """
  logic [31:0] extra_q;
  always_ff @(posedge clk_i) extra_q <= rst_ni ? extra_q + 32'd3 : '0;
  always_ff @(posedge clk_i) assert (extra_q != '1) else $error("extra");
endmodule"""
LARGE = 32 * 1024


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C++ of the NPU, as Verilator writes it."""
    return generate("waves", tmp_path_factory.mktemp("waves") / "generated")


def copied(generated: Path, folder: Path) -> Path:
    shutil.copytree(generated, folder)
    return folder


def text(folder: Path) -> str:
    return "".join(path.read_text() for path in sorted(folder.glob(FILES)))


def large(folder: Path) -> set[str]:
    """The files that are compiled alone."""
    return {path.name for path in folder.glob(FILES) if path.stat().st_size >= LARGE}


def is_of_a_type(function: TraceFunction) -> bool:
    return "__VdtypeVar" in function.parameters or "fidx" in function.parameters


def _plain(step: str, base: int) -> str:
    """With absolute numbers, without the names that are made up."""
    numbered = re.sub(r"oldp\+(\d+)", lambda match: f"+{int(match[1]) + base}", step)
    names = re.sub(r"__V\w*[Tt]emp_\w+|__VExpand\w+|temporary_\w+", "temporary", numbered)
    return re.sub(rf"{ROOT}__trace_\w+", "function", names)


def steps(folder: Path) -> Iterator[str]:
    """All statements outside functions of types."""
    functions, _ = read_functions(folder)
    for function in functions.values():
        if is_of_a_type(function):
            continue
        for line in function.statements:
            guarded = re.fullmatch(r"if \(VL_UNLIKELY\(.*?Activity.*?\)\) \{ (.*) \}", line)
            for step in statements(guarded[1]) if guarded else [line]:
                yield _plain(step, function.base)


def written(folder: Path) -> Counter[str]:
    found = Counter(steps(folder))
    return Counter({text: count for text, count in found.items() if re.match("bufp|VL_TR", text)})


def test_nothing_is_lost_and_numbers_are_verilators_at_first(
    generated: Path, tmp_path: Path
) -> None:
    after = copied(generated, tmp_path / "after")
    assert not traces.cut_traces(after, tmp_path / "traces.json")
    expected = written(generated)
    assert sum(expected.values()) > 10_000
    assert written(after) == expected
    listed = json.loads((after / f"{PREFIX}.json").read_text())["sources"]
    names = {Path(name).name for kind in ("support_fast", "support_slow") for name in listed[kind]}
    assert {path.name for path in after.glob(FILES)} <= names
    assert all((after / name).is_file() for name in names)


def test_a_register_more_changes_the_pieces_that_have_it(generated: Path, tmp_path: Path) -> None:
    """Verilator gives other numbers to half of the signals then."""
    shutil.copytree(REPOSITORY / "rtl", tmp_path / "rtl")
    slot = tmp_path / "rtl" / "ctrl" / "npu_engine_slot.sv"
    slot.write_text(slot.read_text().replace("endmodule", REGISTER, 1))
    after = generate("waves", tmp_path / "after", tmp_path / "rtl" / "filelist.f")
    numbered = [re.findall(r"c\+\d+,0", text(folder)) for folder in (generated, after)]
    before = copied(generated, tmp_path / "before")
    for folder in (before, after):
        assert not traces.cut_traces(folder, tmp_path / "traces.json")
    old, new = (large(folder) for folder in (before, after))
    assert len(new) > 20
    assert len(new - old) <= 12
    assert numbered[0] != numbered[1]


def test_there_is_room_for_numbers_that_are_kept(generated: Path, tmp_path: Path) -> None:
    """Verilator counts the signals that there are; behind those that are gone, numbers are higher,
    and old values would be written beyond the room for them."""
    memory, room = tmp_path / "traces.json", []
    for number, before in enumerate(({}, {"gone": [1000, 1]})):
        folder = copied(generated, tmp_path / f"after{number}")
        memory.write_text(json.dumps(before))
        assert not traces.cut_traces(folder, memory)
        (count,) = re.findall(r"addInitCb\(.*, (\d+)\);", (folder / f"{PREFIX}.cpp").read_text())
        assert int(count) > max(map(int, re.findall(r"c\+(\d+),", text(folder))))
        room.append(int(count))
    assert room[1] == room[0] + 1001


def test_what_is_not_understood_stays_as_it_is(generated: Path, tmp_path: Path) -> None:
    folder = copied(generated, tmp_path / "odd")
    path = next(
        path for path in folder.glob(FILES) if "VL_TRACE_POP_PREFIX(tracep);\n" in path.read_text()
    )
    odd = path.read_text().replace("VL_TRACE_POP_PREFIX(tracep);\n", "tracep->pop();\n")
    path.write_text(odd)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "tracep->pop();" in traces.cut_traces(folder, tmp_path / "traces.json")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def changes(spec: BuildSpec, path: Path) -> dict[str, list[tuple[int, object]]]:
    """By full name, every change of a signal while the simulator of `spec` copies."""
    with RtlBackend(CONFIG, binary=build(spec).binary) as backend:
        backend.record_waves(path, 10, 400)
        start_copy(backend, 0, 0x1000_0000, 8)
        backend.run(500, 60)
        backend.stop_waves()
    return wave_changes(path)


def test_waves_after_an_edit_are_those_of_a_first_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "_MIN_BYTES", 1024)
    monkeypatch.setattr(traces, "_ONE_IN", 4)
    shutil.copytree(STANDIN, tmp_path / "rtl")
    spec = replace(
        standin_spec("waves"),
        filelist=tmp_path / "rtl" / "filelist.f",
        build_root=tmp_path / "build",
    )
    before = changes(spec, tmp_path / "before.vcd")
    top = tmp_path / "rtl" / "npu_top.sv"
    top.write_text(top.read_text().replace("endmodule", EXTRA, 1))
    edited = changes(spec, tmp_path / "edited.vcd")
    shutil.copytree(tmp_path / "build" / "objects", tmp_path / "other" / "objects")
    first = changes(replace(spec, build_root=tmp_path / "other"), tmp_path / "first.vcd")
    assert edited == first
    new = {name.rpartition("npu.")[2] for name in edited.keys() - before.keys()}
    assert {"extra_q", "pair_q.low", "pair_q.high"} <= new
    assert before.keys() < edited.keys()
    assert {name: edited[name] for name in before} == before
    numbers = [
        json.loads(path.read_text())
        for root in ("build", "other")
        for path in (tmp_path / root).glob("family-*/traces.json")
    ]
    assert numbers[0] != numbers[1]
