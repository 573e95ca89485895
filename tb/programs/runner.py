# SPDX-License-Identifier: Apache-2.0
"""Tests that run a PyTorch program on device "npu": each check of the program is a row.

Owns which backend is behind the device while the test runs; knows no program.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Literal, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from driver.config import HwConfig
from driver.errors import InfrastructureError, InputError, VerdictError
from driver.reproduce import reproduce_line
from driver.results import (
    BackendName,
    Blame,
    Curve,
    LedgerRow,
    OpEvent,
    OpRow,
    RunResult,
    RunSpec,
    Site,
)
from driver.torch_device.pool import POOL
from driver.torch_device.settings import CONFIG_FILE, DeviceSettings
from tb.checks import check_row, checks_result
from tb.ops.runner import RunObserver
from tb.ops.stopped import RunBroken

_LOG = logging.getLogger(__name__)
_Place = Literal["npu", "view", "host"]
_PLACES: dict[_Place, str] = {
    "npu": "computed on the device",
    "view": "moves no data",
    "host": "copied to the host",
}


class DeviceProgram(Protocol):
    """What a test module's `program(spec, config)` returns."""

    planned: int
    """How many checks there are."""
    ledger: OpLedger
    curves: list[Curve]
    notes: list[str]

    def checks(self) -> Iterator[OpRow]:
        """The checks in order, as they are done."""
        ...


def run_program(
    spec: RunSpec, config: HwConfig, module: ModuleType, progress: RunObserver
) -> RunResult:
    """Run all checks. InputError: a part of them is asked for; they are one training."""
    if spec.op_filter is not None or spec.shard is not None:
        raise InputError("command line", "op", "a part", f"all checks: {spec.test} is one program")
    if spec.config_file.resolve() != CONFIG_FILE.resolve():
        raise InputError("command line", "config-file", spec.config_file, str(CONFIG_FILE))
    program: DeviceProgram = module.program(spec, config)
    progress.plan(program.planned)
    rows = []
    try:
        for row in program.checks():
            rows.append(row)
            progress.op(OpEvent.of(row))
    except DeviceStopped as stop:
        name = f"check {len(rows)}, and those behind it, did not end"
        blame: Blame = "rtl" if stop.where == "rtl" else "lowering"
        rows.append(
            check_of(
                len(rows), name, spec, compared=0, where=stop.where, failure=str(stop), blame=blame
            )
        )
        progress.op(OpEvent.of(rows[-1]))
        return _whole(spec, checks_result(spec, rows))
    except (RuntimeError, InfrastructureError) as error:  # torch's: memory that does not suffice
        _LOG.exception("check %d", len(rows))
        said = str(error).strip().split("\n", maxsplit=1)[0]
        text = f"check {len(rows)}: {type(error).__name__}: {said}"
        result = checks_result(spec, rows, (len(rows), text))
        raise RunBroken(_whole(spec, result), InfrastructureError(text)) from error
    assert len(rows) == program.planned, f"{len(rows)} checks of {program.planned}"
    fields = {
        "ledger": program.ledger.rows(),
        "curves": tuple(program.curves),
        "notes": tuple(program.notes),
    }
    return RunResult(**{**dict(_whole(spec, checks_result(spec, rows))), **fields})


def _whole(spec: RunSpec, result: RunResult) -> RunResult:
    """Repeated as a whole: no check runs alone."""
    return result.model_copy(update={"reproduce": reproduce_line(spec)})


class DeviceStopped(Exception):
    """A command failed on the device behind a program, or the device hangs."""

    def __init__(self, where: BackendName, error: VerdictError) -> None:
        self.where = where
        super().__init__(str(error))


@contextmanager
def device_behind(backend: BackendName, spec: RunSpec) -> Iterator[None]:
    """Device "npu" is this backend, opened anew and empty; afterwards what it was before. Of what
    the environment says nothing counts. DeviceStopped: the device is to blame."""
    before = POOL.settings
    POOL.close()
    rtl = {"seed": spec.seed, "sim_log": spec.out / "sim.log"} if backend == "rtl" else {}
    POOL.settings = DeviceSettings(backend=backend, config=spec.config, options=rtl)
    try:
        yield
    except VerdictError as error:
        raise DeviceStopped(backend, error) from error
    finally:
        POOL.close()
        POOL.settings = before


def check_of(
    index: int,
    name: str,
    spec: RunSpec,
    *,
    compared: int,
    where: BackendName | None = None,
    mismatches: int | None = None,
    error: float | None = None,
    bound: float | None = None,
    failure: str = "",
    blame: Blame = "lowering",
) -> OpRow:
    """One check as a row; it fails with the text of `failure`."""
    where = where or spec.backend
    row = check_row(index, name, spec.test, compared, failure or None, where=where, blame=blame)
    found = {"rtl_vs_cmodel_mismatches": mismatches, "torch_max_error": error, "torch_bound": bound}
    return row.model_copy(update=found)


class OpLedger(TorchDispatchMode):
    """Inside a `with` block, counts where the ops of device "npu" run, backward ops included."""

    def __init__(self, where: BackendName) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._where = where
        self._counts: Counter[tuple[str, _Place]] = Counter()
        self._on_cpu: Counter[str] = Counter()
        self._fallbacks: Counter[str] = Counter()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No compiler runs here; torch would import its own first."""
        return False

    def __enter__(self) -> OpLedger:
        self._fallbacks = Counter(torch.npu.cpu_fallbacks())  # type: ignore[attr-defined]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        after: Counter[str] = Counter(torch.npu.cpu_fallbacks())  # type: ignore[attr-defined]
        self._on_cpu = after - self._fallbacks

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        devices = {x.device.type for x in (*_tensors(args), *_tensors(made))}
        if "npu" in devices:
            place: _Place = "view" if func.is_view else "host" if "cpu" in devices else "npu"
            self._counts[str(func), place] += 1
        return made

    @property
    def on_npu(self) -> int:
        """How many ops the device computed."""
        computed = sum(n for (_, place), n in self._counts.items() if place == "npu")
        return computed - sum(self._on_cpu.values())

    def rows(self) -> tuple[LedgerRow, ...]:
        """The counts by op and place."""
        found = []
        for (op, place), count in sorted(self._counts.items()):
            there: Site = self._where if place == "npu" else place
            own = count - (self._on_cpu[op] if place == "npu" else 0)
            if own > 0:
                found.append(LedgerRow(op=op, where=there, count=own, reason=_PLACES[place]))
        for op, count in sorted(self._on_cpu.items()):
            found.append(LedgerRow(op=op, where="cpu", count=count, reason="allowed fallback"))
        return tuple(found)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, torch.Tensor):
            yield item
        elif isinstance(item, list | tuple):
            yield from _tensors(item)
