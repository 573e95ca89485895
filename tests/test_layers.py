# SPDX-License-Identifier: Apache-2.0
"""Rows of a model summed up by layer, and the table of it."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from driver.results import Drift, OpRow
from regress.run_report.layers import layer_name, layer_table, layers


def row(module: str, **changes: Any) -> OpRow:
    base = OpRow(
        index=0, op="aten.mm.default", module=module, source="m.py:1", where="rtl", dtype="fp32",
        shapes=((2, 2), (2, 2)), elements_compared=4, rtl_vs_cmodel_mismatches=0,
        torch_max_error=0.0, torch_bound=1.0, cycles=100, macs=800, utilisation=0.5,
        status="pass", blame="none", failure=None, packets=1, dram_bytes=210,
        compulsory_bytes=200, bound_by="compute",
    )  # fmt: skip
    return base.model_copy(update=changes)


@pytest.mark.parametrize(
    ("module", "layer"),
    [
        ("model.layers.3.self_attn.q_proj", "model.layers.3"),
        ("model.layers.10", "model.layers.10"),
        ("model.rotary_emb", "model.rotary_emb"),
        ("model.norm.inner", "model.norm"),
        ("conv1", "conv1"),
        ("", ""),
    ],
)
def test_a_layer_is_the_path_down_to_its_number(module: str, layer: str) -> None:
    assert layer_name(module) == layer


def test_rows_of_a_layer_add_up_and_a_second_pass_is_another_line() -> None:
    drift = Drift(max_abs=0.5, max_rel=0.25, cosine=0.9)
    rows = [
        row("net:layers.0.a"),
        row("net:layers.0.b", cycles=300, macs=None, bound_by="memory"),
        row("net:layers.1"),
        row("net:layers.0.a"),
        row("net:layers.0.b", drift=drift),
        row("net", where="cpu"),
        row("directed", source=""),
    ]
    first, second, third, fourth = layers(rows)
    assert (first.model, first.name, first.ops, first.cycles) == ("net", "layers.0", 2, 400)
    assert (first.macs, first.macs_per_cycle, first.bound_by) == (800, 2.0, "memory")
    assert first.traffic == pytest.approx(420 / 400)
    assert (second.name, third.name, third.ops) == ("layers.1", "layers.0", 1)
    assert (fourth.mode, fourth.drift) == ("chained", drift)


def test_without_the_rtl_there_are_no_cycles_and_no_traffic() -> None:
    nothing = {"cycles": None, "dram_bytes": None, "bound_by": None, "utilisation": None}
    (layer,) = layers([row("net:fc", where="cmodel", **nothing)])
    assert (layer.cycles, layer.traffic, layer.macs_per_cycle) == (None, None, None)
    console = Console(width=150, file=io.StringIO())
    console.print(layer_table([layer]))
    assert isinstance(console.file, io.StringIO)
    head, line, *_ = console.file.getvalue().splitlines()
    assert head.split() == ["layer", "mode", "ops"]
    assert line.split() == ["net:fc", "isolated", "1"]
