# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim op` leads from an op's name to its lowering rule, bound and samples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from driver.errors import InputError
from driver.lower import LOWERINGS
from regress.console import console
from regress.op_info import facts, overloads, show

ROOT = Path(__file__).parents[1]


def lines(places: str) -> list[str]:
    """The text of every line that `places` names."""
    found = []
    for file, numbers in re.findall(r"([\w/]+\.py):([\d,]+)", places):
        text = (ROOT / file).read_text(encoding="utf-8").splitlines()
        found += [text[int(number) - 1] for number in numbers.split(",")]
    return found


def test_a_name_means_its_overloads_and_those_with_underscores() -> None:
    assert overloads("softmax")[:2] == ["aten._softmax.default", "aten.softmax.int"]
    assert overloads("aten.add.Tensor") == ["aten.add.Tensor"]
    assert overloads("npu.rotary") == ["npu.rotary.default"]


@pytest.mark.parametrize("name", ["nonsense", "aten.add.Nonsense", "", ".", "aten."])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="an op of torch"):
        overloads(name)


def test_softmax_leads_to_the_lines_that_say_softmax() -> None:
    found = dict(facts("aten._softmax.default"))
    assert [*found] == ["lowering", "bound", "samples"]
    for where in found.values():
        assert lines(where)
        assert all("_softmax" in line for line in lines(where)), where


def test_what_torch_takes_apart_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert dict(facts("aten.softmax.int"))["lowering"].startswith("none: torch defines the op")
    assert show_text("softmax", capsys).count("none: torch defines the op") == 1


def test_an_op_into_out_is_said_to_run_as_another() -> None:
    found = dict(facts("aten.add.out"))["lowering"]
    assert found.startswith("none: runs as aten.add.Tensor, and a copy")


def show_text(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert show(console(), name) == 0
    return capsys.readouterr().out


def test_every_op_of_the_table_has_a_rule_and_a_bound_and_nearly_every_one_its_samples() -> None:
    found = {op: dict(facts(op)) for op in LOWERINGS}
    assert len(found) > 400
    assert [op for op, said in found.items() if not lines(said["lowering"])] == []
    assert [op for op, said in found.items() if not lines(said.get("bound", ""))] == []
    in_loops = [op for op, said in found.items() if not lines(said["samples"])]
    assert len(in_loops) <= 16  # overloads whose names no string holds
