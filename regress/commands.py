# SPDX-License-Identifier: Apache-2.0
"""What each command of the command line does: check the input, do the work, print the outcome.

Every function returns the exit status. Modules that take long to import are imported where used.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

from rich.console import Console

from driver.backend import BACKENDS
from driver.config import load_config, load_configs
from driver.errors import InputError
from driver.filelist import FILELIST, read_filelist
from driver.reproduce import parse_op_range
from driver.results import (
    PROGRAM,
    RESULT_FILE,
    ArrayModel,
    BackendName,
    BuildKind,
    Mode,
    RunResult,
    RunSpec,
    Shard,
    SimulatorName,
    Waves,
)
from driver.test_info import TestInfo
from regress.console import print_line
from regress.folder import keep_text
from regress.options import (
    CaptureOptions,
    LintOptions,
    ReplayOptions,
    RunOptions,
    UnitOptions,
)
from regress.paths import CONFIG_FILE, OUT, ROOT
from regress.progress import ProgressBar
from regress.run import RunOutcome, list_tests, run, runs_in, test_named
from regress.run_report import curves, roofline
from regress.run_report import text as report
from regress.units import MUTANTS, known_units, run_unit, unit_command

_COMMAND_LINE = "command line"
_REPLAY = "replay"
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9._]+")


def _spec(
    options: ReplayOptions, test: str, folder: str, name_filter: str | None = None
) -> RunSpec:
    """The spec, with every name checked; InputError for the first that is wrong. Part of a test
    has a default folder of its own."""
    config = "default" if options.config is None else options.config
    load_config(options.config_file, config)
    backend = _one_of("BACKEND", options.backend, get_args(BackendName))
    waves = _one_of("WAVES", options.waves, get_args(Waves))
    suffix = "" if options.op is None else f"-op{options.op}"
    suffix += "" if name_filter is None else f"-{_NO_FILE_NAME.sub('-', name_filter)}"
    op, first = (None, None) if options.op is None else parse_op_range(options.op)
    out = (options.out or OUT / f"{folder}-{options.seed}{suffix}").absolute()
    if backend == "rtl":
        _check_compiler()
        _check_no_space("repository", ROOT)
        _check_no_space("OUT", out)
    return RunSpec.model_validate(
        {
            "test": test,
            "config": config,
            "config_file": options.config_file.absolute(),
            "seed": options.seed,
            "backend": backend,
            "waves": waves,
            "out": out,
            "capsules": {},
            "op_filter": op,
            "op_from": first,
            "timeout_s": options.timeout,
            "modes": _modes(options, ("isolated",)),
            "array": _one_of("ARRAY", options.array, get_args(ArrayModel)),
            "variant": _one_of("VARIANT", options.variant, get_args(BuildKind)),
            "simulator": _one_of("SIM", options.sim, get_args(SimulatorName)),
            "mutant": options.mutant,
            "allow_cpu": options.allow_cpu,
            "custom_ops": options.custom_ops and options.custom_ops.absolute(),
        }
    )


def _modes(options: ReplayOptions, own: tuple[Mode, ...]) -> tuple[str, ...]:
    """The mode asked for, or the test's own."""
    return (_one_of("MODE", options.mode, get_args(Mode)),) if options.mode else own


def _one_of(field: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise InputError(_COMMAND_LINE, field, value or "nothing", f"one of {', '.join(known)}")
    return value


def _check_compiler() -> None:
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "c++"]
    if not any(shutil.which(name) for name in names):
        raise InputError("PATH", " or ".join(names), "nothing", "a C++ compiler (g++ 11 or newer)")


def _check_no_space(name: str, path: Path) -> None:
    if any(character.isspace() for character in str(path)):
        raise InputError(_COMMAND_LINE, name, path, "no space in it (simulator builds break)")


def _by_number(test: str, options: RunOptions) -> RunOptions:
    """The options with the number of the check that `--op` names."""
    if options.op is None or not options.op.isidentifier():
        return options
    checks = test_named(test, list_tests()).checks
    if options.op not in checks:
        expected = ", ".join(["an op's number, or FIRST..LAST as 3..7", *checks])
        raise InputError(_COMMAND_LINE, "--op", options.op, expected)
    return replace(options, op=str(checks.index(options.op)))


