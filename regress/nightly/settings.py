# SPDX-License-Identifier: Apache-2.0
"""The section `nightly` of sim_config.yaml: which tests run when, with which limits.

Owns what the section may say; every mistake is one InputError that names file, field, value and
what was expected. Makes no plan.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from driver.config import refuse
from driver.errors import InputError
from driver.frozen import Frozen
from driver.results import MAX_SHARDS, ArrayModel, BackendName, Count, Mode, Name, Seed
from driver.strict_yaml import read_yaml
from driver.validation import explain

SECTION = "nightly"

_MAX_SEEDS = 100_000

Positive = Annotated[int, Field(ge=1, lt=1 << 63)]
Seconds = Annotated[float, Field(gt=0, le=7 * 86_400)]
Percent = Annotated[float, Field(ge=0, le=100)]


def _tuple(value: object) -> object:
    """YAML has lists only; the records are frozen."""
    return tuple(value) if isinstance(value, list) else value


_FromList = BeforeValidator(_tuple)
_NotEmpty = Field(min_length=1)


class JobLimits(Frozen):
    """When a job that does not end is ended."""

    wall_s: Seconds
    cycles: Positive
    """Simulated cycles, all ops of the job together."""


class Tolerances(Frozen):
    """How far a figure may move from its baseline: beyond it, a worse one makes the run red, and a
    better one asks to be recorded."""

    cycles_percent: Percent = 1.0
    utilisation_percent: Percent = 1.0
    coverage_percent: Percent = 1.0
    compared_percent: Percent = 5.0
    """Of what a job compared: benches that poll read more registers on a slower device."""


class TestEntry(Frozen):
    """A test as the tiers know it."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    test: Name
    """A test of tb/tests."""
    workload: Name | None = None
    """The workload whose ops the test `replay` runs."""
    mode: Mode | None = None
    """What the ops of a model work on, where the test leaves the choice."""
    array: ArrayModel = "rtl"
    """`behavioural`: models of array and fma, for speed."""
    allow_cpu: bool = False
    """Ops that the NPU has not got run on the CPU, and are counted."""
    shards: Annotated[int, Field(ge=1, le=MAX_SHARDS)] = 1
    """Jobs that share the test's ops."""
    limits: JobLimits | None = None
    """Own limits, where those of all tests do not fit."""
    areas: Annotated[tuple[str, ...], _FromList] = ()
    """Paths whose change makes the test more valuable; none: any source."""

    @model_validator(mode="after")
    def _replays(self) -> TestEntry:
        if (self.test == "replay") != (self.workload is not None):
            refuse("workload", self.workload or "nothing", "a workload for replay, and only there")
        if self.mode == "chained" and self.shards > 1:
            refuse("shards", self.shards, "1 for a chain: each op needs the results before it")
        return self


class TierEntry(Frozen):
    """A test in a tier: on which configurations, with how many seeds."""

    configs: Annotated[tuple[str, ...], _NotEmpty, _FromList]
    seeds: Annotated[int, Field(ge=1, le=_MAX_SEEDS)] = 1
    backends: Annotated[tuple[BackendName, ...], _NotEmpty, _FromList] = ("rtl",)
    skip: Annotated[str, Field(min_length=1)] | None = None
    """Planned, but not started, for this reason."""


class TlsFiles(Frozen):
    """PEM files with which runner, scheduler and workers identify themselves; paths are relative to
    the file of the settings. On a batch system, all machines see them."""

    ca: Annotated[str, _NotEmpty]
    """The authority that has signed every certificate."""
    certificate: Annotated[str, _NotEmpty]
    key: Annotated[str, _NotEmpty]


class ClusterConfig(Frozen):
    """Workers as jobs of a batch system, for `--scheduler slurm`; the rest is in dask's own
    ~/.config/dask/jobqueue.yaml."""

    workers: Positive = 4
    cores: Positive = 1
    """Jobs at once in each worker."""
    memory: str = "4GB"
    """Of each worker."""
    tls: TlsFiles | None = None
    """Required for every scheduler that is not on this machine: any client of a scheduler or a
    worker without it runs code there."""


class NightlyConfig(Frozen):
    """The section."""

    seed: Seed = 1
    """The first seed of every test."""
    jobs: Positive = 2
    """Jobs at once on one machine."""
    worker_retries: Count = 3
    """How often a job is given to another worker when the one that had it is lost."""
    cluster: ClusterConfig = ClusterConfig()
    limits: JobLimits
    tolerances: Tolerances = Tolerances()
    tests: dict[Name, TestEntry]
    tiers: dict[Name, dict[Name, TierEntry]]

    @model_validator(mode="after")
    def _known(self) -> NightlyConfig:
        for tier, uses in self.tiers.items():
            if not uses:
                refuse(f"tiers.{tier}", "nothing", "at least one test")
            for name in uses:
                if name not in self.tests:
                    refuse(f"tiers.{tier}.{name}", name, f"one of {', '.join(self.tests)}")
        return self


def load_nightly(path: Path) -> NightlyConfig:
    """The section of the file. InputError for any mistake in it, or when it is not there."""
    document = read_yaml(path)
    section = document.get(SECTION) if isinstance(document, dict) else None
    if not isinstance(section, dict):
        value = "nothing" if section is None else section
        raise InputError(path, SECTION, value, "keys with values")
    try:
        return NightlyConfig.model_validate(section)
    except ValidationError as error:
        field, value, expected = explain(error, NightlyConfig)
        raise InputError(path, f"{SECTION}.{field}", value, expected) from error
