# SPDX-License-Identifier: Apache-2.0
"""One sample: recorded as a model's ops are, and each op of it judged as a capsule's would be."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from driver.capture import Capsule, capture
from driver.capture.single import overload
from driver.config import HwConfig
from driver.errors import NpuError, UnsupportedOp
from driver.op_survey import DTYPES
from golden.backend import CmodelBackend
from golden.calls import base_name
from golden.judge import judge
from tb.op_survey.database import Call
from tb.ops.capsules import is_free
from tb.ops.case import recorded_case
from tb.ops.pair import DevicePair

Status = Literal["works", "decomposed", "refused", "wrong", "crash", "timeout", "other_type"]
_LONG = 300
_HELD = frozenset(getattr(torch, name) for name in DTYPES)


@dataclass(frozen=True)
class SampleResult:
    """What became of a sample. `ops`: refused ATen overloads, or why it could not be recorded."""

    status: Status
    core: bool = False
    """torch turned it into core ATen ops alone."""
    ops: tuple[str, ...] = ()
    text: str = ""


class _OverTime(Exception):
    """The sample's CPU time is used up."""


_AGAIN_S = 0.5
"""CPU time between two of them: more than the way out of a sample takes."""


class Judge:
    """A cmodel that samples run on, one after the other."""

    def __init__(self, config: HwConfig, seed: int, limit_s: float) -> None:
        """`limit_s`: CPU seconds per sample."""
        self._config, self._seed, self._limit_s = config, seed, limit_s
        self._pair = DevicePair(config, CmodelBackend(config, threads=1), None)

    def close(self) -> None:
        """Release the device."""
        self._pair.close()

    def outcome(self, call: Call, own: frozenset[str]) -> SampleResult | None:
        """The verdict on a sample of the op with these `own` names; None where torch refuses it."""
        try:
            with _cpu_limit(self._limit_s):
                return self._outcome(call, own)
        except _OverTime:
            return SampleResult("timeout", text=f"over {self._limit_s:g} s of CPU time")

    def _outcome(self, call: Call, own: frozenset[str]) -> SampleResult | None:
        try:
            capsule = capture(_Sample(call), (), name="sample", seed=self._seed)
        except NpuError as error:
            asked = _asked(call)
            if asked.other_type:
                return SampleResult("other_type", all(map(is_core, asked.names)))
            return SampleResult("refused", ops=("not recorded",), text=_line(error))
        except _OverTime:
            raise
        except Exception as error:
            return None if _fails(call) else SampleResult("crash", text=f"capture: {_line(error)}")
        asked = _asked(call)
        outcome = self._judged(capsule, own, asked.names)
        if outcome.status == "refused" and asked.other_type:
            return SampleResult("other_type", outcome.core)
        return outcome

    def _judged(self, capsule: Capsule, own: frozenset[str], asked: list[str]) -> SampleResult:
        names = [op.op for op in capsule.ops if not is_free(op)]
        core = all(map(is_core, asked))
        refused: list[tuple[str, str]] = []
        for index, op in enumerate(capsule.ops):
            if is_free(op):
                continue
            try:
                wrong = self._problem(capsule, index)
            except UnsupportedOp as error:
                refused.append((op.op, _line(error)))
            except _OverTime:
                raise
            except Exception as error:
                refusal = isinstance(error, NpuError)
                text = f"{op.op}: {type(error).__name__}: {_line(error)}"
                if not refusal:
                    return SampleResult("crash", core, (op.op,), text)
                refused.append((op.op, text))
            else:
                if wrong:
                    return SampleResult("wrong", core, (op.op,), f"{op.op}: {wrong}")
        if refused:
            return SampleResult("refused", core, tuple(dict(refused)), refused[0][1])
        itself = all(base_name(name) in own and name in asked for name in names)
        return SampleResult("works" if itself else "decomposed", core)

    def _problem(self, capsule: Capsule, index: int) -> str | None:
        """What is wrong with the NPU's answer to one op."""
        case = recorded_case(capsule, capsule.ops[index], index)
        result = self._pair.run(case, self._seed)
        if result.cmodel.fault is not None:
            return f"device fault: {result.cmodel.fault}"
        if result.overwritten:
            return (
                f"memory is overwritten where no result lies, first at {result.overwritten[0]:#x}"
            )
        if not any(view is not None and view.count for view in result.results):
            return "packets for nothing" if result.packets else None
        verdict = judge(case.call, result.cmodel.bits, None, self._config.array_size)
        if verdict.failure is None:
            return None
        shapes = " ".join("×".join(map(str, shape)) or "0-d" for shape in case.shapes())
        return (
            f"{case.dtype()} {shapes}: {verdict.blame} {verdict.failure.element}: "
            f"{verdict.failure.detail}"
        )


class _Sample(torch.nn.Module):
    """A call as a module, for the recorder."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call

    def forward(self) -> Any:
        return self._call()


class _Asked(TorchDispatchMode):
    """The overloads that torch asks a device for, and whether one has a tensor of a type that the
    NPU does not hold."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []
        self.other_type = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        result = func(*args, **(kwargs or {}))
        tensors = (x for x in tree_leaves((args, kwargs, result)) if isinstance(x, torch.Tensor))
        self.other_type |= any(x.dtype not in _HELD for x in tensors)
        return result


def _asked(call: Call) -> _Asked:
    """The ops of a call before any is taken apart for want of a row."""
    mode = _Asked()
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), mode:
        call()
    return mode


def is_core(op: str) -> bool:
    """Whether an overload ("aten.add.Tensor") is tagged as core ATen."""
    return torch.Tag.core in overload(op).tags


def _fails(call: Call) -> bool:
    """Whether torch itself refuses the call."""
    try:
        with torch.no_grad():
            call()
    except _OverTime:
        raise
    except Exception:
        return True
    return False


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= _LONG else f"{text[: _LONG // 2]} … {text[-_LONG // 2 :]}"


@contextmanager
def _cpu_limit(seconds: float) -> Iterator[None]:
    """Raise _OverTime after so much CPU time: the load of the machine does not count.

    Again and again: Python drops what is raised in a callback of its own, such as a weakref's.
    """

    def expired(_number: int, _frame: object) -> None:
        raise _OverTime

    former = signal.signal(signal.SIGPROF, expired)
    signal.setitimer(signal.ITIMER_PROF, seconds, max(seconds, _AGAIN_S))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)
