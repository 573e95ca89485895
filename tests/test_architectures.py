# SPDX-License-Identifier: Apache-2.0
"""The survey of transformers' architectures: some of them, what it counts, and its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from driver.capture import capture
from driver.config import load_config
from driver.errors import InputError
from driver.results import RunSpec
from driver.survey import Surveyed, Trouble
from regress import architectures as command
from regress.architectures_page import page, totals
from tb.architectures import surveyed
from tb.ops.session import Session
from tb.ops.survey import survey
from workloads._architecture_table import table
from workloads._architectures import build

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    spec = RunSpec(
        test="architectures", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=tmp_path_factory.mktemp("out"), capsules={}, op_filter=None,
        timeout_s=600.0, allow_cpu=True,
    )  # fmt: skip
    made = Session(spec, load_config(CONFIG_FILE, "small"))
    yield made
    made.close()


@pytest.mark.broad
@pytest.mark.parametrize("name", ["bert", "llama", "t5", "resnet", "clip"])
def test_every_op_of_an_architecture_is_on_the_npu_and_right(session: Session, name: str) -> None:
    found = surveyed(session, name, 1)
    assert found.error is None
    assert found.troubles == ()
    assert found.ops > 25


def test_the_table_has_forty_architectures_with_models_of_their_own() -> None:
    rows = table().architectures
    assert len(rows) >= 40
    assert len({row.model for row in rows.values()}) == len(rows)


def test_equal_seeds_give_equal_models() -> None:
    def tensors(seed: int) -> list[torch.Tensor]:
        module, inputs = build("gpt2", seed)
        return [*module.parameters(), *inputs.values()]

    first, same, other = tensors(1), tensors(1), tensors(2)
    assert all(torch.equal(a, b) for a, b in zip(first, same, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


class Mixed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.lgamma(torch.lgamma(x)))


def test_what_is_refused_wrong_or_crashes_is_counted(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    capsule = capture(Mixed(), torch.tensor([2.5, 3.5]), name="mixed")
    found = survey(session, capsule)
    assert found.npu == 1
    (refused,) = found.troubles
    assert (refused.kind, refused.op, refused.count) == ("refused", "aten.lgamma.default", 2)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(Session, "run", broken)
    (crash,) = {trouble.kind for trouble in survey(session, capsule).troubles}
    assert crash == "crash"


def test_a_model_that_cannot_be_built_is_a_row_with_its_error(session: Session) -> None:
    broken = surveyed(session, "gpt2", -(2**70))
    assert broken.error is not None
    assert broken.ops == 0


def example() -> tuple[Surveyed, ...]:
    roll = Trouble(
        kind="refused", op="aten.roll.default", dtype="float32", text="op: aten.roll.default",
        modules=("a",), count=2,
    )  # fmt: skip
    wrong = Trouble(
        kind="wrong", op="aten.add.Tensor", dtype="int64", text="a | b", modules=("a",), count=1
    )
    return (
        Surveyed(name="one", model="One", npu=98, free=4, troubles=(roll,)),
        Surveyed(name="two", model="Two", npu=9, troubles=(roll, wrong)),
        Surveyed(name="three", model="Three", error="ValueError: no"),
    )


def test_the_page_has_totals_what_is_missing_and_a_row_for_each() -> None:
    assert totals(example()) == [
        "107 of 112 ops of 2 architectures on the NPU, 95.5%; 4 refused, 1 wrong, 0 crash",
        "1 architectures with at least 95% of their ops on the NPU, 0 with all",
        "1 not recorded",
    ]
    text = page(example())
    assert (
        "| refused | `aten.roll.default` | float32 | no row in the op table | 4 | one, two |"
        in (text)
    )
    assert "a \\| b" in text
    assert "| two | Two | 12 | 9 | 75.0% | 2 | 1 | 0 | 0 |" in text


def test_an_unknown_name_is_refused_and_what_is_wrong_or_not_recorded_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rich.console import Console  # noqa: PLC0415 (only here)

    console = Console(quiet=True)
    with pytest.raises(InputError, match="name: got nonesuch, expected one of bert"):
        command.run_architectures(console, command.SurveyRequest(("nonesuch",)))
    monkeypatch.setattr(command, "survey", lambda *_: example())
    assert command.run_architectures(console, command.SurveyRequest(("bert",))) == 1
    monkeypatch.setattr(command, "survey", lambda *_: example()[2:])
    assert command.run_architectures(console, command.SurveyRequest(("bert",))) == 1
    monkeypatch.setattr(command, "survey", lambda *_: example()[:1])
    assert command.run_architectures(console, command.SurveyRequest(("bert",))) == 0
