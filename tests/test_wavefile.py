# SPDX-License-Identifier: Apache-2.0
"""Reading waves: what a cycle sees, first handshakes, the strip, and files that are none."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from driver.errors import InputError
from regress.failures.wavefile import SignalTrace, WaveFile, cycle_after, edge_ps, first_together
from regress.pages.strip import SIGNALS, draw_strip
from tb.sim.views import GROUPS

EXAMPLE = Path(__file__).with_name("waves_example.vcd")


@pytest.fixture(scope="module")
def file() -> WaveFile:
    return WaveFile(EXAMPLE)


def trace(file: WaveFile, pin: str) -> SignalTrace:
    found = file.trace(f"tb_top.m_axi_{pin}")
    assert found is not None
    return found


def test_a_cycle_sees_the_value_before_its_edge(file: WaveFile) -> None:
    valid = trace(file, "arvalid")
    assert [valid.before_edge(cycle) for cycle in (4, 5, 6, 22, 24, 25)] == [0, 1, 0, 1, 1, 0]
    assert trace(file, "araddr").before_edge(30) == 0x1000_8100


def test_cycles_and_times_agree() -> None:
    for cycle in (1, 2, 409, 10**6):
        assert cycle_after(edge_ps(cycle) - 1) == cycle
        assert cycle_after(edge_ps(cycle)) == cycle + 1


@pytest.mark.parametrize(
    ("pins", "start", "cycle"),
    [
        (("arvalid", "arready"), 0, 5),
        (("arvalid", "arready"), 6, 22),
        (("arvalid", "arready"), 23, 24),
        (("rvalid", "rready"), 20, 32),
        (("rvalid", "rready"), 34, 34),
        (("arvalid", "arready"), 25, None),
    ],
)
def test_the_first_handshake_from_a_cycle_on(
    file: WaveFile, pins: tuple[str, str], start: int, cycle: int | None
) -> None:
    assert first_together([trace(file, pin) for pin in pins], start) == cycle


def test_a_signal_that_is_not_there_is_none(file: WaveFile) -> None:
    assert file.trace("tb_top.nothing") is None


def test_the_unit_of_time_of_a_file_is_respected(tmp_path: Path) -> None:
    text = EXAMPLE.read_text().replace("$timescale 1ps", "$timescale 10ps")
    path = tmp_path / "waves.vcd"
    path.write_text(text)
    slow, fast = trace(WaveFile(path), "arvalid"), trace(WaveFile(EXAMPLE), "arvalid")
    assert slow.times.tolist() == [10 * time for time in fast.times.tolist()]


@pytest.mark.parametrize("content", [None, "", "no waves"])
def test_what_is_no_file_of_waves_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "waves.vcd"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match="expected waves in VCD or FST"):
        WaveFile(path)


@pytest.mark.parametrize(("name", "expected"), [("PanicException", InputError), ("Other", None)])
def test_a_panic_of_the_library_is_an_error_and_nothing_else_is_swallowed(
    monkeypatch: pytest.MonkeyPatch, name: str, expected: type[BaseException] | None
) -> None:
    """pyo3's panics are no Exceptions; pywellen panics when a file cannot be opened."""
    kind = type(name, (BaseException,), {})

    def panic(_path: str) -> None:
        raise kind("unwrap")

    monkeypatch.setattr("pywellen.Waveform", panic)
    with pytest.raises(expected or kind):
        WaveFile(EXAMPLE)


def test_a_panic_in_a_signal_that_is_read_late_is_an_error() -> None:
    class Broken:
        bitwidth = 1

        @property
        def tv(self) -> None:
            raise type("PanicException", (BaseException,), {})("unwrap")

    broken = WaveFile(EXAMPLE)
    broken._vars["tb_top.broken"] = Broken()
    with pytest.raises(InputError, match=r"unwrap, expected waves in VCD or FST"):
        broken.trace("tb_top.broken")


def test_every_signal_of_the_strip_is_one_of_the_saved_views() -> None:
    known = {signal.path for signals in GROUPS.values() for signal in signals}
    assert {shown.path for shown in SIGNALS} <= known


def test_the_strip_shows_levels_values_and_markers(file: WaveFile) -> None:
    picture = ET.fromstring(draw_strip(file, {"fetch": 5, "wrong": 44}))  # noqa: S314 (our own)
    words = [found.text for found in picture.iter() if found.tag.endswith("text")]
    assert {"A fetch, cycle 5", "B wrong, cycle 44", "BUSY", "10008100"} <= set(words)
    assert len(picture.findall("{*}line[@class='marker']")) == 2
    bits = [found.attrib["points"] for found in picture.findall("{*}polyline")]
    assert len(bits) == sum(
        found is not None and found.width == 1 for found in (file.trace(s.path) for s in SIGNALS)
    )
    # A level changes without a slope: every corner lies above or below another.
    for points in bits:
        corners = [tuple(map(float, corner.split(","))) for corner in points.split()]
        assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(corners))


def test_a_marker_before_the_strip_is_named_at_its_edge(file: WaveFile) -> None:
    assert "◂ A fetch, cycle 5" in draw_strip(file, {"fetch": 5, "wrong": 4000})
