# SPDX-License-Identifier: Apache-2.0
"""The command line `npu-cosim`: names, options and exit statuses. The work is done elsewhere.

Exit status: 0 pass, 1 a verdict failed, 2 bad input, 3 infrastructure, 130 interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from driver.errors import InputError
from regress import commands, nightly_cli
from regress.console import console
from regress.invoke import invoke, mend_streams
from regress.nightly.settings import MAX_SHARDS
from regress.options import Capsule, ConfigFile, Out, Seed, path_option
from regress.paths import CONFIG_FILE

_WEEK_S = 7.0 * 86_400

app = typer.Typer(
    name="npu-cosim",
    help="PyTorch workloads through the RTL of an NPU, checked bit for bit.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Config = Annotated[str, typer.Option(help="A configuration of the file.")]
TestConfig = Annotated[
    str | None, typer.Option(help="A configuration of the file; the test's own if none is given.")
]
ModeOption = Annotated[
    str, typer.Option(help="isolated, chained, or the test's own: what ops of a model work on.")
]
AllowCpu = Annotated[bool, typer.Option("--allow-cpu", help="Run on the CPU what the NPU cannot.")]


def _renamed_fpu(value: str | None) -> None:
    if value is not None:
        raise InputError("command line", "FPU", value, "ARRAY=behavioural: FPU is now ARRAY")


RenamedFpu = Annotated[
    str | None, typer.Option("--fpu", hidden=True, callback=_renamed_fpu, parser=str)
]
ArrayOption = Annotated[
    str, typer.Option(help="rtl, or behavioural: a model of array and fma (faster, no assertions).")
]
Checkpoint = Annotated[Path | None, path_option("Folder with real weights.")]
WavesOption = Annotated[str, typer.Option(help="none, vcd or fst.")]
BackendOption = Annotated[str, typer.Option(help="rtl or cmodel.")]
OpIndex = Annotated[str | None, typer.Option(help="Run only this op, or FIRST..LAST.")]
Timeout = Annotated[float, typer.Option(help="Wall-clock limit in seconds.", min=1.0, max=_WEEK_S)]


@app.command()
def run(
    test: str,
    *,
    config: TestConfig = None,
    config_file: ConfigFile = CONFIG_FILE,
    seed: Seed = 1,
    waves: WavesOption = "none",
    out: Out = None,
    backend: BackendOption = "rtl",
    op: OpIndex = None,
    timeout: Timeout = 3600.0,
    mode: ModeOption = "",
    allow_cpu: AllowCpu = False,
    checkpoint: Checkpoint = None,
    array: ArrayOption = "rtl",
    _fpu: RenamedFpu = None,
    shard: Annotated[str | None, typer.Option(help="Only one part of the ops, as 2/4.")] = None,
    shards: Annotated[
        int | None, typer.Option(help="Jobs that share the ops.", min=1, max=MAX_SHARDS)
    ] = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", help="Shards at once.", min=1)] = 2,
    resume: Annotated[bool, typer.Option(help="Run the shards that are missing.")] = False,
) -> int:
    """Run a test and judge every op of it."""
    asked = commands.Asked(
        config=config,
        config_file=config_file,
        seed=seed,
        waves=waves,
        out=out,
        backend=backend,
        op=op,
        timeout_s=timeout,
        mode=mode,
        allow_cpu=allow_cpu,
        checkpoint=checkpoint,
        array=array,
        shard=shard,
        shards=shards,
        jobs=jobs,
        resume=resume,
    )
    return commands.run_test(console(), test, asked)


@app.command()
def replay(
    capsule: Capsule,
    *,
    config: Config = "default",
    config_file: ConfigFile = CONFIG_FILE,
    seed: Seed = 1,
    waves: WavesOption = "none",
    out: Out = None,
    backend: BackendOption = "rtl",
    op: OpIndex = None,
    timeout: Timeout = 3600.0,
    mode: ModeOption = "",
    allow_cpu: AllowCpu = False,
    array: ArrayOption = "rtl",
    _fpu: RenamedFpu = None,
) -> int:
    """Run the ops of a capsule."""
    asked = commands.Asked(
        config=config,
        config_file=config_file,
        seed=seed,
        waves=waves,
        out=out,
        backend=backend,
        op=op,
        timeout_s=timeout,
        mode=mode,
        allow_cpu=allow_cpu,
        array=array,
    )
    return commands.replay(console(), capsule, asked)


@app.command()
def capture(
    workload: Annotated[str, typer.Argument(help="Its name, or the path of its Python file.")],
    *,
    seed: Seed = 1,
    checkpoint: Checkpoint = None,
    dtype: Annotated[str | None, typer.Option(help="float32, float16 or bfloat16.")] = None,
    device: Annotated[str, typer.Option(help="Where it runs while it is recorded: cpu.")] = "cpu",
    out: Out = None,
) -> int:
    """Record a workload into a capsule."""
    return commands.capture(
        console(), workload, seed=seed, checkpoint=checkpoint, dtype=dtype, device=device, out=out
    )


@app.command()
def unit(
    name: str,
    vectors: Annotated[Path | None, path_option("File in TestFloat's format.")] = None,
    seed: Seed = 1,
) -> int:
    """Run an RTL unit bench."""
    return commands.unit(console(), name, vectors, seed)


@app.command()
def tests() -> int:
    """List tests, workloads, configurations and backends."""
    return commands.list_all(console())


@app.command()
def gen() -> int:
    """Write the generated files that are out of date."""
    return commands.generate(console())


@app.command("gen-check")
def gen_check() -> int:
    """Compare the generated files with their sources; writes nothing."""
    return commands.generated_is_fresh(console())


@app.command()
def regs(out: Out = None) -> int:
    """Write the browsable register reference."""
    return commands.registers(console(), out)


@app.command()
def lint() -> int:
    """Style, licences, file lengths; RTL lint in two front ends."""
    return commands.checks(console(), "lint")


@app.command("format")
def reformat() -> int:
    """Put Python and C++ sources into the project's form."""
    return commands.reformat(console())