def run_test(console: Console, name: str, options: RunOptions) -> int:
    """`npu-cosim run`."""
    options = _by_number(name, options)
    draft = _spec(options, "draft", "draft")  # what is wrong is said before anything is started
    shard = None if options.shard is None else Shard.parse(options.shard)
    test = test_named(name, list_tests())
    _one_of("BACKEND", draft.backend, test.backends)
    config = test.config if options.config is None else options.config
    load_config(options.config_file, config)
    capsules: dict[str, Path] = {}
    checkpoint = options.checkpoint and options.checkpoint.absolute()
    if checkpoint is not None and not (test.workloads or test.has_model):
        raise InputError(_COMMAND_LINE, "CHECKPOINT", checkpoint, f"none: {name} has no model")
    if options.mode and not all(runs_in(test, mode) for mode in draft.modes):
        own_modes = ", ".join(test.modes)
        raise InputError(_COMMAND_LINE, "MODE", options.mode, f"{own_modes}, as {name} runs")
    if test.workloads:
        from regress.capsules import kept_capsules  # noqa: PLC0415 (numpy, safetensors)

        capsules = kept_capsules(
            test.workloads, options.seed, partial(print_line, console), checkpoint
        )
    own: dict[str, object] = {
        "config": config,
        "modes": _modes(options, test.modes),
        "capsules": capsules,
    }
    own |= {"shard": shard, "checkpoint": checkpoint, "name_filter": options.filter}
    spec = _spec(options, test.name, test.name, options.filter).model_copy(update=own)
    if options.shards is not None or options.resume:
        whole = {
            "FILTER": options.filter,
            "CUSTOM_OPS": options.custom_ops,
            "MUTANT": options.mutant,
        }
        for field, value in whole.items():
            if value is not None:
                raise InputError(_COMMAND_LINE, field, value, "a run that is not in shards")
        return _run_in_shards(console, spec, test, options)
    return _run(console, spec)


def _run_in_shards(console: Console, spec: RunSpec, test: TestInfo, options: RunOptions) -> int:
    from regress.nightly.shards import ShardOptions, run_sharded  # noqa: PLC0415 (SQLAlchemy)

    how = ShardOptions(options.shards, options.jobs, options.resume)
    done = run_sharded(console, spec, test, how)
    if done.result is not None:
        artefacts = [spec.out / RESULT_FILE, *_pictures(spec, done.result)]
        report.show(console, done.result, map(_shown, artefacts))
    return done.exit_code


def replay(console: Console, capsule: Path, options: ReplayOptions) -> int:
    """`npu-cosim replay`."""
    from driver.capture import load_capsule  # noqa: PLC0415 (numpy, safetensors)

    name = load_capsule(capsule).name
    spec = _spec(options, _REPLAY, f"{_REPLAY}-{name}")
    return _run(console, spec.model_copy(update={"capsules": {"capsule": capsule.absolute()}}))


def _run(console: Console, spec: RunSpec) -> int:
    outcome: RunOutcome = run(spec, ProgressBar(console, spec.test))
    artefacts = [*outcome.artefacts, *_pictures(spec, outcome.result)]
    report.show(console, outcome.result, map(_shown, artefacts))
    return outcome.exit_code


def _pictures(spec: RunSpec, result: RunResult) -> list[Path]:
    """The table of all ops, where they stand under the roof, and the curves of a training."""
    if not result.ops:
        return []
    kept = [keep_text(spec.out, report.OPS_FILE, report.all_ops(result))]
    figure = roofline.figure(result, load_config(spec.config_file, spec.config))
    if figure is not None:
        kept.append(keep_text(spec.out, roofline.FILE, figure))
    if result.curves:
        kept.append(keep_text(spec.out, curves.FILE, curves.figure(result)))
    return kept


