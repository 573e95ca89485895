# SPDX-License-Identifier: Apache-2.0
"""Members of the generated model keep their place; a file depends on those that it names."""

from __future__ import annotations

from pathlib import Path

from tb.sim.rewrite.layout import Dependence, following, keep_in_place, model_last

A, B, C, D, E = (f"IData/*31:0*/ {name};" for name in "abcde")
WIDE_A = "QData/*63:0*/ a;"
HEADER = """\
class Vtop final {{
  public:
    // DESIGN SPECIFIC STATE
    struct {{
{members}    }};
    VlUnpacked<CData/*7:0*/, 4> memory;

    // INTERNAL VARIABLES
    Vtop__Syms* vlSymsp;

    // CONSTRUCTORS
    Vtop(Vtop__Syms* symsp, const char* namep);
}};
"""

SYMBOLS = """\
class Vtop__Syms final {{
  public:
    Vtop* const __Vm_modelp;

    // MODULE INSTANCE STATE
    Vtop                           TOP;
    Vtop_numbers                   TOP__numbers;

    // SCOPE NAMES
{scopes}
    // CONSTRUCTORS
    Vtop__Syms(Vtop* modelp);
    const char* name() const {{ return TOP.vlNamep; }}
}};
"""


class Model:
    """A generated header that is written again and again, with one memory of its order."""

    def __init__(self, folder: Path) -> None:
        self.header, self.memory = folder / "Vtop.h", folder / "layout.json"
        self.folder = folder
        self.symbols = folder / "Vtop__Syms.h"

    def generate(self, *members: str, scopes: str = "") -> Dependence:
        self.header.write_text(
            HEADER.format(members="".join(f"        {line}\n" for line in members))
        )
        self.symbols.write_text(SYMBOLS.format(scopes=scopes))
        return keep_in_place(self.header, [self.header, self.symbols], self.memory)

    def order(self) -> list[int]:
        text = self.header.read_text()
        return [text.index(f" {name}") for name in ("vlSymsp", "a;", "c;", "memory;", "b;")]

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path


def test_a_new_member_goes_to_the_end() -> None:
    assert following([A, C], [A, B, C]) == [A, C, B]
    with_gap = [A, "VlWide<3> gone;", B, C, D]
    assert following(with_gap, [A, B, C, D]) == with_gap


def test_many_that_have_gone_or_an_unknown_type_begin_anew() -> None:
    assert following([A, B, C, D], [A, B]) == [A, B]
    assert following([A, B, C, D, "Vtop_struct e;"], [A, B, C, D]) == [A, B, C, D]


def test_files_are_stale_when_what_they_name_has_moved(tmp_path: Path) -> None:
    model = Model(tmp_path)
    first = model.generate(A, C)
    uses_a = model.file("Vtop__0.cpp", "vlSelf->a = vlSymsp->name();")
    uses_memory = model.file("Vtop__1__Slow.cpp", "vlSelfRef.memory[1U] = 0U;")
    constructs = model.file("Vtop__Slow.cpp", "Vtop::Vtop(Vtop__Syms* symsp) {}")
    passes = model.file("Vtop__2.cpp", "vlSymsp->TOP__other.x = vlSelf->a;")
    second = model.generate(A, B, C)
    assert model.order() == sorted(model.order())
    for file in (uses_a, uses_memory):
        assert first.of(file) == second.of(file)
    for file in (constructs, passes):
        assert first.of(file) != second.of(file)


def test_a_member_of_another_type_moves_alone(tmp_path: Path) -> None:
    """The place of before is kept under another name."""
    model = Model(tmp_path)
    first = model.generate(A, B, C, D)
    uses_a = model.file("Vtop__0.cpp", "vlSelf->a = 1;")
    uses_both = model.file("Vtop__1.cpp", "vlSelf->a = vlSelf->memory[0];")
    uses_others = model.file("Vtop__2.cpp", "vlSelf->b = vlSelf->memory[0];")
    constructs = model.file("Vtop__Slow.cpp", "Vtop::Vtop(Vtop__Syms* symsp) {}")
    passes = model.file("Vtop__3.cpp", "vlSymsp->TOP__other.x = vlSelf->b;")
    wider = model.generate(WIDE_A, B, C, D)
    text = model.header.read_text()
    assert (
        text.index("a__before0;") < text.index(" b;") < text.index(" memory;") < text.index(" a;")
    )
    assert wider.of(uses_others) == first.of(uses_others)
    for file in (uses_a, uses_both, constructs, passes):
        assert wider.of(file) != first.of(file)


def test_a_type_and_back_again_is_where_it_was(tmp_path: Path) -> None:
    """What was compiled for the one place is not taken for the other, whatever else a file uses."""
    model = Model(tmp_path)
    file = model.file("Vtop__1.cpp", "vlSelf->a = vlSelf->e;")
    model.generate(A, B, C, D)
    wider = model.generate(WIDE_A, B, C, D, E)
    narrow = model.generate(A, B, C, D, E)
    text = model.header.read_text()
    assert text.index(" a;") < text.index(" b;") < text.index(" a__before5;") < text.index(" e;")
    assert wider.of(file) != narrow.of(file)


def test_other_text_of_the_header_makes_every_file_stale(tmp_path: Path) -> None:
    model = Model(tmp_path)
    first = model.generate(A, C)
    file = model.file("Vtop__0.cpp", "vlSelf->a = 1U;")
    other = tmp_path / "Vother.h"
    other.write_text("struct Other { int x; };\n")
    model.header.write_text(HEADER.format(members=f"        {A}\n        {C}\n"))
    assert keep_in_place(model.header, [model.header, other], model.memory).of(file) != first.of(
        file
    )


def test_constants_of_packages_do_not_move_with_the_model(tmp_path: Path) -> None:
    """A file that reads them is compiled again when it has to be, not whenever the model grows."""
    model = Model(tmp_path)
    first = model.generate(A, C)
    file = model.file("Vtop__0.cpp", "vlSelf->a = vlSymsp->TOP__numbers.table[1U];")
    names_scope = model.file("Vtop__1.cpp", "vlSelf->a = vlSymsp->__Vscope_new->on;")
    text = model.symbols.read_text()
    assert text.index(" TOP__numbers;") < text.index(" TOP;") < text.index("// SCOPE NAMES")
    grown = model.generate(A, B, C, scopes="    VerilatedScope* __Vscope_new;")
    assert grown.of(file) == first.of(file)
    assert grown.of(names_scope) != first.of(names_scope)
    model.symbols.write_text(model.symbols.read_text().replace("numbers", "others"))
    others = keep_in_place(model.header, [model.header, model.symbols], model.memory)
    assert others.of(file) != first.of(file)


def test_symbols_of_another_form_stay_as_they_are() -> None:
    for text in ("class Vtop__Syms {};\n", SYMBOLS.format(scopes="").replace("Vtop  ", "Wtop  ")):
        kept = model_last(text, "Vtop")
        assert kept.text == kept.seen == text
        assert not kept.instances


def test_a_header_of_another_form_or_a_damaged_memory_is_taken_as_it_is(tmp_path: Path) -> None:
    model = Model(tmp_path)
    file = model.file("Vtop__0.cpp", "vlSelf->a = 1U;")
    model.header.write_text("class Vtop {};\n")
    unknown = keep_in_place(model.header, [model.header], model.memory)
    assert unknown.of(file) == unknown.whole
    assert model.header.read_text() == "class Vtop {};\n"
    expected = model.generate(A, C)
    model.memory.write_text("{")
    assert model.generate(A, C) == expected
