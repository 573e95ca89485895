# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the RTL against the host and the formats' definition."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from driver.errors import InputError
from driver.isa import DType
from golden import softfloat
from tb.unit.arithmetic import run_arithmetic
from tb.unit.benches import ALU_OPERATIONS, CONVERSIONS, arithmetic_program
from tb.unit.model import build_model

ROOT = Path(__file__).parents[1]
DTYPES = {"f16": DType.FP16, "bf16": DType.BF16}

GOOD_FMA = """\
3F800000 40000000 40400000 40A00000 00
3F800001 3F800001 BF800002 28800000 00
00000001 3F000000 00000000 00000000 03
7F7FFFFF 40000000 00000000 7F800000 05
7F800000 00000000 3F800000 FFC00000 10
"""


def written(folder: Path, text: str, name: str = "vectors.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tb.unit.run", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_fma_agrees_with_the_host_on_ten_million_vectors() -> None:
    result = run_arithmetic("fp_fma", None, seed=1)
    assert result.compared >= 10_000_000
    assert (result.differing, result.differences) == (0, ())


def test_conversions_agree_with_the_formats_definition() -> None:
    widening = run_arithmetic("fp_cast", None, seed=1, operation="f16_to_f32", count=0)
    assert widening.compared == 1 << 16
    result = run_arithmetic("fp_cast", None, seed=1)
    # Two exhaustive directions, and six vectors for every result of either sign in the other two.
    assert result.compared > 2 * (1 << 16) + 6 * 2 * (0x7C00 + 0x7F80)
    assert result.differing == 0


def test_int8_mac_is_exact_for_every_pair_of_factors() -> None:
    result = run_arithmetic("int8_mac", None, seed=1)
    assert result.compared >= 10 * (1 << 16)
    assert result.differing == 0


def test_division_and_root_agree_with_the_host_on_ten_million_vectors() -> None:
    for operation in ("f32_div", "f32_sqrt"):
        result = run_arithmetic("fp_div", None, seed=1, operation=operation)
        assert result.compared >= 10_000_000
        assert (result.differing, result.differences) == (0, ())


@pytest.mark.parametrize("operation", ALU_OPERATIONS)
def test_comparisons_and_integer_conversions_agree_with_the_host(operation: str) -> None:
    result = run_arithmetic("fp_alu", None, seed=1, operation=operation)
    assert result.compared >= 2_000_000
    assert (result.differing, result.differences) == (0, ())


FEW = 60_000
TIES_AWAY = 1
"""The first mutant of fp_fma: a tie is rounded away from zero."""


def test_the_seed_decides_the_vectors() -> None:
    # Seen through a wrong package, because a right one always gives the same counts.
    first, second, other = (
        run_arithmetic("fp_fma", None, seed, count=FEW, mutant=TIES_AWAY) for seed in (5, 5, 6)
    )
    assert first == second
    assert first.differing != other.differing


def test_vectors_of_a_file_are_compared(tmp_path: Path) -> None:
    result = run_arithmetic("fp_fma", written(tmp_path, GOOD_FMA), seed=1)
    assert (result.compared, result.differing) == (GOOD_FMA.count("\n"), 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("f32_to_f16.txt", "3F802000 3C01 00\n3F801000 3C00 01\n7F800001 FE01 10\n"),
        ("f32_to_bf16.txt", "3F808000 3F80 01\n7F7FFFFF 7F80 05\n"),
        ("f16_to_f32.txt", "0001 33800000 00\n7C01 FFC00000 10\n"),
        ("bf16_to_f32.txt", "0001 00010000 00\nFF80 FF800000 00\n"),
    ],
)
def test_the_files_name_tells_the_conversion(tmp_path: Path, name: str, text: str) -> None:
    result = run_arithmetic("fp_cast", written(tmp_path, text, name), seed=1)
    assert (result.compared, result.differing) == (text.count("\n"), 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("f32_lt.txt", "3F800000 40000000 1 00\n80000000 00000000 0 00\n7FC00000 3F800000 0 10\n"),
        ("f32_le.txt", "80000000 00000000 1 00\nFF800000 FF7FFFFF 1 00\n40000000 3F800000 0 00\n"),
        ("f32_eq.txt", "80000000 00000000 1 00\n7F800001 7F800001 0 10\n"),
        ("f32_to_i32_r_minMag.txt", "CF000000 80000000 00\n4EFFFFFF 7FFFFF80 00\n"),
    ],
)
def test_comparisons_are_read_as_testfloat_writes_them(
    tmp_path: Path, name: str, text: str
) -> None:
    result = run_arithmetic("fp_alu", written(tmp_path, text, name), seed=1)
    assert (result.compared, result.differing) == (text.count("\n"), 0)
    wrong = text.replace(" 1 ", " 0 ").replace(" 7FFFFF80 ", " 7FFFFF81 ")
    result = run_arithmetic("fp_alu", written(tmp_path, wrong, name), seed=1)
    assert result.differing == text.count(" 1 ") + text.count(" 7FFFFF80 ")