def _shown(path: Path) -> str:
    """The path as short as it can be given from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def capture(console: Console, workload: str, options: CaptureOptions) -> int:
    """`npu-cosim capture`."""
    from driver.capture import save_capsule  # noqa: PLC0415 (numpy, safetensors)
    from driver.capture.store import check_replaceable  # noqa: PLC0415
    from regress import capsules  # noqa: PLC0415

    if options.out is not None:
        check_replaceable(options.out)  # recording takes minutes
    start = time.monotonic()
    with ProgressBar(console, workload) as bar:
        capsule = capsules.record(
            workload,
            options.seed,
            options.checkpoint,
            dtype=options.dtype,
            device=options.device,
            progress=bar.done,
        )
    target = options.out or OUT / "capsules" / f"{capsule.name}-{options.seed}"
    save_capsule(capsule, target)
    note = partial(print_line, console)
    size = sum(array.nbytes for array in capsule.data.values())
    note(f"{capsule.name}: {len(capsule.ops)} ops, {size / 1e6:.1f} MB of tensors")
    note(f"  hash {capsule.hash}, seed {options.seed}, {time.monotonic() - start:.1f} s")
    note(f"  {_shown(target.absolute())}")
    note(f"  {shlex.join([_shown(ROOT / PROGRAM), 'replay', _shown(target.absolute())])}")
    return 0


def unit(console: Console, name: str, options: UnitOptions) -> int:
    """`npu-cosim unit`."""
    command = unit_command(name, options.vectors, options.seed)
    _check_compiler()
    _check_no_space("repository", ROOT)
    return run_unit(name, command, partial(print_line, console))


def list_all(console: Console) -> int:
    """`npu-cosim tests`."""
    from regress.capsules import known_workloads  # noqa: PLC0415 (numpy, safetensors)

    note = partial(print_line, console)
    tests = list_tests()
    width = max(len(test.name) for test in tests)
    note("tests (make SIM=verilator TEST=…)")
    for test in tests:
        note(f"  {test.name:{width}}  {test.summary} [{', '.join(test.backends)}]")
    groups = {
        "unit benches (make unit TEST=…)": (*known_units(), MUTANTS),
        "workloads (WORKLOAD=)": known_workloads(),
        "configurations (CONFIG=)": tuple(load_configs(CONFIG_FILE)),
        "backends (BACKEND=)": tuple(name for name in BACKENDS if name in get_args(BackendName)),
    }
    for title, names in groups.items():
        note(f"{title}: {', '.join(names)}")
    return 0


def generate(console: Console) -> int:
    """`npu-cosim gen`."""
    from regress.generate import write  # noqa: PLC0415 (the SystemRDL compiler)

    note = partial(print_line, console)
    for path in write():
        note(f"wrote {path}")
    note("generated files are up to date")
    return 0


def generated_is_fresh(console: Console) -> int:
    """`npu-cosim gen-check`."""
    from regress.generate import COMMAND, stale  # noqa: PLC0415 (the SystemRDL compiler)

    note = partial(print_line, console)
    outdated = sorted(stale())
    for path in outdated:
        note(f"{path}: out of date with its source; run `{COMMAND}` and commit the result")
    if not outdated:
        note("generated files are up to date")
    return 1 if outdated else 0


def registers(console: Console, out: Path | None) -> int:
    """`npu-cosim regs`."""
    from regress.gen_registers import write_html  # noqa: PLC0415 (the SystemRDL compiler)

    target = out or ROOT / "build" / "regs"
    write_html(target)
    print_line(console, f"open {_shown(target.absolute() / 'index.html')}")
    return 0


def reformat(console: Console) -> int:
    """`npu-cosim format`."""
    from regress import lint  # noqa: PLC0415 (the SystemRDL compiler)

    problems = lint.reformat()
    if problems:
        print_line(console, problems)
    return 1 if problems else 0


def lint(console: Console, options: LintOptions) -> int:
    """`npu-cosim lint`: everything, or the RTL of one configuration by both front ends."""
    if options.config is None:
        return checks(console, ["lint"])
    from regress.front_ends import slang_problems, verilator_problems  # noqa: PLC0415 (pyslang)

    config = load_config(options.config_file, options.config)
    sources = read_filelist(config.filelist or FILELIST)
    addresses = ("MemBase", "MemLimit")  # 64 bits, which a front end takes no number of
    given = {name: x for name, x in config.rtl_parameters().items() if name not in addresses}
    found = {
        "verilator": verilator_problems(given, sources=sources),
        "slang": slang_problems(given, sources),
    }
    for tool, problems in found.items():
        print_line(console, f"{tool} of {config.name}: {problems or 'nothing to say'}")
    return 1 if any(found.values()) else 0


def checks(console: Console, only: list[str]) -> int:
    """`npu-cosim test`, and `lint` and `types` of it."""
    from regress.check.runner import run_steps  # noqa: PLC0415 (the SystemRDL compiler)

    return run_steps(console, only, sys.stdout.isatty())
