# SPDX-License-Identifier: Apache-2.0
"""The roofline figure: points and roof by hand, a figure that parses, one line for bad input."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from driver.config import load_config
from driver.results import OpRow, RunResult, write_json
from regress.paths import CONFIG_FILE
from regress.run_report.roofline import draw, main, points, roof

CONFIG = load_config(CONFIG_FILE, "default")
CIRCLE = "{http://www.w3.org/2000/svg}circle"


def row(index: int, **changes: Any) -> OpRow:
    fields: dict[str, Any] = {
        "index": index,
        "op": "aten.mm.default",
        "module": "mlp:layers.fc1",
        "source": "mlp.py:1",
        "where": "rtl",
        "dtype": "fp32",
        "shapes": ((16, 64), (64, 32)),
        "elements_compared": 512,
        "rtl_vs_cmodel_mismatches": 0,
        "torch_max_error": 0.0,
        "torch_bound": 1.0,
        "cycles": 1000,
        "macs": 16 * 64 * 32,
        "utilisation": 0.25,
        "status": "pass",
        "blame": "none",
        "failure": None,
    }
    return OpRow(**{**fields, **changes})


def result(*rows: OpRow) -> RunResult:
    return RunResult(
        test="matmul",
        status="pass",
        config="default",
        seed=1,
        backend="rtl",
        cycles=1000,
        wall_seconds=1.0,
        reproduce="npu-cosim run matmul",
        message=None,
        ops=rows,
        ledger=(),
    )


def test_a_point_counts_the_bytes_of_its_operands() -> None:
    (fp32,) = points([row(0)], 16)
    assert (fp32.name, fp32.group, fp32.rate) == ("fc1", "mlp", 64.0)
    assert fp32.intensity == 16 * 64 * 32 / (4 * (16 * 64 + 64 * 32))
    (int8,) = points([row(0, dtype="int8→int32")], 16)
    assert int8.intensity == 4 * fp32.intensity


def test_what_has_no_utilisation_or_no_source_is_no_op_of_a_model() -> None:
    rows = [row(0, macs=None), row(1, utilisation=None), row(2, source="", module="sums: bias")]
    (directed,) = points(rows, 16)
    assert (directed.group, directed.name) == ("directed", "sums: bias")


def test_the_roof_is_the_bus_and_then_the_array() -> None:
    assert [roof(CONFIG, x) for x in (0.5, 4.0, 8.0, 100.0)] == [16.0, 128.0, 256.0, 256.0]


def test_every_point_above_the_axis_is_drawn_and_the_rest_is_counted() -> None:
    found = points([row(0), row(1, utilisation=0.5), row(2, utilisation=1e-4)], 16)
    figure = draw(CONFIG, [*found, found[0]], "a < b")
    marks = [x for x in ET.fromstring(figure).iter(CIRCLE) if x.get("cy") != "48"]  # noqa: S314
    assert len(marks) == 3
    assert float(marks[0].get("cy", "")) > float(marks[1].get("cy", ""))
    assert "1 ops below 1 MAC per cycle" in figure
    assert (
        figure.count("mlp fc1: 75% of the roof") == 1
    )  # 64 of 2.67 MACs per byte × 32 bytes per cycle


def test_the_program_writes_a_figure(tmp_path: Path) -> None:
    write_json(tmp_path / "result.json", result(row(0)))
    assert main([str(tmp_path / "result.json"), str(tmp_path / "figure.svg")]) == 0
    assert ET.parse(tmp_path / "figure.svg").getroot().get("viewBox")  # noqa: S314


@pytest.mark.parametrize(
    ("rows", "said"),
    [((row(0, utilisation=1e-4),), "ops: got none"), (None, "file: got No such file")],
)
def test_nothing_to_draw_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Any, said: str
) -> None:
    if rows is not None:
        write_json(tmp_path / "result.json", result(*rows))
    assert main([str(tmp_path / "result.json"), str(tmp_path / "figure.svg")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "figure.svg").exists()
