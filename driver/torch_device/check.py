# SPDX-License-Identifier: Apache-2.0
"""Check mode: every op is judged as it runs, and the first wrong one stops the program.

Light, as every process that imports torch has it: the judge is imported with the first op checked.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, NoReturn

import torch

from driver.capture.format import HOST_READ
from driver.torch_device.observers import OBSERVERS, Finish, FinishWhole, RowRun
from driver.torch_device.origins import Origin, Origins

CAPSULES = Path("npu_check")


class WrongResult(RuntimeError):
    """An op of the NPU computed something that the judge does not admit."""


class NothingChecked(RuntimeError):
    """A check ended without one element compared: it has shown nothing."""


@dataclass
class CheckReport:
    """What has been checked so far."""

    ops: int = 0
    elements: int = 0
    """Elements compared within a derived bound."""
    unbounded: int = 0
    """Elements of judged ops for which no bound is known: they were not compared."""
    wrong: list[str] = field(default_factory=list)
    """What was wrong, also where the program caught the WrongResult that said so."""
    not_judged: Counter[str] = field(default_factory=Counter)
    """What computed values that no bound covers, and how often: a row without a bound for such a
    call, an op on the CPU, a conversion by the host."""
    decomposed: Counter[str] = field(default_factory=Counter)
    """Ops without a row, and how often: the smaller ones that they are made of were judged."""
    whole: Counter[str] = field(default_factory=Counter)
    """Of those, the elements that were compared with CPU torch besides."""
    refused_by_cpu: Counter[str] = field(default_factory=Counter)
    """Of those, the calls that CPU torch answers with an error."""
    reference_outside_bound: Counter[str] = field(default_factory=Counter)
    """Ops of which CPU torch's own answer is outside its bound, and the NPU's is not."""

    @property
    def ok(self) -> bool:
        """Whether anything was compared, and nothing was wrong."""
        return self.elements > 0 and not self.wrong

    def __str__(self) -> str:
        text = f"{self.ops} ops checked, {self.elements} elements within their bounds"
        if not self.elements:
            text = f"nothing was checked: {self.ops} ops, none with an element compared"
        if self.wrong:
            text += f"; {len(self.wrong)} wrong, of which the first: {self.wrong[0]}"
        if self.unbounded:
            text += f"; {self.unbounded} elements without a bound"
        counted = {
            "judged by their smaller ops": self.decomposed,
            "refused by CPU torch": self.refused_by_cpu,
            "not judged": self.not_judged,
            "where CPU torch is outside its bound": self.reference_outside_bound,
        }
        for what, ops in counted.items():
            if ops:
                named = ", ".join(f"{op} ({count})" for op, count in sorted(ops.items()))
                text += f"; {what}: {named}"
        return text


class Check:
    """Judges every op of all devices inside a `with` block, forward and backward."""

    def __init__(self, folder: str | Path = CAPSULES) -> None:
        """`folder`: where the capsule of the first wrong op goes."""
        self.folder = Path(folder)
        self.report = CheckReport()
        self.lock = Lock()
        self._origins = Origins()

    def __enter__(self) -> CheckReport:
        if any(isinstance(other, Check) for other in OBSERVERS):
            raise RuntimeError("npu: a check is running already")
        self._origins.start()
        OBSERVERS.append(self)
        return self.report

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        OBSERVERS.remove(self)
        self._origins.stop()
        if kind is None and self.report.wrong:
            raise WrongResult(self.report.wrong[0])
        if kind is None and not self.report.ok:
            raise NothingChecked(f"npu: {self.report}")

    def begin(self, run: RowRun) -> Finish | None:
        """See Observer. A read by the host computes nothing."""
        if run.row == HOST_READ:
            return None
        from driver.torch_device.judging import CheckedRow  # noqa: PLC0415 (see above)

        return CheckedRow(self, run).judge

    def not_seen(self, what: str) -> None:
        """See Observer."""
        with self.lock:
            self.report.not_judged[what] += 1

    def take_apart(
        self, op: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> FinishWhole:
        """See Observer."""
        from driver.torch_device.whole_ops import WholeOp  # noqa: PLC0415 (see above)

        return WholeOp(self, op, args, kwargs).judge

    def refuse(self, text: str) -> NoReturn:
        """WrongResult, which the report keeps."""
        with self.lock:
            self.report.wrong.append(text)
        raise WrongResult(text)

    def origin(self) -> Origin:
        """Of the op that this thread is running."""
        return self._origins.here()


def check_whole_process() -> None:
    """NPU_CHECK=1: until the process ends, and say then what was checked. The process fails where
    something was wrong, though the program caught the error, and where ops ran and nothing of them
    was checked."""
    report = Check().__enter__()

    def end() -> None:
        sys.stderr.write(f"[NPU] {report}\n")
        if report.wrong or (report.ops and not report.ok):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)  # nothing else changes the status here

    atexit.register(end)
