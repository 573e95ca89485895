# SPDX-License-Identifier: Apache-2.0
"""The processor's count of leading zeros is the RTL's; other functions stay as they are."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from sim_host import generate

from tb.sim.rewrite.leading_zeros import count_leading_zeros
from tb.sim.toolchain import find_compiler

NAME = r"__Vfunc_leading_zeros63__\d+"
STEPS = re.compile(
    rf"(?P<name>{NAME})__word\s*= \(IData\)\(.*?(?P=name)__Vfuncout[^;]*;", re.DOTALL
)
FILE = "Vtb_top.cpp"
MAIN = """
#include <cstdint>
#include <cstdio>
#include <random>
using IData = std::uint32_t;
using QData = std::uint64_t;
#define VL_SHIFTR_III(obits, lbits, rbits, lhs, rhs) ((lhs) >> (rhs))
IData zeros_above(QData %(name)s__value) {
    IData %(name)s__Vfuncout = 0, %(name)s__word = 0, %(name)s__zeros = 0, %(name)s__step = 0;
    %(steps)s
    return %(name)s__Vfuncout;
}
int main() {
    std::mt19937_64 random(1);
    for (int bits = 0; bits <= 64; ++bits) {
        for (int at = 0; at < 50; ++at) {
            const QData word = bits ? (random() | 1ULL << 63) >> (64 - bits) : 0;
            std::printf("%%llx %%u\\n", static_cast<unsigned long long>(word), zeros_above(word));
        }
    }
}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C++ of the NPU."""
    return generate("fast", tmp_path_factory.mktemp("zeros") / "generated")


@pytest.fixture(scope="module")
def steps(model: Path) -> re.Match[str]:
    """Those of one call, as Verilator writes them."""
    texts = (path.read_text() for path in sorted(model.glob("*.cpp")))
    return next(match for text in texts if (match := STEPS.search(text)))


def rewritten(folder: Path, text: str) -> tuple[int, str]:
    """How many counts were replaced, and what became of the text."""
    (folder / FILE).write_text(text)
    return count_leading_zeros(folder), (folder / FILE).read_text()


def answers(folder: Path, steps: str, name: str, flag: str) -> list[str]:
    """Of a program with these statements."""
    (folder / "main.cpp").write_text(MAIN % {"name": name, "steps": steps})
    compiler, program = find_compiler().command[-1], folder / "zeros"
    subprocess.run([compiler, "-O2", flag, "-o", program, folder / "main.cpp"], check=True)
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_both_forms_count_alike(steps: re.Match[str], tmp_path: Path) -> None:
    count, text = rewritten(tmp_path, steps[0])
    assert count == 1
    expected = answers(tmp_path, steps[0], steps["name"], "-D__AVX512CD__")
    assert answers(tmp_path, text, steps["name"], "-D__AVX512CD__") == expected
    assert answers(tmp_path, text, steps["name"], "-U__AVX512CD__") == expected
    assert {int(line.split()[1]) for line in expected} == {*range(64)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0x00010000U", "0x00020000U"),
        ("0x00000021U", "0x00000020U"),
        ("4U", "8U"),
        ("0x1fU", "0x20U"),
        ("VL_SHIFTR_III(", "- VL_SHIFTR_III("),
    ],
)
def test_other_steps_are_kept(steps: re.Match[str], tmp_path: Path, old: str, new: str) -> None:
    """A wrong line that is planted in the function is not repaired."""
    planted = steps[0].replace(old, new)
    assert planted != steps[0]
    assert rewritten(tmp_path, planted) == (0, planted)


def test_every_count_of_the_npu_is_replaced(model: Path) -> None:
    texts = [path.read_text() for path in model.glob("*.cpp")]
    calls = sum(len(re.findall(rf"0x40000000U\s*> {NAME}__word", text)) for text in texts)
    assert calls > 16
    assert count_leading_zeros(model) == calls