@app.command()
def types() -> int:
    """Static types of the Python packages."""
    return commands.checks(console(), "types")


@app.command()
def test(
    only: Annotated[list[str] | None, typer.Argument(help="Steps to run; all by default.")] = None,
) -> int:
    """Everything a change has to pass."""
    return commands.test_all(console(), only or [])


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Figures; all by default.")] = None,
    rounds: Annotated[int, typer.Option(help="Interleaved rounds.", min=1)] = 5,
    out: Out = None,
) -> int:
    """Measure the figures of merit."""
    return commands.bench(console(), names or [], rounds, out)


@app.command()
def accuracy(
    names: Annotated[list[str] | None, typer.Argument(help="Functions; all by default.")] = None,
    points: Annotated[
        int, typer.Option(help="fp32 numbers per function.", min=1000, max=1 << 32)
    ] = 40_000_000,
) -> int:
    """Measure the functions' errors for docs/numerics.md; with fewer points only print them."""
    from regress.accuracy import accuracy as measure  # noqa: PLC0415 - needs the built cmodel

    return measure(console(), names or [], points)


@app.command()
def optable(
    ops: Annotated[list[str] | None, typer.Argument(help="Ops of op_db; all by default.")] = None,
    dtype: Annotated[list[str] | None, typer.Option(help="A type; all by default.")] = None,
    samples: Annotated[int, typer.Option(help="At most so many per op and type.", min=1)] = 10,
    seed: Seed = 1,
    jobs: Annotated[int, typer.Option("-j", "--jobs", help="Processes.", min=1)] = 2,
) -> int:
    """Run torch's own op samples on the cmodel; all of them write docs/ops.md."""
    return commands.optable(
        console(), ops or [], dtypes=dtype or [], samples=samples, seed=seed, jobs=jobs
    )


@app.command()
def architectures(
    names: Annotated[
        list[str] | None, typer.Argument(help="Architectures; all by default.")
    ] = None,
    seed: Seed = 1,
) -> int:
    """Run the ops of transformers' architectures on the cmodel; all write docs/architectures.md."""
    return commands.architectures(console(), names or [], seed)


nightly_cli.mount(app)


def main() -> None:
    """Entry point of the installed script."""
    mend_streams()
    sys.exit(invoke(app))


if __name__ == "__main__":
    main()
