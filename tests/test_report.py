# SPDX-License-Identifier: Apache-2.0
"""What people read: every fact of a row is there, at any width; nothing is cut but paths."""

from __future__ import annotations

import math
from typing import Any

import pytest
from rich.console import Console

from driver.errors import shorten
from driver.results import Failure, LedgerRow, OpRow, RunResult
from regress.run_report import text as report

PATH = "model.layers.0.self_attn.a_module_with_a_long_name.q_proj"


def _row(index: int, **changes: Any) -> OpRow:
    fields: dict[str, Any] = {
        "index": index,
        "op": "aten.mm.default",
        "module": PATH,
        "source": "modeling_qwen2.py:46",
        "where": "rtl",
        "dtype": "fp16→fp32",
        "shapes": ((16, 896), (896, 4864)),
        "elements_compared": 77_824,
        "rtl_vs_cmodel_mismatches": 0,
        "torch_max_error": 1.234e-6,
        "torch_bound": 3.4e-5,
        "cycles": 1_234_567,
        "macs": 69_730_304,
        "utilisation": 0.976,
        "status": "pass",
        "blame": "none",
        "failure": None,
    }
    return OpRow(**{**fields, **changes})


def _failing(index: int) -> OpRow:
    failure = Failure(
        element=(3, 4),
        tile=(0, 0),
        expected_bits="0x7fc00000",
        actual_bits="0x3f800000",
        expected=math.nan,
        actual=1.0,
        cycle=99,
        detail="[b]not markup[/b]",
    )
    changes = {"status": "fail", "blame": "rtl", "failure": failure, "rtl_vs_cmodel_mismatches": 7}
    return _row(index, **changes)


def _result(*rows: OpRow, **changes: Any) -> RunResult:
    fields: dict[str, Any] = {
        "test": "matmul",
        "status": "fail" if any(row.status == "fail" for row in rows) else "pass",
        "config": "default",
        "seed": 1,
        "backend": "rtl",
        "cycles": 5_000_000,
        "wall_seconds": 12.34,
        "reproduce": "npu-cosim run matmul --config default --seed 1",
        "message": None,
        "ops": rows,
        "ledger": (LedgerRow(op="aten.silu.default", where="cpu", count=1, reason="not lowered"),),
    }
    return RunResult(**{**fields, **changes})


def _shown(result: RunResult, width: int) -> str:
    console = Console(width=width, record=True, quiet=False, file=None, force_terminal=False)
    with console.capture() as capture:
        report.show(console, result, ["out/matmul-1/result.json"])
    return capture.get()


def test_at_132_columns_everything_is_in_full() -> None:
    (line,) = (text for text in _shown(_result(_row(12)), 132).splitlines() if " mm " in text)
    for text in ("12 mm ", "rtl", "fp16→fp32", "16×896 896×4864", "77 824", " 0 "):
        assert text in line
    for text in ("1.2e-6 / 3.4e-5", "1 234 567", "98%", "pass"):
        assert text in line
    assert "q_proj" in line
    assert "…" in line


@pytest.mark.parametrize("width", [80, 100, 120, 132])
def test_no_line_of_the_table_is_wider_than_the_console(width: int) -> None:
    rows = [_row(n, dtype="int8→int32", op="aten.baddbmm.default") for n in (0, 100)]
    lines = [text for text in _shown(_result(*rows), width).splitlines() if "int8" in text]
    assert len(lines) == 2
    assert max(map(len, lines)) <= width
    assert all(line.rstrip().endswith("pass") for line in lines)


def test_at_80_columns_every_figure_is_there_in_short() -> None:
    (line,) = (text for text in _shown(_result(_row(12)), 80).splitlines() if " mm " in text)
    for text in ("16×896×4864", "77.8k", "4%", "1.2M", "98%", "fp16→fp32", "pass"):
        assert text in line


def test_a_table_of_several_places_says_where_at_any_width() -> None:
    rows = (_row(0), _row(1, where="cpu", op="aten.silu.default"))
    assert "cpu" in _shown(_result(*rows), 80).split("ran on")[0]


def test_columns_that_say_nothing_are_left_out() -> None:
    nothing = {"cycles": None, "utilisation": None, "rtl_vs_cmodel_mismatches": None}
    shown = _shown(_result(_row(0, where="cmodel", **nothing), backend="cmodel"), 120)
    assert "cycles" not in shown.splitlines()[0]
    assert "util" not in shown.splitlines()[0]


def test_a_failure_says_all_that_is_known() -> None:
    shown = _shown(_result(_row(0), _failing(3)), 120)
    for text in (
        "op 3 mm fp16→fp32 16×896 896×4864",
        f"module     {PATH}  (modeling_qwen2.py:46)",
        "blame      rtl",
        "differing  7 of 77824 elements",
        "element    [3, 4]  in tile [0, 0]",
        "expected   0x7fc00000  nan",
        "actual     0x3f800000  1.0",
        "cycle      99",
        "detail     [b]not markup[/b]",
        "reproduce  npu-cosim run matmul --config default --seed 1 --op 3",
        "FAIL matmul on rtl, config default, seed 1: 1 passed, 1 failed, 155 648 elements",
    ):
        assert text in shown


def test_many_failures_are_counted_not_printed() -> None:
    shown = _shown(_result(*(_failing(n) for n in range(9))), 120)
    assert shown.count("blame      rtl") == 3
    assert "and 6 more failing ops in result.json" in shown


