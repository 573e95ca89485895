# SPDX-License-Identifier: Apache-2.0
"""Backends behind device "npu": changed in a running process, and going on after a fault."""

from __future__ import annotations

import pytest
import torch
from test_torch_device import run_python

from driver.backend.shared_memory import FaultRange
from driver.errors import DeviceFault
from driver.torch_device.pool import POOL


def used_bytes() -> int:
    torch.npu.empty_cache()
    return sum(use.used_bytes for use in POOL[0].memory_report())


def test_after_a_fault_the_next_op_runs() -> None:
    x = torch.ones(64, device="npu")
    y = torch.ones(64, device="npu")
    torch.npu.synchronize()
    address = x.data_ptr() & ((1 << 48) - 1)
    backend = POOL[0]._backend
    backend.set_faults([FaultRange(address, address + 64)])
    used = used_bytes()
    try:
        for change in (lambda: x + 1, lambda: torch.softmax(x, 0, out=x)):
            change()
            with pytest.raises(DeviceFault):
                torch.npu.synchronize()
        assert (y + 1).sum().item() == 128
    finally:
        backend.set_faults([])
    assert (x + 1).sum().item() == 128
    assert used_bytes() == used


def test_the_info_names_backend_and_hardware() -> None:
    info = torch.npu.get_backend_info()
    assert info["name"] == torch.npu.get_backend_name() == "cmodel"
    assert info["config"] == "default"
    assert info["has_clock"] is False
    assert set(info) >= {"isa_version", "array_size"}
    assert {"cmodel", "rtl"} <= set(torch.npu.list_backends())


CHANGED = """
import torch
x = torch.ones(3, device="npu") * 2
try:
    torch.npu.set_backend("null")
except RuntimeError as error:
    print(str(error)[:30])
kept = x.cpu()
del x
torch.npu.set_backend("null")
print(torch.npu.get_backend_name())
torch.npu.set_backend("cmodel")
print((kept.to("npu") + 1).sum().item(), torch.npu.memory_allocated())
try:
    torch.npu.set_backend("gone")
except Exception as error:
    print(error)
print(torch.npu.get_backend_name())
"""


def test_the_backend_changes_when_no_tensor_is_left() -> None:
    done = run_python(CHANGED)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "npu:0: 12 bytes of tensors are"
    assert lines[1:3] == ["null", "9.0 0"]
    assert "backend" in lines[3]
    assert "one of" in lines[3]
    assert lines[4] == "cmodel"