def softfloat_vectors(operation: str, count: int, seed: int) -> str:
    """TestFloat's text, with results that come from integers alone, not from the host's FPU."""
    random = Random(seed)
    lines = []
    for _ in range(count):
        exponent = random.randrange(256)
        a, b, c = (
            random.getrandbits(1) << 31 | near << 23 | random.getrandbits(random.choice((2, 23)))
            for near in (exponent, 127, min(254, max(0, exponent + random.randint(-30, 30))))
        )
        if operation == "f32_mulAdd":
            lines.append(f"{a:08X} {b:08X} {c:08X} {softfloat.fma(a, b, c):08X} 00")
            continue
        source, target = operation.split("_to_")
        bits = a if source == "f32" else random.getrandbits(16)
        convert = softfloat.narrow if source == "f32" else softfloat.widen
        result = convert(DTYPES[target if source == "f32" else source], bits)
        widths = (8, 4) if source == "f32" else (4, 8)
        lines.append(f"{bits:0{widths[0]}X} {result:0{widths[1]}X} 00")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("test", "operation"),
    [("fp_fma", "f32_mulAdd"), *(("fp_cast", conversion) for conversion in CONVERSIONS)],
)
def test_integer_arithmetic_is_a_second_opinion(tmp_path: Path, test: str, operation: str) -> None:
    vectors = written(tmp_path, softfloat_vectors(operation, 20_000, seed=3))
    result = run_arithmetic(test, vectors, seed=1, operation=operation)
    assert (result.compared, result.differing) == (20_000, 0)


def test_a_wrong_result_in_a_file_is_one_difference_and_status_1(tmp_path: Path) -> None:
    vectors = written(tmp_path, GOOD_FMA.replace("40A00000", "40A00001"))
    found = tmp_path / "result.json"
    done = command("fp_fma", "--vectors", vectors, "--seed", "7", "--result", found)
    assert done.returncode == 1
    counts = {"test": "fp_fma", "compared": GOOD_FMA.count("\n"), "differing": 1, "seed": 7}
    assert json.loads(found.read_text()) == counts
    operands = "f32_mulAdd 0x3f800000 (1) 0x40000000 (2) 0x40400000 (3)"
    values = "expected 0x40a00001 (5.00000048), actual 0x40a00000 (5)"
    assert f"{operands}: {values}" in done.stdout
    assert "5 compared, 1 differing" in done.stdout


@pytest.mark.parametrize(
    ("line", "field", "value", "expected"),
    [
        ("3F800000 40000000 40400000 40A00000", "line", "4 words", "5 (operands, result, flags)"),
        ("", "line", "0 words", "5 (operands, result, flags)"),
        ("3F800000 4000000 40400000 40A00000 00", "operand 2", "'4000000'", "8 hexadecimal digits"),
        ("3F800000 40000000 4040000G 40A00000 00", "operand 3", "'4040000G'", "8 hexadecimal"),
        ("3F800000 40000000 40400000 -0A00000 00", "result", "'-0A00000'", "8 hexadecimal digits"),
        ("3F800000 40000000 40400000 40A00000 0", "flags", "'0'", "2 hexadecimal digits"),
    ],
)
def test_a_malformed_line_is_bad_input(
    tmp_path: Path, line: str, field: str, value: str, expected: str
) -> None:
    vectors = written(tmp_path, f"{GOOD_FMA}{line}\n{GOOD_FMA}")
    with pytest.raises(InputError) as caught:
        run_arithmetic("fp_fma", vectors, seed=1)
    assert caught.value.file == f"{vectors}:{GOOD_FMA.count(chr(10)) + 1}"
    assert (caught.value.field, caught.value.value) == (field, value)
    assert caught.value.expected.startswith(expected)


def test_bad_input_is_one_line_and_status_2(tmp_path: Path) -> None:
    found = tmp_path / "result.json"
    done = command("fp_fma", "--vectors", written(tmp_path, "1 2\n"), "--result", found)
    assert done.returncode == 2
    assert done.stdout == ""
    place = f"{tmp_path / 'vectors.txt'}:1"
    assert done.stderr == f"{place}: line: got 2 words, expected 5 (operands, result, flags)\n"
    assert not found.exists()


@pytest.mark.parametrize(
    ("test", "vectors", "operation", "field"),
    [
        ("fp_fma", "", None, "file"),
        ("fp_fma", None, None, "file"),
        ("fp_cast", "3C00 3F800000 00\n", None, "name"),
        ("fp_cast", "3C00 3F800000 00\n", "f64_to_f16", "operation"),
        ("fp_sqrt", "", None, "test"),
    ],
)
def test_what_cannot_be_run_is_bad_input(
    tmp_path: Path, test: str, vectors: str | None, operation: str | None, field: str
) -> None:
    path = tmp_path / "missing.txt" if vectors is None else written(tmp_path, vectors)
    with pytest.raises(InputError) as caught:
        run_arithmetic(test, path, seed=1, operation=operation)
    assert caught.value.field == field


def test_a_package_that_does_not_elaborate_is_bad_input(tmp_path: Path) -> None:
    broken = written(tmp_path, "package npu_fp_pkg;\n", "npu_fp_pkg.sv")
    with pytest.raises(InputError, match=r"npu_fp_pkg\.sv: line \d+: got "):
        build_model(arithmetic_program("fp_fma", {broken.name: broken}))
