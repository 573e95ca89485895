# SPDX-License-Identifier: Apache-2.0
"""docs/ops.md: which of torch's ops the NPU computes in which type. Measures nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from driver.op_survey import DTYPES, OpTypeRow, SampleCounts

_NAMES = ("fp32", "fp16", "bf16", "int8", "int32", "int64", "uint8", "bool")
_SHORT = dict(zip(DTYPES, _NAMES, strict=True))
_NONE = "–"
_TOTALS = ("", "samples", "pass", "refused", "wrong", "crash", "over time", "other types")
_HEAD = """# Ops

Written by `make op-survey`; do not edit. torch {torch} has samples of {ops} ops (`op_db`); at most
{samples} per op and type run on the cmodel, and every ATen op that torch turns a sample into is
judged as an op of a capsule is. What torch itself refuses is not counted. This is what a capture
takes. Device "npu" runs more ([torch-device.md](torch-device.md)), as an op without a row may have
a formula there; what it refuses is in tests/torch_opinfo_refused.txt.

- works: the op itself has a row in the op table, or costs nothing.
- decomposed: torch turns the op into others, and these have rows.
- refused: a typed refusal of one line; with a fraction, the samples that pass.
- other types: refused, and torch asks for a tensor of a type that the NPU does not hold (float64,
  complex, int16, quantised …). Not among the samples.
- wrong, crash: must not be.
- core: torch turns the sample into core ATen ops alone (`torch.Tag.core`).
"""


def page(torch: str, samples: int, rows: Sequence[OpTypeRow]) -> str:
    """The text of docs/ops.md."""
    by_op: dict[str, dict[str, OpTypeRow]] = {}
    for row in rows:
        by_op.setdefault(row.op, {})[row.dtype] = row
    head = _HEAD.format(torch=torch.partition("+")[0], ops=len(by_op), samples=samples)
    parts = [
        head,
        *_table(_TOTALS, _totals(rows)),
        "",
        "## Refused most often",
        "",
        "What torch asks for, and in how many samples. First core ATen, then everything else.",
        "",
        *_table(("ATen op", "core", "samples"), _refused(rows)),
        "",
        "## Every op",
        "",
        *_table(("op", *_SHORT.values()), (_line(op, found) for op, found in by_op.items())),
    ]
    return "\n".join(parts) + "\n"


def totals(rows: Sequence[OpTypeRow]) -> list[str]:
    """The totals as lines for a terminal."""
    return [
        f"{name}: {samples} samples, {passed} pass, {refused} refused, {wrong} wrong, "
        f"{crash} crash, {late} over time; {other} need other types"
        for name, samples, passed, refused, wrong, crash, late, other in _totals(rows)
    ]


def _totals(rows: Sequence[OpTypeRow]) -> list[tuple[str, ...]]:
    lines = [("core ATen", [row.core for row in rows]), ("all", [row.count for row in rows])]
    for dtype in DTYPES:
        lines.append((_SHORT[dtype], [row.count for row in rows if row.dtype == dtype]))
    return [_sum(name, counts) for name, counts in lines]


def _sum(name: str, counts: Iterable[SampleCounts]) -> tuple[str, ...]:
    every = sum(counts, SampleCounts())
    share = f"{every.passed} ({_percent(every)})"
    others = (every.refused, every.wrong, every.crash, every.timeout, every.other_type)
    return (name, str(every.total), share, *map(str, others))


def _percent(count: SampleCounts) -> str:
    """Rounded down: 100 % is all of them."""
    tenths = count.passed * 1000 // count.total if count.total else 0
    return f"{tenths // 10}.{tenths % 10} %"


def _refused(rows: Sequence[OpTypeRow], shown: int = 60) -> list[tuple[str, ...]]:
    core: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for row in rows:
        core.update(row.core_refusals)
        every.update(row.refusals)
    first = [(f"`{op}`", "core", str(every[op])) for op, _ in core.most_common()]
    others = [(op, count) for op, count in every.most_common() if op not in core]
    return [*first, *((f"`{op}`", "", str(count)) for op, count in others[:shown])]


def _line(op: str, found: dict[str, OpTypeRow]) -> tuple[str, ...]:
    return (f"`{op}`", *(_cell(found[d].count) if d in found else _NONE for d in DTYPES))


def _cell(count: SampleCounts) -> str:
    for name, number in (
        ("wrong", count.wrong),
        ("crash", count.crash),
        ("over time", count.timeout),
    ):
        if number:
            return f"**{name} {number}/{count.total}**"
    if not count.total:
        return "other types"
    if not count.passed:
        return "refused"
    name = "works" if count.works >= count.decomposed else "decomposed"
    return f"{name} {count.passed}/{count.total}" if count.refused else name


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
