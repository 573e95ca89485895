# SPDX-License-Identifier: Apache-2.0
"""Builds and opens the stand-in devices of tests/standin, for the tests of the simulator."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pywellen
from numpy.typing import NDArray

from driver.backend.rtl import RtlBackend
from driver.config import HwConfig, load_config
from tb.sim.build import build, verilate
from tb.sim.plan import make_plan
from tb.sim.spec import REPOSITORY, BuildSpec, spec_for

STANDIN = REPOSITORY / "tests" / "standin"
CONFIG = load_config(REPOSITORY / "sim_config.yaml", "default")
BUS_BYTES = CONFIG.bus_bits // 8

# Registers of tests/standin/npu_top.sv.
ID, CYCLES, IRQ_STATUS, IRQ_ENABLE, SOURCE, TARGET, LENGTH, START = (
    0x000,
    0x020,
    0x030,
    0x034,
    0x040,
    0x048,
    0x050,
    0x054,
)
ERRORS, HANG, FAIL, UNSET, FINISH, BUSY = 0x058, 0x05C, 0x060, 0x064, 0x068, 0x06C


def standin_spec(variant: str, device: str = "") -> BuildSpec:
    """The build of a stand-in, in the project's build folder."""
    spec = spec_for(CONFIG, variant)
    label = f"standin{f'-{device}' if device else ''}"
    return replace(spec, filelist=STANDIN / device / "filelist.f", label=label)


def generate(variant: str, folder: Path, filelist: Path | None = None) -> Path:
    """The folder, with the C++ that Verilator makes of the NPU, `small`, as it is before any
    pass of the build over it. `filelist`: of other RTL."""
    spec = spec_for(load_config(REPOSITORY / "sim_config.yaml", "small"), variant)
    verilate(make_plan(spec if filelist is None else replace(spec, filelist=filelist)), folder)
    return folder


def wave_changes(path: Path) -> dict[str, list[tuple[int, object]]]:
    """By full name, every change of a signal in a file of waves."""
    return {var.full_name: list(var.tv) for var in pywellen.Waveform(str(path)).all_vars()}


@functools.cache
def standin(variant: str, device: str = "") -> Path:
    """Its binary."""
    return build(standin_spec(variant, device)).binary


def open_standin(
    variant: str = "fast",
    *,
    config: HwConfig = CONFIG,
    seed: int = 1,
    stall: int = 0,
    log: Path | None = None,
) -> RtlBackend:
    """The copy engine in a simulator of its own."""
    return RtlBackend(config, binary=standin(variant), seed=seed, stall=stall, sim_log=log)


def start_copy(backend: RtlBackend, source: int, target: int, bursts: int, beats: int = 16) -> None:
    """Let the device copy `bursts` bursts of `beats` beats; irq when done."""
    for offset, value in (
        (IRQ_STATUS, 1),
        (IRQ_ENABLE, 1),
        (SOURCE, source),
        (TARGET, target),
        (LENGTH, beats - 1),
        (START, bursts),
    ):
        backend.write_csr(offset, value)


def random_bytes(count: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)
