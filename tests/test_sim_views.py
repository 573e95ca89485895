# SPDX-License-Identifier: Apache-2.0
"""The saved views are those of the table, and every signal in them exists in the RTL's waves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyslang
import pytest
from sim_host import REPOSITORY

from driver.backend.rtl import RtlBackend
from driver.config import HwConfig, load_config
from regress.failures.waves import ENGINE_STARTS
from regress.pages.strip import SIGNALS
from tb.sim.build import build
from tb.sim.plan import make_plan
from tb.sim.spec import TOP, spec_for
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


def shown_widths(data_bits: int) -> dict[str, int]:
    """Path and width of each signal of the views."""
    signals = [signal for group in GROUPS.values() for signal in group]
    assert len(signals) > 40
    return {s.path: data_bits if s.width == DATA_BITS else s.width for s in signals}


def elaborated(config: HwConfig) -> pyslang.ast.Compilation:
    """The device with its bench, as slang elaborates it."""
    spec = spec_for(config, "check")
    parameters = [f"-G{name}={value}" for name, value in spec.parameters]
    driver = pyslang.driver.Driver()
    driver.addStandardArgs()
    sources = [str(path) for path in make_plan(spec).sources if path.suffix == ".sv"]
    assert driver.parseCommandLine(" ".join(["slang", *sources, "--top", TOP, *parameters]))
    assert driver.processOptions()
    assert driver.parseAllSources()
    return driver.createCompilation()


def declared_width(design: pyslang.ast.Compilation, path: str) -> int | None:
    """Bits of a variable, or of a field or an element of one; None where there is no such thing."""
    found = design.getRoot().lookupName(path.split("[", maxsplit=1)[0])
    if found is None:
        return None
    kind = found.type
    for field, index in re.findall(r"\.(\w+)|\[(\d+)\]", path.removeprefix(found.hierarchicalPath)):
        kind = kind.canonicalType
        if index:
            kind = kind.elementType
        else:
            member = next((member for member in kind if member.name == field), None)
            if member is None:
                return None
            kind = member.type
    return int(kind.bitWidth)


def test_every_signal_is_declared_with_its_width() -> None:
    config = load_config(REPOSITORY / "sim_config.yaml", "small")
    design = elaborated(config)
    widths = shown_widths(config.bus_bits)
    assert widths == {path: declared_width(design, path) for path in widths}
    for path in (*ENGINE_STARTS, *(signal.path for signal in SIGNALS)):
        assert declared_width(design, path) is not None, path
    for wrong in ("tb_top.u_npu.u_core.u_ctrl.status.no_field", "tb_top.u_npu.no_signal"):
        assert declared_width(design, wrong) is None


@pytest.mark.broad  # a simulator of its own
def test_every_signal_is_in_the_waveform_with_its_width(tmp_path: Path) -> None:
    config = load_config(REPOSITORY / "sim_config.yaml", "small")
    binary = build(spec_for(config, "waves")).binary
    with RtlBackend(config, binary=binary) as backend:
        backend.record_waves(tmp_path / "waves.vcd")
        backend.run(10, 60)
        backend.stop_waves()
    found = dict(variables(tmp_path / "waves.vcd"))
    widths = shown_widths(config.bus_bits)
    assert widths == {path: found.get(path) for path in widths}
    assert {*ENGINE_STARTS, *(signal.path for signal in SIGNALS)} <= set(found)
