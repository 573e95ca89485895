# SPDX-License-Identifier: Apache-2.0
"""Waves of one failing op, made on request: the run, its markers, the viewers' files.

The op runs alone from its recorded inputs, in a simulator that records from before its packet is
fetched to its end. Passing runs are never recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from driver.errors import InfrastructureError, InputError
from driver.results import OpRow, RunResult, write_text
from regress.failures.replay import failed_op, spec_of
from regress.failures.wavefile import WaveFile, edge_ps, first_together
from regress.paths import ROOT
from regress.progress import ProgressBar
from regress.results.model import Attempt
from regress.results.night import StoredJob
from regress.run import RUNNER, RunOutcome, run

VIEWS = ROOT / "tb" / "sim" / "views"
"""The viewers' files without markers, as the bench generates them."""
FETCH, FIRST_BEAT, WRONG_WRITE = "fetch", "first beat", "first wrong write"

_DATA_PIN = re.compile(r"(\S+data)\[\d+:0\]")
_PIN = "tb_top.m_axi_"
_CORE = "tb_top.u_npu.u_core."
ENGINE_STARTS = tuple(f"{_CORE}u_{name}.start" for name in ("matrix", "copy", "vector", "gather"))
"""Each high in the cycle in which its engine takes a command."""
_LETTERS = 26
_LEAD_PS = 100_000
"""How much of the time before the last marker a viewer opens with."""


@dataclass(frozen=True)
class RecordedWaves:
    """Waves of one op and what was made of them."""

    outcome: RunOutcome
    row: OpRow
    waves: Path
    file: WaveFile
    """The waves, opened."""
    markers: Mapping[str, int]
    """What → cycle, in the order of time."""
    gtkwave_view: Path
    surfer_commands: Path


def waves_folder(job: Path, op: int) -> Path:
    """Where the waves of an op of a job are kept."""
    return job / "waves" / f"op{op}"


def record_waves(
    job: StoredJob,
    progress: Callable[[str], ProgressBar],
    op: int | None = None,
    kind: Literal["vcd", "fst"] = "fst",
    runner: tuple[str, ...] = RUNNER,
) -> RecordedWaves:
    """Run a failing op of a job again, alone and recorded.

    InputError when the job has no such op; InfrastructureError when the run leaves no waves.
    """
    row = failed_op(job, op)
    if job.item.backend != "rtl":
        raise InputError(job.item.label, "backend", job.item.backend, "rtl, which has waves")
    folder = waves_folder(job.folder, row.index)
    outcome = run(spec_of(job, folder, row.index, kind), progress(job.item.label), runner)
    return _finish(outcome, folder / f"waves.{kind}", job.attempt, row)


def _finish(outcome: RunOutcome, waves: Path, attempt: Attempt, row: OpRow) -> RecordedWaves:
    if not waves.exists():
        said = outcome.result.message or "the run left no waves"
        raise InfrastructureError(f"attempt {attempt.id} op {row.index}: {said}")
    file = WaveFile(waves)
    markers = find_markers(file, outcome.result)
    folder = waves.parent
    view, commands = folder / "npu.gtkw", folder / "npu.sucl"
    fitted = _fitted((VIEWS / view.name).read_text(), file)
    write_text(view, gtkwave_view(fitted, waves, markers))
    write_text(commands, surfer_view((VIEWS / commands.name).read_text(), markers))
    return RecordedWaves(outcome, row, waves, file, markers, view, commands)


def find_markers(file: WaveFile, result: RunResult) -> dict[str, int]:
    """Cycles to look at, in the order of time. What never happened has none."""
    found: dict[str, int | None] = {FETCH: _handshake(file, "ar", 0)}
    starts = [file.trace(path) for path in ENGINE_STARTS]
    engines = [first_together([start]) for start in starts if start is not None]
    begun = min((cycle for cycle in engines if cycle is not None), default=None)
    if begun is not None:
        found[FIRST_BEAT] = _handshake(file, "r", begun)
    failing = next((op for op in result.ops if op.failure is not None), None)
    if failing is not None and failing.failure is not None:
        found[WRONG_WRITE] = failing.failure.cycle
    known = {name: cycle for name, cycle in found.items() if cycle is not None}
    return dict(sorted(known.items(), key=lambda pair: pair[1]))


def _handshake(file: WaveFile, channel: str, from_cycle: int) -> int | None:
    """First transfer on a channel of m_axi."""
    pins = [file.trace(f"{_PIN}{channel}{pin}") for pin in ("valid", "ready")]
    traces = [trace for trace in pins if trace is not None]
    return first_together(traces, from_cycle) if len(traces) == len(pins) else None


def _fitted(view: str, file: WaveFile) -> str:
    """The saved view with the width of this recording's data pins."""

    def own(match: re.Match[str]) -> str:
        trace = file.trace(match[1])
        return match[0] if trace is None else f"{match[1]}[{trace.width - 1}:0]"

    return _DATA_PIN.sub(own, view)


def gtkwave_view(view: str, waves: Path, markers: Mapping[str, int]) -> str:
    """The save file with these waves and markers: A, B, C by time, the last one in view."""
    times = [edge_ps(cycle) for cycle in markers.values()]
    start = max(times[-1] - _LEAD_PS, 0) if times else 0
    named = [*times, *[-1] * (_LETTERS - len(times))]
    lines = [
        f'[dumpfile] "{waves}"',
        "*-17.000000 " + " ".join(map(str, [times[-1] if times else -1, *named])),
        *(f"[markername] {chr(65 + i)}{name}" for i, name in enumerate(markers)),
    ]
    return "\n".join([*lines, view.replace("[timestart] 0\n", f"[timestart] {start}\n")])


def surfer_view(view: str, markers: Mapping[str, int]) -> str:
    """The command file with markers by name; the cursor stays at the last one."""
    lines = []
    for name, cycle in markers.items():
        lines += [f"cursor_set {edge_ps(cycle)}", f"marker_set {name.replace(' ', '_')}"]
    lines += ["goto_cursor"] if markers else []
    return view + "".join(f"{line}\n" for line in lines)