def test_a_failure_without_an_element_shows_none() -> None:
    row = _failing(3)
    assert row.failure is not None
    failure = row.failure.model_copy(update={"element": (), "tile": None})
    shown = _shown(_result(row.model_copy(update={"failure": failure})), 120)
    assert "detail     [b]not markup[/b]" in shown
    assert not any(word in shown for word in ("element ", "expected ", "actual "))


def test_every_failing_op_has_a_line_of_its_own() -> None:
    line = "npu-cosim run matmul --config default --seed 1"
    shown = _shown(_result(_failing(3), _failing(5), reproduce=f"{line} --op 3"), 120)
    found = [text.split("reproduce  ")[1] for text in shown.splitlines() if "reproduce  " in text]
    assert found == [f"{line} --op 3", f"{line} --op 5"]


def test_the_ledger_names_every_fallback_and_its_reason() -> None:
    shown = _shown(_result(_row(0)), 120)
    (line,) = (text for text in shown.splitlines() if "silu" in text)
    assert line.split() == ["cpu", "silu", "1", "not", "lowered"]


def _ledger(*pairs: tuple[str, int]) -> tuple[LedgerRow, ...]:
    return tuple(LedgerRow(op="aten.x.y", where=w, count=n, reason="") for w, n in pairs)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ledger", "line"),
    [
        (_ledger(("rtl", 22), ("view", 4)), "22 of 22 ops on rtl, 100.0%; 4 views cost nothing"),
        (_ledger(("rtl", 3), ("cpu", 1)), "3 of 4 ops on rtl, 75.0%; 1 ON THE CPU"),
    ],
)
def test_the_ledgers_share_counts_ops_not_views(ledger: tuple[LedgerRow, ...], line: str) -> None:
    assert f"ledger: {line}" in _shown(_result(_row(0), ledger=ledger), 120).splitlines()


def test_a_run_of_thousands_shows_its_slowest_and_its_failures_and_files_the_rest() -> None:
    rows = [_row(index, cycles=index) for index in range(400)]
    rows[7] = _failing(7)
    result = _result(*rows)
    lines = _shown(result, 132).splitlines()
    shown = [line.split()[0] for line in lines if line.split()[1:2] == ["mm"]]
    assert {"7", "399"} <= set(shown) and len(shown) < 60
    assert any("all are in ops.txt" in line for line in lines)
    whole = report.all_ops(result)
    assert [line.split()[0] for line in whole.splitlines()[1:]] == [str(i) for i in range(400)]


def test_the_table_in_a_file_has_the_bytes_and_what_bounds_the_op() -> None:
    row = _row(0, dram_bytes=12_345, compulsory_bytes=12_000, bound_by="memory")
    head, line = report.all_ops(_result(row)).splitlines()
    assert {"bytes", "least", "bound"} <= set(head.split())
    assert "12 345" in line and "12 000" in line and "memory" in line


def test_what_a_test_says_of_a_model_is_shown_and_layers_are_summed() -> None:
    row = _row(0, module="lenet:conv1", source="lenet.py:3")
    lines = _shown(_result(row, notes=("classes: 64 of 64",)), 132).splitlines()
    assert "classes: 64 of 64" in lines
    assert any(line.split()[:2] == ["lenet:conv1", "isolated"] for line in lines)


def test_an_error_shows_its_message() -> None:
    result = _result(status="error", message="the run was ended by SIGSEGV\n    log", cycles=None)
    shown = _shown(result, 120)
    assert "the run was ended by SIGSEGV\n    log\n  reproduce  npu-cosim run" in shown
    assert "ERROR matmul" in shown


@pytest.mark.parametrize(
    ("width", "short"),
    [(10, "abcdefghij"), (9, "abcd…ghij"), (4, "a…ij"), (1, "…"), (0, "")],
)
def test_paths_are_cut_in_the_middle(width: int, short: str) -> None:
    assert shorten("abcdefghij", width) == short
    assert len(shorten("abcdefghij", width)) <= width


@pytest.mark.parametrize(
    ("value", "full", "short"),
    [
        (None, "-", "-"),
        (0, "0", "0"),
        (9_999, "9 999", "9 999"),
        (10_000, "10 000", "10.0k"),
        (123_456_789, "123 456 789", "123M"),
        (2_500_000_000, "2 500 000 000", "2.5G"),
    ],
)
def test_counts(value: int | None, full: str, short: str) -> None:
    assert (report.count(value, compact=False), report.count(value, compact=True)) == (full, short)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.0, "0"), (1.0, "1.0e0"), (-2.25e-12, "-2.2e-12"), (math.inf, "inf")],
)
def test_scientific_numbers(value: float | None, text: str) -> None:
    assert report.scientific(value) == text


@pytest.mark.parametrize(
    ("shapes", "short"),
    [
        (((2, 3), (3, 4)), "2×3×4"),
        (((5, 2, 3), (5, 3, 4)), "5×2×3×4"),
        (((2, 3), (4, 3)), "2×3 4×3"),
        (((4,), (2, 3), (3, 4)), "4 2×3 3×4"),
        (((), (2,)), "scalar 2"),
        ((), ""),
    ],
)
def test_shapes_of_a_product_are_shortened_only_when_they_are_one(
    shapes: tuple[tuple[int, ...], ...], short: str
) -> None:
    assert report.shapes(_row(0, shapes=shapes), compact=True) == short


@pytest.mark.parametrize(
    ("error", "bound", "short"),
    [(0.5, 1.0, "50%"), (0.0, 0.0, "0"), (math.nan, 1.0, "nan"), (None, 1.0, "-")],
)
def test_errors_in_short_are_part_of_the_bound(
    error: float | None, bound: float, short: str
) -> None:
    assert report.error(_row(0, torch_max_error=error, torch_bound=bound), compact=True) == short
