# SPDX-License-Identifier: Apache-2.0
"""The order of a structure is compiled where it is used, and is the same then."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tb.sim.plan import GENERATED_STANDARD
from tb.sim.rewrite.orderings import defer_orderings
from tb.sim.toolchain import find_compiler

HEADER = """\
#include <tuple>
struct Vtb_top_pair__struct__0 {
    int __PVT__a;
    int __PVT__b;

    bool operator==(const Vtb_top_pair__struct__0& rhs) const {
        return __PVT__a == rhs.__PVT__a && __PVT__b == rhs.__PVT__b;
    }

    bool operator<(const Vtb_top_pair__struct__0& rhs) const {
        return std::tie(__PVT__a, __PVT__b)
            <  std::tie(rhs.__PVT__a, rhs.__PVT__b);
    }
};
"""
USER = """\
#include <cstdio>
#include <map>
#include "model.h"
int main() {
    std::map<Vtb_top_pair__struct__0, int> of_pairs;
    for (const int a : {2, 1, 2, 1})
        for (const int b : {5, 3}) of_pairs[{a, b}] = 10 * a + b;
    for (const auto& [pair, value] : of_pairs) std::printf("%d ", value);
}
"""
ONLY_INCLUDES = '#include "model.h"\n'


def _compile(folder: Path, text: str, *flags: str) -> None:
    (folder / "user.cpp").write_text(text)
    command = [*find_compiler().command, GENERATED_STANDARD, *flags, "user.cpp"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)


def _makes_tuples(folder: Path) -> bool:
    """Whether a file does that only includes the header."""
    _compile(folder, ONLY_INCLUDES, "-c", "-fkeep-inline-functions", "-o", "user.o")
    return b"_ZSt3tie" in (folder / "user.o").read_bytes()


def test_a_file_that_compares_nothing_has_no_comparison(tmp_path: Path) -> None:
    """And had one before, without which there was nothing to defer."""
    (tmp_path / "model.h").write_text(HEADER)
    assert _makes_tuples(tmp_path)
    assert defer_orderings(tmp_path) == 1
    assert not _makes_tuples(tmp_path)


def test_an_order_that_is_used_is_the_same(tmp_path: Path) -> None:
    """As the keys of an associative array use it."""
    (tmp_path / "model.h").write_text(HEADER)
    defer_orderings(tmp_path)
    _compile(tmp_path, USER, "-o", "user")
    done = subprocess.run([tmp_path / "user"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["13", "15", "23", "25"]
