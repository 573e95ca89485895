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


def option_words(spec: RunSpec) -> list[str]:
    """What `spec` adds to the name of a test or the folder of a capsule, but the ops."""
    own = spec.config_file == Path(__file__).resolve().parents[1] / "sim_config.yaml"
    isolated_by_itself = "capsule" in spec.capsules or not spec.capsules
    words = ["--config", spec.config, "--seed", str(spec.seed)]
    words += [] if own else ["--config-file", str(spec.config_file)]
    words += [] if spec.backend == "rtl" else ["--backend", spec.backend]
    if spec.modes == ("chained",) or (spec.modes == ("isolated",) and not isolated_by_itself):
        words += ["--mode", spec.modes[0]]
    words += [] if spec.array == "rtl" else ["--array", spec.array]
    words += [] if spec.simulator == "verilator" else ["--sim", spec.simulator]
    words += [] if spec.mutant is None else ["--mutant", spec.mutant]
    words += ["--allow-cpu"] if spec.allow_cpu else []
    words += [] if spec.custom_ops is None else ["--custom-ops", str(spec.custom_ops)]
    words += [] if spec.checkpoint is None else ["--checkpoint", str(spec.checkpoint)]
    return words


def reproduce_line(spec: RunSpec, op: int | None = None, first: int | None = None) -> str:
    """The command that repeats `spec`, or only the op of that index in it, from the repository.

    `first`: with the ops from that index before it.
    """
    capsule = spec.capsules.get("capsule")
    head = ["run", spec.test] if capsule is None else ["replay", str(capsule)]
    words = [*PROGRAM.split(), *head, *option_words(spec)]
    index, begin = (spec.op_filter, spec.op_from) if op is None else (op, first)
    if index is not None:  # says it all, whatever the shard
        return shlex.join([*words, "--op", op_range(index, begin)])
    words += [] if spec.shard is None else ["--shard", str(spec.shard)]
    words += [] if spec.name_filter is None else ["--filter", spec.name_filter]
    return shlex.join(words)
