# SPDX-License-Identifier: Apache-2.0
"""The command line `npu-cosim`: names, options and exit statuses. The work is done elsewhere.

Exit status: 0 pass, 1 a verdict failed, 2 bad input, 3 infrastructure, 130 interrupted.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib.metadata import version
from typing import Annotated

import typer

from driver.op_survey import DTYPES
from regress import commands, compare, nightly_cli, op_info, serve
from regress.architectures import SurveyRequest, run_architectures
from regress.bench import run_bench
from regress.console import console
from regress.invoke import invoke, mend_streams
from regress.op_survey import OpSurveyRequest, run_op_survey
from regress.options import (
    BenchOptions,
    Capsule,
    CaptureOptions,
    LintOptions,
    OpSurveyOptions,
    Out,
    PowerOptions,
    ReplayOptions,
    RunOptions,
    Seed,
    SynthesisOptions,
    Test,
    UnitOptions,
    given,
    with_options,
)
from regress.paths import OUT

app = typer.Typer(
    name="npu-cosim",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        console().print(f"npu-cosim {version('npu-cosim')}", highlight=False)
        raise typer.Exit


@app.callback()
def program(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """PyTorch workloads through the RTL of an NPU, checked bit for bit."""


@app.command()
@with_options(RunOptions)
def run(options: RunOptions, test: Test) -> int:
    """Run a test and judge every op of it."""
    return commands.run_test(console(), test, options)


@app.command()
@with_options(ReplayOptions)
def replay(options: ReplayOptions, capsule: Capsule) -> int:
    """Run the ops of a capsule."""
    return commands.replay(console(), capsule, options)


@app.command()
@with_options(CaptureOptions)
def capture(
    options: CaptureOptions,
    workload: Annotated[str, typer.Argument(help="A name, or the path of a Python file.")],
) -> int:
    """Record a workload into a capsule."""
    return commands.capture(console(), workload, options)


@app.command()
@with_options(UnitOptions)
def unit(
    options: UnitOptions,
    name: Annotated[str, typer.Argument(help="A unit bench; `npu-cosim tests` lists them.")],
) -> int:
    """Run an RTL unit bench."""
    return commands.unit(console(), name, options)


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
    """Check that the generated files match their sources."""
    return commands.generated_is_fresh(console())


@app.command()
def regs(out: Out = None) -> int:
    """Write the browsable register reference."""
    return commands.registers(console(), out)


@app.command()
@with_options(LintOptions)
def lint(options: LintOptions) -> int:
    """Check style, licences and file lengths; lint the RTL."""
    return commands.lint(console(), options)


@app.command("format")
def reformat() -> int:
    """Format the Python and C++ sources."""
    return commands.reformat(console())


@app.command()
def types() -> int:
    """Check the static types of the Python packages."""
    return commands.checks(console(), ["types"])


@app.command()
def test(
    only: Annotated[list[str] | None, typer.Argument(help="Steps to run; all by default.")] = None,
) -> int:
    """Run every check that a change has to pass."""
    return commands.checks(console(), only or [])


@app.command()
@with_options(BenchOptions)
def bench(
    options: BenchOptions,
    names: Annotated[list[str] | None, typer.Argument(help="Figures; all by default.")] = None,
) -> int:
    """Measure the figures of merit."""
    out = (options.out or OUT / "bench").absolute()
    return run_bench(console(), names or [], options.rounds, out)


@app.command()
def accuracy(
    names: Annotated[list[str] | None, typer.Argument(help="Functions; all by default.")] = None,
    points: Annotated[
        int, typer.Option(help="fp32 numbers per function.", min=1000, max=1 << 32)
    ] = 40_000_000,
) -> int:
    """Measure the errors of functions. With the default points, docs/numerics.md is written."""
    from regress.accuracy import accuracy as measure  # noqa: PLC0415 - needs the built cmodel

    return measure(console(), names or [], points)


@app.command()
@with_options(OpSurveyOptions)
def op_survey(
    options: OpSurveyOptions,
    ops: Annotated[list[str] | None, typer.Argument(help="Ops of op_db; all by default.")] = None,
) -> int:
    """Run torch's own op samples on the cmodel. A run of all ops writes docs/ops.md."""
    dtypes = tuple(options.dtype or ()) or DTYPES
    asked = OpSurveyRequest(
        tuple(ops or ()), dtypes, options.samples, options.seed, options.jobs, options.record
    )
    return run_op_survey(console(), asked)


@app.command()
def architectures(
    names: Annotated[
        list[str] | None, typer.Argument(help="Architectures; all by default.")
    ] = None,
    seed: Seed = 1,
) -> int:
    """Run the models of transformers on the cmodel. A run of all writes docs/architectures.md."""
    return run_architectures(console(), SurveyRequest(tuple(names or ()), seed))


@app.command()
@with_options(SynthesisOptions)
def synth(options: SynthesisOptions) -> int:
    """Count what the netlist costs: cells, registers, memories, multipliers, longest paths."""
    from regress.synthesis import run_synthesis  # noqa: PLC0415 - only here

    return run_synthesis(console(), options)


@app.command()
@with_options(PowerOptions)
def power(
    options: PowerOptions,
    ops: Annotated[
        list[str] | None,
        typer.Argument(help="Ops of TEST=ops; one per engine.", parser=given("an op of TEST=ops")),
    ] = None,
) -> int:
    """Count which registers toggle in which op, and which clocks stand still."""
    from regress.power import run_power  # noqa: PLC0415 - only here

    asked = (options.config, options.config_file, options.out)
    return run_power(console(), ops or [], *asked)


nightly_cli.mount(app)
op_info.mount(app)
compare.mount(app)
serve.mount(app)


def main() -> None:
    """Entry point of the installed script."""
    mend_streams()
    sys.exit(invoke(partial(app, sys.argv[1:] or ["--help"], prog_name="npu-cosim")))


if __name__ == "__main__":
    main()
