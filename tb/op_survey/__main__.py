# SPDX-License-Identifier: Apache-2.0
"""`python -m tb.op_survey CONFIG_FILE CONFIG`: tasks as JSON lines on stdin, rows on stdout.

The first line names the ops. Ends with its stdin. Whatever an op prints goes to stderr.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from pathlib import Path

import torch

from driver.config import HwConfig, load_config
from driver.errors import InputError, NpuError
from driver.op_survey import Listing, OpTypeRow, SampleCounts, SurveyTask, TaskAnswer
from tb.op_survey.database import DATABASE, calls, own_names, supports
from tb.op_survey.judging import Judge, SampleResult, is_core

_SHOWN = 3
"""Failures of one row that are told in words."""


def row_of(op: str, dtype: str, outcomes: list[SampleResult]) -> OpTypeRow:
    """The outcomes of one op's samples in one type, counted."""
    refusals: Counter[str] = Counter()
    core_refusals: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.status == "refused":
            refusals.update(outcome.ops)
            if outcome.core:
                core_refusals.update(name for name in outcome.ops if is_core(name))
    failed = [
        f"{one.status}: {one.text}"
        for one in outcomes
        if one.status in ("wrong", "crash", "timeout")
    ]
    return OpTypeRow(
        op=op,
        dtype=dtype,
        count=SampleCounts(**Counter[str](one.status for one in outcomes)),
        core=SampleCounts(**Counter[str](one.status for one in outcomes if one.core)),
        refusals=dict(refusals),
        core_refusals=dict(core_refusals),
        failures=tuple(failed[:_SHOWN]),
    )


def answer(task: SurveyTask, config: HwConfig) -> TaskAnswer:
    """Judge the samples of one op. A type that torch does not have for it has no row."""
    judge = Judge(config, task.seed, task.limit_s)
    rows = []
    try:
        for dtype in task.dtypes:
            kind = getattr(torch, dtype)
            if not supports(task.op, kind):
                continue
            own = own_names(task.op)
            found = (
                judge.outcome(call, own) for call in calls(task.op, kind, task.samples, task.seed)
            )
            outcomes = [one for one in found if one is not None]
            if outcomes:
                rows.append(row_of(task.op, dtype, outcomes))
    finally:
        judge.close()
    return TaskAnswer(rows=tuple(rows))


def main(arguments: list[str]) -> int:
    """Exit status."""
    stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # some kernels of torch print
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        if len(arguments) != 2:
            raise InputError("command line", "arguments", arguments, "CONFIG_FILE CONFIG")
        config = load_config(Path(arguments[0]), arguments[1])
        listing = Listing(torch=str(torch.__version__), ops=tuple(DATABASE))
        print(listing.model_dump_json(), file=stdout, flush=True)
        for line in sys.stdin:
            reply = answer(SurveyTask.model_validate_json(line), config)
            print(reply.model_dump_json(), file=stdout, flush=True)
    except NpuError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
