# SPDX-License-Identifier: Apache-2.0
"""The options of the commands: name, type, default and help of each, declared once.

The command line is built from them (`with_options`); regress.generate makes the Makefile's flags.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from driver.errors import InputError
from driver.results import (
    MAX_SEED,
    MAX_SHARDS,
    ArrayModel,
    BackendName,
    BuildKind,
    Mode,
    SimulatorName,
    Waves,
)
from regress.paths import CONFIG_FILE, NIGHTLY

_WEEK_S = 7.0 * 86_400
MAX_PROCESSES = 1024
"""At once on one machine."""
_CAPSULE = "the folder of a capsule (make replay takes CAPSULE=, or ID= of a stored failure)"


def given(expected: str) -> Callable[[str], str]:
    """A parser of texts that are not empty and hold nothing that a terminal would obey."""

    def parsed(text: str) -> str:
        if not text:
            raise typer.BadParameter(f"got nothing, expected {expected}")
        if not text.isprintable():
            raise typer.BadParameter(f"got {text!a}, expected {expected}, all printable")
        return text

    return parsed


def _given_path(expected: str = "a path") -> Callable[[str | Path], Path]:
    """An empty path would be the current folder, which is hardly meant. Defaults are paths."""
    parsed = given(expected)
    return lambda given: Path(parsed(str(given)))


def path_option(help_text: str) -> Any:
    """An option whose value is a path."""
    return typer.Option(help=help_text, parser=_given_path(), metavar="PATH")


def _one_of(values: object) -> str:
    """The values of a field of the result's schema, as a text: "none, vcd or fst"."""
    *first, last = get_args(values)
    return f"{', '.join(first)} or {last}"


Out = Annotated[Path | None, path_option("Folder of the results.")]
ConfigFile = Annotated[Path, path_option("Hardware configurations.")]
StoreUrl = Annotated[str | None, typer.Option(help="Database URL; default: SQLite.")]
StoreFolder = Annotated[Path, path_option("Folder of the store.")]
Seed = Annotated[int, typer.Option(help="Seed of all random data.", min=0, max=MAX_SEED)]
Capsule = Annotated[
    Path,
    typer.Argument(
        parser=_given_path(_CAPSULE), metavar="CAPSULE", help="A folder with capsule.json."
    ),
]
Test = Annotated[str, typer.Argument(help="A test; `npu-cosim tests` lists them.")]
Identity = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The id of an attempt, or its first characters.",
        parser=given("the id of an attempt"),
    ),
]


def _renamed_fpu(value: str | None) -> None:
    if value is not None:
        raise InputError("command line", "FPU", value, "ARRAY=behavioural: FPU is now ARRAY")


_ConfigName = Annotated[
    str | None, typer.Option(help="A configuration; the test's own by default.")
]
_Waves = Annotated[str, typer.Option(help=f"{_one_of(Waves)}.")]
_Backend = Annotated[str, typer.Option(help=f"{_one_of(BackendName)}.")]
_OP_HELP = "Run only this op, or FIRST..LAST; of bus and overlap also by name."
_OpIndex = Annotated[str | None, typer.Option(help=_OP_HELP)]
_Timeout = Annotated[
    float,
    typer.Option(
        help="Limit in seconds; of waiting for a CPU a quarter counts.", min=1.0, max=_WEEK_S
    ),
]
_Mode = Annotated[str, typer.Option(help=f"{_one_of(Mode)}; the test's own by default.")]
_AllowCpu = Annotated[
    bool, typer.Option("--allow-cpu", help="Run ops on the CPU that the NPU cannot run.")
]
_CustomOps = Annotated[Path | None, path_option("Python file with ops of your own.")]
_NameFilter = Annotated[
    str | None,
    typer.Option(
        help="Run only the ops with this in their name (TEST=ops).",
        parser=given("a part of an op's name"),
        metavar="TEXT",
    ),
]
_Array = Annotated[
    str,
    typer.Option(help=f"{_one_of(ArrayModel)}: models of array and fma (faster, no assertions)."),
]
_Variant = Annotated[
    str,
    typer.Option(help=f"{_one_of(BuildKind)}: compiled with a profile (faster, a longer build)."),
]
_Sim = Annotated[str, typer.Option(help=f"{_one_of(SimulatorName)}, the same RTL by another tool.")]
_MutantName = Annotated[
    str | None,
    typer.Option(
        help="Plant a wrong line in the RTL, which the run must catch (docs/mutants.md).",
        parser=given("the name of a mutant"),
        metavar="NAME",
    ),
]
_Fpu = Annotated[
    str | None,
    typer.Option("--fpu", hidden=True, callback=_renamed_fpu, parser=str, help="Renamed to ARRAY."),
]
_Checkpoint = Annotated[Path | None, path_option("Folder with real weights.")]
_Shard = Annotated[
    str | None, typer.Option(help="Run only this shard of the ops, for example 2/4.")
]
_Shards = Annotated[
    int | None, typer.Option(help="Number of shards of the ops.", min=1, max=MAX_SHARDS)
]
_ShardJobs = Annotated[
    int, typer.Option("-j", "--jobs", help="Shards at the same time.", min=1, max=MAX_PROCESSES)
]
_Resume = Annotated[bool, typer.Option(help="Run only the missing shards.")]


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """Of `replay`, and of `run` too."""

    config: _ConfigName = None
    config_file: ConfigFile = CONFIG_FILE
    seed: Seed = 1
    waves: _Waves = "none"
    out: Out = None
    backend: _Backend = "rtl"
    op: _OpIndex = None
    timeout: _Timeout = 3600.0
    mode: _Mode = ""
    allow_cpu: _AllowCpu = False
    array: _Array = "rtl"
    variant: _Variant = "plain"
    sim: _Sim = "verilator"
    mutant: _MutantName = None
    custom_ops: _CustomOps = None
    fpu: _Fpu = None


