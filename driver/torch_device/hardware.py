# SPDX-License-Identifier: Apache-2.0
"""One device behind "npu": its memory, and rows of the op table run on it, by one thread at a time.

The only module here that knows `driver.runtime` and `driver.lower`. Knows no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from driver.backend import open_backend
from driver.config import load_config
from driver.isa import Opcode, csr
from driver.isa.micro import Reduce
from driver.isa.programs import PROGRAMS
from driver.lower import LOWERINGS, Arg, lower
from driver.lower.registry import views_in
from driver.random_stream import RandomStream
from driver.runtime import Buffer, Device, Program, TensorView, dense
from driver.runtime.memory import RegionUse
from driver.runtime.types import NPU_TYPES
from driver.torch_device.settings import CONFIG_FILE, DeviceSettings

Results = Sequence[TensorView | None]
REGION = "activations"
COPY_ROW = "aten.copy_.default"
_WHOLE = Buffer(0, REGION, "device memory", base=0)
"""All tensors lie in it, at their addresses."""
_REDUCING = frozenset(
    program.number for program in PROGRAMS.values() if program.reduce is not Reduce.NONE
)


class OpenDevice:
    """One device: memory, and the rows of the op table run on it."""

    def __init__(self, settings: DeviceSettings) -> None:
        config = load_config(CONFIG_FILE, settings.config)
        self._backend = open_backend(settings.backend, config)
        self._device = Device(self._backend, config)
        self._base = config.memory.base
        self._lock = RLock()

    def allocate(self, size_bytes: int) -> int:
        """The address of fresh memory. OutOfMemory with the region's numbers."""
        with self._lock:
            return self._device.alloc(size_bytes, REGION).address

    def free(self, addresses: Iterable[int]) -> None:
        """Give back what was allocated."""
        with self._lock:
            for address in addresses:
                self._device.free(Buffer(0, REGION, base=address))

    def memory_report(self) -> tuple[RegionUse, ...]:
        """Use and fragmentation per region, the device's own rings included."""
        with self._lock:
            return self._device.memory_report()

    def bytes_at(self, address: int, size_bytes: int) -> NDArray[np.uint8]:
        """Device memory in place."""
        start = address - self._base
        return self._backend.memory[start : start + size_bytes]

    def cycles(self) -> int:
        """The device's cycle counter. The cmodel has no clock: it counts accesses of the host."""
        with self._lock:
            low = self._backend.read_csr(csr.CYCLE_LO)
            return low | self._backend.read_csr(csr.CYCLE_HI) << 32

    def run(
        self,
        row: str,
        args: Sequence[Arg],
        kwargs: Mapping[str, Arg],
        results: Results,
        stream: RandomStream | None = None,
    ) -> None:
        """Compute a row of the op table into `results`, which may share memory with arguments.

        UnsupportedOp when the NPU cannot; then nothing has run.
        """
        with self._lock:
            config = self._device.config
            program = lower(row, args, kwargs, results, config, stream)
            shared = _shared(row, args, kwargs, results)
            if not shared or _reads_where_it_writes(program, shared):
                self._device.execute(program)
                return
            fresh = [None if view is None else self._like(view) for view in results]
            self._device.execute(lower(row, args, kwargs, fresh, config, stream))
            for view, made in zip(results, fresh, strict=True):
                if view is not None and made is not None:
                    self._device.execute(lower(COPY_ROW, (view, made), {}, (view,), config))
                    self._device.free(made.buffer)

    def _like(self, view: TensorView) -> TensorView:
        """Fresh memory for the same elements."""
        buffer = self._device.alloc(max(view.extent_bytes, 1), REGION)
        return replace(dense(buffer, view.dtype, view.sizes), boolean=view.boolean)

    def close(self) -> None:
        """Release the backend."""
        self._device.close()


def has_row(op: str) -> bool:
    """Whether the op table computes this overload."""
    return op in LOWERINGS


def view_of(
    address: int, dtype: str, sizes: Sequence[int], strides: Sequence[int]
) -> TensorView | None:
    """Elements of torch's type `dtype` ("float32") as rows take them; None if the NPU has no such
    type."""
    found = NPU_TYPES.get(dtype)
    if found is None:
        return None
    return TensorView(_WHOLE, address, found, tuple(sizes), tuple(strides), dtype == "bool")


# ---------------------------------------------------------------------- shared memory
def _shared(
    row: str, args: Sequence[Arg], kwargs: Mapping[str, Arg], results: Results
) -> list[tuple[TensorView, TensorView]]:
    """Operands with the results that they share bytes with.

    Without the first operand where it is the result itself and the op has a form in place: such
    rows are written for that.
    """
    operands = list(views_in([*args, *kwargs.values()]))
    in_place = args[0] if args and _in_place(row) in LOWERINGS else None
    return [
        (operand, result)
        for result in results
        if result is not None and result.count
        for operand in operands
        if operand.count and _overlap(operand, result)
        if not (operand is in_place and operand == result)
    ]


def _in_place(row: str) -> str:
    """The name of the same overload in place: aten.add.Tensor → aten.add_.Tensor."""
    space, name, overload = row.split(".")
    return f"{space}.{name.removesuffix('_')}_.{overload}"


def _reads_where_it_writes(
    program: Program, shared: Sequence[tuple[TensorView, TensorView]]
) -> bool:
    """Whether every element is read before it is written: a single pass over equal views.

    docs/isa.md allows that for VECTOR without reduction; anything else gives undefined data.
    """
    if len(program.packets) > 1 or any(operand != result for operand, result in shared):
        return False
    return all(
        packet.opcode == Opcode.VECTOR and packet.params[0] not in _REDUCING
        for packet in program.packets
    )


def _overlap(a: TensorView, b: TensorView) -> bool:
    """Whether the two reach over common bytes, elements or gaps."""
    return a.address < b.address + b.extent_bytes and b.address < a.address + a.extent_bytes
