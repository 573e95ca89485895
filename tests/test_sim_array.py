# SPDX-License-Identifier: Apache-2.0
"""The behavioural array has the ports of the RTL's array and gives its bits in the same cycles, for
every operand type, weights of four bits, and every size of the array."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tb.sim.spec import BEHAVIOURAL_ARRAY
from tb.unit.block import BlockResult, run_program
from tb.unit.model import BenchProgram, build_model, rtl_sources

FOLDER = Path(__file__).parent / "array_pair"
RTL_FOLDERS = ("pkg", "fpu", "matrix")
NEEDED = ("npu_fp_pkg.sv", "npu_fma_pkg.sv", "npu_matrix_pkg.sv", "npu_matrix_row.sv")
NAMES = {"npu_matrix_array": "behavioural_array", "npu_fma_pkg": "host_fma_pkg"}
TYPES = {"fp32", "fp16", "bf16", "int8"}
LEAST_PORTS = 15


def _interface(source: Path) -> list[str]:
    """Names of parameters and ports, in order."""
    code = re.sub(r" *//.*", "", source.read_text())
    ports = r"^ *(?:input|output|parameter)\b.*?(\w+)(?: *=.*)?,?$"
    return re.findall(ports, code.partition(");")[0], re.MULTILINE)


def _arrays() -> tuple[Path, Path]:
    """The RTL's array, and its replacement."""
    return next(pair for pair in BEHAVIOURAL_ARRAY.items() if "array" in pair[0].stem)


def behavioural(folder: Path, change: tuple[str, str] | None = None) -> list[Path]:
    """The files that replace parts of the RTL, under names that let both be in one model."""
    written: list[Path] = []
    for source in BEHAVIOURAL_ARRAY.values():
        text = source.read_text()
        if change is not None and source.stem == "npu_matrix_array":
            assert change[0] in text
            text = text.replace(*change)
        for old, new in NAMES.items():
            text = text.replace(old, new)
        written.append(folder / f"{NAMES[source.stem]}.sv")
        written[-1].write_text(text)
    return written


def compare(
    size: int, folder: Path, rounds: int = 1, change: tuple[str, str] | None = None
) -> BlockResult:
    listed = [
        path
        for path in rtl_sources(RTL_FOLDERS)
        if path.name in (*NEEDED, "npu_matrix_array.sv") or path.parent.name == "pkg"
    ]
    bench = BenchProgram(
        name=f"array{size}",
        folder=FOLDER,
        top="array_pair",
        sources=(*listed, *behavioural(folder, change), FOLDER / "array_pair.sv"),
        parameters={"ArraySize": str(size)},
        defines=(f"ARRAY_SIZE={size}",),
        optimise="-O0",
    )
    return run_program(build_model(bench), 0, 1, rounds)


@pytest.mark.parametrize("size", [8, 16, 32])
def test_every_type_gives_the_same_bits_in_the_same_cycles(size: int, tmp_path: Path) -> None:
    result = compare(size, tmp_path)
    assert result.failure == ""
    assert result.compared > 200 * size
    assert set(result.figures) == TYPES
    # Finite sums of each type: neither zeros of an idle array nor NaNs alone were compared.
    assert min(result.figures.values()) > result.compared / len(TYPES) / 2


def test_a_row_that_takes_the_weights_of_four_bits_of_another_is_seen(tmp_path: Path) -> None:
    result = compare(8, tmp_path, 1, ("int4_data_i[row%INT4_ROWS]", "int4_data_i[0]"))
    assert "sum column" in result.failure


def test_the_behavioural_array_fits_the_place_of_the_array() -> None:
    """The modules of `array_pair` do not tell: the RTL connects the ports itself."""
    array, model = map(_interface, _arrays())
    assert model == array
    assert len(array) > LEAST_PORTS


def test_a_wrong_link_of_the_chain_is_seen(tmp_path: Path) -> None:
    result = compare(8, tmp_path, 1, ("r < 32'(ks); r++", "r + 1 < 32'(ks); r++"))
    assert "sum column" in result.failure


def test_the_former_name_is_refused_by_a_line_that_names_the_new_one() -> None:
    command = [sys.executable, "-m", "regress.cli", "run", "smoke", "--fpu", "host"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "FPU: got host, expected ARRAY=behavioural" in done.stderr
