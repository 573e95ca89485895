# SPDX-License-Identifier: Apache-2.0
"""The command that runs something again, and the range of ops that it names."""

from __future__ import annotations

import shlex
from pathlib import Path

from driver.errors import InputError
from driver.results import PROGRAM, RunSpec

_MAX_DIGITS = 19
"""Of the number of an op on the command line."""


def op_range(index: int, first: int | None = None) -> str:
    """What follows `--op`: one op, or all from `first` up to it."""
    return str(index) if first is None or first == index else f"{first}..{index}"


def parse_op_range(text: str) -> tuple[int, int | None]:
    """(op, first of its prefix or None) from `7` or `3..7`. InputError for anything else."""
    first, dots, last = text.rpartition("..")
    numbers = [first, last] if dots else [last]
    if all(n.isascii() and n.isdecimal() and len(n) < _MAX_DIGITS for n in numbers):
        index = int(last)
        if not dots:
            return index, None
        if int(first) <= index:
            return index, int(first)
    raise InputError("command line", "--op", text, "an op's number, or FIRST..LAST as 3..7")


def reproduce_line(spec: RunSpec, op: int | None = None, first: int | None = None) -> str:
    """The command that repeats `spec`, or only the op of that index in it, from the repository.

    `first`: with the ops from that index before it.
    """
    own = spec.config_file == Path(__file__).resolve().parents[1] / "sim_config.yaml"
    capsule = spec.capsules.get("capsule")
    head = f"run {spec.test}" if capsule is None else f"replay {shlex.quote(str(capsule))}"
    words = [f"{PROGRAM} {head} --config {spec.config} --seed {spec.seed}"]
    words += [] if own else [f"--config-file {shlex.quote(str(spec.config_file))}"]
    words += [] if spec.backend == "rtl" else [f"--backend {spec.backend}"]
    isolated_by_itself = capsule is not None or not spec.capsules
    if spec.modes == ("chained",) or (spec.modes == ("isolated",) and not isolated_by_itself):
        words += [f"--mode {spec.modes[0]}"]
    words += [] if spec.array == "rtl" else [f"--array {spec.array}"]
    words += [] if spec.simulator == "verilator" else [f"--sim {spec.simulator}"]
    words += [] if spec.mutant is None else [f"--mutant {spec.mutant}"]
    words += ["--allow-cpu"] if spec.allow_cpu else []
    if spec.custom_ops is not None:
        words += [f"--custom-ops {shlex.quote(str(spec.custom_ops))}"]
    if spec.checkpoint is not None:
        words += [f"--checkpoint {shlex.quote(str(spec.checkpoint))}"]
    index, begin = (spec.op_filter, spec.op_from) if op is None else (op, first)
    if index is not None:  # says it all, whatever the shard
        words += [f"--op {op_range(index, begin)}"]
        return " ".join(words)
    words += [] if spec.shard is None else [f"--shard {spec.shard}"]
    words += [] if spec.name_filter is None else [f"--filter {shlex.quote(spec.name_filter)}"]
    return " ".join(words)
