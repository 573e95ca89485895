# SPDX-License-Identifier: Apache-2.0
"""What a run is asked and what it answers: run.json, the events on stdout, result.json.

The command line writes a `RunSpec` and reads events and a `RunResult`; the bench does the reverse.
Everything is frozen, strict and closed. Knows no device, no test and no torch.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from driver.errors import InputError
from driver.files import read_json as read_json  # noqa: PLC0414 (readers of records find it here)
from driver.files import write_json as write_json  # noqa: PLC0414 (readers of records find it here)
from driver.files import write_text as write_text  # noqa: PLC0414 (readers of records find it here)
from driver.frozen import Frozen

SCHEMA_VERSION: Final = 1
"""Raised by one whenever a result of the former version could be misread."""

SPEC_FILE: Final = "run.json"
RESULT_FILE: Final = "result.json"
COCOTB_FOLDER: Final = "tests"
"""In the folder of a run: a folder for each of the cocotb tests that it ran."""

PROGRAM: Final = ".venv/bin/npu-cosim"
"""The command line as a user types it after `make setup`."""

_SHARD = re.compile("([0-9]{1,9})/([0-9]{1,9})")
_NON_FINITE = ("NaN", "Infinity", "-Infinity")


def _number(value: object) -> object:
    """JSON has no NaN and no infinity: they travel as strings."""
    return float(value) if isinstance(value, str) and value in _NON_FINITE else value


def _plain(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


MAX_SEED: Final = (1 << 31) - 1
"""The largest that every random generator takes, the simulator's included."""

MAX_SHARDS: Final = 10_000
"""Of one test: each is a row of the nightly store."""

