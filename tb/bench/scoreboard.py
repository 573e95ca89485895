# SPDX-License-Identifier: Apache-2.0
"""CPU time of an fp32 512³ product on the checking build with the scoreboard ÷ without.

With: cmodel, comparison of all memory written, torch reference and bound. Without: the RTL alone.
Both count the simulator's process and this one.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import torch

from driver.backend.rtl import RtlBackend
from driver.config import load_config
from driver.errors import VerdictError
from driver.results import OpRow, RunSpec
from tb.bench.measure import (
    Measurement,
    Note,
    interleaved,
    own_cpu_seconds,
    process_cpu_seconds,
    timed,
)
from tb.ops.case import Case
from tb.ops.pair import DevicePair
from tb.ops.session import Session
from tb.sim.spec import REPOSITORY

SIZE = 512
_CONFIG_FILE = REPOSITORY / "sim_config.yaml"


def measure(rounds: int, note: Note) -> Measurement:
    """Two simulators of the same build take turns."""
    config = load_config(_CONFIG_FILE, "default")
    generator = torch.Generator().manual_seed(1)
    operands = tuple(torch.randn(SIZE, SIZE, generator=generator) for _ in range(2))
    case = Case(0, "aten.mm.default", operands, "bench")
    with tempfile.TemporaryDirectory(prefix="npu-bench-") as folder:
        session = Session(_spec(Path(folder)), config)
        assert session.rtl is not None
        alone = RtlBackend(config, variant="check", config_file=_CONFIG_FILE, seed=1)
        pair = DevicePair(config, alone, None)

        def judged() -> None:
            row = session.run(case)
            if not isinstance(row, OpRow) or row.status != "pass":
                raise VerdictError("the measured product is wrong")

        def bare() -> None:
            pair.run(case, 1)

        with_it = partial(timed, judged, partial(_clock, session.rtl))
        without = partial(timed, bare, partial(_clock, alone))
        try:
            note(f"with {with_it():.2f} s, without {without():.2f} s of CPU time")
            return interleaved(with_it, without, rounds)
        finally:
            pair.close()
            session.close()


def _clock(backend: RtlBackend) -> float:
    return own_cpu_seconds() + process_cpu_seconds(backend.simulator.pid)


def _spec(out: Path) -> RunSpec:
    return RunSpec(
        test="bench",
        config="default",
        config_file=_CONFIG_FILE,
        seed=1,
        backend="rtl",
        waves="none",
        out=out,
        capsules={},
        op_filter=None,
        timeout_s=3600.0,
    )
