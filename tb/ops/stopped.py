# SPDX-License-Identifier: Apache-2.0
"""An op in which the device, or the machinery around it, stopped: what is known, and its row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from driver.errors import InfrastructureError, VerdictError
from driver.results import OpRow, RunResult, RunSpec
from driver.runtime.torch_types import NPU_TYPES
from tb.checks import no_element
from tb.ops.case import Case
from tb.ops.rows import row_about


class OpStopped(Exception):
    """No verdict on `case`, and no op can run after it on this device.

    `error`: a VerdictError when the device is to blame (it hangs, an assertion failed), an
    InfrastructureError when something around it is.
    """

    def __init__(self, case: Case, error: VerdictError | InfrastructureError) -> None:
        self.case, self.error = case, error
        super().__init__(str(error))


class RunBroken(InfrastructureError):
    """A run that ended before its last op through no fault of the device; `result` has the ops
    that were finished, `cause` says what happened."""

    def __init__(self, result: RunResult, cause: InfrastructureError) -> None:
        self.result, self.cause = result, cause
        super().__init__(str(cause))


@contextmanager
def naming(case: Case) -> Iterator[None]:
    """Whatever stops the devices in here is an OpStopped of this case."""
    try:
        yield
    except (VerdictError, InfrastructureError) as error:
        raise OpStopped(case, error) from error


def stopped_row(stop: OpStopped, spec: RunSpec) -> OpRow:
    """The row of an op in which the device stopped: the RTL failed, and nothing was compared."""
    case = stop.case
    found = next((NPU_TYPES.get(tensor.dtype) for _, tensor in case.tensors()), None)
    return row_about(
        case,
        spec.backend,
        dtype="" if found is None else found.name.lower(),
        status="fail",
        blame="rtl",
        failure=no_element(str(stop.error)),
    )


def place_of(case: Case) -> str:
    """Which op of the test, for a message."""
    source = f" ({case.source})" if case.source else ""
    return f"op {case.index}, {case.op} in {case.module}{source}"
