# SPDX-License-Identifier: Apache-2.0
"""ATen ops lowered and run on the cmodel, next to torch's own answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from backend_host import CONFIG

import driver.capture.npu_ops  # noqa: F401 (registers torch.ops.npu)
from driver.backend import open_backend
from driver.capture.tensors import storage_view
from driver.lower import Arg, lower
from driver.lower.registry import overload
from driver.runtime import Buffer, Device, Program, TensorView
from driver.runtime.torch_types import NPU_TYPES
from tb.ops.placing import argument, view_of

_BYTES = 0xA5
"""What results hold before the op: an element that nobody writes does not look right."""


@dataclass(frozen=True)
class Answer:
    """What the NPU and torch made of one call."""

    program: Program
    found: tuple[torch.Tensor | None, ...]
    expected: tuple[torch.Tensor | None, ...]

    @property
    def pair(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Both answers of an op with one output."""
        ((found,), (expected,)) = self.found, self.expected
        assert found is not None
        assert expected is not None
        return found, expected

    def exact(self) -> int:
        """Assert equal bits, NaNs alike; how many elements were compared."""
        compared = 0
        for found, expected in zip(self.found, self.expected, strict=True):
            if found is not None and expected is not None:
                torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
                compared += found.numel()
        return compared

    def close(self, ulps: float) -> int:
        """Assert results within so many units in the last place of the result type, or of the
        largest magnitude in it; how many elements were compared."""
        compared = 0
        for found, expected in zip(self.found, self.expected, strict=True):
            if found is None or expected is None:
                continue
            if not found.is_floating_point():
                torch.testing.assert_close(found, expected, rtol=0, atol=0)
            else:
                eps = ulps * torch.finfo(found.dtype).eps
                finite = expected[expected.isfinite()].abs().double()
                scale = float(finite.max()) if finite.numel() else 0.0
                torch.testing.assert_close(
                    found, expected, rtol=eps, atol=eps * min(scale, 1.0), equal_nan=True
                )
            compared += found.numel()
        return compared


class TorchBench:
    """A device to which torch's tensors go."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._storages: dict[int, Buffer] = {}
        self._alive: list[torch.Tensor] = []

    def view(self, tensor: torch.Tensor) -> TensorView:
        """The tensor in device memory; tensors of one storage share theirs."""
        storage = tensor.untyped_storage()
        key = storage.data_ptr()
        if key not in self._storages or not key:
            data = storage_view(tensor)
            self._storages[key] = self.device.upload(data if data.size else np.zeros(1, np.uint8))
            self._alive.append(tensor)
        return view_of(tensor, self._storages[key], NPU_TYPES[tensor.dtype])

    def argument(self, value: Any) -> Arg:
        """A torch argument as the lowering takes it."""
        return argument(value, self.view)

    def result(self, tensor: torch.Tensor) -> TensorView:
        """Memory for an output, with torch's strides."""
        view = view_of(tensor, Buffer(0), NPU_TYPES[tensor.dtype])
        noise = np.full(max(view.extent_bytes, 1), _BYTES, np.uint8)
        return replace(view, buffer=self.device.upload(noise), offset_bytes=0)

    def fetch(self, view: TensorView, like: torch.Tensor) -> torch.Tensor:
        """The elements of a result."""
        if not view.count:
            return torch.empty_like(like)
        raw = self.device.download(view.address, (view.extent_bytes,), np.uint8)
        return torch.from_numpy(raw).view(like.dtype).as_strided(view.sizes, view.strides)

    def call(self, op: str, *args: Any, **kwargs: Any) -> Answer:
        """Run an op ("add.Tensor", "npu.quantize") on both."""
        name = overload(op)
        namespace, packet, which = name.split(".")
        function = getattr(getattr(getattr(torch.ops, namespace), packet), which)
        placed = [self.argument(value) for value in args]  # before torch writes in place
        with torch.no_grad():
            given = function(*args, **kwargs)
        return self.run(name, placed, kwargs, given)

    def run(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], given: Any) -> Answer:
        """Run an op whose answer is known. Arguments may be placed already."""
        expected = tuple(given) if isinstance(given, tuple | list) else (given,)
        expected = tuple(x if isinstance(x, torch.Tensor) else None for x in expected)
        results = [None if x is None else self.result(x) for x in expected]
        program = lower(
            name,
            [self.argument(value) for value in args],
            {key: self.argument(value) for key, value in kwargs.items()},
            results,
            self.device.config,
        )
        self.device.execute(program)
        found = tuple(
            None if view is None or like is None else self.fetch(view, like)
            for view, like in zip(results, expected, strict=True)
        )
        return Answer(program, found, expected)


def layouts(tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """The same values, lying in memory in several ways."""
    spread = torch.zeros(*tensor.shape, 3, dtype=tensor.dtype)
    spread[..., 1] = tensor
    order = tuple(reversed(range(tensor.dim())))
    return {
        "dense": tensor.contiguous(),
        "permuted": tensor.permute(order).contiguous().permute(order),
        "sliced": spread[..., 1],
    }


def open_bench() -> TorchBench:
    """A cmodel of its own."""
    return TorchBench(Device(open_backend("cmodel", CONFIG), CONFIG))


def numbers(*sizes: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Normal floats, small integers of either sign, or truth values."""
    generator = torch.Generator().manual_seed(seed + sum(sizes) + 1)
    values = torch.randn(sizes, generator=generator) * 3
    if dtype is torch.bool:
        return values > 0
    return (values.abs() if dtype is torch.uint8 else values).to(dtype)
