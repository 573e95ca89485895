# SPDX-License-Identifier: Apache-2.0
"""Programs on a device: buffers, views of them, programs bound to addresses, one device with one
lock. Knows no op, no torch, no test. docs/runtime.md.

The names below are what other packages use; `driver.runtime.types` and `torch_types` hold the map
of element types.
"""

from driver.runtime.buffer import UNBOUNDED_BYTES, Buffer
from driver.runtime.device import Device
from driver.runtime.loading import DeviceMemory, loaded
from driver.runtime.program import BoundProgram, Program
from driver.runtime.views import TensorView, dense

__all__ = [
    "UNBOUNDED_BYTES",
    "BoundProgram",
    "Buffer",
    "Device",
    "DeviceMemory",
    "Program",
    "TensorView",
    "dense",
    "loaded",
]
