# SPDX-License-Identifier: Apache-2.0
"""The dashboard: every page there, right, closed in itself, and shown by a real browser."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import demo_nights
import pytest
from night_host import add, attempt, plan, result, row
from test_pages_failure import Text

from driver.results import RunResult, read_json
from regress.analysis.baseline import ChangeKind, measure, record
from regress.analysis.known_issues import KNOWN_ISSUES
from regress.analysis.metrics import metrics_of
from regress.analysis.night_report import (
    NightReport,
    ReferenceFiles,
    night_report,
    notification,
    text_lines,
)
from regress.analysis.triage import StatusChange
from regress.night_commands import report_pages
from regress.pages.heatmap import cells
from regress.pages.render import render
from regress.pages.timeline import perfetto
from regress.pages.trend import TrendSeries, trend
from regress.results.model import JobStatus, PlannedJob
from regress.results.night import load_night
from regress.results.store import Store

PAGES = ("index", "trends", "heatmap", "models", "jobs")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> NightReport:
    return demo_nights.build(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def site(made: NightReport) -> Path:
    return made.page.parent


def text_of(site: Path, page: str) -> str:
    return Text((site / f"{page}.html").read_text()).text


def test_every_link_and_file_of_every_page_is_there_and_none_needs_a_network(site: Path) -> None:
    checked = 0
    for page in site.rglob("*.html"):
        for link in Text(page.read_text()).links:
            if link.startswith(("#", "data:")):
                continue
            assert "://" not in link, f"{page.name}: {link}"
            assert (page.parent / link).is_file(), f"{page.name}: {link}"
            checked += 1
    assert checked > 100
    for name in re.findall(r"url\(|@import", (site / "style.css").read_text()):
        pytest.fail(f"style.css wants {name}")


def test_every_red_job_and_failing_op_has_its_page(made: NightReport, site: Path) -> None:
    reds = [job for job in made.night.jobs if job.attempt.red]
    expected = {job.page(row) for job in reds for row in job.failing}
    expected |= {job.page() for job in reds if not job.failing}
    assert len(expected) == 5
    tonight = {path.name for path in (site / "failures").iterdir()}
    assert expected <= tonight


def test_where_everything_fails_the_first_of_each_kind_have_pages(tmp_path: Path) -> None:
    night = plan(1)
    items = [PlannedJob("smoke", "small", seed, "rtl", ordinal=seed) for seed in range(30)]
    failure = demo_nights.wrong_element()
    rows = tuple(row(i, status="fail", blame="rtl", failure=failure) for i in range(40))
    with Store.open(tmp_path) as store:
        tried = [(of, attempt(night, of, JobStatus.FAIL), result(of, rows)) for of in items]
        conclusion = report_pages(store, add(store, night, tried).id)
    site = conclusion.page.parent
    assert len(list((site / "failures").iterdir())) == 20 * 16
    for page in (conclusion.page, site / "jobs.html", *(site / "failures").iterdir()):
        links = [link for link in Text(page.read_text()).links if not link.startswith(("#", "d"))]
        assert all((page.parent / link).is_file() for link in links)


def test_tonight_says_what_happened(made: NightReport, site: Path) -> None:
    text = text_of(site, "index")
    states = Counter(job.attempt.status for job in made.night.jobs)
    assert states[JobStatus.PASS] == 7
    for words in (
        "Red nightly of 2026-11-05 02:00 UTC",
        "pass 7", "error 1", "fail 3", "timeout 1", "skipped 1",
        "new 3", "fixed 1", "flaky 1",
        "blame rtl: aten.mm.default fp32: the cmodel agrees with the integer-only chain",
        "#41, Ada Lovelace: fp16 subnormals are flushed; expected until 2026-12-31",
        "#7 (Alan Turing) is expected to fail and did not",
        "#3 (Grace Hopper) ended on 2026-10-01 and still fails",
        "no longer passes replay:lenet[large] seed 1",
        "gained replay:lenet[small] seed 1",
        "build small check",
    ):  # fmt: skip
        assert words in text, words


def test_a_plan_of_fewer_jobs_has_not_lost_coverage(tmp_path: Path) -> None:
    first, second = plan(1), replace(plan(2), partial=True)
    items = [PlannedJob("smoke", "small", seed, "rtl", ordinal=seed) for seed in (1, 2)]
    kinds = [(row(),), (row(op="aten.bmm.default"),)]
    with Store.open(tmp_path / "s") as store:
        jobs = [
            (of, attempt(first, of, JobStatus.PASS), result(of, ops))
            for of, ops in zip(items, kinds, strict=True)
        ]
        night = load_night(store, add(store, first, jobs))
        labels = [of.label for of in items]
        record(measure(night, metrics_of(night).ratchets()), labels, tmp_path / "b")
        ours = ReferenceFiles(KNOWN_ISSUES, tmp_path / "b")
        filtered = [
            (items[0], attempt(second, items[0], JobStatus.PASS), result(items[0], kinds[0]))
        ]
        assert night_report(store, add(store, second, filtered).id, ours).moves == ()
        third = plan(3)
        both = [(of, attempt(third, of, JobStatus.PASS), result(of, kinds[0])) for of in items]
        moves = night_report(store, add(store, third, both).id, ours).moves
        (move,) = [move for move in moves if move.measure == "figure"]
        assert (move.kind, move.before, move.now) == (ChangeKind.WORSE, 2, 1)


def test_triage_ratchets_and_news_agree(made: NightReport) -> None:
    told = made
    changes = Counter(told.triage.changes.values())
    assert changes == {StatusChange.NEW: 3, StatusChange.FIXED: 1, StatusChange.STILL: 2}
    steps = Counter(move.kind for move in told.moves)
    assert steps[ChangeKind.LOST] == 3
    assert steps[ChangeKind.BETTER] > 10
    news = notification(made)
    assert (len(news.new), len(news.fixed), len(news.flaky)) == (3, 1, 1)
    assert len(news.replay) == 3
    assert made.failed
    assert len(made.triage.expected) == 1
    assert text_lines(made)[-1] == f"open {made.page}"


def test_the_models_page_accounts_for_every_op(made: NightReport, site: Path) -> None:
    text = text_of(site, "models")
    on_cpu = sum(
        row.where == "cpu" and row.module.startswith("lenet:") for _, row in made.night.rows()
    )
    assert f"aten.max_pool2d.default 0 0 {on_cpu} no lowering" in text
    assert "lenet in replay:lenet[small]" in text
    page = (site / "models.html").read_text()
    assert page.count("Roofline: what") == page.count("Trace for Perfetto") == 5


def test_the_trace_has_one_slice_per_timed_op_and_no_gap(site: Path) -> None:
    (trace,) = (site / "traces").glob("lenet-replay-lenet-small.json")
    events = json.loads(trace.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == 11
    end = 0.0
    for event in slices:
        assert event["ts"] == pytest.approx(end)
        end = event["ts"] + event["dur"]
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {event["cat"] for event in slices} == set(tracks.values())
    assert sum(event["args"]["cycles"] for event in slices) * 2e-3 == pytest.approx(end)


def test_a_run_without_cycles_has_an_empty_trace(made: NightReport) -> None:
    job = next(job for job in made.night.jobs if job.result is not None)
    result = read_json(job.folder / "result.json", RunResult)
    rows = tuple(row.model_copy(update={"cycles": None}) for row in result.ops)
    events = json.loads(perfetto(result.model_copy(update={"ops": rows})))["traceEvents"]
    assert [event["ph"] for event in events] == ["M"]


def test_the_heat_map_counts_what_ran_on_the_npu(made: NightReport, site: Path) -> None:
    found = cells(made.night.rows())
    on_npu = sum(row.where != "cpu" for _, row in made.night.rows())
    assert sum(cell.passed + cell.failed for cell in found.values()) == on_npu > 50
    assert sum(cell.failed for cell in found.values()) == 3
    assert all(0 < (cell.utilisation or 0) <= 1 for cell in found.values())
    page = (site / "heatmap.html").read_text()
    assert page.count("✗ 1 of") + page.count("✗ 2 of") == 2


def test_trends_go_over_all_nights(made: NightReport, site: Path) -> None:
    assert [one.day[:10] for one in made.metrics] == [
        f"2026-11-0{n}" for n in range(1, demo_nights.NIGHTS + 1)
    ]
    assert [one.pass_rate for one in made.metrics][-1] == pytest.approx(0.7)
    assert "The last 5 nights" in text_of(site, "trends")


def parsed(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 (our own)


@pytest.mark.parametrize("values", [(1.0,), (0.0, 0.0), (None, 3.0), (1e9, 5e9, 2e9), (-2.0, 1.0)])
def test_a_trend_of_any_numbers_stays_inside_its_picture(values: tuple[float | None, ...]) -> None:
    nights = [f"2026-11-{n:02}" for n in range(1, len(values) + 1)]
    picture = parsed(trend("x", nights, [TrendSeries("x", values)]))
    marks = picture.findall("{*}circle")
    assert len(marks) == sum(value is not None for value in values)
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    for found in marks:
        assert 0 < float(found.attrib["cx"]) < width
        assert 0 < float(found.attrib["cy"]) < height


def test_a_night_with_nothing_in_it_still_has_its_page() -> None:
    frame = {"root": "", "here": "models.html", "day": "d", "plan": None}
    page = render("models.html.j2", models=(), trainings=(), **frame)
    assert "No model was replayed." in page
    page = render("heatmap.html.j2", root="", here="", picture=None, ops=[], configs=[], cells={})
    assert "No op ran on the NPU." in page


def focusable(page: str) -> Iterator[str]:
    yield from re.findall(r"<(a|button|summary)\b", page)


def test_pages_are_usable_by_keyboard_and_reader(site: Path) -> None:
    for page in PAGES:
        text = (site / f"{page}.html").read_text()
        assert '<html lang="en">' in text
        assert text.count("<h1>") == 1
        assert 'class="skip" href="#main"' in text
        assert len(list(focusable(text))) > 5
        for tag in re.findall(r"<svg[^>]*>", text):
            if "viewBox" in tag and "role" in tag:
                assert "aria-label" in tag
        for scroller in re.findall(r'<div class="scroll"[^>]*>', text):
            assert 'tabindex="0" role="region" aria-label=' in scroller
    style = (site / "style.css").read_text()
    for words in (":focus-visible", "prefers-color-scheme: dark", "prefers-reduced-motion"):
        assert words in style


def test_ten_thousand_jobs_are_reported_within_ten_seconds_of_cpu(tmp_path: Path) -> None:
    night, count = plan(1), 10_000
    items = [PlannedJob("smoke", "small", seed, "rtl", ordinal=seed) for seed in range(count)]
    text = result(items[0], (row(), row(1))).model_dump_json()
    with Store.open(tmp_path) as store:
        store.add_plan(night, items)
        attempts = [attempt(night, of, JobStatus.PASS, cycles=5) for of in items]
        for made in attempts:
            folder = store.path(made.folder)
            folder.mkdir(parents=True)
            (folder / "result.json").write_text(text)
        store.add_attempts(attempts)
        start = time.process_time()
        told = report_pages(store, night.id)
        assert time.process_time() - start < 10
    assert told.metrics[-1].ops == 2 * count
    assert (tmp_path / "report" / "jobs.html").read_text().count("<tr>") == count + 1
