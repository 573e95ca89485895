# SPDX-License-Identifier: Apache-2.0
"""Functions that got references compute what Verilator's own compute; others stay as they are."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from sim_host import generate

from tb.sim.rewrite.references import pass_by_reference
from tb.sim.toolchain import find_compiler

MIX = "__VnoInFunc_top__DOT__mix_TOP"
PARAMETERS = (
    "Vtb_top__Syms* __restrict vlSymsp, IData/*31:0*/ a, VlUnpacked<IData/*31:0*/, 4> w, "
    "VlUnpacked<IData/*31:0*/, 4> psum, VlUnpacked<IData/*31:0*/, 4> &mix__Vfuncrtn"
)
FUNCTION = f"""\
void Vtb_top___024root::{MIX}({PARAMETERS}) {{
    // Body
    IData/*31:0*/ c;
    for (int __Vi0 = 0; __Vi0 < 4; ++__Vi0) {{
        mix__Vfuncrtn[__Vi0] = 0;
    }}
    c = 0U;
    while ((3U > c)) {{
        mix__Vfuncrtn[(3U & c)]
            = ((a ^ w[(3U & c)]) + psum
               [(3U & (c + 1U))]);
        c = ((IData)(1U) + c);
    }}
}}
"""
CALLER = f"""\
void Vtb_top___024root___nba(Vtb_top___024root* vlSelf) {{
    Vtb_top__Syms* const __restrict vlSymsp = vlSelf->vlSymsp;
    auto& vlSelfRef = std::ref(*vlSelf).get();
    // Locals
    VlUnpacked<IData/*31:0*/, 4> __Vfunc_mix__1__Vfuncout;
    for (int __Vi0 = 0; __Vi0 < 4; ++__Vi0) {{
        __Vfunc_mix__1__Vfuncout[__Vi0] = 0;
    }}
    VlUnpacked<IData/*31:0*/, 4> __Vfunc_mix__2__Vfuncout;
    for (int __Vi0 = 0; __Vi0 < 4; ++__Vi0) {{
        __Vfunc_mix__2__Vfuncout[__Vi0] = 0;
    }}
    // Body
    vlSelfRef.{MIX}(vlSymsp, vlSelfRef.a, vlSelfRef.memory
                    [(1U & vlSelfRef.a)], vlSelfRef.sum, __Vfunc_mix__1__Vfuncout);
    vlSelfRef.link
        = __Vfunc_mix__1__Vfuncout;
    if ((1U & vlSelfRef.a)) {{
        vlSelfRef.{MIX}(vlSymsp, (vlSelfRef.a >> 3U), vlSelfRef.link, vlSelfRef.sum,
                        __Vfunc_mix__2__Vfuncout);
        vlSelfRef.sum = __Vfunc_mix__2__Vfuncout;
    }}
}}
"""
HEADER = f"""\
#include <cstdint>
#include <functional>
using IData = std::uint32_t;
template <class T, int N> struct VlUnpacked {{
    T words[N];
    T& operator[](IData at) {{ return words[at]; }}
    const T& operator[](IData at) const {{ return words[at]; }}
}};
struct Vtb_top__Syms;
struct Vtb_top___024root {{
    Vtb_top__Syms* vlSymsp;
    IData a;
    VlUnpacked<IData, 4> link, sum, memory[2];
    void {MIX}({PARAMETERS});
}};
"""
MAIN = """
#include <cstdio>
#include <random>
int main() {
    std::mt19937 random(1);
    Vtb_top___024root model{};
    for (int at = 0; at < 4; ++at) model.sum[at] = 7 * at;
    for (int step = 0; step < 200; ++step) {
        model.a = random();
        for (int at = 0; at < 4; ++at) model.memory[step & 1][at] = random();
        Vtb_top___024root___nba(&model);
        for (int at = 0; at < 4; ++at) std::printf("%x %x\\n", model.link[at], model.sum[at]);
    }
}
"""
SOURCE, ROOT = "Vtb_top___024root__0.cpp", "Vtb_top___024root.h"


def write(folder: Path, function: str = FUNCTION, caller: str = CALLER) -> dict[str, str]:
    """A model like Verilator's, and its files."""
    folder.mkdir()
    texts = {ROOT: HEADER, SOURCE: f"{function}\n{caller}"}
    for name, text in texts.items():
        (folder / name).write_text(text)
    return texts


