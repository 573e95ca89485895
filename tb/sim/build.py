# SPDX-License-Identifier: Apache-2.0
"""Turns a BuildSpec into a simulator binary, once.

Two kinds of folder under the build root:

- `<label>-<variant>-<key>/`: a finished simulator; the key is the hash of sources in order,
  parameters, flags, and tool versions. It is filled beside its final place and renamed, so a folder
  with that name is complete. Never changed afterwards; one whose binary has another hash than when
  it was linked is made anew.
- `family-<key>/`: the generated C++ of builds with the same parameters and flags, whatever their
  RTL, under one lock: never two builders in one folder. The counts of a profile-guided
  build lie there.
- `objects/`: compiled files by content, for all builds: after an edit only the C++ that changed is
  compiled.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from driver.errors import InfrastructureError
from tb.sim.compile import GeneratedModel, ProfileStage, compile_all
from tb.sim.objects import ObjectStore, digest_of, is_intact, run_compiler
from tb.sim.plan import COLLECT, ROOT, USE, BuildPlan, make_plan
from tb.sim.progress import BuildProgress
from tb.sim.rewrite.layout import keep_in_place
from tb.sim.rewrite.leading_zeros import count_leading_zeros
from tb.sim.rewrite.processes import keep_processes
from tb.sim.rewrite.references import pass_by_reference
from tb.sim.rewrite.traces import cut_traces
from tb.sim.rewrite.triggers import pack_triggers
from tb.sim.spec import BuildSpec, BuiltModel
from tb.sim.verilate import run_verilator

log = logging.getLogger(__name__)

_LOCK_TIMEOUT_S = 1800
_ATTEMPTS = 3
_BINARY = "npu_sim"
_LAYOUT = "layout.json"
_TRACES = "traces.json"
_PROCESSES = "processes.json"
_MANIFEST = "build.json"
_DIGEST = "npu_sim.sha256"


def verilate(plan: BuildPlan, folder: Path) -> None:
    """The generated C++ of `plan`, alone in `folder`. Errors: run_verilator."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run_verilator(plan.verilator, plan.arguments, plan.sources, folder)


def _link(plan: BuildPlan, objects: Sequence[Path], folder: Path, *flags: str) -> None:
    linker = replace(plan.compiler, command=plan.compiler.command[-1:])
    names = [str(path) for path in objects]
    run_compiler(linker, ["-o", _BINARY, *flags, *names, *plan.link_flags], folder)


class _SourcesChanged(Exception):
    """What was built is not what the key was made of."""


def _finish(plan: BuildPlan, objects: Sequence[Path], built: BuiltModel) -> None:
    """Link beside the final folder, then rename."""
    if make_plan(plan.spec).key() != built.key:
        raise _SourcesChanged
    unfinished = built.folder.with_name(f".{built.folder.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    _link(plan, objects, unfinished)
    digest = digest_of(unfinished / _BINARY)
    (unfinished / _DIGEST).write_text(digest + "\n")
    (unfinished / _MANIFEST).write_text(built.to_json() + "\n")
    unfinished.rename(built.folder)


def build(spec: BuildSpec) -> BuiltModel:
    """The simulator of `spec`, built now unless it exists.

    InputError: sources that do not elaborate, a path with a space, an unknown variant.
    InfrastructureError: no Verilator, no compiler, a full disk, another builder that never ends.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _built(make_plan(spec))
        except _SourcesChanged:
            log.info("%s: the sources changed while they were read; once more", spec.label)
    raise InfrastructureError(f"build {spec.label}: the sources change while they are read")


def _built(plan: BuildPlan) -> BuiltModel:
    spec, key = plan.spec, plan.key()
    root = spec.build_root
    folder = root / f"{spec.label}-{spec.variant}-{key}"
    built = BuiltModel(folder / _BINARY, folder, key, spec.variant, True, 0, 0)
    if is_intact(folder / _BINARY, folder / _DIGEST):
        return built
    family = root / f"family-{plan.family_key()}"
    try:
        family.mkdir(parents=True, exist_ok=True)
        with FileLock(family / "lock", timeout=_LOCK_TIMEOUT_S):
            if is_intact(folder / _BINARY, folder / _DIGEST):
                return built
            if folder.exists():
                log.info("the build %s is damaged: made anew", folder.name)
                shutil.rmtree(folder)
            return _build_locked(plan, family, built)
    except Timeout as error:
        raise InfrastructureError(f"another build holds {family} for too long") from error
    except OSError as error:
        raise InfrastructureError(f"build of {folder.name} failed: {error}") from error


def _build_locked(plan: BuildPlan, family: Path, built: BuiltModel) -> BuiltModel:
    progress = BuildProgress(f"{plan.spec.label} ({plan.spec.variant})")
    progress("Verilator reads the RTL")
    generated = family / "generated"
    verilate(plan, generated)
    if not plan.variant.trace:
        _make_faster(generated)
    elif why := cut_traces(generated, family / _TRACES):
        log.info("after an edit, all that writes waves is compiled again: %s", why)
    keep_processes(generated, family / _PROCESSES)
    root_header = generated / f"{ROOT}.h"
    headers = sorted(generated.glob("*.h"))
    model = GeneratedModel(generated, keep_in_place(root_header, headers, family / _LAYOUT))
    progress("verilated")
    version = plan.verilator.version
    store = ObjectStore(family.parent / "objects", plan.compiler, version, plan.spec.jobs)
    stage = None
    if plan.variant.profiled:
        stage = _profiled(plan, model, store, progress)
    objects = compile_all(plan, model, store, progress, stage)
    finished = replace(
        built, cached=False, objects_compiled=store.compiled, objects_reused=store.reused
    )
    _finish(plan, objects, finished)
    store.drop_old()
    return finished


def _make_faster(generated: Path) -> None:
    """Rewrite what runs in every cycle. A model that can record waves goes without: it would take
    longer to build, and what it writes takes most of its time."""
    if not pack_triggers(generated):
        log.info("not only rising edges: the clocks of this RTL are compared one by one (ADR 22)")
    pass_by_reference(generated)
    count_leading_zeros(generated)


def _profiled(
    plan: BuildPlan, model: GeneratedModel, store: ObjectStore, progress: BuildProgress
) -> ProfileStage:
    """The second stage of a profile-guided build, after the first: a simulator that counts has run
    the training programs, and left its counts."""
    from tb.training import train  # noqa: PLC0415 - only this build runs its simulator

    if plan.spec.config is None:
        raise InfrastructureError(f"build {plan.spec.label}: no configuration to train it for")
    folder = model.folder.with_name("profile")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    stage = ProfileStage(COLLECT, folder)
    objects = compile_all(plan, model, store, progress, stage)
    _link(plan, objects, folder, *COLLECT)
    progress("training")
    train(folder / _BINARY, plan.spec.config)
    if not any(folder.glob("*.gcda")):
        raise InfrastructureError("the training programs left no profile: is the compiler g++?")
    return ProfileStage(USE, folder)


if __name__ == "__main__":
    from tb.sim.cli import main

    sys.exit(main())
