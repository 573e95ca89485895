# SPDX-License-Identifier: Apache-2.0
"""The figure of a training: both curves, their distance, one line for bad input."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from driver.results import Curve, RunResult, write_json
from regress.pages.models import trainings_of
from regress.pages.render import render
from regress.run_report.curves import draw, figure, main
from tests.test_roofline import result, row

CIRCLE = "{http://www.w3.org/2000/svg}circle"
POLYLINE = "{http://www.w3.org/2000/svg}polyline"


def trained(npu: tuple[float, ...], torch: tuple[float, ...]) -> RunResult:
    curve = Curve(model="lenet_train", name="loss", npu=npu, torch=torch)
    return result(row(0)).model_copy(update={"curves": (curve,)})


def dots(picture: str, colour: str) -> list[tuple[float, float]]:
    found = [x for x in ET.fromstring(picture).iter(CIRCLE) if x.get("fill") == colour]  # noqa: S314
    return [(float(x.get("cx", "")), float(x.get("cy", ""))) for x in found]


def test_the_npus_points_lie_on_torchs_line_where_they_agree() -> None:
    picture = figure(trained((2.0, 1.0, 0.5), (2.0, 1.0, 0.5)))
    (line,) = ET.fromstring(picture).iter(POLYLINE)  # noqa: S314
    corners = [tuple(map(float, at.split(","))) for at in line.get("points", "").split()]
    points = [at for at in dots(picture, "#2c5f9e") if at[1] != 44.0]  # without the legend's
    assert points == corners
    assert [y for _, y in points] == sorted(y for _, y in points)  # a loss that falls


def test_a_larger_distance_is_drawn_higher() -> None:
    picture = figure(trained((2.0, 1.0, 0.5), (2.0, 1.001, 0.6)))
    apart = [y for _, y in dots(picture, "#d1495b")[1:]]
    assert apart == sorted(apart, reverse=True)
    assert len(set(apart)) == 3


def test_a_loss_that_is_no_number_has_no_point() -> None:
    picture = figure(trained((2.0, float("nan"), 0.5), (2.0, 1.0, 0.5)))
    assert len(dots(picture, "#2c5f9e")) == 1 + 2


@pytest.mark.parametrize("values", [(0.0,), (3.0, 3.0), (1e-12, 1e12), (float("inf"),)])
def test_any_values_make_a_picture(values: tuple[float, ...]) -> None:
    curve = Curve(model="m", name="loss", npu=values, torch=values)
    ET.fromstring(draw([curve, curve], "two & <one>"))  # noqa: S314


def test_a_curve_without_steps_or_of_two_lengths_is_refused() -> None:
    for npu in ((), (1.0, 2.0)):
        with pytest.raises(ValidationError, match="one value per step"):
            Curve(model="m", name="loss", npu=npu, torch=(1.0,) if npu else ())


def test_the_command_writes_the_figure_of_a_result(tmp_path: Path) -> None:
    write_json(tmp_path / "result.json", trained((2.0, 1.0), (2.0, 1.1)))
    assert main([str(tmp_path / "result.json"), str(tmp_path / "figure.svg")]) == 0
    assert "CPU torch" in (tmp_path / "figure.svg").read_text()


def test_a_result_without_a_training_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_json(tmp_path / "result.json", result(row(0)))
    assert main([str(tmp_path / "result.json"), str(tmp_path / "figure.svg")]) == 2
    assert "expected the result of a training" in capsys.readouterr().err
    assert not (tmp_path / "figure.svg").exists()


def test_the_models_page_shows_each_training_of_the_night() -> None:
    item = SimpleNamespace(backend="rtl", config="small", seed=4)
    jobs = [
        SimpleNamespace(item=item, result=trained((2.0, 1.0), (2.0, 1.0))),
        SimpleNamespace(item=item, result=result(row(0))),
        SimpleNamespace(item=item, result=None),
    ]
    (picture,) = trainings_of(SimpleNamespace(jobs=jobs))  # type: ignore[arg-type]
    assert "lenet_train on rtl, CONFIG=small SEED=4" in picture
    plan = SimpleNamespace(tier="ci", id="1", revision="abc", sequence=1, dirty=False)
    page = render(
        "models.html.j2",
        models=(),
        trainings=(picture,),
        root="",
        here="models.html",
        plan=plan,
        day="",
    )
    assert picture in page
