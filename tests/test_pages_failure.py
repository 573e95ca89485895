# SPDX-License-Identifier: Apache-2.0
"""Failure pages: everything that is known of a failure, correct and escaped, and the map of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from night_host import add, attempt, item, plan, result, row

from driver.evidence import ErrorMap, Grid
from driver.isa import DType
from driver.results import Failure, write_text
from regress.failures.replay import failing_row
from regress.failures.waves import waves_folder
from regress.pages.errormap import distances, overview_picture, tile_picture
from regress.pages.failure import MOST_OPS, STRIP_FILE, write_failures
from regress.pages.svg import SERIES, VIRIDIS, on
from regress.results.model import JobStatus
from regress.results.night import StoredJob, load_job
from regress.results.store import Store


def parsed(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 (our own)


class Text(HTMLParser):
    """The words of a page, and its links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if name in ("href", "src") and value]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def night(
    wrong_store: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, StoredJob]]:
    folder = tmp_path_factory.mktemp("copy") / "store"
    shutil.copytree(wrong_store[0], folder)
    with Store.open(folder) as store:
        yield store, load_job(store, wrong_store[1])


def page_of(night: tuple[Store, StoredJob], site: Path) -> str:
    store, job = night
    pages = list(write_failures(site, store.plan(job.attempt.plan_id), job))
    assert len(pages) == min(len(job.failing), MOST_OPS) > 3
    return pages[0].read_text()


def test_a_page_says_all_that_is_known(night: tuple[Store, StoredJob], tmp_path: Path) -> None:
    job = night[1]
    found = failing_row(job, None)
    assert found is not None
    assert found.failure is not None
    text = Text(page_of(night, tmp_path)).text
    for words in (
        found.op,
        found.module,
        f"blame {found.blame}",
        f"[{', '.join(map(str, found.failure.element))}] in tile",
        found.failure.expected_bits,
        found.failure.actual_bits,
        str(found.failure.expected),
        found.failure.detail,
        f"make replay ID={job.attempt.id} OP={found.index}",
        "01" * 20,  # the revision
        "verilator 5.048",
        "1 of this job, 7 of the plan",
        f"{job.attempt.number}, 2026-11-01T02:00:00+00:00",
        "End of the log",
    ):
        assert words in text, words


def test_a_page_shows_the_neighbours_and_marks_the_op(
    night: tuple[Store, StoredJob], tmp_path: Path
) -> None:
    page = page_of(night, tmp_path)
    rows = re.findall(r'<tr( aria-current="true")?><td class="n">(\d+)</td>', page)
    first = night[1].failing[0].index
    numbers = [int(number) for _, number in rows]
    assert numbers == list(range(max(first - 3, 0), first + 4))
    assert [int(number) for marked, number in rows if marked] == [first]


def test_the_map_marks_exactly_the_wrong_elements(
    night: tuple[Store, StoredJob], tmp_path: Path
) -> None:
    job = night[1]
    found = job.error_map(job.failing[0])
    assert found is not None
    picture = parsed(tile_picture(found))
    groups = picture.findall("{*}g")
    pairs = [
        (e, a)
        for lines in zip(found.expected, found.actual, strict=True)
        for e, a in zip(*lines, strict=True)
    ]
    wrong = [pair for pair in pairs if pair[0] != pair[1]]
    assert len(groups) == len(wrong) >= 1
    assert len(picture.findall("{*}rect[@class='same']")) == len(pairs) - len(wrong)
    title = groups[0].find("{*}title")
    assert title is not None
    assert f"{wrong[0][0]:#010x}" in str(title.text)
    assert len(picture.findall("{*}rect[@class='ring']")) == 1
    assert "svg" in page_of(night, tmp_path)


@pytest.mark.parametrize(
    ("expected", "actual", "dtype", "apart"),
    [
        (0x3F800000, 0x3F800001, DType.FP32, 1),
        (0x00000001, 0x80000001, DType.FP32, 2),
        (0x3C00, 0x3C03, DType.FP16, 3),
        (0xFF, 0x01, DType.INT8, 2),
        (0xFF, 0x01, DType.UINT8, 254),
        (0xFFFFFFFF, 0x00000000, DType.INT32, 1),
        ((1 << 64) - 1, 4, DType.INT64, 5),
    ],
)
def test_distance_counts_numbers_of_the_format(
    expected: int, actual: int, dtype: DType, apart: int
) -> None:
    assert distances(((expected,),), ((actual,),), dtype).tolist() == [[apart]]