Count = Annotated[int, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Number = Annotated[
    float,
    BeforeValidator(_number),
    PlainSerializer(_plain),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": list(_NON_FINITE)}]}),
]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Bits = Annotated[str, Field(pattern=r"^0x[0-9a-f]+$")]

BackendName = Literal["rtl", "cmodel"]
Waves = Literal["none", "vcd", "fst"]
ArrayModel = Literal["rtl", "behavioural"]
BuildKind = Literal["plain", "pgo"]
SimulatorName = Literal["verilator", "cxxrtl"]
Where = Literal["rtl", "cmodel", "cpu"]
Site = Literal["rtl", "cmodel", "cpu", "view", "host"]
"""Where a ledger counts an op. A view moves no data and runs nowhere; the host reads an element of
the NPU's memory, which is compared like a result."""
Mode = Literal["isolated", "chained"]
"""What ops of a model work on: the tensors that torch had, or the NPU's own earlier results."""
BoundBy = Literal["compute", "memory", "overhead"]
Verdict = Literal["pass", "fail"]
RunStatus = Literal["pass", "fail", "error"]
Blame = Literal["none", "rtl", "cmodel", "lowering", "precision", "unknown"]
"""Whose fault a failure is. "rtl" and "cmodel": the third opinion agrees with the other of the two.
"lowering": they agree on something else than the op asked for: the packets are wrong. "precision":
the result is computed as docs/numerics.md says, and yet torch is further away than the derived
bound: reference, bound or contract. "unknown": of a Python test, whose message says what is wrong.
"""


class Shard(Frozen):
    """One part of a test's ops: those whose index leaves `index` when divided by `count`."""

    index: Count
    count: Annotated[int, Field(ge=1)]

    def holds(self, op: int) -> bool:
        """Whether the op of that index is in this part."""
        return op % self.count == self.index

    def __str__(self) -> str:
        return f"{self.index + 1}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """From `2/4`, the second of four. InputError for anything else."""
        found = _SHARD.fullmatch(text)
        number, count = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= count:
            raise InputError("command line", "shard", text, "N/COUNT with 1 ≤ N ≤ COUNT, as 2/4")
        return cls(index=number - 1, count=count)

    @model_validator(mode="after")
    def _consistent(self) -> Shard:
        if self.index >= self.count:
            raise _contradiction("the index of a shard is below their count")
        return self


class RunSpec(Frozen):
    """What to run. Paths are absolute."""

    test: Name
    config: str
    config_file: Path
    seed: Seed
    backend: BackendName
    waves: Waves
    out: Path
    capsules: dict[str, Path]
    """Workload, or "capsule" for a replay → folder."""
    op_filter: Count | None
    """Run only the op of this index."""
    timeout_s: Annotated[float, Field(gt=0)]
    op_from: Count | None = None
    """With `op_filter`: run the ops from this index up to it."""
    shard: Shard | None = None
    """Run only these ops; None for all."""
    modes: tuple[Mode, ...] = ("isolated",)
    checkpoint: Path | None = None
    """Folder that the capsules' weights came from; None: seeded random numbers."""
    array: ArrayModel = "rtl"
    """"behavioural": models in place of the matrix array and the multiply-add; no assertions."""
    variant: BuildKind = "plain"
    """"pgo": the build that was compiled with a profile; the same bits and cycles."""
    simulator: SimulatorName = "verilator"
    """"cxxrtl": the same RTL by another tool; no assertions, no waves, slower."""
    mutant: str | None = None
    """The wrong line that is planted in the RTL: the run shows whether it is caught."""
    name_filter: str | None = None
    """Run only the ops with this in their name."""
    custom_ops: Path | None = None
    """A Python file that declares ops (driver.custom_ops)."""
    allow_cpu: bool = False
    """Let the CPU run what the NPU cannot, and say so; otherwise that is an error."""


class Drift(Frozen):
    """How far a result computed from the NPU's own earlier results is from torch's."""

    max_abs: Number
    max_rel: Number
    """Largest difference over torch's largest magnitude."""
    cosine: Number
    """Of the angle between the two as vectors: 1 is the same direction."""
    budget: Number | None = None
    """What `max_abs` may be; None where no budget is known, because the run began in the middle of
    the chain or an element before this one has no bound."""


class Failure(Frozen):
    """The first element of an op that is wrong."""

    element: tuple[Count, ...]
    """Index in the result, outermost dimension first."""
    tile: tuple[Count, ...] | None
    """Index of the array-sized tile that holds the element."""
    expected_bits: Bits
    actual_bits: Bits
    expected: Number
    actual: Number
    cycle: Count | None
    """When the wrong value was written, where that is known."""
    detail: str
    output: Count = 0
    """Which of the op's results."""


class OpRow(Frozen):
    """One op and its verdict; in a cocotb test, one of its checks."""

    index: Count
    op: str
    module: str
    """Path of the torch module, or the name of the group of directed cases."""
    source: str
    """Relative file and line, or empty."""
    where: Where
    dtype: str
    shapes: tuple[tuple[Count, ...], ...]
    elements_compared: Count
    """Elements that something is known of: their bits, or a bound on their distance from torch."""
    rtl_vs_cmodel_mismatches: Count | None
    """None where no RTL ran."""
    torch_max_error: Number | None
    """Largest |result - torch| in units of the bound's own measure."""
    torch_bound: Number | None
    cycles: Count | None
    macs: Count | None
    utilisation: Number | None
    """MACs per cycle over the array's peak, 0 to 1."""
    status: Verdict
    blame: Blame
    failure: Failure | None
    packets: Count | None = None
    dram_bytes: Count | None = None
    """Moved over m_axi while the op ran, both ways."""
    compulsory_bytes: Count | None = None
    """What its operands and results take: no less can be moved."""
    bound_by: BoundBy | None = None
    """What most of its cycles went to."""
    drift: Drift | None = None
    """In a chained run."""
    unbounded: Count = 0
    """Elements for which no bound is known: not compared, and not in `elements_compared`."""
    zeros: Count = 0
    """Those of `elements_compared` that should be zero, as untouched memory often is."""
    replay_from: Count | None = None
    """The first op of the prefix that has to run before this one for its failure to show the same
    bits; None: the op alone shows them."""

    @model_validator(mode="after")
    def _consistent(self) -> OpRow:
        if self.status == "pass" and (self.blame != "none" or self.failure is not None):
            raise _contradiction("a passing op has neither blame nor failure")
        empty = self.packets == 0 and not self.unbounded
        if self.status == "pass" and not (self.where == "cpu" or empty or self.elements_compared):
            raise _contradiction("an op that passed on the NPU was compared, or had no element")
        if self.status == "fail" and self.blame == "none":
            raise _contradiction("a failing op has a blame")
        return self


class LedgerRow(Frozen):
    """How often an op ran where, and why not on the NPU."""

    op: str
    where: Site
    count: Annotated[int, Field(ge=1)]
    reason: str


class Curve(Frozen):
    """A value of a training at each step, on the NPU and by CPU torch."""

    model: str
    """Name of the capsule or program that trained."""
    name: str
    """What the value is: "loss"."""
    npu: tuple[Number, ...]
    torch: tuple[Number, ...]

    @model_validator(mode="after")
    def _consistent(self) -> Curve:
        if len(self.npu) != len(self.torch) or not self.npu:
            raise _contradiction("a curve has one value per step on both sides, and a step")
        return self


class RunResult(Frozen):
    """result.json: the whole outcome of a run."""

    schema_version: Literal[1] = SCHEMA_VERSION
    test: Name
    status: RunStatus
    config: str
    seed: Count
    backend: BackendName
    array: ArrayModel = "rtl"
    simulator: SimulatorName = "verilator"
    mutant: str | None = None
    """The wrong line that was planted in the RTL; a pass means that it was not caught."""
    cycles: Count | None
    wall_seconds: Annotated[float, Field(ge=0)]
    reproduce: str
    """The line that runs this again."""
    message: str | None
    """What went wrong, when no op row says it."""
    ops: tuple[OpRow, ...]
    ledger: tuple[LedgerRow, ...]
    notes: tuple[str, ...] = ()
    """What else the test found worth saying, one line each."""
    curves: tuple[Curve, ...] = ()
    """Of trainings."""
    digest: str | None = None
    """SHA-256 of the bits of all results in order: equal on every configuration and backend."""

    @model_validator(mode="after")
    def _consistent(self) -> RunResult:
        failed = any(op.status == "fail" for op in self.ops)
        judged = any(op.elements_compared for op in self.ops)
        if self.status == "pass" and (failed or not judged):
            raise _contradiction("a pass has ops that were compared, all of them passing")
        if self.status == "fail" and not (failed or self.message):
            raise _contradiction("a failure has a failing op or a message")
        if self.status == "error" and not self.message:
            raise _contradiction("an error has a message")
        return self


class PlanEvent(Frozen):
    """How many ops will run; may come again with a better number."""

    event: Literal["plan"] = "plan"
    ops: Count


class OpEvent(OpRow):
    """An op is done."""

    event: Literal["op"] = "op"

    @classmethod
    def of(cls, row: OpRow) -> OpEvent:
        """The event that announces `row`."""
        return cls(**dict(row))


class NoteEvent(Frozen):
    """A line for the reader: what takes long, what was found in a cache."""

    event: Literal["note"] = "note"
    text: str


class EndEvent(Frozen):
    """The last event: what the run used, and the error that left it without a result."""

    event: Literal["end"] = "end"
    cpu_seconds: Annotated[float, Field(ge=0)]
    """Of the run and all its processes."""
    error: str | None = None
    """Type of the error (`SimulatorTimeout`)."""
    text: str = ""


AnyEvent = PlanEvent | OpEvent | NoteEvent | EndEvent
Event = Annotated[AnyEvent, Field(discriminator="event")]
_EVENT: TypeAdapter[AnyEvent] = TypeAdapter(Event)


def parse_event(line: str) -> AnyEvent | None:
    """One line of a run's stdout; None when it is not an event (some library's print)."""
    try:
        return _EVENT.validate_json(line)
    except ValidationError:
        return None


def event_line(event: AnyEvent) -> str:
    """The line to print, without its end."""
    return event.model_dump_json()


def result_schema() -> str:
    """JSON schema of result.json, as docs/result.schema.json holds it."""
    schema = RunResult.model_json_schema(mode="serialization")
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _contradiction(text: str) -> PydanticCustomError:
    return PydanticCustomError("contradiction", "{text}", {"text": text})
