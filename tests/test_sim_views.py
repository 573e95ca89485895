# SPDX-License-Identifier: Apache-2.0
"""The saved views are those of the table, and every signal in them exists in the RTL's waves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sim_host import REPOSITORY

from driver.backend.rtl import RtlBackend
from driver.config import load_config
from regress.failures.waves import ENGINE_STARTS
from regress.pages.strip import SIGNALS
from tb.sim.build import build
from tb.sim.spec import spec_for
from tb.sim.views import DATA_BITS, FILES, FOLDER, GROUPS


@pytest.mark.parametrize("name", FILES)
def test_file_is_fresh(name: str) -> None:
    assert (FOLDER / name).read_text() == FILES[name]()


def variables(vcd: Path) -> Iterator[tuple[str, int]]:
    """Path and width of each variable."""
    scopes: list[str] = []
    with vcd.open() as file:
        for line in file:
            words = line.split()
            if words[:1] == ["$scope"]:
                scopes.append(words[2])
            elif words[:1] == ["$upscope"]:
                scopes.pop()
            elif words[:1] == ["$var"]:
                yield ".".join([*scopes, words[4]]), int(words[2])
            elif words[:1] == ["$enddefinitions"]:
                return


def test_every_signal_exists_with_its_width(tmp_path: Path) -> None:
    config = load_config(REPOSITORY / "sim_config.yaml", "small")
    binary = build(spec_for(config, "waves")).binary
    with RtlBackend(config, binary=binary) as backend:
        backend.record_waves(tmp_path / "waves.vcd")
        backend.run(10, 60)
        backend.stop_waves()
    found = dict(variables(tmp_path / "waves.vcd"))
    signals = [signal for group in GROUPS.values() for signal in group]
    assert len(signals) > 40
    widths = {s.path: config.bus_bits if s.width == DATA_BITS else s.width for s in signals}
    assert widths == {s.path: found.get(s.path) for s in signals}
    assert {*ENGINE_STARTS, *(signal.path for signal in SIGNALS)} <= set(found)
