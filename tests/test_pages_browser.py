# SPDX-License-Identifier: Apache-2.0
"""The dashboard in a real browser: nothing scrolls sideways, on a desk or on a phone."""

from __future__ import annotations

import base64
import json
import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import demo_nights
import pytest

from regress.analysis.night_report import NightReport

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAGES = ("index", "trends", "heatmap", "models", "jobs")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> NightReport:
    return demo_nights.build(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def site(made: NightReport) -> Path:
    return made.page.parent


@pytest.fixture(scope="module")
def browser() -> str:
    for name in BROWSERS:
        found = shutil.which(name)
        if found:
            return found
    pytest.skip(f"no browser ({', '.join(BROWSERS)}): apt-get install chromium")


QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip


def chromium(browser: str, folder: Path, *arguments: str) -> str:
    command = [browser, *QUIET, f"--user-data-dir={folder}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


PROBE = """<script>
addEventListener("load", () => {
  const page = document.documentElement;
  const wide = [...document.querySelectorAll("main *")].filter(
    (one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll, pre"));
  const small = [...document.querySelectorAll("nav a, button")].filter(
    (one) => one.getBoundingClientRect().height < 24);
  parent.postMessage(JSON.stringify({
    width: innerWidth, scroll: page.scrollWidth, small: small.length,
    wide: wide.map((one) => one.outerHTML.slice(0, 80)),
    styled: getComputedStyle(document.body).maxWidth,
    svg: [...document.querySelectorAll("svg")].filter((one) => one.getBBox().width > 10).length,
  }), "*");
});
</script>"""
FRAME = """<script>
addEventListener("message", (event) => { document.body.dataset.found = btoa(event.data); });
</script><body><iframe src="file://{page}" width="{width}" height="900"></iframe>"""
"""A window of a browser has a least width; a frame has none."""


def probe(browser: str, page: Path, tmp_path: Path, width: int) -> dict[str, object]:
    """What the page measures in the browser, at that width."""
    copy = page.with_name(f"probe-{page.name}")
    copy.write_text(page.read_text().replace("</body>", f"{PROBE}</body>"))
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.replace("{page}", str(copy)).replace("{width}", str(width)))
    try:
        waiting = ["--virtual-time-budget=5000", "--dump-dom", f"file://{frame}"]
        dom = chromium(browser, tmp_path / "profile", *waiting)
    finally:
        copy.unlink()
    found = re.search(r'data-found="([^"]*)"', dom)
    assert found is not None, "the script of the page did not run"
    measured: dict[str, object] = json.loads(base64.b64decode(found[1]))
    return measured


def png_colours(path: Path) -> int:
    """How many different bytes an 8-bit PNG's pixels have, filters aside: 1 for a blank page."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    return len(set(zlib.decompress(packed)))


@pytest.mark.parametrize("page", [*PAGES, "failure"])
def test_a_page_fits_a_desk_and_a_phone(
    browser: str, made: NightReport, site: Path, tmp_path: Path, page: str
) -> None:
    failing = next(job for job in made.night.jobs if job.failing)
    file = site / f"{page}.html"
    if page == "failure":
        file = site / "failures" / failing.page(failing.failing[0])
    for width in (1280, 360):
        found = probe(browser, file, tmp_path, width)
        assert found["width"] == width
        assert found["scroll"] == width, f"scrolls sideways: {found['wide']}"
        assert found["small"] == 0, "too small to tap"
        assert found["styled"] != "none"
        if page in ("trends", "heatmap", "models", "failure"):
            assert int(str(found["svg"])) > 0


def test_a_screenshot_shows_something(browser: str, site: Path, tmp_path: Path) -> None:
    picture = tmp_path / "tonight.png"
    chromium(
        browser, tmp_path / "profile", "--window-size=1280,900", f"--screenshot={picture}",
        f"file://{site / 'index.html'}",
    )  # fmt: skip
    assert png_colours(picture) > 50
