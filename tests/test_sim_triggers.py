# SPDX-License-Identifier: Apache-2.0
"""The rewritten question which clocks have risen has the answers of Verilator's own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from sim_host import generate

from tb.sim.rewrite.triggers import pack_triggers, packed
from tb.sim.toolchain import find_compiler

ASKS = """\
void Vtb_top___024root___eval_triggers_vec__act(Vtb_top___024root* vlSelf) {
    auto& vlSelfRef = std::ref(*vlSelf).get();
    // Locals
    CData/*0:0*/ __Vtrigprevexpr_h1__0;
    __Vtrigprevexpr_h1__0 = 0;
    // Body
    __Vtrigprevexpr_h1__0 = ((IData)(vlSelfRef.clk)
                             & (IData)(vlSelfRef.en_q));
    vlSelfRef.__VactTriggered[0U] = (QData)((IData)(
        ((((IData)(__Vtrigprevexpr_h1__0)
           & (~ (IData)(vlSelfRef.__Vtrigprevexpr_h1__1)))
          << 0x0000001fU)
         | ((((IData)(vlSelfRef.clk)
              & (~ (IData)(vlSelfRef.__Vtrigprevexpr___TOP__clk__0)))
             << 1U)
            | ((IData)(vlSelfRef.changed)
               ^ (IData)(vlSelfRef.__Vtrigprevexpr___TOP__changed__0))))));
    vlSelfRef.__Vtrigprevexpr___TOP__changed__0 = vlSelfRef.changed;
    vlSelfRef.__Vtrigprevexpr___TOP__clk__0 = vlSelfRef.clk;
    vlSelfRef.__Vtrigprevexpr_h1__1 = __Vtrigprevexpr_h1__0;
}
"""
STARTS = """\
VL_ATTR_COLD void Vtb_top___024root___eval_static(Vtb_top___024root* vlSelf) {
    auto& vlSelfRef = std::ref(*vlSelf).get();
    // Body
    vlSelfRef.__Vtrigprevexpr___TOP__changed__0 = vlSelfRef.changed;
    vlSelfRef.__Vtrigprevexpr___TOP__clk__0 = vlSelfRef.clk;
    vlSelfRef.__Vtrigprevexpr_h1__1 = ((IData)(vlSelfRef.clk)
                                       & (IData)(vlSelfRef.en_q));
}
"""
HEADER = """\
#include <cstdint>
#include <functional>
#define VL_ATTR_COLD
using CData = std::uint8_t;
using IData = std::uint32_t;
using QData = std::uint64_t;
struct Vtb_top___024root {
    // DESIGN SPECIFIC STATE
    CData clk, en_q, changed;
    CData __Vtrigprevexpr___TOP__changed__0, __Vtrigprevexpr___TOP__clk__0, __Vtrigprevexpr_h1__1;
    QData __VactTriggered[1];
};
"""
MAIN = """
#include <cstdio>
#include <random>
int main() {
    std::mt19937 random(1);
    Vtb_top___024root model{};
    for (int run = 0; run < 50; ++run) {
        auto draw = [&] { return static_cast<CData>(random() & 1); };
        model.clk = draw(), model.en_q = draw(), model.changed = draw();
        Vtb_top___024root___eval_static(&model);
        for (int step = 0; step < 100; ++step) {
            Vtb_top___024root___eval_triggers_vec__act(&model);
            std::printf("%llx\\n", static_cast<unsigned long long>(model.__VactTriggered[0]));
            model.clk = draw(), model.en_q = draw(), model.changed = draw();
        }
    }
}
"""


def write(folder: Path, asks: str = ASKS) -> dict[str, str]:
    """A model like Verilator's, and its files."""
    folder.mkdir()
    texts = {"Vtb_top___024root.h": HEADER, "Vtb_top___024root__0.cpp": asks + STARTS}
    for name, text in texts.items():
        (folder / name).write_text(text)
    return texts


def answers(folder: Path) -> list[str]:
    """Of a program that asks after random changes."""
    (folder / "main.cpp").write_text(
        '#include "Vtb_top___024root.h"\n#include "Vtb_top___024root__0.cpp"\n' + MAIN
    )
    compiler, program = find_compiler().command[-1], folder / "asks"
    subprocess.run([compiler, "-o", program, folder / "main.cpp"], check=True)
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_answers_are_those_of_the_original(tmp_path: Path) -> None:
    write(tmp_path / "before")
    write(tmp_path / "after")
    assert pack_triggers(tmp_path / "after")
    assert "& (~ " not in (tmp_path / "after" / "Vtb_top___024root__0.cpp").read_text()
    expected = answers(tmp_path / "before")
    assert answers(tmp_path / "after") == expected
    assert set(expected) == {"0", "1", "2", "3", "80000000", "80000001", "80000002", "80000003"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(~ (IData)(vlSelfRef.__Vtrigprevexpr___TOP__clk__0))", "(IData)(vlSelfRef.other)"),
        ("((IData)(vlSelfRef.clk)\n              & (~", "((~ (IData)(vlSelfRef.clk))\n  & ("),
        ("__TOP__clk__0 = vlSelfRef.clk;", "__TOP__clk__0 = vlSelfRef.en_q;"),
        ("    vlSelfRef.__Vtrigprevexpr___TOP__changed__0 = vlSelfRef.changed;\n", ""),
        ("    // Body\n", "    // Body\n    vlSelfRef.other = 1U;\n"),
        ("    // Body\n", "    // Body\n    if (vlSelfRef.other) {\n    }\n"),
        ("<< 0x0000001fU", "<< vlSelfRef.other"),
    ],
)
def test_another_form_stays_as_it_is(tmp_path: Path, old: str, new: str) -> None:
    assert ASKS.count(old) == 1
    asks = ASKS.replace(old, new)
    assert packed(asks) is None
    texts = write(tmp_path / "model", asks)
    assert not pack_triggers(tmp_path / "model")
    assert {path.name: path.read_text() for path in (tmp_path / "model").iterdir()} == texts


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Verilator makes of the NPU."""
    return generate("check", tmp_path_factory.mktemp("model") / "generated")


def test_the_clocks_of_the_npu_are_packed(generated: Path) -> None:
    assert pack_triggers(generated)


def test_eval_does_no_more_than_the_simulator_leaves_out(generated: Path) -> None:
    """tb/sim/core/simulation.h calls what the public `eval` calls, and nothing around it."""
    text = (generated / "Vtb_top.cpp").read_text()
    body = text.partition("void Vtb_top::eval_step() {\n")[2].partition("\n}\n")[0]
    body = re.sub(
        r"#ifdef VL_DEBUG.*?#endif[^\n]*\n|VL_DEBUG_IF\(.*?\);\n|//[^\n]*", "", body, flags=re.S
    )
    assert [line.strip() for line in body.splitlines() if line.strip(" );")] == [
        "vlSymsp->__Vm_deleter.deleteAll();",
        "if (VL_UNLIKELY(!vlSymsp->__Vm_didInit)) {",
        "Vtb_top___024root___eval_static(&(vlSymsp->TOP));",
        "Vtb_top___024root___eval_initial(&(vlSymsp->TOP));",
        "Vtb_top___024root___eval_settle(&(vlSymsp->TOP));",
        "vlSymsp->__Vm_didInit = true;",
        "}",
        "Vtb_top___024root___eval(&(vlSymsp->TOP));",
        "Verilated::endOfEval(vlSymsp->__Vm_evalMsgQp);",
    ]
