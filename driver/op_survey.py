# SPDX-License-Identifier: Apache-2.0
"""What the op table's worker tells the command line: one row per op of torch's op_db and type.

Owns the data alone. Torch-free: `tb.op_survey` fills it, `regress.op_survey` shows it.
"""

from __future__ import annotations

from pydantic import NonNegativeInt

from driver.frozen import Frozen

DTYPES = ("float32", "float16", "bfloat16", "int8", "int32", "int64", "uint8", "bool")
"""Types that the NPU holds, as torch names them."""


class SurveyTask(Frozen):
    """What the command line asks the worker for, a line of JSON on its stdin."""

    op: str
    """Full name in op_db: name, and the variant after a dot."""
    dtypes: tuple[str, ...]
    samples: NonNegativeInt
    """At most so many per type, spread over those that op_db has."""
    seed: NonNegativeInt
    limit_s: float
    """CPU seconds per sample."""


class SampleCounts(Frozen):
    """Samples by their outcome."""

    works: NonNegativeInt = 0
    """All passed, and torch ran the op itself, or moved no data."""
    decomposed: NonNegativeInt = 0
    """All passed: other ops that torch turned it into."""
    refused: NonNegativeInt = 0
    """A typed refusal of one line."""
    wrong: NonNegativeInt = 0
    crash: NonNegativeInt = 0
    """An error that is no refusal, or an end of the worker."""
    timeout: NonNegativeInt = 0
    other_type: NonNegativeInt = 0
    """Refused, and torch asks for a tensor of a type that the NPU does not hold: not counted."""

    @property
    def total(self) -> int:
        """All samples in the types that the NPU holds."""
        return self.passed + self.refused + self.failed

    @property
    def passed(self) -> int:
        """Those whose every op was judged right."""
        return self.works + self.decomposed

    @property
    def failed(self) -> int:
        """Those that must not be."""
        return self.wrong + self.crash + self.timeout

    def __add__(self, other: SampleCounts) -> SampleCounts:
        mine, theirs = self.model_dump(), other.model_dump()
        return SampleCounts(**{name: mine[name] + theirs[name] for name in mine})


class OpTypeRow(Frozen):
    """An op in one type."""

    op: str
    dtype: str
    count: SampleCounts
    core: SampleCounts
    """Those of the samples that torch turns into core ATen ops alone."""
    refusals: dict[str, int]
    """ATen overload, or another reason → refused samples."""
    core_refusals: dict[str, int]
    """Core ATen overload → refused samples."""
    failures: tuple[str, ...] = ()
    """What was wrong, a line each, the first few."""


class TaskAnswer(Frozen):
    """A line of the worker's stdout: the rows of one task."""

    rows: tuple[OpTypeRow, ...]


class Listing(Frozen):
    """The worker's first line: the ops of op_db and the version of torch they belong to."""

    torch: str
    ops: tuple[str, ...]
