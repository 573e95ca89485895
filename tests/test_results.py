# SPDX-License-Identifier: Apache-2.0
"""Specs, events and results: strict, atomic, and true to what they say."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from driver.errors import InfrastructureError, InputError
from driver.reproduce import reproduce_line
from driver.results import (
    Failure,
    NoteEvent,
    OpEvent,
    OpRow,
    PlanEvent,
    RunResult,
    RunSpec,
    event_line,
    parse_event,
    read_json,
    write_json,
)

ROW: dict[str, Any] = {
    "index": 0,
    "op": "mm",
    "module": "layers.0",
    "source": "model.py:3",
    "where": "rtl",
    "dtype": "fp32",
    "shapes": ((2, 3), (3, 4)),
    "elements_compared": 8,
    "rtl_vs_cmodel_mismatches": 0,
    "torch_max_error": 0.5,
    "torch_bound": 1.0,
    "cycles": 100,
    "macs": 24,
    "utilisation": 0.25,
    "status": "pass",
    "blame": "none",
    "failure": None,
}
RESULT: dict[str, Any] = {
    "test": "matmul",
    "status": "pass",
    "config": "default",
    "seed": 1,
    "backend": "rtl",
    "cycles": 100,
    "wall_seconds": 1.5,
    "reproduce": "npu-cosim run matmul",
    "message": None,
    "ops": (OpRow(**ROW),),
    "ledger": (),
}
FAILURE = Failure(
    element=(0, 3),
    tile=(0, 0),
    expected_bits="0x7fc00000",
    actual_bits="0x3f800000",
    expected=math.nan,
    actual=1.0,
    cycle=42,
    detail="",
)


def _spec(**changes: Any) -> RunSpec:
    fields: dict[str, Any] = {
        "test": "matmul",
        "config": "default",
        "config_file": Path(__file__).resolve().parents[1] / "sim_config.yaml",
        "seed": 7,
        "backend": "rtl",
        "waves": "none",
        "out": Path("/x/out"),
        "capsules": {},
        "op_filter": None,
        "timeout_s": 10.0,
    }
    return RunSpec(**{**fields, **changes})


def test_a_result_survives_its_file_with_nan_and_infinity(tmp_path: Path) -> None:
    row = {**ROW, "status": "fail", "blame": "rtl", "failure": FAILURE, "torch_max_error": math.inf}
    result = RunResult(**{**RESULT, "status": "fail", "ops": (OpRow(**row),)})
    path = tmp_path / "deep" / "result.json"
    write_json(path, result)
    back = read_json(path, RunResult)
    assert back.ops[0].torch_max_error == math.inf
    failure = back.ops[0].failure
    assert failure is not None
    assert math.isnan(failure.expected)
    assert back.model_dump_json() == result.model_dump_json()
    json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"not JSON: {name}"))
    assert [entry.name for entry in path.parent.iterdir()] == ["result.json"]


@pytest.mark.parametrize(
    "change",
    [
        {"ops": ()},
        {"ops": (OpRow(**{**ROW, "status": "fail", "blame": "rtl"}),)},
        {"ops": (OpRow(**{**ROW, "where": "cpu", "elements_compared": 0}),)},
        {"status": "fail"},
        {"status": "error"},
        {"seed": -1},
        {"seed": "1"},
        {"test": "../x"},
        {"extra": 1},
    ],
)
def test_a_result_that_contradicts_itself_is_refused(change: dict[str, Any]) -> None:
    RunResult(**RESULT)
    with pytest.raises(ValidationError):
        RunResult(**{**RESULT, **change})


@pytest.mark.parametrize(
    "change", [{"blame": "rtl"}, {"failure": FAILURE}, {"status": "fail"}, {"elements_compared": 0}]
)
def test_an_op_that_contradicts_itself_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OpRow(**{**ROW, **change})


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("{", "file"),
        ("[]", "file"),
        ('{"test": "matmul"}', "status"),
        (RunResult(**RESULT).model_dump_json().replace('"seed":1', '"seed":"x"'), "seed"),
    ],
)
def test_a_broken_file_is_one_line_that_names_file_and_field(
    tmp_path: Path, text: str, field: str
) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_json(path, RunResult)
    assert (caught.value.file, caught.value.field) == (str(path), field)
    assert "\n" not in str(caught.value)


def test_a_missing_or_binary_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: file"):
        read_json(tmp_path / "none.json", RunResult)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="byte 0"):
        read_json(tmp_path / "binary", RunResult)


def test_a_place_that_cannot_be_written_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a place that can be written"):
        write_json(tmp_path / "file" / "result.json", RunResult(**RESULT))


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("former")
    with path.open() as reader:
        write_json(path, RunResult(**RESULT))
        assert reader.read() == "former"
    assert read_json(path, RunResult) == RunResult(**RESULT)


def test_a_write_that_fails_leaves_the_former_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "result.json"
    path.write_text("former")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InfrastructureError, match=r"^/\S*: No space left on device$"):
        write_json(path, RunResult(**RESULT))
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [
        ("result.json", "former")
    ]


@pytest.mark.parametrize(
    "event", [PlanEvent(ops=3), NoteEvent(text="building"), OpEvent.of(OpRow(**ROW))]
)
def test_events_survive_their_line(event: PlanEvent | NoteEvent | OpEvent) -> None:
    line = event_line(event)
    assert "\n" not in line
    assert parse_event(line) == event


@pytest.mark.parametrize("line", ["", "hello", "3", '{"event": "other"}', '{"event": "plan"}'])
def test_other_output_is_not_an_event(line: str) -> None:
    assert parse_event(line) is None


def test_the_reproduce_line_states_what_differs_from_the_defaults() -> None:
    assert reproduce_line(_spec()) == ".venv/bin/npu-cosim run matmul --config default --seed 7"
    assert reproduce_line(_spec(backend="cmodel"), 3).endswith("--backend cmodel --op 3")
    assert reproduce_line(_spec(op_filter=2)).endswith("--seed 7 --op 2")
    assert "--config-file /x/own.yaml" in reproduce_line(_spec(config_file=Path("/x/own.yaml")))
    assert "--mode chained" in reproduce_line(_spec(modes=("chained",)))
    assert "--mode" not in reproduce_line(_spec(modes=("isolated", "chained")))
    of_model = _spec(modes=("isolated",), capsules={"lenet": Path("/x")})
    assert reproduce_line(of_model).endswith("--seed 7 --mode isolated")
    assert reproduce_line(_spec(allow_cpu=True)).endswith("--seed 7 --allow-cpu")
    assert "--checkpoint '/w s/q'" in reproduce_line(_spec(checkpoint=Path("/w s/q")))
    replay = _spec(test="replay", capsules={"capsule": Path("/a b/c")})
    assert reproduce_line(replay).startswith(".venv/bin/npu-cosim replay '/a b/c' --config")
