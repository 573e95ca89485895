# SPDX-License-Identifier: Apache-2.0
"""One row of the op table that a torch program ran, judged by golden; a capsule if it is wrong.

The only module of the driver that knows golden. It asks about the op that torch was asked for, with
copies of the arguments; what the row was lowered to is not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from driver.capture import Capsule, save_capsule
from driver.capture.format import HOST_READ
from driver.capture.single import Call, argument_kinds, single_call
from driver.custom_ops import replay_options
from driver.errors import DeviceFault, InputError
from driver.random_stream import FIRST_STREAM
from driver.runtime.torch_types import NPU_TYPES
from driver.torch_device.check import Check, WrongResult
from driver.torch_device.kept_memory import KeptMemory, span_copy
from driver.torch_device.observers import RowRun
from driver.torch_device.origins import Origin
from driver.torch_device.pool import POOL
from driver.torch_device.replaying import CmodelReplay
from driver.torch_device.tensors import device_of, is_npu
from golden.calls import OpCall
from golden.judge import judge, judge_results, supports
from golden.recorded import judge_record
from golden.tensors import tensor_bits
from golden.verdict import Verdict

Tensor = torch.Tensor


class CheckedRow:
    """A row about to run, its arguments kept as they are before it."""

    def __init__(self, check: Check, run: RowRun) -> None:
        wanted = argument_kinds(run.row)
        given = {name: value for name, value in run.kwargs.items() if name in wanted}
        self._check = check
        self._results = run.results
        self._given = {**dict(zip(wanted, run.args, strict=False)), **given}
        self._call = OpCall(
            run.row,
            [_on_host(value, kind) for value, kind in zip(run.args, wanted.values(), strict=False)],
            {name: _on_host(value, wanted[name]) for name, value in run.keywords(wanted).items()},
            run.stream or FIRST_STREAM,
        )
        written = [x for x in (*run.results, *self._left()) if x is not None]
        self._kept = KeptMemory(self._given, written)

    def _left(self) -> list[Tensor]:
        """The arguments that the op writes to and does not return."""
        return [self._given[name] for name in self._call.written()]

    def judge(self) -> None:
        """WrongResult with op, blame, element, place in the program and capsule. DeviceFault with
        the place where the op did not run."""
        results, left = self._results, self._left()
        try:
            POOL.wait_for_all()
        except DeviceFault as fault:
            raise fault.of(f"{fault.op} at {self._check.origin()}") from None
        changed = self._kept.changed()
        if changed is not None:
            self._check.refuse(
                f"npu: {self._call.op} is wrong (lowering) at {self._check.origin()}: {changed}"
            )
        made = [None if x is None else _on_host(x, "Tensor") for x in (*results, *left)]
        verdict = self._verdict(made, _array_size(results, left))
        report = self._check.report
        with self._check.lock:
            report.ops += 1
            if verdict is None:
                report.not_judged[self._call.op] += 1
                return
            if verdict.failure is None or verdict.reference_outside_bound:
                report.elements += verdict.elements_compared
            if verdict.reference_outside_bound:
                report.reference_outside_bound[self._call.op] += 1
            report.unbounded += verdict.comparison.unbounded
        if verdict.wrong is not None:
            self._check.refuse(self._text(verdict, made))

    def _verdict(self, made: Sequence[Tensor | None], array_size: int) -> Verdict | None:
        """None where golden has no answer of the types that the device has."""
        if not supports(self._call.op):
            return None
        with torch.random.fork_rng(devices=[]):  # the program's own numbers stay as they are
            return judge_results(self._call, made, array_size)

    def _text(self, verdict: Verdict, made: Sequence[Tensor | None]) -> str:
        origin = self._check.origin()
        try:
            capsule = self._capsule(origin)
            verdict = self._blamed(capsule, verdict, made)
            path = (self._check.folder / self._call.op).resolve()
            save_capsule(capsule, path)
            kept = f"to run it again: make replay CAPSULE={path}{replay_options(self._call.op)}"
        except InputError as error:
            kept = f"no capsule: {error}"
        failure = verdict.failure
        assert failure is not None
        sizes = made[failure.output]
        shape = "" if sizes is None else f" of {list(sizes.shape)}"
        return (
            f"npu: {self._call.op} is wrong ({_blame(verdict)}) at {origin}: "
            f"element {list(failure.element)}{shape} is {failure.actual!r}, "
            f"expected {failure.expected!r}; {failure.detail}; {kept}"
        )

    def _capsule(self, origin: Origin) -> Capsule:
        """The op alone. InputError when torch has no such call."""
        call = Call(
            self._call.op,
            self._call.args,
            self._call.kwargs,
            origin.place,
            origin.source,
            stream=self._call.stream,
        )
        return single_call(call.op, [call])

    def _blamed(self, capsule: Capsule, verdict: Verdict, made: Sequence[Tensor | None]) -> Verdict:
        """On another backend than the cmodel: the verdict on both, for the cmodel runs the op too.

        Where the cmodel is right the backend is to blame, as the bench would say of the RTL.
        """
        if POOL.settings.backend == "cmodel" or self._call.written():
            return verdict
        with CmodelReplay(capsule, POOL.settings.config) as replay:
            cmodel = replay.bits()
        theirs = [None if x is None else tensor_bits(x) for x in made]
        both = judge(self._call, cmodel, theirs, 1)
        return both if both.failure is not None else verdict


def judge_capsule(capsule: Capsule) -> tuple[int, Counter[str]]:
    """Judge every op of a capsule by its record: elements compared, and ops without a bound.

    WrongResult for the first result that golden does not admit.
    """
    elements, not_judged = 0, Counter[str]()
    for op in capsule.ops:
        if op.op == HOST_READ:
            continue
        verdict = judge_record(capsule, op)
        if verdict is None or verdict.undecided:
            not_judged[op.op] += 1
        elif (failure := verdict.wrong) is not None:
            raise WrongResult(
                f"npu: the capsule is not written: ops[{op.index}] {op.op} is wrong "
                f"({_blame(verdict)}) at {op.source}, in {op.module or 'no module'}: element "
                f"{list(failure.element)} is {failure.actual!r}, expected {failure.expected!r}; "
                f"{failure.detail}"
            )
        else:
            elements += verdict.elements_compared
    return elements, not_judged


def _blame(verdict: Verdict) -> str:
    """With the cmodel alone, packets and model cannot be told apart."""
    alone = POOL.settings.backend == "cmodel" and verdict.blame == "lowering"
    return "lowering or cmodel, a run on the RTL decides" if alone else verdict.blame


def _on_host(value: Any, kind: str) -> Any:
    """The same argument with CPU tensors of the same strides; a number for a tensor as one."""
    if isinstance(value, list | tuple):
        return [_on_host(item, kind.removesuffix("[]")) for item in value]
    if isinstance(value, Tensor):
        if is_npu(value):
            return _copied(value)
        return value.detach().clone() if value.dtype in NPU_TYPES else torch.tensor(value.item())
    if kind == "Tensor" and isinstance(value, bool | int | float):
        return torch.tensor(value)
    return value


def _copied(tensor: Tensor) -> Tensor:
    """A copy of the memory that a tensor spans."""
    if not tensor.numel():
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return span_copy(tensor).as_strided(tensor.shape, tensor.stride())


def _array_size(*results: Sequence[Tensor | None]) -> int:
    tensors = [x for group in results for x in group if x is not None and is_npu(x)]
    return device_of(tensors[0]).array_size if tensors else 1
