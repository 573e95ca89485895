# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim bench`: measures the figures of merit and writes out/bench/bench.json.

A figure is a ratio of CPU times, or an exact count. Machines are shared and noisy: the two sides of
a ratio alternate for several rounds, and the median of the rounds' ratios is the value. Nothing is
judged here; aims are printed beside the values.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from driver.errors import InfrastructureError, InputError, NpuError
from driver.frozen import Frozen
from driver.results import NoteEvent, parse_event
from regress.console import plain_table, print_line
from regress.folder import keep_text
from regress.paths import BUILD, ROOT
from regress.process import execute, last_lines, terminable

BENCH_FILE = "bench.json"
LOGS = BUILD / "bench"
RUNNER: tuple[str, ...] = (sys.executable, "-m", "tb.bench")
_LIMIT_S = 3600.0


@dataclass(frozen=True)
class Figure:
    """A figure of merit, measured by tb/bench/<name>.py, or by a module that says so."""

    name: str
    title: str
    aim: float
    better: Literal["higher", "lower"]
    unit: str = "ratio"
    module: str | None = None
    """Run instead of tb.bench, with the same arguments."""


_NIGHTLY = "regress.nightly.overhead"

FIGURES: tuple[Figure, ...] = (
    Figure("cocotb_speed", "cycles/s under cocotb ÷ in a bare C++ loop", 0.95, "higher"),
    Figure("vpi_speed", "bare loop with public pins ÷ without VPI", 0.98, "higher"),
    Figure(
        "check_speed", "cycles/s with assertions ÷ without: product, vector, copy", 0.85, "higher"
    ),
    Figure("utilisation", "matrix utilisation, fp32 512³, doorbell to done", 0.995, "higher"),
    Figure("copy_beats", "read beats ÷ busy cycles, 64 KiB COPY, latency 100", 0.98, "higher"),
    Figure("copy_queue", "the same for COPYs that are added to a queue", 1.0, "higher"),
    Figure("copy_rate", "the same for 64 KiB more: without the latencies", 0.99, "higher"),
    Figure("lenet_pass", "a pass of LeNet, 64 images, each op alone", 0.6, "lower", "Mcycles"),
    Figure("qwen_layer", "a Qwen2.5-0.5B layer, 32 tokens, bf16", 1.92, "lower", "Mcycles"),
    Figure("qwen_queue", "the same, its commands in one queue", 1.92, "lower", "Mcycles"),
    Figure(
        "qwen_layer_short", "the same, 16 tokens: bound of bus and array ÷ cycles", 0.97, "higher"
    ),
    Figure("qwen_queue_short", "the same, its commands in one queue", 0.97, "higher"),
    Figure("decode_token", "bus busy in the products of one token, bf16", 0.97, "higher"),
    Figure("prefill", "prefill of 16 tokens, exact RTL, two processes", 150, "lower", "s"),
    Figure("rtl_vs_torch", "CPU time of RTL ÷ torch, 1 thread, fp32 512³", 300, "lower"),
    Figure("cmodel_vs_torch", "speed of cmodel ÷ torch, fp32 1024³", 1.0, "higher"),
    Figure("eager_op", "CPU time of the host for an add on device npu", 25, "lower", "µs"),
    Figure("lenet_step", "CPU time of a training step, device npu ÷ torch", 10, "lower"),
    Figure("qwen_lora_step", "the same, LoRA on 2 layers of Qwen2.5-0.5B", 5, "lower"),
    Figure("scoreboard", "CPU time with scoreboard ÷ without", 1.02, "lower"),
    Figure("ulp", "largest error of a function in fp32, 10⁶ numbers each", 2.0, "lower", "ULP"),
    Figure("fusion", "bytes that a step of AdamW moves per parameter", 28, "lower", "bytes"),
    Figure("rebuild", "rebuild after touching one RTL module ÷ cold build", 0.3, "lower"),
    Figure("nightly_overhead", "CPU time of the runner per job", 50, "lower", "ms", _NIGHTLY),
    Figure("nightly_speedup", "jobs one at a time ÷ two at a time", 1.9, "higher", module=_NIGHTLY),
    Figure("nightly_plan", "CPU time to plan and store 10,000 jobs", 5, "lower", "s", _NIGHTLY),
)


class MeasuredFigure(Frozen):
    """A measured figure: the median of the rounds, and the largest less the smallest."""

    value: float
    spread: float


def measurable() -> dict[str, Figure]:
    """The figures that have a measurement, by name."""
    own = ROOT / "tb" / "bench"
    return {f.name: f for f in FIGURES if f.module or (own / f"{f.name}.py").is_file()}


def measure(figure: Figure, rounds: int, say: Callable[[str], None]) -> MeasuredFigure:
    """Take one figure in a process of its own. InfrastructureError when that fails."""
    lines: list[str] = []
    log = LOGS / f"{figure.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)

    def take(line: str) -> None:
        event = parse_event(line)
        if isinstance(event, NoteEvent):
            say(f"  {event.text}")
        elif line.strip():
            lines.append(line)

    runner = RUNNER if figure.module is None else (sys.executable, "-m", figure.module)
    ended = execute([*runner, figure.name, str(rounds)], log, _LIMIT_S, take)
    try:
        if ended.status == 0 and not ended.timed_out and lines:
            return MeasuredFigure.model_validate_json(lines[-1])
    except ValidationError:
        pass
    why = " | ".join(last_lines(log, 1)) or "no message"
    raise InfrastructureError(f"{figure.name} {ended.describe(_LIMIT_S)}: {why}; see {log}")


def run_bench(console: Console, names: Sequence[str], rounds: int, out: Path) -> int:
    """Measure `names` (all when empty), print and write. 3 when a figure could not be taken."""
    known = measurable()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError("command line", "BENCH", unknown[0], f"one of {', '.join(known)}")
    taken: list[tuple[Figure, MeasuredFigure]] = []
    lost = 0
    say = partial(print_line, console)
    keep_text(out, BENCH_FILE, _document(taken))  # a folder that cannot be used is said now
    with terminable():
        for name in names or list(known):
            figure = known[name]
            say(f"{figure.name}: {figure.title}")
            try:
                taken.append((figure, measure(figure, rounds, say)))
            except NpuError as error:
                lost += 1
                say(f"  not measured: {error}")
            keep_text(out, BENCH_FILE, _document(taken))
    console.print()
    console.print(_table(taken))
    say(f"  {out / BENCH_FILE}")
    return 3 if lost else 0


def _document(taken: Sequence[tuple[Figure, MeasuredFigure]]) -> str:
    rows = [
        {"name": f.name, "aim": f.aim, "better": f.better, "unit": f.unit, **value.model_dump()}
        for f, value in taken
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def reached(figure: Figure, value: float) -> bool:
    """Whether the aim is met."""
    return value >= figure.aim if figure.better == "higher" else value <= figure.aim


def _table(taken: Sequence[tuple[Figure, MeasuredFigure]]) -> Table:
    table = plain_table()
    for name in ("figure", "value", "aim", "spread", "unit"):
        table.add_column(name, justify="left" if name in ("figure", "unit") else "right")
    for figure, value in taken:
        sign = "≥" if figure.better == "higher" else "≤"
        colour = "green" if reached(figure, value.value) else "yellow"
        table.add_row(
            figure.title,
            Text(f"{value.value:.4g}", style=colour),
            f"{sign} {figure.aim:g}",
            f"{value.spread:.2g}",
            figure.unit,
        )
    return table