def tile(expected: Grid, actual: Grid, dtype: str = "fp32") -> ErrorMap:
    return ErrorMap(
        dtype=dtype, against="cmodel", sizes=(1, len(expected), len(expected[0])), differing=1,
        element=(0, 0, 0), tile_size=8, tiles_per_cell=1, tiles=((1,),), origin=(0, 0),
        expected=expected, actual=actual,
    )  # fmt: skip


def test_zeros_of_two_signs_are_marked_though_no_number_lies_between() -> None:
    picture = parsed(tile_picture(tile(((0,),), ((0x80000000,),))))
    assert "1 of 1 elements differ" in str(picture.attrib["aria-label"])
    assert len(picture.findall("{*}g")) == 1


def test_nan_and_infinity_can_be_shown() -> None:
    page = tile_picture(tile(((0x7FC00000, 0x7F800000),), ((0, 0),)))
    assert "0x7fc00000 nan" in page
    assert "0x7f800000 inf" in page


def test_the_overview_counts_tiles_with_errors() -> None:
    found = tile(((0,),), ((1,),)).model_copy(update={"tiles": ((0, 3), (0, 0))})
    assert "1 of 4 cells" in overview_picture(found)


def test_what_a_job_says_is_escaped(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        of = item()
        night = plan(1)
        evil = "<script>alert(1)</script>"
        failure = Failure(
            element=(0, 0), tile=(0, 0), expected_bits="0x1", actual_bits="0x2", expected=1.0,
            actual=2.0, cycle=None, detail=evil,
        )  # fmt: skip
        wrong = row(status="fail", blame="rtl", failure=failure, module=evil)
        made = attempt(night, of, JobStatus.FAIL, reason=evil)
        stored = add(store, night, [(of, made, result(of, (wrong,)))])
        write_text(store.path(made.folder) / "sim.log", f"{evil}\n")
        (page,) = write_failures(tmp_path, stored, load_job(store, made.id))
        assert evil not in page.read_text()
        assert Text(page.read_text()).text.count(evil) == 4


def test_a_job_without_a_failing_op_has_a_page_with_its_reason(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        of, night = item(), plan(1)
        made = attempt(night, of, JobStatus.TIMEOUT, reason="stopped after 1800 s")
        stored = add(store, night, [(of, made, None)])
        (page,) = write_failures(tmp_path, stored, load_job(store, made.id))
        text = Text(page.read_text()).text
        assert page.name == f"{made.id}.html"
        assert "timeout smoke[small] seed 1" in text
        assert "stopped after 1800 s" in text
        assert f"make replay ID={made.id} " in text + " "
        assert f"Nothing is in {store.path(made.folder) / 'sim.log'}" in text
        log = store.path(made.folder) / "tests" / "seen" / "sim.log"
        write_text(log, "the simulator's own words\n")
        (page,) = write_failures(tmp_path, stored, load_job(store, made.id))
        text = Text(page.read_text()).text
        assert str(log) in text
        assert "the simulator's own words" in text


def test_recorded_waves_are_part_of_the_page(
    night: tuple[Store, StoredJob], tmp_path: Path
) -> None:
    job = night[1]
    first = job.failing[0].index
    assert "Key signals" not in page_of(night, tmp_path)
    write_text(waves_folder(job.folder, first) / STRIP_FILE, "<svg><title>strip</title></svg>")
    assert "<svg><title>strip</title></svg>" in page_of(night, tmp_path)


def test_links_of_a_page_lead_to_the_site(night: tuple[Store, StoredJob], tmp_path: Path) -> None:
    links = Text(page_of(night, tmp_path)).links
    local = [link for link in links if not link.startswith(("#", "data:"))]
    names = ("style.css", "index.html", "trends.html", "heatmap.html", "models.html", "jobs.html")
    job, first = night[1], night[1].failing[0]
    others = [row for row in job.failing[:MOST_OPS] if row.index != first.index]
    assert others
    assert set(local) == {*(f"../{name}" for name in names), *(job.page(row) for row in others)}


def test_text_on_every_colour_is_readable() -> None:
    """WCAG: 4.5 to 1 for text."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    for colour in (*VIRIDIS, *SERIES):
        lighter, darker = sorted((luminance(colour), luminance(on(colour))), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def test_a_page_is_the_same_when_it_is_written_again(
    night: tuple[Store, StoredJob], tmp_path: Path
) -> None:
    store, job = night
    fresh = replace(job)
    one = page_of((store, job), tmp_path / "a")
    assert one == page_of((store, fresh), tmp_path / "b")
