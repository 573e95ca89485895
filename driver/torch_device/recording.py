# SPDX-License-Identifier: Apache-2.0
"""torch.npu.capture: a stretch of a running program as a capsule, as the NPU computed it.

Every row that a device runs becomes an op of the capsule, with the operands and results that the
program had, in forward, backward and optimizers alike. Views are no rows: they are strides of
operands. What the host writes between ops is found by its bytes, as in a capture of a module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any

import torch

from driver.capture import Capsule, Op, TensorRef, Value, save_capsule
from driver.capture.capsule import signed
from driver.capture.format import HOST_READ, Item, RecordedOn
from driver.capture.schemas import named_arguments
from driver.capture.single import argument_kinds, overload
from driver.capture.store import check_replaceable
from driver.capture.tensors import to_constant
from driver.errors import InputError
from driver.runtime.torch_types import NPU_TYPES
from driver.torch_device.capture_book import (
    CAPTURE,
    CaptureLimits,
    CaptureReport,
    DeviceBook,
    form_of,
    leaves_writes,
)
from driver.torch_device.check import NothingChecked, WrongResult
from driver.torch_device.hardware import COPY_ROW
from driver.torch_device.kept_memory import KeptMemory
from driver.torch_device.observers import OBSERVERS, Finish, RowRun
from driver.torch_device.origins import Origin, Origins
from driver.torch_device.pool import POOL
from driver.torch_device.replaying import BufferKey, CmodelReplay
from driver.torch_device.tensors import dense_copy, is_npu

Tensor = torch.Tensor


def _needs_generator(row: str) -> bool:
    arguments = overload(row)._schema.arguments
    return any(a.name == "generator" and not a.has_default_value() for a in arguments)


@dataclass(frozen=True)
class _Begun:
    """A row whose operands are recorded and which has not run yet."""

    run: RowRun
    op: str
    origin: Origin
    inputs: tuple[Value, ...]
    kwargs: Mapping[str, Value]
    before: Sequence[TensorRef | None]
    """For each result that is part of other memory: the memory before the row ran."""
    kept: KeptMemory | None = None
    """What the row must leave as it was."""


class Capture:
    """Records all devices' ops inside a `with` block; on a clean exit it writes the capsule.

    Before, the capsule's ops run again on a cmodel of their own, which has to give the bits that
    the program saw, and golden judges each result. Nothing is written if either fails.
    """

    def __init__(self, path: str | Path, limits: CaptureLimits) -> None:
        """InputError when `path` exists and is no capsule, or its name is no capsule's name."""
        self._path = Path(path)
        check_replaceable(self._path)
        if not self._path.name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            expected = "letters, digits, '_', '.', '-'"
            raise InputError(CAPTURE, "name", self._path.name, expected)
        self.report = CaptureReport()
        self._limits = limits
        self._book = DeviceBook(self._path.name, limits.size_bytes)
        self._origins = Origins(self._book.name_parameters)
        self._ops: list[Op] = []
        self._left: dict[tuple[int, BufferKey], str] = {}
        """(op, buffer) → the storage that the op left in an argument that it does not return."""
        self._wrong: str | None = None
        """What a row did besides its work, also where the program caught the error."""
        self._lock = RLock()

    def __enter__(self) -> CaptureReport:
        if any(isinstance(other, Capture) for other in OBSERVERS):
            raise RuntimeError("npu: a capture is running already")
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
        if kind is None:
            if self._wrong is not None:
                raise WrongResult(self._wrong)
            capsule = self._capsule()
            self._prove(capsule)
            save_capsule(capsule, self._path)

    # ------------------------------------------------------------------ Observer
    def begin(self, run: RowRun) -> Finish | None:
        """See Observer."""
        with self._lock:
            if len(self._ops) >= self._limits.ops:
                expected = "max_ops or fewer; capture a shorter stretch"
                raise InputError(CAPTURE, "ops", f"more than {self._limits.ops}", expected)
            begun = self._begun(run)
            if run.row == HOST_READ:
                self._add(begun, HOST_READ, self._refs(begun, run.results))
                return None
        return lambda: self._finish(begun)

    def not_seen(self, what: str) -> None:
        """See Observer."""
        with self._lock:
            self.report.not_recorded[what] += 1

    def take_apart(
        self, op: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """See Observer: the smaller ops are recorded."""

    # ------------------------------------------------------------------ one row
    def _begun(self, run: RowRun) -> _Begun:
        kinds = argument_kinds(run.row)
        op, apart = form_of(run)
        where = f"ops[{len(self._ops)}] {run.row}"
        given = zip(run.args, kinds.values(), strict=False)
        named = run.keywords(kinds)
        if _needs_generator(run.row):
            named["generator"] = None
        return _Begun(
            run,
            op,
            self._origins.here(),
            tuple(self._value(value, kind, where) for value, kind in given),
            {name: self._value(value, kinds[name], where) for name, value in named.items()},
            [
                self._book.ref(x, where) if is_part and x is not None else None
                for x, is_part in zip(run.results, apart, strict=True)
            ],
            None if run.row == HOST_READ else self._kept(run),
        )

    def _kept(self, run: RowRun) -> KeptMemory:
        operands = named_arguments(overload(run.row), run.args, run.kwargs)
        written = [x for x in run.results if x is not None]
        return KeptMemory({} if leaves_writes(run.row) else operands, written)

    def _finish(self, begun: _Begun) -> None:
        """Record the row; results that are part of other memory as fresh tensors, copied there."""
        with self._lock:
            changed = None if begun.kept is None else begun.kept.changed()
            if changed is not None:
                self._wrong = (
                    f"npu: the capsule is not written: ops[{len(self._ops)}] {begun.op} is wrong "
                    f"(lowering) at {begun.origin.source}: {changed}"
                )
                raise WrongResult(self._wrong)
            results = [
                x if before is None or x is None else dense_copy(x)
                for x, before in zip(begun.run.results, begun.before, strict=True)
            ]
            outputs = self._refs(begun, results)
            self._add(begun, begun.op, outputs)
            for x, before, made in zip(begun.run.results, begun.before, outputs, strict=True):
                if x is not None and before is not None and made is not None:
                    after = self._book.ref(x, f"ops[{len(self._ops)}] {COPY_ROW}")
                    run = replace(begun.run, stream=None)
                    copy = _Begun(run, COPY_ROW, begun.origin, (before, made), {}, ())
                    self._add(copy, COPY_ROW, (after,))

    def _refs(self, begun: _Begun, results: Sequence[Tensor | None]) -> tuple[Any, ...]:
        where = f"ops[{len(self._ops)}] {begun.op}"
        return tuple(None if x is None else self._book.ref(x, where) for x in results)

    def _add(self, begun: _Begun, op: str, outputs: tuple[TensorRef | None, ...]) -> None:
        run, index = begun.run, len(self._ops)
        if leaves_writes(op):
            left = [x for x in (*run.args, *run.kwargs.values()) if is_npu(x)]
            refs = [self._book.ref(x, f"ops[{index}] {op}") for x in left]
            self._left |= {
                (index, ref.buffer): ref.storage for ref in refs if ref.buffer is not None
            }
        self._ops.append(
            Op(
                index=index,
                op=op,
                module=begun.origin.place,
                source=begun.origin.source,
                view=False,
                inputs=begun.inputs,
                kwargs=dict(begun.kwargs),
                outputs=outputs,
                stream=None if run.stream is None else (run.stream.seed, run.stream.op),
            )
        )

    def _value(self, value: Any, kind: str, where: str) -> Value:
        if isinstance(value, list | tuple):
            return tuple(self._item(item, kind.removesuffix("[]"), where) for item in value)
        return self._item(value, kind, where)

    def _item(self, value: Any, kind: str, where: str) -> Item:
        if isinstance(value, Tensor):
            if not is_npu(value) and value.dtype not in NPU_TYPES:  # a number for the device
                value = torch.tensor(value.item())
            return self._book.ref(value.detach(), where)
        if kind == "Tensor" and isinstance(value, bool | int | float):
            return self._book.ref(torch.tensor(value), where)
        try:
            return to_constant(value)
        except TypeError as error:
            expected = "a tensor, a number, a string or a constant"
            raise InputError(CAPTURE, where, str(error), expected) from error

    # ------------------------------------------------------------------ the capsule
    def _capsule(self) -> Capsule:
        if not self._ops:
            raise NothingChecked("npu: nothing was captured: no op ran on the NPU")
        made: set[int | None] = set()
        first: dict[int | None, TensorRef] = {}
        last: dict[int | None, TensorRef] = {}
        for op in self._ops:
            for ref in op.operands():
                if ref.buffer not in made:
                    first.setdefault(ref.buffer, ref)
            for output in op.outputs:
                if output is not None:
                    made.add(output.buffer)
                    last[output.buffer] = output
        settings, living = POOL.settings, self._book.living()
        fields = {
            "name": self._path.name,
            "seed": 0,
            "torch": str(torch.__version__),
            "storages": self._book.storages,
            "inputs": tuple(first.values()),
            "outputs": tuple(ref for ref in last.values() if ref.buffer in living),
            "ops": tuple(self._ops),
            "device": RecordedOn(backend=settings.backend, config=settings.config),
        }
        self.report.ops, self.report.size_bytes = len(self._ops), self._book.size_bytes
        return Capsule(signed(fields), self._book.data)

    def _prove(self, capsule: Capsule) -> None:
        """WrongResult when a cmodel does not give the recorded bits, or golden admits them not."""
        from driver.torch_device.judging import judge_capsule  # noqa: PLC0415 (it knows golden)

        with CmodelReplay(capsule, POOL.settings.config, self._left) as replay:
            op = replay.first_difference()
            self.report.host_writes = replay.host_writes
        if op is not None:
            raise WrongResult(
                f"npu: the capsule is not written: ops[{op.index}] {op.op} at {op.source}, in "
                f"{op.module or 'no module'}, left other bits in the program than on a cmodel"
            )
        self.report.elements, self.report.not_judged = judge_capsule(capsule)