@dataclass(frozen=True, kw_only=True)
class RunOptions(ReplayOptions):
    """Of `run`."""

    filter: _NameFilter = None
    checkpoint: _Checkpoint = None
    shard: _Shard = None
    shards: _Shards = None
    jobs: _ShardJobs = 2
    resume: _Resume = False


@dataclass(frozen=True, kw_only=True)
class CaptureOptions:
    """Of `capture`."""

    seed: Seed = 1
    checkpoint: _Checkpoint = None
    dtype: Annotated[str | None, typer.Option(help="float32, float16 or bfloat16.")] = None
    device: Annotated[str, typer.Option(help="Where it runs while it is recorded: cpu.")] = "cpu"
    out: Out = None


@dataclass(frozen=True, kw_only=True)
class UnitOptions:
    """Of `unit`."""

    vectors: Annotated[Path | None, path_option("File in TestFloat's format.")] = None
    seed: Seed = 1


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """Of `bench`."""

    rounds: Annotated[int, typer.Option(help="Interleaved rounds.", min=1)] = 5
    out: Out = None


@dataclass(frozen=True, kw_only=True)
class OpSurveyOptions:
    """Of `op-survey`."""

    dtype: Annotated[list[str] | None, typer.Option(help="A type; all by default.")] = None
    samples: Annotated[int, typer.Option(help="Samples at most, for each op and type.", min=1)] = 10
    seed: Seed = 1
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", help="Processes.", min=1, max=MAX_PROCESSES)
    ] = 2
    record: Annotated[
        bool,
        typer.Option("--record", help="Record also what the baseline cannot be compared with."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class LintOptions:
    """Of `lint`."""

    config: Annotated[
        str | None, typer.Option(help="Only the RTL of this configuration, which may be your own.")
    ] = None
    config_file: ConfigFile = CONFIG_FILE


@dataclass(frozen=True, kw_only=True)
class SynthesisOptions:
    """Of `synth`."""

    config: Annotated[str | None, typer.Option(help="A configuration; default: each size.")] = None
    config_file: ConfigFile = CONFIG_FILE
    out: Out = None
    record: Annotated[bool, typer.Option("--record", help="Make these figures the baseline.")] = (
        False
    )
    fpga: Annotated[
        bool, typer.Option("--fpga", help="Map every module to an ECP5 FPGA too: minutes.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class PowerOptions:
    """Of `power`."""

    config: Annotated[str | None, typer.Option(help="A configuration; default: small.")] = None
    config_file: ConfigFile = CONFIG_FILE
    out: Out = None


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """Of the commands that read a store."""

    store: StoreUrl = None
    out: StoreFolder = NIGHTLY


def with_options(options: type[Any]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Make a command of a function whose first parameter is `options`: the command line has an
    option for every field of that class."""

    def decorate(body: Callable[..., int]) -> Callable[..., int]:
        arguments = list(inspect.signature(body, eval_str=True).parameters.values())[1:]

        def command(**given: Any) -> int:
            values = {argument.name: given.pop(argument.name) for argument in arguments}
            return body(options(**given), **values)

        fields = inspect.signature(options, eval_str=True).parameters.values()
        command.__signature__ = inspect.Signature([*arguments, *fields])  # type: ignore[attr-defined]
        command.__name__, command.__doc__ = body.__name__, body.__doc__
        return command

    return decorate
