# SPDX-License-Identifier: Apache-2.0
"""docs/adding-an-op.md shows code that is there, and names that exist."""

from __future__ import annotations

import re
import textwrap

import pytest

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.catalogue import Catalogue
from driver.isa.micro import MicroOp
from driver.isa.programs import PROGRAMS
from regress.paths import ROOT

PAGE = (ROOT / "docs" / "adding-an-op.md").read_text(encoding="utf-8")
BLOCKS = [
    textwrap.dedent(block)
    for block in re.findall(r"^ *```python\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)
]
FILES = re.findall(r"`((?:driver|golden|tb|tests)/[\w/]+(?:\.py)?)/?`", PAGE)


def test_the_example_of_ten_lines_is_a_program() -> None:
    family = Family("page")
    scope = {"program": family.program, "Assembler": Assembler, "Value": Value, "MicroOp": MicroOp}
    exec(compile(BLOCKS[0], "page", "exec"), scope)  # noqa: S102 - a page of ours
    (program,) = Catalogue([family]).programs.values()
    assert program.name == "hardsigmoid" and program.name not in PROGRAMS
    assert [line.op.name for line in program.code] == ["FMA", "FMAX", "FMIN", "DIV"]
    assert program.constants == (0x3F80_0000, 0x4040_0000, 0, 0x40C0_0000)


@pytest.mark.parametrize(
    ("number", "path"),
    [
        (1, "driver/capture/npu_ops.py"),
        (2, "driver/isa/programs/quantisation.py"),
        (3, "driver/lower/quant.py"),
        (5, "examples/own_program.py"),
    ],
)
def test_code_that_the_page_shows_is_in_the_file_it_names(number: int, path: str) -> None:
    assert re.search(rf"([Ii]n|[Ff]rom) `{path}`", PAGE)
    assert BLOCKS[number] in (ROOT / path).read_text(encoding="utf-8")


def test_files_that_the_page_names_exist() -> None:
    assert len(set(FILES)) > 12
    assert [name for name in FILES if not (ROOT / name).exists()] == []


def test_names_that_the_page_counts_on_exist() -> None:
    for path, name in (
        ("driver/lower/functions.py", "_FUNCTIONS"),
        ("golden/bounds/budgets.py", "ULPS"),
        ("golden/bounds/elementwise.py", "def _functions"),
        ("golden/bounds/custom.py", "npu.quantize"),
        ("tb/ops/samples/elementwise.py", "_FUNCTIONS"),
        ("tests/test_op_samples.py", "def test_every_op_of_the_table_has_a_sample_and_a_judge"),
        ("tests/minimax.py", "FITS"),
        ("driver/capture/npu_ops.py", "_SCHEMAS"),
    ):
        assert name in (ROOT / path).read_text(encoding="utf-8"), path
    lengths = {name: len(PROGRAMS[name].code) for name in ("silu", "silu_16")}
    assert f"`silu` has {lengths['silu']} instructions" in PAGE
    assert f"`silu_16` has {lengths['silu_16']}" in PAGE