def answers(folder: Path) -> list[str]:
    """Of a program that calls the function after random changes."""
    (folder / "main.cpp").write_text(f'#include "{ROOT}"\n#include "{SOURCE}"\n{MAIN}')
    compiler, program = find_compiler().command[-1], folder / "calls"
    flags = ["-O3", "-Wall", "-Werror"]
    subprocess.run([compiler, *flags, "-o", program, folder / "main.cpp"], check=True)
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_results_are_those_of_the_original(tmp_path: Path) -> None:
    write(tmp_path / "before")
    write(tmp_path / "after")
    assert pass_by_reference(tmp_path / "after") == {MIX}
    text = (tmp_path / "after" / SOURCE).read_text()
    reference = "const VlUnpacked<IData/*31:0*/, 4>& __restrict w"
    assert reference in text
    assert reference in (tmp_path / "after" / ROOT).read_text()
    assert "vlSelfRef.sum, vlSelfRef.link);\n" in text
    assert "__Vfunc_mix__1" not in text
    expected = answers(tmp_path / "before")
    assert answers(tmp_path / "after") == expected
    assert len(set(expected)) > 100


def test_a_result_that_is_also_an_argument_is_copied(tmp_path: Path) -> None:
    """The second call reads `sum`, which its result becomes: it keeps its variable."""
    write(tmp_path / "model")
    pass_by_reference(tmp_path / "model")
    text = (tmp_path / "model" / SOURCE).read_text()
    assert text.count("__Vfunc_mix__2__Vfuncout") == 4


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    c = 0U;\n", "    c = 0U;\n    psum[2U] = 0U;\n"),
        ("    c = 0U;\n", "    c = 0U;\n    w\n        [(3U & c)] = 5U;\n"),
        ("    c = 0U;\n", "    c = 0U;\n    VL_ASSIGNSEL_II(32, 1, c, w[1U], 1U);\n"),
        ("    c = 0U;\n", "    c = vlSymsp->TOP.a;\n"),
        ("        mix__Vfuncrtn[__Vi0] = 0;\n", "        mix__Vfuncrtn[__Vi0] = psum[__Vi0];\n"),
    ],
)
def test_a_function_that_is_not_pure_stays(tmp_path: Path, old: str, new: str) -> None:
    assert FUNCTION.count(old) == 1
    unchanged(tmp_path / "model", FUNCTION.replace(old, new), CALLER)


@pytest.mark.parametrize("result", ["vlSelfRef.sum", "vlSelfRef.sum[1U]"])
def test_a_function_that_would_write_what_it_reads_stays(tmp_path: Path, result: str) -> None:
    caller = CALLER.replace("   __Vfunc_mix__2__Vfuncout)", f"   {result})")
    assert caller != CALLER
    unchanged(tmp_path / "model", FUNCTION, caller)


def unchanged(folder: Path, function: str, caller: str) -> None:
    """Nothing is rewritten."""
    texts = write(folder, function, caller)
    assert pass_by_reference(folder) == frozenset()
    assert {path.name: path.read_text() for path in folder.iterdir()} == texts


def test_a_result_that_is_used_twice_keeps_its_variable(tmp_path: Path) -> None:
    copied = "    vlSelfRef.link\n        = __Vfunc_mix__1__Vfuncout;\n"
    again = f"{copied}    vlSelfRef.sum = __Vfunc_mix__1__Vfuncout;\n"
    write(tmp_path / "model", caller=CALLER.replace(copied, again))
    assert pass_by_reference(tmp_path / "model") == {MIX}
    assert (tmp_path / "model" / SOURCE).read_text().count("__Vfunc_mix__1__Vfuncout") == 5


def test_the_rows_of_the_array_have_references(tmp_path: Path) -> None:
    folder = generate("check", tmp_path / "generated")
    functions = {name.rpartition("__DOT__")[2] for name in pass_by_reference(folder)}
    assert functions >= {"fma_row_TOP", "int8_row_TOP", "significands_of_TOP", "scales_of_TOP"}
    text = "".join(path.read_text() for path in folder.glob("*024root__*.cpp"))
    assert not re.search(r"u_row__DOT__fma_row__\d+__Vfuncout", text)
