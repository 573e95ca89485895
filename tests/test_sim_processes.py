# SPDX-License-Identifier: Apache-2.0
"""Functions of the generated model keep their names and files; what they name is declared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tb.sim.rewrite.processes import Names, following, keep_processes

ROOT = "Vtb_top___024root"
HEAD = '#include "Vtb_top__pch.h"\n\n'
WIDE = "extern const VlWide<8>/*255:0*/ Vtb_top__ConstPool__CONST_h1_0;\n"


def function(number: int, body: str, kind: str = "nba_comb", attribute: str = "") -> str:
    name = f"{ROOT}___{kind}__TOP__{number}"
    debug = f'    VL_DEBUG_IF(VL_DBG_MSGF("+    {name}\\n"); );\n'
    return f"{attribute}void {name}({ROOT}* vlSelf) {{\n{debug}    {body}\n}}\n"


def writes(member: str, value: int = 1) -> str:
    return f"vlSelfRef.{member} = {value}U;"


class Model:
    """A generated model that is written again and again, with one memory of its names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "generated"
        self._memory = folder / "processes.json"

    def generate(self, *bodies: str) -> dict[str, str]:
        """Files by name, of one with a function for each body and what calls them all."""
        self.folder.mkdir(exist_ok=True)
        for path in self.folder.iterdir():
            path.unlink()
        calls = "".join(f"    {ROOT}___nba_comb__TOP__{n}(vlSelf);\n" for n in range(len(bodies)))
        evaluates = f"void {ROOT}___eval_nba({ROOT}* vlSelf) {{\n{calls}}}\n"
        functions = [function(number, body) for number, body in enumerate(bodies)]
        texts = {
            f"{ROOT}__0.cpp": HEAD + WIDE + "".join(functions),
            f"{ROOT}__1.cpp": HEAD + "".join(f"void {_name(f)};\n" for f in functions) + evaluates,
            f"{ROOT}__0__Slow.cpp": HEAD
            + f"VL_ATTR_COLD void {ROOT}___other({ROOT}* vlSelf) {{\n}}\n"
            + function(0, "other();", "stl_sequent", "VL_ATTR_COLD "),
        }
        for name, text in texts.items():
            (self.folder / name).write_text(text)
        kinds = {"classes_fast": list(texts)[:2], "classes_slow": list(texts)[2:]}
        (self.folder / "Vtb_top.json").write_text(json.dumps({"sources": kinds}))
        keep_processes(self.folder, self._memory)
        self.kinds = json.loads((self.folder / "Vtb_top.json").read_text())["sources"]
        return {path.name: path.read_text() for path in self.folder.glob("*.cpp")}

    def damage(self) -> None:
        self._memory.write_text('{"by_text": [')


def _name(text: str) -> str:
    return text.partition("void ")[2].partition(" {")[0]


def large(member: str) -> str:
    return "\n    ".join(writes(member, value) for value in range(3000))


def test_a_function_more_changes_no_other(tmp_path: Path) -> None:
    model = Model(tmp_path)
    first = model.generate(large("a"), large("b"), writes("c"))
    second = model.generate(large("new"), large("a"), large("b"), writes("c"))
    calls = f"{ROOT}__1.cpp"
    assert {name for name in first if second.get(name) != first[name]} == {calls}
    (new,) = second.keys() - first.keys()
    assert "vlSelfRef.new" in second[new]
    third = model.generate(large("a"), large("b"), writes("c"))
    assert third == first


def test_a_changed_function_keeps_its_name(tmp_path: Path) -> None:
    """By what it writes first, wherever it is now: what calls it does not change."""
    model = Model(tmp_path)
    first = model.generate(large("a"), large("b"))
    second = model.generate(large("a") + writes("more"), large("b"))
    (changed,) = [name for name in first if second[name] != first[name]]
    assert "vlSelfRef.more" in second[changed]


def test_every_function_is_defined_once_and_declared_where_it_is_called(tmp_path: Path) -> None:
    model = Model(tmp_path)
    uses = writes("a") + " use(Vtb_top__ConstPool__CONST_h1_0); Vtb_top___024root___eval_nba(0);"
    files = model.generate(uses, writes("b"))
    together = [text for name, text in files.items() if "from" in name and "nba" in name]
    assert len(together) == 1
    assert together[0].count(WIDE) == 1
    assert together[0].index(f"void {ROOT}___eval_nba({ROOT}* vlSelf);") < together[0].index("{")
    everything = "".join(files.values())
    for number in range(2):
        head = f"void {ROOT}___nba_comb__TOP__{number}({ROOT}* vlSelf)"
        assert everything.count(f"{head} {{\n") == 1
        assert f"{head};\n" in files[f"{ROOT}__1.cpp"]


def test_files_are_listed_by_their_speed_and_none_is_without_a_function(tmp_path: Path) -> None:
    model = Model(tmp_path)
    files = model.generate(writes("a"))
    assert f"{ROOT}__0.cpp" not in files  # all that it had has moved
    assert f"{ROOT}__0__Slow.cpp" in files
    assert sorted(files) == sorted([*model.kinds["classes_fast"], *model.kinds["classes_slow"]])
    assert all(name.endswith("__Slow.cpp") for name in model.kinds["classes_slow"])
    (moved,) = [name for name in model.kinds["classes_slow"] if "stl" in name]
    assert "VL_ATTR_COLD void" in files[moved]


def test_a_damaged_memory_costs_nothing_but_time(tmp_path: Path) -> None:
    model = Model(tmp_path)
    first = model.generate(writes("a"), large("b"))
    model.damage()
    assert model.generate(writes("a"), large("b")) == first


def test_names_are_given_once() -> None:
    """Functions with the same text, and a name that belongs to what has another form."""
    texts = {f"{ROOT}___nba_comb__TOP__{n}": function(n, writes("a")) for n in range(3)}
    reserved = {f"{ROOT}___nba_comb__TOP__0"}
    names, remembered = following(Names(), texts, reserved)
    assert len({*names.values(), *reserved}) == len(texts) + 1
    again, _ = following(remembered, texts, reserved)
    assert again == names


@pytest.mark.parametrize("text", ["{}", '{"by_text": {"a": 1}, "by_target": {}}', "[]"])
def test_another_memory_is_none(tmp_path: Path, text: str) -> None:
    memory = tmp_path / "processes.json"
    memory.write_text(text)
    assert Names.saved(memory) == Names()


def test_a_memory_gives_no_name_of_another_form(tmp_path: Path) -> None:
    name = f"{ROOT}___nba_comb__TOP__0"
    memory = tmp_path / "processes.json"
    memory.write_text(json.dumps({"by_text": {"a": f"{name}"}, "by_target": {"b": [name, "x"]}}))
    assert Names.saved(memory) == Names({"a": []}, {"b": [name]})
