# SPDX-License-Identifier: Apache-2.0
"""docs/architectures.md: which ops of transformers' architectures run on the NPU. Runs nothing."""

from __future__ import annotations

from collections.abc import Sequence

from driver.survey import Kind, Surveyed

_ENOUGH = 0.95
_SHOWN = 4
_HEAD = """# Architectures

Written by `make architectures`; do not edit. Each row is a model class of transformers with tiny
sizes and seeded random weights (`workloads/architectures.yaml`): one forward pass is recorded, and
every op that computes runs on the cmodel and is judged on the operands that torch had, as
`make replay` does it.

- on the NPU: judged right; reads by the host (`.item()`) are compared and counted here.
- refused: a typed refusal of one line; with `ALLOW_CPU=1` the op runs on the CPU.
- wrong, crash: must not be.
- free: views, and ops that only make room. They are not among the ops.
"""


def totals(found: Sequence[Surveyed]) -> list[str]:
    """The figures of all architectures, a line each."""
    recorded = [one for one in found if one.error is None]
    ops, npu = sum(one.ops for one in recorded), sum(one.npu for one in recorded)
    enough = sum(one.npu >= _ENOUGH * one.ops for one in recorded)
    whole = sum(one.npu == one.ops for one in recorded)
    counts = ", ".join(f"{_count(recorded, kind)} {kind}" for kind in ("refused", "wrong", "crash"))
    lines = [
        f"{npu} of {ops} ops of {len(recorded)} architectures on the NPU, {npu / max(ops, 1):.1%}; "
        f"{counts}",
        f"{enough} architectures with at least {_ENOUGH:.0%} of their ops on the NPU, "
        f"{whole} with all",
    ]
    failed = len(found) - len(recorded)
    return [*lines, f"{failed} not recorded"] if failed else lines


def page(found: Sequence[Surveyed]) -> str:
    """The text of the page."""
    parts = [_HEAD, *(f"{line}." for line in totals(found)), ""]
    missing = _missing(found)
    if missing:
        parts += ["## Not on the NPU", "", *missing, ""]
    parts += ["## Each architecture", "", *_rows(found)]
    return "\n".join(parts) + "\n"


def _count(found: Sequence[Surveyed], kind: Kind) -> int:
    return sum(one.count(kind) for one in found)


def _missing(found: Sequence[Surveyed]) -> list[str]:
    """What is not on the NPU, by the number of architectures that need it."""
    models: dict[tuple[str, ...], list[str]] = {}
    times: dict[tuple[str, ...], int] = {}
    for one in found:
        for trouble in one.troubles:
            key: tuple[str, ...] = (
                trouble.kind,
                trouble.op,
                trouble.dtype,
                _because(trouble.op, trouble.text),
            )
            models.setdefault(key, []).append(one.name)
            times[key] = times.get(key, 0) + trouble.count
    if not models:
        return []
    lines = ["| | op | type | because | times | architectures |", "|---|---|---|---|---|---|"]
    for key in sorted(models, key=lambda key: (-len(set(models[key])), -times[key], key)):
        kind, op, dtype, text = key
        names = list(dict.fromkeys(models[key]))
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        shown = ", ".join(names[:_SHOWN]) + more
        lines.append(f"| {kind} | `{op}` | {dtype} | {_cell(text)} | {times[key]} | {shown} |")
    return lines


def _because(op: str, text: str) -> str:
    """Without the name of the op, which has a column of its own."""
    return "no row in the op table" if text == f"op: {op}" else text


def _rows(found: Sequence[Surveyed]) -> list[str]:
    lines = [
        "| architecture | class | ops | on the NPU | | refused | wrong | crash | free |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        if one.error is not None:
            lines.append(f"| {one.name} | {one.model} | not recorded: {_cell(one.error)} |||||||")
            continue
        counts = " | ".join(str(one.count(kind)) for kind in ("refused", "wrong", "crash"))
        share = f"{one.npu / max(one.ops, 1):.1%}"
        cells = f"{one.name} | {one.model} | {one.ops} | {one.npu} | {share} | {counts}"
        lines.append(f"| {cells} | {one.free} |")
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
